"""Values of the binary log: each is as a plain read of the table has it, however it was logged."""

from __future__ import annotations

import json
import random
import socket
from collections.abc import Iterator
from typing import Any
from uuid import UUID

import pyarrow as pa
import pytest
from integration.support.marks import slow_cases
from integration.support.mysql import (
    Table,
    between,
    changes,
    client,
    feed,
    planned,
    read,
    rows,
    source,
    values,
)
from pymysql import MySQLError
from pymysql.cursors import Cursor

from sparkonce.errors import OptionError, StoreRefused, ValueUnreadable

pytestmark = pytest.mark.variants
TEXTS = ("''", "'x'", "'größe € \U0001f600 \\\\ \"q\" \\0 \\n'", "REPEAT('ü', 60)", "NULL")
JSONS = (
    """'{"a": [1, -2.5, "ü\\\\n\\\\u0001", null, true, 18446744073709551615], "n": {"b": []}}'""",
    "'[1e300, 1e-7, 0.1, -0.0, 123456789012345678901234567890]'",
    "'\"text\"'",
    "JSON_OBJECT('d', CAST('2024-01-02' AS DATE), 'n', 1.50, 't', CAST('10:11:12.5' AS TIME(1)))",
    "JSON_ARRAY(CAST('2024-01-02 03:04:05.5' AS DATETIME(1)), '-00:00:01', -0.001)",
    "'null'",
    "NULL",
)
COLUMNS = {
    "TINYINT": ("-128", "127", "0", "NULL"),
    "TINYINT UNSIGNED": ("255", "0", "NULL"),
    "BOOLEAN": ("1", "0", "NULL"),
    "SMALLINT": ("-32768", "32767", "NULL"),
    "SMALLINT UNSIGNED": ("65535", "NULL"),
    "MEDIUMINT": ("-8388608", "8388607", "NULL"),
    "MEDIUMINT UNSIGNED": ("16777215", "NULL"),
    "INT": ("-2147483648", "2147483647", "NULL"),
    "INT UNSIGNED": ("4294967295", "NULL"),
    "BIGINT": ("-9223372036854775808", "9223372036854775807", "NULL"),
    "BIGINT UNSIGNED": ("18446744073709551615", "0", "NULL"),
    "FLOAT": ("0.1", "-3.4e38", "1e-38", "NULL"),
    "DOUBLE": ("0.1", "-1.7976931348623157e308", "2.2250738585072014e-308", "NULL"),
    "DECIMAL(10,2)": ("-99999999.99", "0.01", "0", "NULL"),
    "DECIMAL(38,18)": ("-12345678901234567890.123456789012345678", "1e-18", "NULL"),
    "DECIMAL(38,0)": ("99999999999999999999999999999999999999", "-1", "NULL"),
    "DECIMAL(30,30)": ("-0.123456789012345678901234567891", "NULL"),
    "DECIMAL(65,10)": ("-1e40", "0.0000000001", "NULL"),
    "YEAR": ("1901", "2155", "0", "NULL"),
    "BIT(1)": ("b'1'", "b'0'", "NULL"),
    "BIT(9)": ("b'100000001'", "NULL"),
    "BIT(64)": ("18446744073709551615", "NULL"),
    "DATE": ("'1000-01-01'", "'9999-12-31'", "'2024-02-29'", "NULL"),
    "DATETIME": ("'1000-01-01 00:00:00'", "'9999-12-31 23:59:59'", "NULL"),
    "DATETIME(1)": ("'2024-02-29 23:59:59.9'", "NULL"),
    "DATETIME(6)": ("'9999-12-31 23:59:59.999999'", "'1969-12-31 23:59:59.000001'", "NULL"),
    "TIMESTAMP NULL": ("'1970-01-01 00:00:01'", "'2038-01-19 03:14:07'", "NULL"),
    "TIMESTAMP(4) NULL": ("'2024-05-06 07:08:09.1234'", "NULL"),
    "TIME": ("'-838:59:59'", "'838:59:59'", "'-00:00:01'", "NULL"),
    "TIME(3)": ("'-12:34:56.001'", "'00:00:00.999'", "NULL"),
    "TIME(6)": ("'-00:00:00.000001'", "'23:59:59.999999'", "NULL"),
    "CHAR(80)": TEXTS,
    "VARCHAR(99)": TEXTS,
    "VARCHAR(999)": TEXTS,
    "CHAR(20) CHARACTER SET latin1": ("'café €'", "''", "NULL"),
    "VARCHAR(20) CHARACTER SET utf16": ("'ü\U0001f600'", "NULL"),
    "VARCHAR(20) CHARACTER SET cp1251": ("'Привет'", "NULL"),
    "VARCHAR(20) CHARACTER SET ucs2": ("'日本'", "NULL"),
    "VARCHAR(20) CHARACTER SET utf16le": ("'中文'", "NULL"),
    "VARCHAR(20) CHARACTER SET utf32": ("'中文'", "NULL"),
    "VARCHAR(20) CHARACTER SET ascii": ("'plain'", "NULL"),
    "TINYTEXT": TEXTS,
    "MEDIUMTEXT": TEXTS,
    "LONGTEXT": TEXTS,
    "BINARY(4)": ("x'61620000'", "x'61'", "''", "NULL"),
    "VARBINARY(300)": ("x'00ff0000'", "REPEAT('x', 300)", "''", "NULL"),
    "BLOB": ("x'00ff'", "REPEAT('x', 60000)", "''", "NULL"),
    "ENUM('x', 'ü', 'a''b')": ("'x'", "'ü'", "'a''b'", "NULL"),
    r"ENUM('a\\b', 'c\nd', 'e\rf', '\\''')": (r"'a\\b'", r"'c\nd'", r"'e\rf'", r"'\\'''", "NULL"),
    "ENUM('x COMPRESSED', 'COMPRESSED*/')": ("'COMPRESSED*/'", "NULL"),
    r"SET('a\\', 'b\n')": (r"'a\\,b\n'", r"'b\n'", "NULL"),
    "ENUM('Щ', 'я') CHARACTER SET cp866": ("'Щ'", "'я'", "NULL"),
    "SET('Щ', 'я') CHARACTER SET utf16": ("'Щ,я'", "NULL"),
    "ENUM('a', 'b') CHARACTER SET binary": ("'b'", "NULL"),
    "SET('a', 'b') CHARACTER SET binary": ("'a,b'", "''", "NULL"),
    "SET('a', 'ü', 'c')": ("'a,c'", "''", "'a,ü,c'", "NULL"),
    "JSON": JSONS,
    "POINT": ("ST_GeomFromText('POINT(1 2)')", "NULL"),
}
NAMES = {f"c{at:02}": column for at, column in enumerate(COLUMNS)}
LOGGINGS: dict[str, dict[str, str]] = {
    "with names": {},
    "without names": {"binlog_row_metadata": "MINIMAL"},
    "compressed": {"binlog_transaction_compression": "ON", "log_bin_compress": "ON"},
    "without checksums": {"binlog_checksum": "NONE"},
}


