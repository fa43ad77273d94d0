-- One row a record: the ledger of a sink, the claim on a checkpoint path, or kept offsets.
-- Whoever writes a row has locked it before (SELECT ... FOR UPDATE) and compared its `stamp`, a
-- random name of its last write. So of two drivers one finds that the other was first.
-- `body` is the record as JSON. Two things of it are columns, so that other statements find them:
-- `token`    the decision that is being applied, empty where none is.
-- `decided`  the order of the decisions. Those that are applied after their transaction are counted
--            by `revision` in the row with no name: each has twice its number, and all others have
--            one more than the last of these.
-- Where an epoch is applied in several transactions (atomicity=chunk), each writes to the row, too:
-- `applied`  so many chunks of the decision `token` took effect. It grows by one in the transaction
--            that writes the rows of the chunk, and is 0 for another token.
-- `aside`    the rows of these chunks that are dead letters.
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
