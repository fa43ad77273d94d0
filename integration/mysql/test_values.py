"""A value that a column does not take is refused by row, column and reason, and never bent."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from decimal import Decimal
from typing import Any, NamedTuple

import pyarrow as pa
import pytest
from integration.support.epochs import MySqlQuery
from pymysql.cursors import Cursor

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
    Refused(STR, "ab ", "CHAR(3)", "keeps no spaces"),
    Refused(STR, "no json", "JSON", "JSON|CHECK"),
    Refused(STR, "z", "ENUM('a')", "keep only a part"),
    Refused(STR, "2", "ENUM('a','b')", "number of one"),
    Refused(STR, "0", "ENUM('a','b')", "number of one"),
    Refused(STR, " +2", "ENUM('a','b') CHARACTER SET utf16", "number of one"),
    Refused(STR, "\v00002", "ENUM('1','b')", "number of one"),
    Refused(STR, "3", "SET('a','b')", "number of one"),
    Refused(STR, "0", "SET('a','b')", "number of one"),
    Refused(STR, "-18446744073709551613", "SET('a','b')", "number of one"),
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
    Refused(pa.int32(), 0, "YEAR", "two digits"),
    Refused(INT, -1, "BIT(64)", "no sign"),
    Refused(INT, -1, "BIT(63)", "longer than the column"),
    Refused(pa.decimal128(10, 2), Decimal("1000.00"), "DECIMAL(5,2)", "does not fit"),
    Refused(pa.timestamp("us", "UTC"), -(2**55), "TIMESTAMP(6) NULL", "none of the column's type"),
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
def query(
    mysql: Cursor, mysql_url: str, table: str, options: dict[str, str]
) -> Iterator[Callable[..., MySqlQuery]]:
    """A query of ids and one other column, into a table that has such."""

    def query(kind: pa.DataType, column: str, **more: str) -> MySqlQuery:
        mysql.execute(f"CREATE TABLE {table} (id INT PRIMARY KEY, v {column})")
        schema = pa.schema([("id", pa.int32()), ("v", kind)])
        made = MySqlQuery(schema, url=mysql_url, dbtable=table, **options, **more)
        made.sink.check()
        return made

    yield query
    mysql.execute(f"DROP TABLE IF EXISTS {table}_bad")


@pytest.mark.parametrize("case", VALUES, ids=NAMES)
def test_value_that_does_not_fit_is_refused_by_key_column_and_reason(
    query: Any, mysql: Cursor, table: str, case: Refused
) -> None:
    made = query(case.kind, case.column)
    with pytest.raises(BadRow, match=rf"row with id=7.*\bv\b.*Why: .*({case.why})") as refused:
        made.run(0, [{"id": 1, "v": None}, {"id": 7, "v": case.value}])
    assert refused.value.todo
    mysql.execute(f"SELECT COUNT(*) FROM {table}")
    assert mysql.fetchone() == (0,)


def test_value_that_would_be_bent_goes_aside(query: Any, mysql: Cursor, table: str) -> None:
    made = query(STR, "ENUM('a','b')", onBadRow="deadLetter", deadLetter=f"{table}_bad")
    texts = ["1", "a", "b", "2", "'),(", "1", "a"]
    made.run(0, [{"id": at, "v": text} for at, text in enumerate(texts)])
    mysql.execute(f"SELECT * FROM {table} ORDER BY id")
    assert mysql.fetchall() == ((1, "a"), (2, "b"), (6, "a"))
    mysql.execute(f"SELECT row_data FROM {table}_bad ORDER BY id")
    put = sorted(json.loads(row)["id"] for (row,) in mysql.fetchall())
    assert put == [0, 3, 4, 5]


@pytest.mark.parametrize(
    ("column", "texts"),
    [
        ("ENUM('?','é,','''ä') CHARACTER SET latin1", ["?", "é,", "'ä"]),
        ("SET('?','é','''ä') CHARACTER SET latin1", ["?,é,'ä", "é", "'ä"]),
        ("ENUM('?','中') CHARACTER SET utf8mb4", ["?", "中"]),
    ],
)
def test_member_of_characters_that_the_column_has_is_taken(
    query: Any, mysql: Cursor, table: str, column: str, texts: list[str]
) -> None:
    query(STR, column).run(0, [{"id": at, "v": text} for at, text in enumerate(texts)])
    mysql.execute(f"SELECT v FROM {table} ORDER BY id")
    assert [text for (text,) in mysql.fetchall()] == texts


@pytest.mark.parametrize("column", ["ENUM('a','+7','0','1')", "SET('a','+7','0','1')"])
def test_member_that_is_a_number_is_taken_as_the_member(
    query: Any, mysql: Cursor, table: str, column: str
) -> None:
    texts = ["+7", "1", "a", "0"]
    query(STR, column).run(0, [{"id": at, "v": text} for at, text in enumerate(texts)])
    mysql.execute(f"SELECT v FROM {table} ORDER BY id")
    assert [text for (text,) in mysql.fetchall()] == texts


@pytest.mark.parametrize("value", [LARGEST, -LARGEST, 7.038531e-26, -7.038531e-26, 0.1, 1e-45])
def test_float_is_the_same_float_in_the_table(
    query: Any, mysql: Cursor, table: str, value: float
) -> None:
    """The shortest text of the first lies above it; that of the next, as a double, between two."""
    query(pa.float32(), "FLOAT").run(0, [{"id": 1, "v": value}])
    mysql.execute(f"SELECT CAST(v AS DOUBLE) FROM {table}")
    assert mysql.fetchone() == (pa.scalar(value, pa.float32()).as_py(),)


def test_space_at_the_end_is_kept_where_there_is_room(
    query: Any, mysql: Cursor, table: str
) -> None:
    texts = ["é ", "é\n", "\\ ", "' "]
    query(STR, "VARCHAR(2)").run(0, [{"id": at, "v": text} for at, text in enumerate(texts)])
    mysql.execute(f"SELECT v FROM {table} ORDER BY id")
    assert [text for (text,) in mysql.fetchall()] == texts


SPELLINGS = ["abc", "abc ", "abc\t", "abc\n", "abc\r\n", "ABC"]
CHANGES = [{}, {"writeMode": "increment"}, {"opColumn": "op"}, {"sequenceColumn": "n"}]


@pytest.mark.parametrize("options", CHANGES)
def test_keys_that_differ_by_space_are_two_or_refused_and_never_one(
    mysql: Cursor, mysql_url: str, table: str, options: dict[str, str]
) -> None:
    fields = [("k", STR), ("n", INT)] + ([("op", STR)] if "opColumn" in options else [])
    made = MySqlQuery(
        pa.schema(fields), url=mysql_url, dbtable=table, key="k", createTable="true", **options
    )
    made.sink.check()
    rows = [{"k": k, "n": n, "op": "I"} for n, k in enumerate(SPELLINGS)]
    made.run(0, rows)
    mysql.execute(f"SELECT k FROM {table} ORDER BY n")
    assert [k for (k,) in mysql.fetchall()] == SPELLINGS
    mysql.execute(f"DELETE FROM {table} WHERE n > 0")
    mysql.execute(f"ALTER TABLE {table} MODIFY k VARCHAR(3) CHARACTER SET latin1")
    for epoch in range(1, 5):
        with pytest.raises(BadRow, match="'k' can't be 'abc"):
            made.run(1, [rows[epoch]])
        made.restart()


NESTED = pa.struct([("l", pa.list_(pa.map_(pa.decimal128(38, 0), pa.decimal128(38, 18))))])
DIGITS = Decimal("12345678901234567890.123456789012345678")


@pytest.mark.parametrize("column", ["JSON", "LONGTEXT"])
def test_decimals_inside_json_keep_all_digits(
    query: Any, mysql: Cursor, mysql_name: str, table: str, column: str
) -> None:
    if (mysql_name, column) == ("mysql", "JSON"):
        with pytest.raises(OptionError, match=r"decimal\(38,18\).*JSON keeps numbers as doubles"):
            query(NESTED, column)
        return
    query(NESTED, column).run(0, [{"id": 1, "v": {"l": [{Decimal(1): DIGITS}]}}])
    mysql.execute(f"SELECT v FROM {table}")
    assert mysql.fetchone() == (f'{{"l":[{{"1":{DIGITS}}}]}}',)


@pytest.mark.parametrize(
    ("precision", "scale", "value"),
    [(15, 15, "-0.123456789012345"), (15, 2, "9999999999999.99"), (18, 0, "999999999999999999")],
)
def test_decimals_that_a_double_keeps_go_into_json(
    query: Any, mysql: Cursor, table: str, precision: int, scale: int, value: str
) -> None:
    kind = pa.list_(pa.decimal128(precision, scale))
    query(kind, "JSON").run(0, [{"id": 1, "v": [Decimal(value)]}])
    mysql.execute(f"SELECT CAST(v AS CHAR) FROM {table}")
    assert mysql.fetchone() == (f"[{value}]",)


def test_table_that_is_made_has_room_for_decimals_inside_json(
    mysql: Cursor, mysql_url: str, table: str
) -> None:
    schema = pa.schema([("id", INT), ("v", pa.list_(pa.decimal128(38, 18)))])
    made = MySqlQuery(schema, url=mysql_url, dbtable=table, key="id", createTable="true")
    made.sink.check()
    made.run(0, [{"id": 1, "v": [DIGITS]}])
    mysql.execute(f"SELECT v FROM {table}")
    assert mysql.fetchone() == (f"[{DIGITS}]",)


@pytest.mark.parametrize(
    ("kind", "column"),
    [(pa.int8(), "FLOAT"), (pa.int16(), "DOUBLE"), (pa.int32(), "DOUBLE"), (pa.int32(), "YEAR")],
)
def test_whole_numbers_are_added_to_no_column_that_rounds_sums(
    mysql: Cursor, mysql_url: str, table: str, kind: pa.DataType, column: str
) -> None:
    """From 2 ** 24 on, a FLOAT would lose each step of 1."""
    mysql.execute(f"CREATE TABLE {table} (id INT PRIMARY KEY, v {column})")
    schema = pa.schema([("id", pa.int32()), ("v", kind)])
    made = MySqlQuery(schema, url=mysql_url, dbtable=table, key="id", writeMode="increment")
    with pytest.raises(OptionError, match=r"Column 'v' of type .* does not fit .*sum"):
        made.sink.check()


@pytest.mark.parametrize("day", [-719163, 2932897])
def test_date_outside_the_years_1_to_9999_is_refused(
    mysql: Cursor, mysql_url: str, table: str, day: int
) -> None:
    mysql.execute(f"CREATE TABLE {table} (v DATE)")
    query = MySqlQuery(pa.schema([("v", pa.date32())]), url=mysql_url, dbtable=table)
    with pytest.raises(BadRow, match=r"column 'v': .*0001-01-01 to 9999-12-31"):
        query.run(0, [{"v": day}])
