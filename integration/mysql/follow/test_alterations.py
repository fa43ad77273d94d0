"""Statements that a stream carries on: an ALTER that keeps all stored values, TRUNCATE and DROP."""

from __future__ import annotations

import json
import random
from collections.abc import Callable
from typing import Any

import pytest
from integration.support.marks import slow_cases
from integration.support.mysql import Table, each_epoch, feed, purge, rows
from pymysql import MySQLError
from pymysql.cursors import Cursor

from sparkonce.errors import StoreRefused, ValueUnreadable

CARRIES = {"onSchemaChange": "continue", "onTruncate": "row"}
STRICT, LAX = "STRICT_TRANS_TABLES", ""


@pytest.fixture(autouse=True)
def full(set_global: Callable[[str, object], None]) -> None:
    set_global("binlog_row_metadata", "FULL")


def told(made: Any, begin: Any) -> list[tuple[Any, ...]]:
    """Operation and row, or statement, of each change of a stream of several tables."""
    return [(one["_op"], json.loads(one["_row"])) for one in rows(made, begin)]


def test_rows_have_the_columns_that_the_table_had(url: str, mysql: Cursor, unique: str) -> None:
    mysql.execute(f"CREATE DATABASE {unique}")
    mysql.execute(f"CREATE TABLE {unique}.t (id INT PRIMARY KEY, n INT, old VARCHAR(9))")
    made = feed(url, f"{unique}.*", **CARRIES)
    begin = made.begin()
    statements = [
        f"INSERT INTO {unique}.t VALUES (1, 2, 'a')",
        f"ALTER TABLE {unique}.t ADD COLUMN new INT DEFAULT 7, MODIFY n BIGINT FIRST",
        f"ALTER TABLE {unique}.t DROP COLUMN old",
        f"UPDATE {unique}.t SET n = 3",
        f"ALTER TABLE {unique}.t CHANGE COLUMN new other INT NULL, ALGORITHM = COPY",
        f"INSERT INTO {unique}.t VALUES (9, 2, NULL)",
        f"TRUNCATE TABLE {unique}.t",
        f"INSERT INTO {unique}.t VALUES (9, 3, NULL)",
        f"DROP TABLE IF EXISTS {unique}.t, {unique}.none_such",
    ]
    for one in statements:
        mysql.execute(one)
    found = told(made, begin)
    assert [one for one, _ in found] == ["c", "s", "s", "u", "s", "c", "t", "c", "t"]
    assert [one for _, one in found if "statement" not in one] == [
        {"id": 1, "n": 2, "old": "a"},
        {"n": 3, "id": 1, "new": 7},
        {"n": 9, "id": 2, "other": None},
        {"n": 9, "id": 3, "other": None},
    ]
    texts = [one["statement"] for _, one in found if "statement" in one]
    assert texts[:-1] == [statements[at] for at in (1, 2, 4, 6)]
    assert texts[-1].startswith("DROP TABLE")
    assert len([*each_epoch(made, begin, 1)]) == len(statements)


def test_a_typed_stream_reads_on(table: Table) -> None:
    table.create("id INT PRIMARY KEY, n INT, old VARCHAR(9)")
    made, begin = table.follow(**CARRIES)
    table.run(
        f"INSERT INTO {table} VALUES (1, 2, 'a')",
        f"ALTER TABLE {table} ADD COLUMN new INT, DROP COLUMN old, MODIFY n BIGINT",
        f"INSERT INTO {table} VALUES (2, 3, 4)",
        f"TRUNCATE {table}",
    )
    found = [(one["_op"], one["id"], one["n"], one["old"]) for one in rows(made, begin)]
    assert found == [
        ("c", 1, 2, "a"),
        ("s", None, None, None),
        ("c", 2, 3, None),
        ("t", None, None, None),
    ]
    end = made.latest()
    table.run(f"INSERT INTO {table} VALUES (3, 3000000000, 4)")
    with pytest.raises(ValueUnreadable, match="'n'"):
        rows(made, end)


def test_a_stream_that_restarts_with_a_new_column_reads_older_rows(table: Table) -> None:
    table.create("id INT PRIMARY KEY")
    _, begin = table.follow(**CARRIES)
    table.run(
        f"INSERT INTO {table} VALUES (1)",
        f"ALTER TABLE {table} ADD n INT",
        f"INSERT INTO {table} VALUES (2, 5)",
    )
    found = rows(table.feed(**CARRIES), begin)
    assert [(one["_op"], one["id"], one["n"]) for one in found] == [
        ("c", 1, None),
        ("s", None, None),
        ("c", 2, 5),
    ]


