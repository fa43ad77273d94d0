-- Staged chunks. One that is larger than a packet lies here in several pieces.
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
