"""Draws statements of MySQL and MariaDB from a grammar that follows their manuals.

Most statements run on both servers; one that a server rejects does no harm.
"""

from __future__ import annotations

import random
import re
from dataclasses import dataclass

GRAMMAR = {
    "any": ["{ours}", "{ours}", "{other}", "{other}", "{view}"],
    "ours": ["t", "{db}.t", "`t`", "{q}t{q}", "/*!50000 t */", "{db} . `t`"],
    "other": ["o", "{db}.o", "`o`", "{db}2.t", "{db}2.`t`", "{q}o{q}"],
    "view": ["v", "{db}2.v"],
    "text": ["'x'", "'it''s'", r"'a\'", "', RENAME TO t -- '", '"x"', '"t"', "'/*'", "'t'", "'#'"],
    "gap": [" ", " ", " ", "\n", "/* c */", " -- t\n", " # it's\n", "/**/", " /* ' */ "],
    "new": ["n{number}", "{db}.n{number}", "`n{number}`"],
    "row": ["{number}, 7, 'x'", "{number}, {number}, 'y'"],
    # -- definitions
    "alter": [
        "ALTER {ignore}TABLE {if}{any} {clause}",
        "ALTER {ignore}TABLE {if}{any} {clause}",
        "ALTER {ignore}TABLE {if}{any} {clause}, {clause}",
        "ALTER TABLE {any} {clause} {clause}",
    ],
    "ignore": ["", "", "", "IGNORE ", "ONLINE "],
    "if": ["", "", "", "IF EXISTS "],
    "clause": [
        *("ADD COLUMN c INT", "ADD t INT", "DROP COLUMN n", "DROP s", "MODIFY n BIGINT", "FORCE"),
        *("CHANGE n m INT", "RENAME COLUMN n TO m", "RENAME COLUMN n TO t", "RENAME TO {any}"),
        *("RENAME {new}", "RENAME = {any}", "RENAME AS {new}", "ADD INDEX i{number} (n)"),
        *("ADD UNIQUE (n)", "ADD UNIQUE KEY (s)", "ADD CONSTRAINT UNIQUE (n)", "DROP PRIMARY KEY"),
        *("ADD FULLTEXT (s)", "ADD PRIMARY KEY (n)", "DROP CONSTRAINT `PRIMARY`", "DROP KEY k"),
        *("DROP INDEX `primary`", "DROP INDEX `PRÍMARY`", "COMMENT {text}", "COMMENT = {text}"),
        *("COMMENT {text} ENGINE=MEMORY", "COMMENT='x' AUTO_INCREMENT=3", "AUTO_INCREMENT = 100"),
        *("ENGINE=MyISAM", "ENGINE=BLACKHOLE", "ENGINE=InnoDB", "ROW_FORMAT=DYNAMIC", "ORDER BY n"),
        *("CONVERT TO CHARACTER SET latin1", "DEFAULT CHARACTER SET latin1", "DISABLE KEYS"),
        *("ADD CHECK (n < 1000)", "ADD CONSTRAINT x CHECK (n < 1000)", "DROP CONSTRAINT x"),
        *("ADD FOREIGN KEY (n) REFERENCES o (id)", "ALTER n SET DEFAULT 5", "ALGORITHM=COPY"),
        *("ADD FOREIGN KEY (n) REFERENCES o (id) ON DELETE SET NULL", "LOCK=SHARED", "WAIT 1"),
        *("PARTITION BY HASH (id) PARTITIONS 2", "REMOVE PARTITIONING", "COALESCE PARTITION 1"),
        *("TRUNCATE PARTITION p0", "DROP PARTITION p0", "EXCHANGE PARTITION p0 WITH TABLE {any}"),
        *("REBUILD PARTITION ALL", "CONVERT PARTITION p0 TO TABLE {new}", "DISCARD TABLESPACE"),
        "EXCHANGE PARTITION p0 WITH TABLE {any} WITHOUT VALIDATION",
        "CONVERT TABLE {any} TO PARTITION p9 VALUES LESS THAN (900)",
        "REORGANIZE PARTITION p0 INTO (PARTITION p0 VALUES LESS THAN (100))",
        *("ADD SYSTEM VERSIONING", "ALTER INDEX k INVISIBLE", "RENAME INDEX k TO k2"),
        "ADD COLUMN g INT AS (n + 1) STORED, ADD UNIQUE (g)",
    ],
    "define": [
        "{alter}",
        "{alter}",
        "{alter}",
        "TRUNCATE {any}",
        "TRUNCATE TABLE {any}",
        "DROP TABLE {if}{any}",
        "DROP TABLE {if}{other}, {any}",
        "DROP TABLES IF EXISTS nothing, {any}",
        "DROP {view_or_table} {any}",
        "RENAME TABLE {any} TO {new}",
        "RENAME TABLES t TO x, o TO t, x TO o",
        "RENAME TABLE {other} TO {new}, t TO o",
        "CREATE {replace}TABLE {if_not}{any} (id INT PRIMARY KEY, n INT, s VARCHAR(9))",
        "CREATE {replace}TABLE {if_not}{any} LIKE o",
        "CREATE {replace}TABLE {if_not}{any} AS SELECT * FROM o",
        "CREATE {replace}TABLE {new} SELECT f({number})",
        "CREATE {replace}TABLE {new} AS VALUES ROW(f({number}))",
        "CREATE {replace}SEQUENCE {any}",
        "CREATE {replace}DATABASE {db}",
        "CREATE {replace}DATABASE {if_not}{db}2",
        "DROP DATABASE {db}",
        "DROP SCHEMA IF EXISTS {db}",
        "DROP DATABASE {db}2",
        "DROP INDEX `PRIMARY` ON {any}",
        "DROP INDEX k ON {any}",
        "CREATE UNIQUE INDEX j ON {any} (n)",
        "CREATE INDEX j ON {any} ((n + 1))",
        "OPTIMIZE TABLE {any}",
        "REPAIR TABLE {any}",
        "ANALYZE TABLE {any}",
    ],
    "view_or_table": ["VIEW", "TABLE", "TEMPORARY TABLE"],
    "replace": ["", "OR REPLACE ", "/*!50000 OR REPLACE */ ", "TEMPORARY "],
    "if_not": ["", "IF NOT EXISTS "],
    # -- statements about other objects only, at which no stream may stop
    "harmless": [
        "CREATE PROCEDURE p{number}() START TRANSACTION",
        "CREATE PROCEDURE p{number}() COMMIT",
        "CREATE PROCEDURE p{number}() BEGIN TRUNCATE t; ROLLBACK; END",
        "CREATE FUNCTION f{number}() RETURNS INT DETERMINISTIC RETURN 1 /* BEGIN */",
        "CREATE TRIGGER g{number} BEFORE INSERT ON o FOR EACH ROW SET @x = 'START TRANSACTION'",
        "CREATE EVENT e{number} ON SCHEDULE EVERY 1 YEAR DISABLE DO DELETE FROM t",
        "CREATE OR REPLACE VIEW w AS SELECT * FROM t",
        "ALTER VIEW v AS SELECT id FROM t",
        "DROP VIEW {db}2.v",
        "DROP SEQUENCE IF EXISTS t",
        "DROP INDEX `PRIMARY` ON {other}",
        "DROP TRIGGER into_t",
        "DROP FUNCTION f",
        "CREATE TABLE begin (id INT) COMMENT 'START TRANSACTION'",
        "CREATE TABLE transaction LIKE t",
        "CREATE TABLE start AS SELECT 1 AS transaction",
        "CREATE TABLE {new} (t INT) COMMENT {text}",
        "ALTER TABLE {other} ADD COLUMN t INT, ADD INDEX (n)",
        "ALTER TABLE {other} COMMENT {text}",
        "ALTER TABLE {other} RENAME TO {new}",
        "ALTER TABLE {other} ADD FOREIGN KEY (n) REFERENCES {db}.t (id)",
        "ALTER TABLE t ADD INDEX (n)",
        "ALTER TABLE t ADD UNIQUE (id, n), COMMENT 'x'",
        "TRUNCATE {other}",
        "DROP TABLE {other}",
        "DROP TABLE /* {ours} */ {other} -- {ours}",
        "RENAME TABLE {other} TO {new}",
        "DROP DATABASE {db}2",
        "CREATE DATABASE {db}3",
        "ALTER DATABASE {db} CHARACTER SET latin1",
        "CREATE USER {db}@localhost",
        "GRANT SELECT ON {db}.t TO {db}@localhost",
        "FLUSH TABLES",
        "ANALYZE TABLE {any}",
        "INSERT INTO {other} (id, n) VALUES ({number}, 1)",
        "UPDATE {other} SET n = 8",
    ],
    # -- rows; a session may have any binlog_format
    "write": [
        "INSERT INTO {any} VALUES ({row})",
        "INSERT IGNORE INTO {any} VALUES ({row}), (1, 1, 'a')",
        "REPLACE INTO {any} VALUES ({row}), (2, 5, 'b')",
        "INSERT INTO {any} SELECT id + 50, n, RAND() FROM t",
        "INSERT INTO {any} VALUES (@a, LAST_INSERT_ID(), 'u')",
        "INSERT INTO {any} VALUES (1, 9, '') ON DUPLICATE KEY UPDATE n = n + 100",
        "UPDATE {any} SET n = n + 1",
        "UPDATE {any} SET id = id + 200 WHERE id < 3",
        "UPDATE {other} AS a JOIN t AS b ON a.id = b.id SET b.n = 77, a.n = 78",
        "DELETE FROM {any} WHERE id > 1",
        "DELETE b FROM {other} AS a JOIN t AS b ON a.id = b.id",
        "DELETE FROM {any}",
        "SELECT f({number})",
        "DO f({number})",
        "SET @a = f({number})",
        "CALL change_t()",
        "ANALYZE DELETE FROM {any}",
        "LOAD DATA INFILE '{file}' INTO TABLE {any}",
        "BEGIN NOT ATOMIC {write}; END",
        "WITH c AS (SELECT 1 AS a) DELETE FROM t WHERE id IN (SELECT a FROM c)",
    ],
    "set": ["SET STATEMENT max_statement_time=9 FOR {define}"],
    "odd": [
        "EXECUTE IMMEDIATE 'TRUNCATE t'",
        "SET STATEMENT sql_mode='ANSI_QUOTES' FOR ALTER TABLE o COMMENT \"', RENAME TO t, '\"",
        "SET STATEMENT sql_mode='NO_BACKSLASH_ESCAPES' FOR ALTER TABLE o COMMENT 'a\\', FORCE -- '",
        "IMPORT TABLE FROM 't.sdi'",
        "XA RECOVER",
    ],
    # -- several statements in a sequence
    "session": [
        "BEGIN|{write}|SAVEPOINT a|{write}|ROLLBACK TO a|{write}|COMMIT",
        "BEGIN|{write}|CREATE TEMPORARY TABLE tmp (a INT)|{write}|ROLLBACK",
        "SET autocommit = 0|{write}|SAVEPOINT t|{write}|ROLLBACK TO SAVEPOINT t|COMMIT|{write}",
        "BEGIN|{write}|{define}|{write}|ROLLBACK",
        "XA START 't'|{write}|{write}|XA END 't'|XA COMMIT 't' ONE PHASE",
        "XA START '{db}'|{write}|XA END '{db}'|XA PREPARE '{db}'|XA COMMIT '{db}'",
        "XA START '{db}'|{write}|XA END '{db}'|XA PREPARE '{db}'|XA ROLLBACK '{db}'",
        "SET sql_mode = '{mode}'|{prepare}|SET sql_mode = '{mode}'|EXECUTE s",
        "SET NAMES {names}|{prepare}|SET NAMES {names}|EXECUTE s",
        "LOCK TABLES t WRITE, o WRITE|{write}|{alter}|UNLOCK TABLES|{write}",
        "SET foreign_key_checks = 0|{define}|SET foreign_key_checks = 1|{write}",
        "CREATE TEMPORARY TABLE t LIKE o|{write}|{define}|DROP TEMPORARY TABLE t|{write}",
    ],
    "prepare": ["SET @s = {text_of}|PREPARE s FROM @s"],
    "mode": ["", "ANSI_QUOTES", "NO_BACKSLASH_ESCAPES"],
    "names": ["utf8mb4", "latin1", "sjis", "gbk"],
    "text_of": [
        "CONCAT('DROP TABLE o, ', 0x22, 't', 0x22)",
        "CONCAT('ALTER TABLE o EXCHANGE PARTITION p0 WITH TABLE ', 0x22, 't', 0x22)",
        "CONCAT('ALTER TABLE t COMMENT ', 0x2761, 0x5C27, ', DROP COLUMN n -- ', 0x27)",
        "CONCAT('ALTER TABLE t COMMENT ', 0x22, 0x5C22, ', DROP COLUMN n -- ', 0x22)",
        "CONCAT('ALTER TABLE t COMMENT ', 0x27, 0x835C27, ', DROP COLUMN n -- ', 0x27)",
    ],
    "sentence": [
        "{define}",
        "{define}",
        "{write}",
        "{harmless}",
        "{harmless}",
        "{set}",
        "{odd}",
        "{session}",
    ],
}