STOPS = (
    "DROP d, ADD d INT",
    "DROP d, ADD d INT DEFAULT 5",
    "RENAME COLUMN n TO n2, RENAME COLUMN n2 TO n",
    "CHANGE n n2 INT NOT NULL, CHANGE n2 n INT NOT NULL",
    "MODIFY id INT NOT NULL AUTO_INCREMENT",
    "MODIFY c CHAR(20) COLLATE binary",
    "MODIFY c CHAR(20) CHARACTER SET `binary`",
    "MODIFY c TEXT CHARACTER SET utf32",
    "MODIFY ts TIMESTAMP NOT NULL DEFAULT '2024-01-01 00:00:00'",
    "MODIFY ts TIMESTAMP DEFAULT '2024-01-01 00:00:00'",
    "ADD COLUMN made TIMESTAMP",
    "ADD COLUMN made DATETIME DEFAULT CURRENT_TIMESTAMP NULL",
    "ADD COLUMN made INT DEFAULT (1 + 1) NULL",
    "ADD COLUMN made DATETIME DEFAULT CURRENT_TIMESTAMP",
    "ADD COLUMN g INT AS (n + 1) STORED",
    "ADD COLUMN a INT AUTO_INCREMENT UNIQUE",
    "DROP PRIMARY KEY, ADD PRIMARY KEY (n)",
    "MODIFY COLUMN n SMALLINT",
    "MODIFY COLUMN d DECIMAL(9, 1)",
    "MODIFY COLUMN d DOUBLE",
    "MODIFY COLUMN n VARCHAR(20)",
    "MODIFY COLUMN b BINARY(5)",
    "MODIFY COLUMN at DATETIME(1)",
    "MODIFY COLUMN e ENUM('y', 'x', 'z')",
    "MODIFY COLUMN n INT UNSIGNED",
    "ORDER BY n",
    "RENAME TO {}_2",
    "CONVERT TO CHARACTER SET latin1",
)


@pytest.mark.parametrize("clause", STOPS)
def test_what_may_change_rows_still_stops(table: Table, clause: str) -> None:
    table.create(
        "id INT PRIMARY KEY, n INT NOT NULL, d DECIMAL(9, 2), b BINARY(4), at DATETIME(3),"
        " e ENUM('x', 'y'), n2 INT NOT NULL DEFAULT 9, c VARCHAR(9) DEFAULT 'a',"
        " ts TIMESTAMP NULL DEFAULT '2024-01-01 00:00:00'"
    )
    made, begin = table.follow(**CARRIES)
    table.run(f"INSERT INTO {table} (id, n, d, b, e) VALUES (1, 1, 1, 'a', 'x')")
    table.run(f"ALTER TABLE {table} {clause.format(table)}")
    with pytest.raises(StoreRefused, match="changes the table by a statement"):
        rows(made, begin)


PARENTS = (
    "id INT PRIMARY KEY, d DECIMAL(9, 2), g VARCHAR(30) AS (CONCAT(d)) STORED",
    "id INT NOT NULL UNIQUE, d DECIMAL(9, 2)",  # its key changes with what may be null
)


@pytest.mark.parametrize("columns", PARENTS)
def test_a_type_that_decides_over_other_columns_stops(table: Table, columns: str) -> None:
    table.create(columns)
    made, begin = table.follow(**CARRIES)
    table.run(f"INSERT INTO {table} (id, d) VALUES (1, 1.5)")
    table.run(f"ALTER TABLE {table} MODIFY d DECIMAL(12, 3)")
    with pytest.raises(StoreRefused, match="changes the table by a statement"):
        rows(made, begin)


def test_padding_of_a_char_stops(table: Table) -> None:
    table.create("id INT PRIMARY KEY, c CHAR(5)")
    made, begin = table.follow(**CARRIES)
    table.run(
        f"INSERT INTO {table} VALUES (1, 'a')",
        f"SET SESSION sql_mode = '{STRICT},PAD_CHAR_TO_FULL_LENGTH'",
        f"ALTER TABLE {table} MODIFY c VARCHAR(9)",
        f"SET SESSION sql_mode = '{STRICT}'",
    )
    with pytest.raises(StoreRefused, match="changes the table by a statement"):
        rows(made, begin)


