-- Staged chunks: chunk `seq` of an attempt, with the epoch for which it was staged.
-- One transaction writes a chunk larger than a packet in several pieces.
-- A row never changes, except for `staged_at`, its time by the server's clock. It is deleted when
-- its epoch is applied or discarded. The key makes staging repeatable, and keeps the pieces of a
-- sink together. `row_count` is that of the whole chunk, `bytes` the size of this piece.
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
