"""Draws columns of every type of MySQL and MariaDB, with values from the limits of the type."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from random import Random

from pyspark_mysql.server.literals import string

Run = Callable[[str], None]


def _whole(bits: int) -> dict[str, list[str]]:
    name = {8: "TINYINT", 16: "SMALLINT", 24: "MEDIUMINT", 32: "INT", 64: "BIGINT"}[bits]
    half, full = 2 ** (bits - 1), 2**bits
    signed = (-half, -half + 1, -100, -50, -1, 0, 1, 50, 99, half - 2, half - 1)
    unsigned = (0, 1, 2, 50, 100, half - 1, half, half + 1, full - 2, full - 1)
    return {
        name: [*map(str, signed)],
        f"{name} UNSIGNED": [*map(str, unsigned)],
        f"{name} ZEROFILL": [*map(str, unsigned)],
    }


def _quoted(*values: str) -> list[str]:
    return [string(one) for one in values]


_DAYS = ("0001-01-01", "1000-01-01", "1969-12-31", "1970-01-01", "2000-02-29", "2026-03-29")
_MOMENTS = (
    *("0001-01-01 00:00:00", "1969-12-31 23:59:59", "2000-02-29 12:00:00.5"),
    *("2026-03-29 02:30:00.999999", "2026-03-29 02:30:01", "2026-10-25 02:30:00.123456"),
    *("2038-01-19 03:14:08", "9999-12-31 23:59:59", "9999-12-31 23:59:59.499999"),
)
_INSTANTS = (
    *("1970-01-01 00:00:01", "1970-01-01 00:00:01.5", "2000-02-29 12:00:00.123456"),
    *("2026-03-29 01:30:00", "2026-10-25 00:59:59.999999", "2038-01-19 03:14:07"),
)
SIMPLE: dict[str, Sequence[str]] = {
    **_whole(8),
    **_whole(16),
    **_whole(24),
    **_whole(32),
    **_whole(64),
    "TINYINT(1)": ["0", "1"],
    "YEAR": ["0", "1901", "1949", "1950", "1999", "2000", "2050", "2099", "2155"],
    "BIT(1)": ["0", "1"],
    "BIT(8)": ["0", "1", "127", "128", "255"],
    "BIT(64)": ["0", "1", str(2**63), str(2**64 - 1)],
    "DECIMAL(5,2)": ["-999.99", "-0.01", "0", "0.01", "1.5", "999.98", "999.99"],
    "DECIMAL(5,2) UNSIGNED": ["0", "0.01", "1.5", "999.98", "999.99"],
    "DECIMAL(20,0)": ["-9007199254740993", "0", "9007199254740993", "99999999999999999999"],
    "DECIMAL(38,10)": ["0.0000000001", "9007199254740993.0000000001", "-0.0000000002", "0"],
    "DECIMAL(30,30)": ["0.000000000000000000000000000001", "0", "-0.1"],
    "DECIMAL(50,3)": ["12345678901234567890123456789012345678901234567.123", "0"],
    "FLOAT": ["0.1e0", "-1.5e0", "0", "3.4e38", "1e-45"],
    "DOUBLE": ["0.1e0", "-0e0", "0", "5e-324", "1.7976931348623157e308", "9007199254740993"],
    "DOUBLE(10,2)": ["0.1e0", "-99999999.99e0", "0", "12.35e0"],
    "DATE": _quoted(*_DAYS, "9999-12-30", "9999-12-31"),
    "DATETIME": _quoted(*_MOMENTS),
    "DATETIME(3)": _quoted(*_MOMENTS),
    "DATETIME(6)": _quoted(*_MOMENTS),
    "TIMESTAMP NULL": _quoted(*_INSTANTS),
    "TIMESTAMP(3) NULL": _quoted(*_INSTANTS),
    "TIMESTAMP(6) NULL": _quoted(*_INSTANTS),
    "TIME(6)": _quoted("-838:59:59", "00:00:00", "23:59:59.999999", "838:59:59"),
    "JSON": _quoted('{"a": 1}', '{"a":1}', "[1, 2]", '"a"', "1", "null"),
    "BINARY(4)": _quoted("a", "a ", "a\0", "ab"),
    "VARBINARY(20)": _quoted("a", "a ", "a\0", "ä", ""),
    "VARBINARY(16)": _quoted("a", "a ", "a\0", ""),
    "ENUM('a','B','1','2','','z ')": _quoted("a", "B", "1", "2", "", "z "),
    "SET('a','B','1','x y')": _quoted("a", "a,B", "1", "x y", ""),
}
TEXTS = (
    *("", " ", "a", "A", "á", "a ", "a%", "a_b", "a!b", "ab", "aB", "50%", '"', "'", "\\", "a\\"),
    *("a\tb", "a\x01", "\x01", "a\x7f", "ss", "ß", "ch", "lj", "ae", "æ", "0", "00", "1", "1e0"),
    *("Hi there", "Hi 😀 there", "Hi 😀", "😀", "ünï 東京", "a\u0301", "\ufffd", "ﬁ", "ij", "ĳ"),
)
"""Values; no single-byte character set has the last ones."""
SHAPES = ("CHAR(20)", "VARCHAR(100)", "TEXT")
PLAIN = "CREATE TABLE {table} (id INT AUTO_INCREMENT PRIMARY KEY, v {column}{rest})"
LAYOUTS = {
    "no index": PLAIN,
    "index": PLAIN.replace("{rest}", ", KEY (v{part})"),
    "descending index": PLAIN.replace("{rest}", ", KEY (v{part} DESC)"),
    "index with id": PLAIN.replace("{rest}", ", KEY (v{part}, id)"),
    "prefix index": PLAIN.replace("{rest}", ", KEY (v(2))"),
    "partitions": "CREATE TABLE {table} (id INT, v {column}) PARTITION BY KEY (v) PARTITIONS 5",
}
ROWS = 150


def draw(random: Random, run: Run, table: str, collations: Sequence[str]) -> str:
    """Recreate the table with column `v`; return the type, the index and the values.

    Args:
        random: the source of random draws.
        run: sends a statement.
        table: the name of the table.
        collations: the names of the server's collations.
    """
    column, values = _column(random, collations)
    text = column.startswith(SHAPES)
    layouts = [one for one in LAYOUTS if text or one != "prefix index"]
    layout = random.choice(layouts)
    if column.startswith(("JSON", "TEXT")) and layout == "partitions":
        layout = "no index"
    if column == "JSON":
        layout = "no index"
    part = "(20)" if column.startswith("TEXT") else ""
    sql = LAYOUTS[layout].format(table=table, column=column, part=part, rest="")
    run(f"DROP TABLE IF EXISTS {table}")
    run(sql)
    rows = [*values, *random.choices([*values, "NULL"], k=ROWS - len(values))]
    run(f"INSERT IGNORE INTO {table} (v) VALUES {', '.join(f'({one})' for one in rows)}")
    run(f"ANALYZE TABLE {table}")
    return f"{column} with {layout}"


def _column(random: Random, collations: Sequence[str]) -> tuple[str, Sequence[str]]:
    if random.random() < 0.6:
        column = random.choice([*SIMPLE])
        return column, SIMPLE[column]
    collation = random.choice(collations)
    shape = random.choice(SHAPES)
    charset = collation.partition("_")[0]
    values = [f"CONVERT({one} USING {charset})" for one in _quoted(*TEXTS)]
    return f"{shape} CHARACTER SET {charset} COLLATE {collation}", values