def test_numbering_that_keeps_zeros_is_carried_on(table: Table) -> None:
    table.create("id INT PRIMARY KEY")
    made, begin = table.follow(**CARRIES)
    table.run(
        f"INSERT INTO {table} VALUES (0)",
        f"SET SESSION sql_mode = '{STRICT},NO_AUTO_VALUE_ON_ZERO'",
        f"ALTER TABLE {table} MODIFY id BIGINT AUTO_INCREMENT",
        f"SET SESSION sql_mode = '{STRICT}'",
    )
    assert [one["_op"] for one in rows(made, begin)] == ["c", "s"]
    assert table.stored() == [(0,)]


def test_a_table_of_binary_texts_stops_at_the_next_row(table: Table) -> None:
    table.create("id INT PRIMARY KEY, c VARCHAR(9) CHARACTER SET latin1", "CHARACTER SET binary")
    made, begin = table.follow(**CARRIES)
    table.run(
        f"INSERT INTO {table} VALUES (1, 'a')",
        f"ALTER TABLE {table} MODIFY c VARCHAR(20)",
        f"INSERT INTO {table} VALUES (2, 'b')",
    )
    with pytest.raises(StoreRefused):
        rows(made, begin)


def test_columns_before_a_rename_are_not_those_of_the_table(table: Table) -> None:
    """The table of that name is another one since, also where the query skipped the statement."""
    table.create("id INT PRIMARY KEY, a INT NOT NULL")
    table.run(
        f"CREATE TABLE {table}_new (id INT, a INT NOT NULL PRIMARY KEY)",
        f"INSERT INTO {table} VALUES (1, 1)",
        "FLUSH BINARY LOGS",
    )
    begin = table.feed(**CARRIES).latest()
    table.run(f"RENAME TABLE {table} TO {table}_old, {table}_new TO {table}")
    made = table.feed(**CARRIES)
    renaming = made.latest()
    with pytest.raises(StoreRefused, match="RENAME"):
        rows(made, begin)
    table.run(f"ALTER TABLE {table} DROP a")
    with pytest.raises(StoreRefused, match="DROP a"):
        rows(table.feed(**CARRIES), renaming)


def test_a_former_statement_that_stopped_leaves_columns_unknown(table: Table) -> None:
    """Its columns have the names of others, whose types decide nothing since."""
    table.create("id INT PRIMARY KEY, d DECIMAL(9, 2)")
    table.run(
        f"INSERT INTO {table} VALUES (1, 1)",
        f"ALTER TABLE {table} DROP d, ADD d DECIMAL(12, 4) DEFAULT 1.2345",
    )
    made, begin = table.follow(**CARRIES)
    table.run(f"ALTER TABLE {table} MODIFY d DECIMAL(9, 2)")
    with pytest.raises(StoreRefused, match="MODIFY d"):
        rows(made, begin)


def test_columns_are_found_in_earlier_files_of_the_log(table: Table) -> None:
    table.create("id INT PRIMARY KEY, d DECIMAL(9, 2)")
    table.run(f"INSERT INTO {table} VALUES (1, 1)", "FLUSH BINARY LOGS", "FLUSH BINARY LOGS")
    made, begin = table.follow(**CARRIES)
    table.run(f"ALTER TABLE {table} ADD e INT, MODIFY d DECIMAL(12, 3)")
    assert [one["_op"] for one in rows(made, begin)] == ["s"]
    begin = made.latest()
    table.run(f"ALTER TABLE {table} MODIFY d DECIMAL(9, 2)")
    with pytest.raises(StoreRefused, match="column d may not hold every former value"):
        rows(made, begin)


def test_columns_that_the_log_no_longer_describes_stop(table: Table) -> None:
    table.create("id INT PRIMARY KEY, n INT")
    table.run(f"INSERT INTO {table} VALUES (1, 1)", "FLUSH BINARY LOGS")
    purge(table.client)
    made, begin = table.follow(**CARRIES)
    table.run(f"ALTER TABLE {table} ADD COLUMN m INT")  # needs no former column
    assert [one["_op"] for one in rows(made, begin)] == ["s"]
    begin = made.latest()
    table.run(f"ALTER TABLE {table} MODIFY COLUMN n BIGINT")
    with pytest.raises(StoreRefused, match="does not describe the former columns"):
        rows(made, begin)


@pytest.mark.parametrize("statement", ["TRUNCATE TABLE {}", "ALTER TABLE {} ADD m INT"])
def test_a_temporary_table_of_the_same_name_is_not_the_table(table: Table, statement: str) -> None:
    table.create("id INT PRIMARY KEY, n INT")
    table.run(f"INSERT INTO {table} VALUES (1, 1)")
    made, begin = table.follow(**CARRIES)
    table.run(
        "SET SESSION binlog_format = STATEMENT",
        f"CREATE TEMPORARY TABLE {table} (id INT)",
        statement.format(table),
        f"DROP TEMPORARY TABLE {table}",
        "SET SESSION binlog_format = ROW",
    )
    with pytest.raises(StoreRefused, match="changes the table by a statement"):
        rows(made, begin)
    assert table.count() == 1