@pytest.fixture
def mysql(url: str) -> Iterator[Cursor]:
    with client(url) as cursor:
        cursor.execute("SET GLOBAL binlog_row_metadata = FULL")
        cursor.execute("SET time_zone = '+00:00'")
        yield cursor


@pytest.fixture
def logging(mysql: Cursor, request: pytest.FixtureRequest) -> Iterator[None]:
    """Settings that this server has, for the time of a test."""
    found = {}
    for name in LOGGINGS[request.param]:
        mysql.execute(f"SHOW GLOBAL VARIABLES LIKE '{name}'")
        found |= dict(mysql.fetchall())
    for name in found:
        mysql.execute(f"SET GLOBAL {name} = {LOGGINGS[request.param][name]}")
    yield
    for name, value in found.items():
        mysql.execute(f"SET GLOBAL {name} = {value}")


def test_a_row_of_a_null_alone_is_one(table: Table) -> None:
    """No bytes are there in which a value could be looked for."""
    for name, column in NAMES.items():
        kind = column if "NULL" in column else f"{column} NULL"
        table.run(f"CREATE TABLE {table}_{name} (v {kind}) CHARACTER SET utf8mb4")
        made = feed(table.url, f"{table}_{name}")
        begin = made.begin()
        table.run(f"INSERT INTO {table}_{name} VALUES (NULL)")
        assert changes(made, begin, None, "v") == [("c", None)], column


