"""A value that a column does not take is refused by row, column and reason, and never bent."""

from __future__ import annotations

import datetime as dt
import json
import re
from collections.abc import Callable, Iterator
from decimal import Decimal
from typing import Any, NamedTuple

import pyarrow as pa
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from integration.support.epochs import MySqlQuery
from integration.support.mysql import Table
from integration.support.mysql_typed_values import CASES, INSTANT, LAST, PAIRS, as_arrow
from pymysql.cursors import Cursor

from pyspark_mysql.server.literals import literals
from pyspark_mysql.target import coercions
from pyspark_mysql.target.columns import TableColumn
from sparkonce.errors import BadRow, OptionError

INT, STR = pa.int64(), pa.string()
LARGEST = 3.4028234663852886e38


class Refused(NamedTuple):
    """A value that a column does not take."""

    kind: pa.DataType
    value: Any
    column: str
    why: str


VALUES = [
    Refused(STR, "long", "VARCHAR(3)", "longer than the column"),
    Refused(STR, "abc\t", "VARCHAR(3)", "longer than the column"),
    Refused(STR, "a\\c\v", "VARCHAR(3) CHARACTER SET latin1", "longer than the column"),
    Refused(STR, "é" * 127 + "a\r\n", "TINYTEXT", "longer than the column"),
    Refused(STR, "ab ", "CHAR(3)", "drops spaces"),
    Refused(STR, "no json", "JSON", "JSON|CHECK"),
    Refused(STR, "z", "ENUM('a')", "store only a part"),
    Refused(STR, "2", "ENUM('a','b')", "member's number"),
    Refused(STR, "0", "ENUM('a','b')", "member's number"),
    Refused(STR, " +2", "ENUM('a','b') CHARACTER SET utf16", "member's number"),
    Refused(STR, "\v00002", "ENUM('1','b')", "member's number"),
    Refused(STR, "3", "SET('a','b')", "member's number"),
    Refused(STR, "0", "SET('a','b')", "member's number"),
    Refused(STR, "-18446744073709551613", "SET('a','b')", "member's number"),
    Refused(STR, "\U0001f600", "VARCHAR(9) CHARACTER SET latin1", "type or character set"),
    Refused(STR, "aé中", "ENUM('aé?') CHARACTER SET latin1", r"put a \? in place"),
    Refused(STR, "é", "ENUM('?') CHARACTER SET ascii", r"put a \? in place"),
    Refused(STR, "\U0001f600", "ENUM('?') CHARACTER SET utf8mb3", r"put a \? in place"),
    Refused(STR, "a,中", "SET('a','?') CHARACTER SET latin1", r"put a \? in place"),
    Refused(STR, "\\中", "ENUM('\\\\?') CHARACTER SET latin1", r"put a \? in place"),
    Refused(pa.int32(), 128, "TINYINT", "does not fit"),
    Refused(pa.int32(), 1900, "YEAR", "does not fit"),
    Refused(pa.int32(), 100, "YEAR", "does not fit"),
    Refused(pa.int32(), 99, "YEAR", "two digits"),
    Refused(pa.int8(), 5, "YEAR", "two digits"),
    Refused(INT, -1, "BIT(64)", "sign"),
    Refused(pa.decimal128(38, 0), Decimal(-1), "BIT(64)", "sign"),
    Refused(pa.decimal128(38, 0), Decimal(2**64), "BIT(64)", "more bits"),
    Refused(STR, "1.234", "DECIMAL(50,2)", "round"),
    Refused(STR, "1e3", "DECIMAL(50,2)", "another value"),
    Refused(STR, "", "DECIMAL(50,2)", "another value"),
    Refused(STR, "12", "TIME(2)", "another value"),
    Refused(STR, "12:00:00.001", "TIME(2)", "round"),
    Refused(INT, -1, "BIT(63)", "longer than the column"),
    Refused(pa.decimal128(10, 2), Decimal("1000.00"), "DECIMAL(5,2)", "does not fit"),
    Refused(pa.timestamp("us", "UTC"), -(2**55), "TIMESTAMP(6) NULL", "not valid for the column"),
    Refused(pa.binary(), b"123", "VARBINARY(2)", "longer than the column"),
]
NAMES = [f"{case.value} in {case.column}" for case in VALUES]