@pytest.mark.parametrize("form", ["STATEMENT", "ROW"])
def test_a_temporary_table_that_is_dropped_is_not_the_table(table: Table, form: str) -> None:
    table.create("id INT PRIMARY KEY, n INT")
    made, begin = table.follow(**CARRIES)
    table.run(
        f"SET SESSION binlog_format = {form}",
        f"CREATE TEMPORARY TABLE {table} (id INT)",
        f"DROP TABLE {table}",
        f"CREATE TEMPORARY TABLE {table} (id INT)",
        f"DROP TABLE IF EXISTS {table}, {table}_none",
        "SET SESSION binlog_format = ROW",
    )
    assert rows(made, begin) == []
    assert table.count() == 0


def test_a_new_table_is_empty(table: Table) -> None:
    made = feed(table.url, f"{table},{table}_none", **CARRIES)
    begin = made.latest()
    table.create("id INT PRIMARY KEY, n DECIMAL(9, 2)")
    begin = {**begin, "tables": made.latest()["tables"]}
    table.run(f"ALTER TABLE {table} MODIFY n INT", f"ALTER TABLE {table} DROP COLUMN n")
    assert [one for one, _ in told(made, begin)] == ["s", "s"]


KINDS = {
    "TINYINT": ("-128", "127", "0"),
    "TINYINT UNSIGNED": ("255", "0"),
    "SMALLINT": ("-32768", "32767"),
    "SMALLINT UNSIGNED ZEROFILL": ("65535", "7"),
    "MEDIUMINT": ("-8388608", "8388607"),
    "INT": ("-2147483648", "2147483647"),
    "INT UNSIGNED": ("4294967295", "0"),
    "BIGINT": ("-9223372036854775808", "9223372036854775807"),
    "BIGINT UNSIGNED": ("18446744073709551615", "0"),
    "DECIMAL(5, 2)": ("-999.99", "0.01"),
    "DECIMAL(7, 3)": ("-9999.999", "0.001"),
    "NUMERIC(20, 0)": ("99999999999999999999", "-1"),
    "FLOAT": ("0.1", "1e30"),
    "DOUBLE PRECISION": ("0.1", "1e300"),
    "CHAR(5)": ("'abcde'", "'ä'", "''"),
    "CHAR(9)": ("'abcdefghi'", "'x'"),
    "VARCHAR(5)": ("'abcde'", "'a  '", "'ää'"),
    "VARCHAR(300)": ("REPEAT('a', 300)", "' '"),
    "VARCHAR(9) CHARACTER SET latin1": ("'abc'", "'ö'"),
    "TINYTEXT": ("REPEAT('a', 255)", "'ö'"),
    "TEXT": ("REPEAT('a', 1000)", "'b '"),
    "LONGTEXT": ("REPEAT('a', 70000)", "''"),
    "BINARY(3)": ("'abc'", "'a'"),
    "BINARY(4)": ("'abcd'", "'a'"),
    "VARBINARY(4)": ("'abcd'", "''", "'a\\0'"),
    "TINYBLOB": ("REPEAT('a', 255)", "''"),
    "BLOB": ("REPEAT('a', 1000)", "''"),
    "DATE": ("'2024-02-29'",),
    "DATETIME": ("'2024-02-29 01:02:03'",),
    "DATETIME(6)": ("'2024-02-29 01:02:03.456789'",),
    "TIMESTAMP(3) NULL": ("'2024-02-29 01:02:03.456'",),
    "TIME": ("'-838:59:59'", "'01:02:03'"),
    "TIME(2)": ("'01:02:03.04'",),
    "YEAR": ("2024", "0"),
    "BIT(8)": ("255", "0"),
    "BIT(12)": ("4095", "0"),
    "ENUM('a', 'b')": ("'a'", "'b'"),
    "ENUM('a', 'b', 'c')": ("'c'",),
    "ENUM('b', 'a')": ("'a'",),
    "SET('a', 'b')": ("'a,b'", "''"),
    "SET('a', 'b', 'c')": ("'a,c'",),
    "JSON": ("'[1]'", "'{\"a\": 1}'"),
}
"""Types, and values at their limits."""

HOW = ("", " NOT NULL", " COMMENT 'x'", " FIRST", " AFTER id", " NULL DEFAULT NULL")