def _write(table: Table) -> None:
    """Each value of each column once; a connection of its own has the settings as they are now."""
    known = {name: COLUMNS[column] for name, column in NAMES.items()}
    with client(table.url) as writer:
        writer.execute("SET time_zone = '+00:00'")
        for at in range(max(map(len, known.values()))):
            row = ", ".join(texts[at % len(texts)] for texts in known.values())
            writer.execute(f"INSERT INTO {table} VALUES ({at}, {row})")


@pytest.mark.usefixtures("logging")
@pytest.mark.parametrize("logging", LOGGINGS, indirect=True)
def test_each_value_is_as_a_read_has_it(table: Table) -> None:
    columns = ", ".join(f"{name} {column}" for name, column in NAMES.items())
    table.run(f"CREATE TABLE {table} (id INT PRIMARY KEY, {columns}) CHARACTER SET utf8mb4")
    known, made = source(table.url, None, dbtable=table)
    followed, begin = table.follow(known)
    _write(table)
    there, found = values(made).sort_by("id"), read(followed, begin, followed.latest())
    for name, column in NAMES.items():
        pairs = (one[name].to_pylist() for one in (found, there))
        one, other = (map(_json, one) if column == "JSON" else one for one in pairs)
        assert [*one] == [*other], column


def _json(text: str | None) -> Any:
    """What a text means: numbers may be spelt in several ways."""
    return text and json.loads(text)


ODD = {
    "VARCHAR(50) COMPRESSED": "REPEAT('x', 50)",
    "TEXT COMPRESSED": "REPEAT('x', 5000)",
    "VARCHAR(9) CHARACTER SET ujis": "'日本'",
}
NAMED = pytest.mark.parametrize("logging", ["with names", "without names"], indirect=True)


@NAMED
@pytest.mark.usefixtures("logging")
@pytest.mark.parametrize("column", ODD)
def test_a_column_that_can_t_be_followed_may_be_left_out(table: Table, column: str) -> None:
    _create_between(table, column)
    made, begin = table.follow()
    with client(table.url) as writer:
        writer.execute(f"INSERT INTO {table} VALUES (1, 'ä', {ODD[column]}, 'ő')")
        writer.execute(f"UPDATE {table} SET id = 2")
    with pytest.raises(StoreRefused, match=r"^Column 'v' of .* can't be followed"):
        made.between(begin, made.latest())
    some = table.feed(pa.schema([(one, pa.string()) for one in ("id", "a", "z", "_op")]))
    assert changes(some, begin, None, "id", "a", "z") == [
        ("c", "1", "ä", "ő"),
        ("d", "1", "ä", "ő"),
        ("c", "2", "ä", "ő"),
    ]


def _create_between(table: Table, column: str) -> None:
    """Make a table whose column `v` stands between texts of two character sets."""
    a, z = (f"VARCHAR(9) CHARACTER SET {one}" for one in ("latin1", "latin2"))
    _create(table, f"id INT PRIMARY KEY, a {a}, v {column}, z {z}")


def _create(table: Table, columns: str) -> None:
    """Make a table, if the server knows the types."""
    try:
        table.run(f"CREATE TABLE {table} ({columns}) CHARACTER SET utf8mb4")
    except MySQLError as error:
        if error.args[0] not in (1064, 4161):
            raise
        pytest.skip("the server has no such type")


@NAMED
@pytest.mark.usefixtures("logging")
@pytest.mark.parametrize("key", ["VARCHAR(9) CHARACTER SET ujis"])
def test_a_key_that_can_t_be_followed_may_be_left_out(table: Table, key: str) -> None:
    _create(table, f"id {key} PRIMARY KEY, n INT")
    made, begin = table.follow(pa.schema([("n", pa.int32()), ("_op", pa.string())]))
    with client(table.url) as writer:
        writer.execute(f"INSERT INTO {table} VALUES ({ODD[key]}, 1)")
        writer.execute(f"UPDATE {table} SET n = 2")
    assert changes(made, begin, None, "n") == [("c", 1), ("u", 2)]
    with pytest.raises(StoreRefused, match=r"^Column 'id' of .* can't be followed"):
        planned(table.feed(startingPosition="snapshot"))