@pytest.fixture(params=["upserted", "folded", "inserted", "loaded"])
def options(request: pytest.FixtureRequest, local_infile: Any) -> dict[str, str]:
    """How rows are written."""
    local_infile(request.param == "loaded")
    folded = {"sequenceColumn": "id"} if request.param == "folded" else {}
    appended = request.param in ("inserted", "loaded")
    return {"writeMode": "append"} if appended else {"key": "id", **folded}


@pytest.fixture
def query(table: Table, options: dict[str, str]) -> Callable[..., MySqlQuery]:
    """A query of ids and one other column, into a table that has such."""

    def query(kind: pa.DataType, column: str, **more: str) -> MySqlQuery:
        table.create(f"id INT PRIMARY KEY, v {column}")
        schema = pa.schema([("id", pa.int32()), ("v", kind)])
        return table.checked(schema, **options, **more)

    return query


@pytest.mark.parametrize("case", VALUES, ids=NAMES)
def test_value_that_does_not_fit_is_refused_by_key_column_and_reason(
    query: Any, table: Table, case: Refused
) -> None:
    made = query(case.kind, case.column)
    with pytest.raises(BadRow, match=rf"row with id=7.*\bv\b.*Why: .*({case.why})") as refused:
        made.run(0, [{"id": 1, "v": None}, {"id": 7, "v": case.value}])
    assert refused.value.todo
    assert table.count() == 0


def test_value_that_would_be_bent_goes_aside(query: Any, table: Table) -> None:
    made = query(STR, "ENUM('a','b')", onBadRow="deadLetter", deadLetter=f"{table}_bad")
    texts = ["1", "a", "b", "2", "'),(", "1", "a"]
    made.run(0, [{"id": at, "v": text} for at, text in enumerate(texts)])
    assert table.rows("*", "id") == ((1, "a"), (2, "b"), (6, "a"))
    put = sorted(
        json.loads(row)["id"]
        for (row,) in table.run(f"SELECT row_data FROM {table}_bad ORDER BY id")
    )
    assert put == [0, 3, 4, 5]


@pytest.mark.parametrize(
    ("column", "texts"),
    [
        ("ENUM('?','é,','''ä') CHARACTER SET latin1", ["?", "é,", "'ä"]),
        ("SET('?','é','''ä') CHARACTER SET latin1", ["?,é,'ä", "é", "'ä"]),
        ("ENUM('?','中') CHARACTER SET utf8mb4", ["?", "中"]),
        ("ENUM('a','+7','0','1')", ["+7", "1", "a", "0"]),
        ("SET('a','+7','0','1')", ["+7", "1", "a", "0"]),
        ("VARCHAR(2)", ["é ", "é\n", "\\ ", "' "]),
    ],
)
def test_text_that_the_column_has_room_for_is_taken_as_it_is(
    query: Any, table: Table, column: str, texts: list[str]
) -> None:
    query(STR, column).run(0, [{"id": at, "v": text} for at, text in enumerate(texts)])
    assert [text for (text,) in table.rows("v", "id")] == texts


@pytest.mark.parametrize(
    ("column", "texts"),
    [
        ("DECIMAL(50,2)", ["-0.01", "12345678901234567890123456789012345678.90", "0.00"]),
        ("DECIMAL(50,0)", ["-1", "12345678901234567890123456789012345678901234567890"]),
        ("TIME(2)", ["-838:59:59.00", "12:34:56.78", "00:00:00.00"]),
        ("TIME", ["-100:00:01", "23:59:59"]),
    ],
)
def test_text_of_a_number_or_time_is_stored_as_it_is(
    query: Any, table: Table, column: str, texts: list[str]
) -> None:
    query(STR, column).run(0, [{"id": at, "v": text} for at, text in enumerate(texts)])
    assert [text for (text,) in table.rows("CAST(v AS CHAR)", "id")] == texts


@pytest.mark.parametrize(
    ("kind", "column", "value"),
    [(pa.int32(), "YEAR", 0), (pa.decimal128(20, 0), "BIT(64)", Decimal(2**64 - 1))],
)
def test_number_is_stored_as_it_is(
    query: Any, table: Table, kind: pa.DataType, column: str, value: Any
) -> None:
    query(kind, column).run(0, [{"id": 1, "v": value}])
    assert table.rows("v + 0")[0] == (int(value),)


