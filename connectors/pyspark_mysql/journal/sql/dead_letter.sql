-- Dead letters: bad rows, each written once, in the transaction that stores the other rows.
CREATE TABLE IF NOT EXISTS {dead_letter} (
  id           BIGINT NOT NULL AUTO_INCREMENT PRIMARY KEY,
  sink         VARCHAR(200) CHARACTER SET ascii NOT NULL,
  epoch        BIGINT NOT NULL,
  partition_id INT NULL,
  target       VARCHAR(255) CHARACTER SET utf8mb4 NOT NULL,
  reason       TEXT CHARACTER SET utf8mb4 NOT NULL,
  row_key      LONGTEXT CHARACTER SET utf8mb4 NOT NULL,
  row_data     LONGTEXT CHARACTER SET utf8mb4 NOT NULL,
  base64       LONGTEXT CHARACTER SET utf8mb4 NOT NULL,
  at           DATETIME(6) NOT NULL DEFAULT CURRENT_TIMESTAMP(6)
) ENGINE=InnoDB
