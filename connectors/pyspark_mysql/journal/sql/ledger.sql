-- One row per record: the ledger of a sink, the claim on a checkpoint path, or kept offsets.
-- A writer first locks the row (SELECT ... FOR UPDATE) and compares its `stamp`, the random name of
-- its last write. So of two drivers the second finds that the other was first.
-- `body` is the record as JSON. Two of its fields are columns, so that other statements find them:
-- `token`    the decision that is being applied, or empty.
-- `decided`  the order of the decisions. The `revision` of the row without a name counts the
--            decisions that are applied after their transaction. Each of them has twice its number,
--            and every other decision has one more than the last of them.
-- If an epoch is applied in several transactions (atomicity=chunk), each also writes to the row:
-- `applied`  the number of applied chunks of the decision `token`. It grows by one in the
--            transaction that writes the rows of the chunk, and is 0 for another token.
-- `aside`    the number of rows of these chunks that are dead letters.
CREATE TABLE IF NOT EXISTS {ledger} (
  name     VARCHAR(200) CHARACTER SET ascii COLLATE ascii_bin NOT NULL PRIMARY KEY,
  revision BIGINT NOT NULL,
  stamp    VARCHAR(64) CHARACTER SET ascii COLLATE ascii_bin NOT NULL,
  token    VARCHAR(64) CHARACTER SET ascii COLLATE ascii_bin NOT NULL,
  body     LONGTEXT CHARACTER SET utf8mb4 NOT NULL,
  applied  INT NOT NULL DEFAULT 0,
  aside    INT NOT NULL DEFAULT 0,
  decided  BIGINT NOT NULL DEFAULT 0,
  KEY (token)
) ENGINE=InnoDB
