"""New rows by LOAD DATA LOCAL: the same as by INSERT, and the same errors."""

from __future__ import annotations

import datetime as dt
import threading
from collections.abc import Callable
from decimal import Decimal
from itertools import count
from typing import Any

import pyarrow as pa
import pymysql
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from integration.support.epochs import COUNTER, MySqlQuery
from integration.support.mysql import Table
from integration.support.servers.mysql import connect
from pymysql.cursors import Cursor

from pyspark_mysql.server.client import MySqlSession
from pyspark_mysql.server.connection import LiveConnection
from sparkonce.errors import BadRow

Query = Callable[..., MySqlQuery]
UTC = dt.timezone.utc
ODD = [
    "NULL",
    "'",
    "''",
    "'),(",
    "a,b",
    "(1)",
    "\n",
    "\t",
    "\0",
    "",
    " x ",
    "\\",
    "\\N",
    "é\U0001f600",
]
SCHEMA = pa.schema(
    [
        ("id", pa.int64()),
        ("text", pa.string()),
        ("data", pa.binary()),
        ("price", pa.float64()),
        ("sum", pa.decimal128(38, 18)),
        ("flag", pa.bool_()),
        ("at", pa.timestamp("us", "UTC")),
        ("wall", pa.timestamp("us")),
        ("day", pa.date32()),
        ("time", pa.time64("us")),
        ("list", pa.list_(pa.string())),
    ]
)
COLUMNS = (
    "id BIGINT, text LONGTEXT, data LONGBLOB, price DOUBLE, sum DECIMAL(38,18), flag BOOLEAN,"
    " at TIMESTAMP(6) NULL, wall DATETIME(6), day DATE, time TIME(6), list JSON"
)


@pytest.fixture
def loads(monkeypatch: pytest.MonkeyPatch) -> Callable[[], int]:
    """How often the server was asked to load."""
    asked, send = [], LiveConnection.sent

    def sent(live: LiveConnection, sql: str | bytes, *args: Any) -> Any:
        if str(sql).startswith("LOAD DATA"):
            asked.append(sql)
        return send(live, sql, *args)

    monkeypatch.setattr(LiveConnection, "sent", sent)
    return lambda: len(asked)


@pytest.fixture
def make(table: Table, local_infile: Any) -> Query:
    """A query that appends to a table with this definition, by LOAD DATA unless told otherwise."""
    numbers = count()

    def make(
        schema: pa.Schema, definition: str, *, load: bool = True, **options: str
    ) -> MySqlQuery:
        local_infile(load)
        name = f"{table}_{next(numbers)}"
        table.run(f"CREATE TABLE {name} ({definition})")
        options = {"url": table.url, "dbtable": name, "writeMode": "append", **options}
        query = MySqlQuery(schema, **options)
        query.sink.store.session.pool.close_idle()  # a connection knows what held when it was made
        query.sink.check()
        return query

    return make


def target(query: MySqlQuery) -> str:
    return str(query.options["dbtable"])


def content(mysql: Cursor, query: MySqlQuery) -> list[tuple[Any, ...]]:
    mysql.execute(f"SELECT * FROM {target(query)} ORDER BY id")
    return list(mysql.fetchall())


def row(id_: int, text: str | None) -> dict[str, Any]:
    return {
        "id": id_,
        "text": text,
        "data": None if text is None else text.encode() + bytes(range(256)),
        "price": 0.1 * id_,
        "sum": Decimal(id_).scaleb(-18),
        "flag": bool(id_ % 2),
        "at": dt.datetime(2024, 2, 29, 12, 0, 0, id_, UTC),
        "wall": dt.datetime(1, 1, 1, 0, 0, 0, id_),
        "day": dt.date(9999, 12, 31),
        "time": dt.time(23, 59, 59, id_),
        "list": None if text is None else [text.replace("\\", "/"), None],
    }


def test_what_is_loaded_is_what_would_be_inserted(make: Query, mysql: Cursor, loads: Any) -> None:
    rows = [row(number, text) for number, text in enumerate([*ODD, None])]
    rows.append(dict.fromkeys(SCHEMA.names) | {"id": 99})
    before = loads()
    inserting = make(SCHEMA, COLUMNS, load=False)
    inserting.run(0, rows)
    assert loads() == before
    loading = make(SCHEMA, COLUMNS, chunkRows="1")
    loading.run(0, rows)
    # A text with a backslash is always inserted, and JSON has one where there is a control letter.
    assert loads() == before + sum(not set("\\\n\t\0") & set(each["text"] or "") for each in rows)
    assert content(mysql, loading) == content(mysql, inserting)
    assert [each[:3] for each in content(mysql, loading)] == [
        (each["id"], each["text"], each["data"]) for each in rows
    ]