@pytest.mark.parametrize("seed", [0, *slow_cases(*range(1, 24))])
def test_an_alter_that_is_carried_on_has_kept_every_value(
    table: Table, mysql: Cursor, seed: int
) -> None:
    """Types, values, attributes and settings are drawn; the server shows what it kept."""
    draw, carried, stopped = random.Random(seed), 0, 0
    kinds = [*KINDS]
    for number in range(40):
        before, after = draw.choice(kinds), draw.choice(kinds)
        if draw.random() < 0.5:  # near ones: of the same family, as they are declared
            after = draw.choice([one for one in kinds if one[:3] == before[:3]])
        one = Table(f"{table}_{number}", table.url, mysql)
        one.create(f"id INT PRIMARY KEY, c {before}")
        values = [*KINDS[before], "NULL"]
        for place, value in enumerate(draw.sample(values, len(values))):
            one.run(f"INSERT INTO {one} VALUES ({place}, {value})")
        made, begin = one.follow(**CARRIES)
        stored = _stored(one)
        how = draw.choice(HOW)
        mysql.execute(f"SET SESSION sql_mode = '{draw.choice((STRICT, STRICT, LAX))}'")
        try:
            one.run(f"ALTER TABLE {one} MODIFY COLUMN c {after}{how}")
        except MySQLError:
            continue
        finally:
            mysql.execute(f"SET SESSION sql_mode = '{STRICT}'")
        try:
            found = [change["_op"] for change in rows(made, begin)]
        except StoreRefused:
            stopped += 1
            continue
        assert found == ["s"]
        assert _stored(one) == stored, f"{before} to {after}{how}"
        carried += 1
    assert carried > 3
    assert stopped > 3


def _stored(table: Table) -> Any:
    return dict(table.run(f"SELECT id, c FROM {table} ORDER BY id"))


@pytest.mark.parametrize("seed", [0, *slow_cases(*range(1, 12))])
def test_drawn_statements_leave_a_copy_that_equals_the_table(
    url: str, mysql: Cursor, unique: str, seed: int
) -> None:
    """A copy takes each change as a sink does; it has the columns that the rows have."""
    draw, name, columns = random.Random(seed), f"{unique}.t", ["c0"]
    mysql.execute(f"CREATE DATABASE {unique}")
    mysql.execute(f"CREATE TABLE {name} (id INT PRIMARY KEY, c0 INT)")
    made = feed(url, f"{unique}.*", **CARRIES)
    begin = made.begin()
    for number in range(1, 60):
        known = [f"`{one}`" for one in columns]
        column = draw.choice(columns) if columns else ""
        choices = [f"INSERT INTO {name} (id) VALUES ({number})"] * 3
        choices += [f"DELETE FROM {name} WHERE id = {draw.randrange(number)}"]
        choices += [f"TRUNCATE TABLE {name}"] if draw.random() < 0.2 else []
        choices += [f"ALTER TABLE {name} ADD COLUMN c{number} INT"]
        choices += [f"ALTER TABLE {name} ADD INDEX (id)", f"ANALYZE TABLE {name}"]
        if columns:
            choices += [f"UPDATE {name} SET {one} = {number}" for one in known]
            choices += [
                f"ALTER TABLE {name} RENAME COLUMN {column} TO c{number}",
                f"ALTER TABLE {name} CHANGE {column} c{number} BIGINT FIRST",
                f"ALTER TABLE {name} DROP {column}, ADD (c{number} INT, d{number} INT)",
            ]
        statement = draw.choice(choices)
        mysql.execute(statement)
        columns = _columns(mysql, unique)
    copy = dict[int, dict[str, Any]]()
    for epoch in each_epoch(made, begin, draw.choice((1, 3, None))):
        for one in rows(made, *epoch):
            row = json.loads(one["_row"])
            if one["_op"] == "t":
                copy.clear()
            elif one["_op"] == "d":
                copy.pop(row["id"])
            elif one["_op"] != "s":
                copy[row["id"]] = row
    mysql.execute(f"SELECT * FROM {name}")
    names = [one[0] for one in mysql.description or ()]
    stored = {row[names.index("id")]: dict(zip(names, row, strict=True)) for row in mysql}
    assert copy.keys() == stored.keys()
    for key, row in copy.items():
        same = row.keys() & stored[key].keys()
        assert {one: row[one] for one in same} == {one: stored[key][one] for one in same}


def _columns(mysql: Cursor, database: str) -> list[str]:
    mysql.execute(f"SHOW COLUMNS FROM {database}.t")
    return [one[0] for one in mysql.fetchall() if one[0] != "id"]
