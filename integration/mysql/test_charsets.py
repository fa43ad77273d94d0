"""What the servers do with texts of each character set, and what `charsets` says of it."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

import pyarrow as pa
import pytest
from integration.support.epochs import MySqlQuery
from pymysql.cursors import Cursor

from pyspark_mysql.target import coercions
from pyspark_mysql.target.columns import TableColumn

pytestmark = pytest.mark.slow

PLANE_0 = [*range(1, 0xD800), *range(0xE000, 0x10000)]
BEYOND = [*range(0x10000, 0x10100), *range(0x1F600, 0x1F640), *range(0x20000, 0x20040)]
WHITE = "\t\n\r\v\f "
TAILS = ["", " ", "\t", "\n", "\r", "\v", "\f", "\0", "  ", " \0", "\0\0", "x"]


@pytest.fixture
def sets(mysql: Cursor) -> list[tuple[str, int]]:
    mysql.execute("SELECT character_set_name, maxlen FROM information_schema.character_sets")
    return sorted((name, int(most)) for name, most in mysql.fetchall() if name != "binary")


@pytest.fixture
def letters(mysql: Cursor, unique: str, request: pytest.FixtureRequest) -> Iterator[str]:
    """A table of characters."""
    points = [*PLANE_0, *BEYOND][:: request.param]
    mysql.execute(
        f"CREATE TEMPORARY TABLE {unique}_l (p INT PRIMARY KEY, c VARCHAR(1)"
        " CHARACTER SET utf8mb4 COLLATE utf8mb4_bin)"
    )
    for start in range(0, len(points), 5000):
        some = points[start : start + 5000]
        rows = (f"({point}, _utf8mb4 X'{chr(point).encode().hex()}')" for point in some)
        mysql.execute(f"INSERT INTO {unique}_l VALUES {','.join(rows)}")
    yield f"{unique}_l"
    mysql.execute(f"DROP TEMPORARY TABLE {unique}_l")


@pytest.mark.parametrize("letters", [61, pytest.param(1, marks=pytest.mark.slow)], indirect=True)
def test_each_character_is_kept_and_takes_as_many_bytes_as_is_said(
    mysql: Cursor, table: str, letters: str, sets: list[tuple[str, int]]
) -> None:
    for charset, width in sets:
        mysql.execute(f"DROP TABLE IF EXISTS {table}")
        mysql.execute(
            f"CREATE TABLE {table} (p INT PRIMARY KEY, c VARCHAR(1)) CHARACTER SET {charset}"
        )
        mysql.execute(f"INSERT IGNORE INTO {table} SELECT p, c FROM {letters}")
        mysql.execute(f"SELECT p, CONVERT(c USING utf8mb4), LENGTH(c) FROM {table}")
        stored = [(chr(point), found, size) for point, found, size in mysql.fetchall()]
        kept = [(one, size) for one, found, size in stored if found == one]
        assert kept, charset
        changed = [one for one, found, _ in stored if found not in (one, "?")]
        told = coercions.CHANGED.get(charset)
        assert all(told and re.fullmatch(told, one) for one in changed), charset
        assert not told or charset == "cp932" or changed, "the servers have mended it"
        if charset not in coercions.MIXED:
            column = TableColumn("c", "text", "text", 0, charset=charset, width=width)
            sizes = coercions.bytes_of(pa.array([one for one, _ in kept]), column).to_pylist()
            assert sizes == [size for _, size in kept], charset


@pytest.mark.parametrize(("kind", "room"), [("CHAR(3)", 3), ("VARCHAR(3)", 3), ("TINYTEXT", 255)])
def test_a_text_at_the_border_of_its_room_is_there_as_it_is_or_aside(
    mysql: Cursor, mysql_url: str, table: str, sets: list[tuple[str, int]], kind: str, room: int
) -> None:
    for charset, width in sets:
        each = width if charset in ("ucs2", "utf32") else 2 if charset.startswith("utf16") else 1
        most = room // each if kind == "TINYTEXT" else room
        texts = [
            "a" * (length - len(tail)) + tail
            for tail in TAILS
            for length in (most, most + 1, most + len(tail))
        ]
        mysql.execute(f"DROP TABLE IF EXISTS {table}, {table}_bad")
        mysql.execute(f"CREATE TABLE {table} (id INT, v {kind}) CHARACTER SET {charset}")
        assert _aside(mysql_url, table, texts) == [
            at
            for at, text in enumerate(texts)
            if len(text) > most
            or (kind == "CHAR(3)" and text.endswith(" "))
            or (kind == "TINYTEXT" and charset in coercions.MIXED and text[-1] in WHITE)
        ], charset
        mysql.execute(f"SELECT id, CONVERT(v USING utf8mb4) FROM {table}")
        assert all(found == texts[at] for at, found in mysql.fetchall()), charset
    mysql.execute(f"DROP TABLE IF EXISTS {table}_bad")


def _aside(url: str, table: str, texts: list[str]) -> list[int]:
    """Write texts, numbered; the numbers of those that went aside."""
    schema = pa.schema([("id", pa.int32()), ("v", pa.string())])
    options: dict[str, Any] = {"onBadRow": "deadLetter", "deadLetter": f"{table}_bad"}
    query = MySqlQuery(schema, url=url, dbtable=table, maxBadRows="100%", **options)
    query.run(0, [{"id": at, "v": text} for at, text in enumerate(texts)])
    with query.sink.store.session.connected():
        found = query.sink.store.session.run(
            f"SELECT JSON_EXTRACT(row_data, '$.id') FROM {table}_bad ORDER BY id"
        )
    return sorted(int(at) for (at,) in found)
