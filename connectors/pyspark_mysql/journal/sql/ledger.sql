-- One row a record: the ledger of a sink, or the claim on a checkpoint path.
-- `applied` counts the chunks of the decision `token` that took effect, where an epoch is applied
-- in several transactions (atomicity=chunk), and `aside` the rows of these that are dead letters.
-- `token` is empty where no decision is being applied. `decided` gives the order of the decisions.
-- Those that are applied after their transaction are counted by `revision` in the row with no name:
-- each has twice its number, and all others have one more than the last of these.
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