@settings(
    max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
@given(texts=st.lists(st.text(alphabet=st.sampled_from("'(),\\nNUL \"\n\té"), max_size=9)))
def test_any_texts_come_back_as_they_were(make: Query, mysql: Cursor, texts: list[str]) -> None:
    query = make(pa.schema([("id", pa.int64()), ("text", pa.string())]), "id INT, text TEXT")
    query.run(0, [{"id": number, "text": text} for number, text in enumerate(texts)])
    assert content(mysql, query) == list(enumerate(texts))


SMALL = pa.schema([("id", pa.int64()), ("n", pa.int64()), ("word", pa.string())])
STRICT = "id BIGINT PRIMARY KEY, n TINYINT NOT NULL, word VARCHAR(5), CHECK (n <> 13)"


@pytest.mark.parametrize(
    ("bad", "said"),
    [
        ({"n": 300}, "n"),
        ({"n": None}, "n"),
        ({"n": 13}, "CONSTRAINT|constraint"),
        ({"word": "too long"}, "word"),
        ({"id": 1}, "Duplicate entry '1'"),
    ],
)
@pytest.mark.parametrize("atomicity", ["epoch", "chunk"])
def test_a_row_that_loading_would_bend_is_refused_as_by_insert(
    make: Query,
    table: Table,
    mysql_name: str,
    loads: Any,
    bad: dict[str, Any],
    said: str,
    atomicity: str,
) -> None:
    aside = {"onBadRow": "deadLetter", "deadLetter": f"{table}_bad"}
    query = make(SMALL, STRICT, atomicity=atomicity, **aside)
    rows = [{"id": number, "n": number, "word": "w"} for number in range(8)]
    rows[5] |= bad
    before = loads()
    query.run(0, rows)
    inserted = mysql_name == "mysql" and bad == {"n": None}  # of which it would not always warn
    assert loads() == before + (not inserted)
    assert [each[0] for each in content(table.client, query)] == [0, 1, 2, 3, 4, 6, 7]
    ((reason,),) = table.run(f"SELECT reason FROM {table}_bad")
    assert any(word in reason for word in said.split("|")), reason


COUNTS = "id BIGINT PRIMARY KEY, n BIGINT"
KEYED = {"key": "id", "chunkRows": "200"}


def counts(ids: range, n: int) -> list[dict[str, Any]]:
    return [{"id": number, "n": n} for number in ids]


@pytest.mark.parametrize("mode", ["upsert", "increment"])
def test_keyed_rows_are_loaded_while_they_are_new(
    make: Query, mysql: Cursor, loads: Any, mode: str
) -> None:
    query = make(COUNTER, COUNTS, writeMode=mode, **KEYED)
    before = loads()
    query.run(0, counts(range(1000), 1))
    assert loads() == before + 4  # of five chunks the first is inserted: it tells of the others
    query.run(1, counts(range(1000), 2))
    assert loads() == before + 4
    assert content(mysql, query) == [(i, 2 if mode == "upsert" else 3) for i in range(1000)]


@pytest.mark.parametrize("mode", ["upsert", "increment"])
def test_a_stored_row_among_new_ones_ends_the_loading(
    make: Query, mysql: Cursor, loads: Any, mode: str
) -> None:
    query = make(COUNTER, COUNTS, writeMode=mode, **KEYED)
    query.run(0, counts(range(500, 501), 1))
    before = loads()
    query.run(1, [*counts(range(600), 2), *counts(range(600), 4), *counts(range(600, 800), 8)])
    assert loads() == before + 2  # the second chunk, and the third, which was taken back
    twice = {"upsert": 4, "increment": 6}[mode]
    expected = [(i, twice if i < 600 else 8) for i in range(800)]
    if mode == "increment":
        expected[500] = (500, 7)
    assert content(mysql, query) == expected


def test_few_rows_do_not_tell_whether_others_are_new(
    make: Query, mysql: Cursor, loads: Any
) -> None:
    query = make(COUNTER, COUNTS, writeMode="upsert", key="id", chunkRows="99")
    before = loads()
    query.run(0, counts(range(990), 1))
    assert loads() == before
    assert len(content(mysql, query)) == 990


@pytest.mark.parametrize("bad", [{"n": 70_000}, {"n": 13}])
def test_a_keyed_row_that_loading_would_bend_is_refused_as_by_insert(
    make: Query, mysql: Cursor, loads: Any, bad: dict[str, Any]
) -> None:
    query = make(SMALL, STRICT.replace("TINYINT", "SMALLINT"), writeMode="upsert", **KEYED)
    query.run(0, [{"id": -1, "n": 1, "word": "w"}])
    rows = [{"id": number, "n": 1, "word": "w"} for number in range(600)]
    rows[450] |= bad
    before = loads()
    with pytest.raises(BadRow, match="id=450"):
        query.run(1, rows)
    assert loads() == before + 2
    assert content(mysql, query) == [(-1, 1, "w")]


def test_bits_are_inserted(make: Query, mysql: Cursor, loads: Any) -> None:
    before = loads()
    query = make(pa.schema([("id", pa.int64()), ("b", pa.bool_())]), "id INT, b BIT(1)")
    query.run(0, [{"id": 1, "b": True}, {"id": 2, "b": False}])
    assert content(mysql, query) == [(1, b"\1"), (2, b"\0")]
    assert loads() == before


def test_a_chunk_that_waits_for_a_lock_is_loaded_once(make: Query, mysql: Cursor) -> None:
    query = make(SMALL, STRICT, timeout="5")
    with connect(query.options["url"], autocommit=False) as other, other.cursor() as cursor:
        cursor.execute(f"INSERT INTO {target(query)} VALUES (3, 3, 'x')")
        release = threading.Timer(1.0, other.rollback)
        release.start()
        query.run(0, [{"id": number, "n": number, "word": "w"} for number in range(8)])
        release.join()
    assert [each[0] for each in content(mysql, query)] == list(range(8))


PROXYSQL = (1047, "Unsupported 'LOAD DATA LOCAL INFILE' command")


@pytest.mark.parametrize("options", [{"writeMode": "append"}, {"key": "id", "chunkRows": "200"}])
def test_rows_are_inserted_where_a_proxy_does_not_take_them(
    table: Table, local_infile: Any, monkeypatch: Any, options: dict[str, str]
) -> None:
    asked = []

    def refused(_: MySqlSession, sql: str, __: memoryview) -> int:
        asked.append(sql)
        raise pymysql.OperationalError(*PROXYSQL)

    monkeypatch.setattr(MySqlSession, "load", refused)
    local_infile(True)
    query = table.make(COUNTER, "id BIGINT PRIMARY KEY, n BIGINT", **options)
    query.run(0, [{"id": number, "n": number} for number in range(600)])
    assert len(asked) == 1
    assert table.stored() == [(number, number) for number in range(600)]


WORDS = pa.schema([("id", pa.int64()), ("n", pa.int64()), ("word", pa.string())])
WORD_COLUMNS = "id BIGINT PRIMARY KEY, n BIGINT NOT NULL, word VARCHAR(5), seen BIGINT"
FILLS = "SET NEW.n = COALESCE(NEW.n, 7)"
NOTES = "SET NEW.seen = NEW.id"
LOADED_MODES = [{"writeMode": "append"}, {"writeMode": "upsert", "key": "id"}]


@pytest.fixture
def triggered(table: Table, local_infile: Any) -> Any:
    """Make a query into a table with a trigger, on a server that allows LOAD DATA LOCAL."""

    def triggered(trigger: str, **options: str) -> Any:
        local_infile(True)
        query = table.make(WORDS, WORD_COLUMNS, **options)
        table.run(f"CREATE TRIGGER {table}_t BEFORE INSERT ON {table} FOR EACH ROW {trigger}")
        return query

    return triggered


def rows_with_a_null() -> list[dict[str, Any]]:
    return [
        {"id": number, "n": None if number == 450 else number, "word": None}
        for number in range(600)
    ]


@pytest.mark.parametrize("options", LOADED_MODES)
def test_null_for_a_column_that_is_not_null_is_refused(
    triggered: Any, table: Table, options: dict[str, str]
) -> None:
    query = triggered(NOTES, chunkRows="200", **options)
    with pytest.raises(BadRow, match=r"id=450.*'n' cannot be null"):
        query.run(0, rows_with_a_null())
    assert table.stored() == []


@pytest.mark.parametrize("options", LOADED_MODES)
def test_null_that_a_trigger_fills_is_filled(
    triggered: Any, table: Table, options: dict[str, str]
) -> None:
    query = triggered(FILLS, chunkRows="200", **options)
    query.run(0, rows_with_a_null())
    assert table.stored("id, n") == [(i, 7 if i == 450 else i) for i in range(600)]


@pytest.mark.parametrize("options", LOADED_MODES)
@pytest.mark.parametrize("fills", [True, False])
def test_a_column_that_a_trigger_may_fill_needs_no_value_of_the_query(
    triggered: Any, table: Table, options: dict[str, str], fills: bool
) -> None:
    query = triggered(NOTES, **options)
    table.run(f"ALTER TABLE {table} ADD must INT NOT NULL")
    table.run(
        f"CREATE TRIGGER {table}_f BEFORE INSERT ON {table} FOR EACH ROW SET"
        f" NEW.{'must' if fills else 'seen'} = NEW.id"
    )
    query.sink.store.session.pool.close_idle()  # so that all is checked again
    rows = [{"id": number, "n": 1, "word": None} for number in range(600)]
    if fills:
        query.run(0, rows)
        assert table.stored("id, must") == [(number, number) for number in range(600)]
    else:
        with pytest.raises(BadRow, match="doesn't have a default value"):
            query.run(0, rows)
        assert table.stored() == []