@pytest.mark.parametrize("value", [LARGEST, -LARGEST, 7.038531e-26, -7.038531e-26, 0.1, 1e-45])
def test_float_is_the_same_float_in_the_table(query: Any, table: Table, value: float) -> None:
    """The shortest text of the first lies above it; that of the next, as a double, between two."""
    query(pa.float32(), "FLOAT").run(0, [{"id": 1, "v": value}])
    assert table.rows("CAST(v AS DOUBLE)")[0] == (pa.scalar(value, pa.float32()).as_py(),)


SPELLINGS = ["abc", "abc ", "abc\t", "abc\n", "abc\r\n", "ABC"]
CHANGES = [{}, {"writeMode": "increment"}, {"opColumn": "op"}, {"sequenceColumn": "n"}]


@pytest.mark.parametrize("options", CHANGES)
def test_keys_that_differ_by_space_are_two_or_refused_and_never_one(
    table: Table, options: dict[str, str]
) -> None:
    fields = [("k", STR), ("n", INT)] + ([("op", STR)] if "opColumn" in options else [])
    made = table.checked(pa.schema(fields), key="k", createTable="true", **options)
    rows = [{"k": k, "n": n, "op": "I"} for n, k in enumerate(SPELLINGS)]
    made.run(0, rows)
    assert [k for (k,) in table.rows("k", "n")] == SPELLINGS
    table.run(f"DELETE FROM {table} WHERE n > 0")
    table.run(f"ALTER TABLE {table} MODIFY k VARCHAR(3) CHARACTER SET latin1")
    for epoch in range(1, 5):
        with pytest.raises(BadRow, match="'k' can't be 'abc"):
            made.run(1, [rows[epoch]])
        made.restart()


NESTED = pa.struct([("l", pa.list_(pa.map_(pa.decimal128(38, 0), pa.decimal128(38, 18))))])
DIGITS = Decimal("12345678901234567890.123456789012345678")


@pytest.mark.parametrize("column", ["JSON", "LONGTEXT"])
def test_decimals_inside_json_keep_all_digits(
    query: Any, mysql_name: str, table: Table, column: str
) -> None:
    if (mysql_name, column) == ("mysql", "JSON"):
        with pytest.raises(OptionError, match=r"decimal\(38,18\).*JSON stores numbers as doubles"):
            query(NESTED, column)
        return
    query(NESTED, column).run(0, [{"id": 1, "v": {"l": [{Decimal(1): DIGITS}]}}])
    assert table.rows("v")[0] == (f'{{"l":[{{"1":{DIGITS}}}]}}',)


@pytest.mark.parametrize(
    ("precision", "scale", "value"),
    [(15, 15, "-0.123456789012345"), (15, 2, "9999999999999.99"), (18, 0, "999999999999999999")],
)
def test_decimals_that_a_double_keeps_go_into_json(
    query: Any, table: Table, precision: int, scale: int, value: str
) -> None:
    kind = pa.list_(pa.decimal128(precision, scale))
    query(kind, "JSON").run(0, [{"id": 1, "v": [Decimal(value)]}])
    assert table.rows("CAST(v AS CHAR)")[0] == (f"[{value}]",)


def test_table_that_is_made_has_room_for_decimals_inside_json(table: Table) -> None:
    schema = pa.schema([("id", INT), ("v", pa.list_(pa.decimal128(38, 18)))])
    made = table.checked(schema, key="id", createTable="true")
    made.run(0, [{"id": 1, "v": [DIGITS]}])
    assert table.rows("v")[0] == (f"[{DIGITS}]",)


@pytest.mark.parametrize(
    ("kind", "column"),
    [(pa.int8(), "FLOAT"), (pa.int16(), "DOUBLE"), (pa.int32(), "DOUBLE"), (pa.int32(), "YEAR")],
)
def test_whole_numbers_are_added_to_no_column_that_rounds_sums(
    table: Table, kind: pa.DataType, column: str
) -> None:
    """From 2 ** 24 on, a FLOAT would lose each step of 1."""
    table.create(f"id INT PRIMARY KEY, v {column}")
    schema = pa.schema([("id", pa.int32()), ("v", kind)])
    made = table.query(schema, key="id", writeMode="increment")
    with pytest.raises(OptionError, match=r"Column 'v' of type .* does not fit .*sum"):
        made.sink.check()