SESSIONS = {
    "binlog_format": ["ROW", "ROW", "STATEMENT", "MIXED"],
    "sql_mode": ["", "", "ANSI_QUOTES", "NO_BACKSLASH_ESCAPES", "ORACLE", "MSSQL"],
    "NAMES": ["utf8mb4", "utf8mb4", "latin1", "gbk", "sjis", "binary"],
}


@dataclass(frozen=True)
class Drawn:
    """A statement, and the settings of its session.

    Attributes:
        harmless: no stream of table `t` may stop at it.
    """

    settings: dict[str, str]
    text: str
    harmless: bool


def draw(seed: int, db: str, file: str) -> Drawn:
    """Draw a statement for a table `t` in a database."""
    dice = random.Random(seed)
    settings = {name: dice.choice(values) for name, values in SESSIONS.items()}
    has_quotes = settings["sql_mode"] in ("ANSI_QUOTES", "ORACLE", "MSSQL")
    known = {"db": db, "file": file, "q": '"' if has_quotes else "`"}
    kind = dice.choice(GRAMMAR["sentence"])
    text = re.sub(r"\{(\w+)\}", lambda found: _said(found[1], known, dice), kind)
    if kind == "{harmless}":
        settings["binlog_format"] = "ROW"
    if dice.random() < 0.3 and "'" not in text and '"' not in text:
        text = re.sub(" ", lambda _: dice.choice(GRAMMAR["gap"]), text)
    return Drawn(settings, text, kind == "{harmless}")


def _said(name: str, known: dict[str, str], dice: random.Random) -> str:
    if name == "number":
        return str(dice.randrange(100, 999))
    text = known.get(name) or dice.choice(GRAMMAR[name])
    return re.sub(r"\{(\w+)\}", lambda found: _said(found[1], known, dice), text)
