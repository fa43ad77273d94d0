-- Staged chunks: chunk `seq` of an attempt, with the epoch that it was staged for.
-- One that is larger than a packet lies here in several pieces, which one transaction writes.
-- A row never changes but for `staged_at`, its age by the server's clock, and goes when its epoch is
-- applied or given up. The key makes staging repeatable, and keeps the pieces of a sink together.
-- `row_count` is that of the whole chunk, `bytes` the size of this piece of it.
CREATE TABLE IF NOT EXISTS {log} (
  sink      VARCHAR(200) CHARACTER SET ascii COLLATE ascii_bin NOT NULL,
  attempt   VARCHAR(64) CHARACTER SET ascii COLLATE ascii_bin NOT NULL,
  seq       INT NOT NULL,
  piece     INT NOT NULL,
  query_id  VARCHAR(64) CHARACTER SET ascii COLLATE ascii_bin NOT NULL,
  epoch     BIGINT NOT NULL,
  row_count INT NOT NULL,
  bytes     INT NOT NULL,
  staged_at DOUBLE NOT NULL,
  payload   LONGBLOB NOT NULL,
  PRIMARY KEY (sink, attempt, seq, piece)
) ENGINE=InnoDB