@pytest.mark.parametrize("day", [-719163, 2932897])
def test_date_outside_the_years_1_to_9999_is_refused(table: Table, day: int) -> None:
    table.create("v DATE")
    query = table.query(pa.schema([("v", pa.date32())]))
    with pytest.raises(BadRow, match=r"column 'v': .*0001-01-01 to 9999-12-31"):
        query.run(0, [{"v": day}])


@pytest.mark.parametrize(("name", "column"), PAIRS, ids=[f"{a} in {b}" for a, b in PAIRS])
def test_type_reads_back_as_the_same_value(table: Table, name: str, column: str) -> None:
    case = CASES[name]
    table.run("SET SESSION time_zone = '+00:00', SESSION sql_mode = ''")
    table.create(f"id INT PRIMARY KEY, v {column}")
    schema = pa.schema([("id", pa.int32()), ("v", case.kind)])
    query = table.checked(schema, key="id")
    rows = [{"id": at, "v": value} for at, value in enumerate([*case.values, None])]
    query.run(0, as_arrow(rows, schema))
    *found, nothing = [value for (value,) in table.rows("v", "id")]
    assert [case.read(value) for value in found] == (case.expected or case.values)
    assert nothing is None


def test_instant_is_the_same_whatever_the_zone_of_the_server(table: Table) -> None:
    table.run("SELECT @@global.time_zone")
    table.create("a TIMESTAMP(6) NULL, b DATETIME(6)")
    schema = pa.schema([(name, pa.timestamp("us", "America/New_York")) for name in "ab"])
    table.query(schema).run(0, [dict.fromkeys("ab", INSTANT)])
    table.run("SET SESSION time_zone = '+03:00'")
    assert table.rows("a, b")[0] == (INSTANT + dt.timedelta(hours=3), INSTANT)


def test_fraction_that_a_column_cannot_keep_is_cut_not_rounded(table: Table) -> None:
    table.create("v DATETIME, w DATETIME(3)")
    schema = pa.schema([(name, pa.timestamp("us")) for name in "vw"])
    table.query(schema).run(0, [dict.fromkeys("vw", LAST)])
    assert table.rows("v, w")[0] == (LAST.replace(microsecond=0), LAST.replace(microsecond=999000))


REFUSED = [
    (pa.float64(), "FLOAT", "double fits only double"),
    (pa.float64(), "INT", "double fits only"),
    (pa.float64(), "DECIMAL(10,2)", "double fits only"),
    (pa.decimal128(38, 18), "DECIMAL(38,2)", "round to 2 decimals"),
    (pa.decimal128(10, 2), "BIGINT", "round to 0 decimals"),
    (pa.int64(), "DOUBLE", "bigint fits only"),
    (pa.int64(), "VARCHAR(20)", "bigint fits only"),
    (pa.string(), "INT", "string fits only"),
    (pa.string(), "DATETIME", "string fits only"),
    (pa.string(), "BLOB", "string fits only"),
    (pa.binary(), "TEXT", "binary fits only"),
    (pa.bool_(), "VARCHAR(5)", "boolean fits only"),
    (pa.timestamp("us"), "TIMESTAMP(6) NULL", "timestamp_ntz fits only"),
    (pa.timestamp("us", "UTC"), "DATE", "timestamp fits only"),
    (pa.list_(pa.int32()), "INT", "json fits only"),
    (pa.float64(), "DOUBLE(10,2)", "would round"),
    (pa.float32(), "FLOAT(10,1)", "would round"),
    (pa.int64(), "INT AS (id + 1) STORED", "computes that column itself"),
]