def _shown(chance: random.Random, kind: str) -> str:
    """A value, many of whose bytes are zeros or ones, as a text that MariaDB accepts."""
    size = 4 if kind == "INET4" else 16
    digits = [chance.choice((0, 0, 0, 1, 255, chance.randrange(256))) for _ in range(size)]
    if kind == "UUID":
        digits[6], digits[8] = digits[6] & 127, digits[8] | 128  # as RFC 9562 has them
        return str(UUID(bytes=bytes(digits)))
    if kind == "INET4":
        return socket.inet_ntoa(bytes(digits))
    zeros = chance.choice((0, 0, 0, 8, 10, 12, 14))  # short ones look like those of IPv4
    return socket.inet_ntop(socket.AF_INET6, bytes(zeros) + bytes(digits[zeros:]))


@NAMED
@pytest.mark.usefixtures("logging")
@pytest.mark.parametrize("seed", [1, *slow_cases(2, 3)])
@pytest.mark.parametrize("kind", ["UUID", "INET6", "INET4"])
def test_types_that_are_logged_as_bytes_are_texts(table: Table, kind: str, seed: int) -> None:
    """Also in a key."""
    chance = random.Random(seed)
    _create(table, f"id {kind} PRIMARY KEY, v {kind}")
    written = {_shown(chance, kind) for _ in range(300)}
    made, begin = table.follow()
    with client(table.url) as writer:
        for text in written:
            writer.execute(f"INSERT INTO {table} VALUES ('{text}', '{text}')")
        texts = [text for (text,) in table.rows("id", "id")]
        writer.execute(f"UPDATE {table} SET v = NULL WHERE id = '{texts[0]}'")
    found = changes(made, begin, None, "id", "v")
    assert sorted(found[:-1]) == sorted(("c", one, one) for one in texts)
    assert found[-1] == ("u", texts[0], None)


@NAMED
@pytest.mark.usefixtures("logging")
def test_vectors_are_their_bytes(table: Table) -> None:
    _create_between(table, "VECTOR(2)")
    made, begin = table.follow()
    with client(table.url) as writer:
        writer.execute(f"INSERT INTO {table} VALUES (1, 'ä', x'0000803f00000040', 'ő')")
        writer.execute(f"INSERT INTO {table} VALUES (2, 'ä', NULL, 'ő')")
    vector = bytes.fromhex("0000803f00000040")
    found = changes(made, begin, None, "id", "a", "v", "z")
    assert found == [("c", 1, "ä", vector, "ő"), ("c", 2, "ä", None, "ő")]
    assert values(table.source()).sort_by("id")["v"].to_pylist() == [vector, None]


HIDDEN = {"mysql": "KEY ((n * 2))", "mariadb": "UNIQUE (t), UNIQUE (t, n), UNIQUE (n) USING HASH"}
"""Keys that have columns of their own, which MariaDB logs."""


@NAMED
@pytest.mark.usefixtures("logging")
def test_columns_that_the_server_hides_are_no_obstacle(table: Table, mysql_name: str) -> None:
    _create(table, f"id INT PRIMARY KEY, n INT, t TEXT, {HIDDEN[mysql_name]}")
    made, begin = table.follow()
    with client(table.url) as writer:
        writer.execute(f"INSERT INTO {table} VALUES (1, 2, 'x')")
    assert changes(made, begin, None, "id", "n", "t") == [("c", 1, 2, "x")]


def test_a_table_with_history_is_refused(table: Table, mysql_name: str) -> None:
    if mysql_name == "mysql":
        pytest.skip("MySQL has no such tables")
    table.run(f"CREATE TABLE {table} (id INT PRIMARY KEY) WITH SYSTEM VERSIONING")
    with pytest.raises(StoreRefused, match=f"{table} is system versioned"):
        table.feed()


@pytest.mark.parametrize("name", ["_op", "_OP", "_Before"])
def test_a_column_that_has_the_name_of_a_stream_s_own_is_refused(table: Table, name: str) -> None:
    table.create(f"id INT PRIMARY KEY, {name} INT")
    with pytest.raises(StoreRefused, match=f"The table has a column '{name}'"):
        table.feed()


ASKED = {
    "BIGINT": [pa.int64(), pa.string(), pa.decimal128(20, 0), pa.duration("us")],
    "INT": [pa.float64(), pa.int64(), pa.string()],
    "BIT(1)": [pa.bool_(), pa.int32()],
    "DECIMAL(10,2)": [pa.decimal128(20, 4), pa.string()],
    "FLOAT": [pa.float64()],
    "DATETIME(6)": [pa.timestamp("us", "UTC"), pa.timestamp("us")],
    "TIME(6)": [pa.string(), pa.binary()],
    "DECIMAL(65,10)": [pa.string(), pa.binary()],
    "VARCHAR(99)": [pa.binary(), pa.string()],
    "LONGTEXT": [pa.string(), pa.binary()],
}


@pytest.mark.parametrize("column", ASKED)
def test_a_column_is_read_as_the_type_that_is_asked_for(table: Table, column: str) -> None:
    table.run(f"CREATE TABLE {table} (id INT PRIMARY KEY, v {column}) CHARACTER SET utf8mb4")
    begin = table.feed().begin()
    for at, value in enumerate(COLUMNS[column]):
        table.run(f"INSERT INTO {table} VALUES ({at}, {value})")
    for kind in ASKED[column]:
        schema = pa.schema([("id", pa.int32()), ("v", kind)])
        _, made = source(table.url, schema, dbtable=table)
        followed = table.feed(schema)
        found = read(followed, begin, followed.latest())
        assert found == values(made).sort_by("id"), kind


BAD: dict[str, tuple[str, Any]] = {
    "DATE": ("'0000-00-00'", pa.date32()),
    "DATETIME": ("'2026-00-10 00:00:00'", pa.timestamp("us")),
    "TIMESTAMP NULL": ("'0000-00-00 00:00:00'", pa.timestamp("us", "UTC")),
    "TINYINT(1)": ("7", pa.bool_()),
    "BIGINT": ("9223372036854775807", pa.int32()),
    "DECIMAL(30,5)": ("1.5", pa.decimal128(10, 0)),
    "TIME": ("'200:00:00'", pa.time64("us")),
    "JSON": ("'[1]'", pa.list_(pa.date32())),
}


@pytest.mark.parametrize("column", BAD)
def test_a_value_that_is_none_of_its_type_is_told_with_its_transaction(
    table: Table, column: str
) -> None:
    value, kind = BAD[column]
    table.create(f"id INT PRIMARY KEY, v {column}")
    made, begin = table.follow(pa.schema([("v", kind)]))
    table.run("SET SESSION sql_mode=''", f"INSERT INTO {table} VALUES (1, {value})")
    end = made.latest()
    with pytest.raises(ValueUnreadable, match="column 'v'") as refused:
        rows(made, begin, end)
    assert between(made, begin, end) in str(refused.value)


def test_a_type_that_would_change_values_is_refused(table: Table) -> None:
    table.create("id INT PRIMARY KEY, v BIGINT, d DATETIME")
    for name, kind in (("v", pa.float64()), ("d", pa.string())):
        made = table.feed(pa.schema([(name, kind)]))
        at = made.latest()
        with pytest.raises(OptionError, match=f"Column '{name}' can't be"):
            made.between(at, at)


def test_rows_of_more_than_one_packet_come_whole(table: Table, set_global: Any) -> None:
    set_global("max_allowed_packet", 67108864)
    table.create("id INT PRIMARY KEY, v LONGBLOB")
    made = table.feed()
    begin, lengths = made.begin(), (2**24 - 100, 5, 2**24 - 40, 2**24 + 1, 2**25 + 3, 0)
    with client(table.url) as writer:
        for at, length in enumerate(lengths):
            writer.execute(f"INSERT INTO {table} VALUES ({at}, REPEAT('x', {length}))")
    found = [(row["id"], len(row["v"])) for row in rows(made, begin)]
    assert found == [*enumerate(lengths)]


def test_parts_of_json_are_refused(table: Table, mysql_name: str) -> None:
    if mysql_name == "mariadb":
        pytest.skip("MariaDB logs no parts of JSON")
    table.create("id INT PRIMARY KEY, v JSON")
    table.run(f"""INSERT INTO {table} VALUES (1, '{{"a": 1, "b": "{"x" * 100}"}}')""")
    made, begin = table.follow()
    table.run("SET SESSION binlog_row_value_options = PARTIAL_JSON")
    table.run(f"UPDATE {table} SET v = JSON_SET(v, '$.a', 2)")
    with pytest.raises(StoreRefused, match="updates a part of a JSON column"):
        rows(made, begin)