@pytest.mark.parametrize(
    ("kind", "column", "why"), REFUSED, ids=[f"{r[0]}-{r[1]}" for r in REFUSED]
)
def test_type_that_does_not_fit_is_refused_before_any_row(
    table: Table, kind: pa.DataType, column: str, why: str
) -> None:
    table.create(f"id INT, v {column}")
    schema = pa.schema([("id", pa.int32()), ("v", kind)])
    with pytest.raises(OptionError, match=f"Column 'v' of type .* does not fit .*{why}") as refused:
        table.query(schema).sink.check()
    assert re.match("[A-Z]+", column)[0].lower() in str(refused.value)


TRICKY = st.text(st.sampled_from("'\\\"`;-,()\0\n\x1a%_aé\U0001f600"))
MODES = ["", "NO_BACKSLASH_ESCAPES", "ANSI_QUOTES,PIPES_AS_CONCAT", "ANSI"]


@pytest.mark.parametrize("mode", MODES)
@given(texts=st.lists(TRICKY | st.text(st.characters(codec="utf-8")), min_size=1, max_size=20))
@settings(max_examples=60, deadline=None, database=None, suppress_health_check=list(HealthCheck))
def test_server_reads_every_text_as_it_is_whatever_its_sql_mode(
    mysql: Cursor, mode: str, texts: list[str]
) -> None:
    mysql.execute("SET SESSION sql_mode = %s", (mode,))
    for kind in (pa.string(), pa.binary()):
        column = pa.array(texts, pa.string()).cast(kind)
        mysql.execute(b"SELECT " + b", ".join(literals(column).to_pylist()))
        assert list(mysql.fetchone()) == column.to_pylist()


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


@pytest.mark.slow
@pytest.mark.parametrize("letters", [61, pytest.param(1, marks=pytest.mark.slow)], indirect=True)
def test_each_character_is_kept_and_takes_as_many_bytes_as_is_said(
    table: Table, letters: str, sets: list[tuple[str, int]]
) -> None:
    for charset, width in sets:
        table.run(f"DROP TABLE IF EXISTS {table}")
        table.run(f"CREATE TABLE {table} (p INT PRIMARY KEY, c VARCHAR(1)) CHARACTER SET {charset}")
        table.run(f"INSERT IGNORE INTO {table} SELECT p, c FROM {letters}")
        stored = [
            (chr(point), found, size)
            for point, found, size in table.rows("p, CONVERT(c USING utf8mb4), LENGTH(c)")
        ]
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


@pytest.mark.slow
@pytest.mark.parametrize(("kind", "room"), [("CHAR(3)", 3), ("VARCHAR(3)", 3), ("TINYTEXT", 255)])
def test_a_text_at_the_border_of_its_room_is_there_as_it_is_or_aside(
    table: Table, sets: list[tuple[str, int]], kind: str, room: int
) -> None:
    for charset, width in sets:
        each = width if charset in ("ucs2", "utf32") else 2 if charset.startswith("utf16") else 1
        most = room // each if kind == "TINYTEXT" else room
        texts = [
            "a" * (length - len(tail)) + tail
            for tail in TAILS
            for length in (most, most + 1, most + len(tail))
        ]
        table.run(f"DROP TABLE IF EXISTS {table}, {table}_bad")
        table.run(f"CREATE TABLE {table} (id INT, v {kind}) CHARACTER SET {charset}")
        assert _aside(table, texts) == [
            at
            for at, text in enumerate(texts)
            if len(text) > most
            or (kind == "CHAR(3)" and text.endswith(" "))
            or (kind == "TINYTEXT" and charset in coercions.MIXED and text[-1] in WHITE)
        ], charset
        assert all(
            found == texts[at] for at, found in table.rows("id, CONVERT(v USING utf8mb4)")
        ), charset


def _aside(table: Table, texts: list[str]) -> list[int]:
    """Write texts, numbered; the numbers of those that went aside."""
    schema = pa.schema([("id", pa.int32()), ("v", pa.string())])
    options: dict[str, Any] = {"onBadRow": "deadLetter", "deadLetter": f"{table}_bad"}
    query = table.query(schema, maxBadRows="100%", **options)
    query.run(0, [{"id": at, "v": text} for at, text in enumerate(texts)])
    with query.sink.store.session.connected():
        found = query.sink.store.session.run(
            f"SELECT JSON_EXTRACT(row_data, '$.id') FROM {table}_bad ORDER BY id"
        )
    return sorted(int(at) for (at,) in found)
