"""Rows that can't be stored go to a table, each once, while the others are stored."""

from __future__ import annotations

import json
import logging
import re
from collections.abc import Callable
from typing import Any

import pyarrow as pa
import pytest
from integration.support.epochs import COUNTER, MySqlQuery, cut_each, ones
from integration.support.marks import slow_cases, slow_rows
from integration.support.mysql import Private, Table, client, is_query
from integration.support.proxy import Proxy

from sparkonce.errors import BadRow, RowRefused, SparkonceError, StoreRefused, StoreUnreachable

ROWS = pa.schema([("id", pa.int64()), ("n", pa.int64()), ("x", pa.float64())])


@pytest.fixture
def tables(table: Table) -> Table:
    """A target that has room for small numbers, and a name for the table of dead letters."""
    table.create("id BIGINT PRIMARY KEY, n TINYINT, x DOUBLE")
    return table


def forgiving(url: str, table: str, **options: str) -> MySqlQuery:
    given = {"writeMode": "increment", "onBadRow": "deadLetter", "deadLetter": f"{table}_bad"}
    return MySqlQuery(ROWS, url=url, dbtable=table, key="id", **{**given, **options})


@pytest.fixture
def found(tables: Table) -> Callable[[], tuple[Any, Any]]:
    """What was stored, and what was put aside."""

    def found() -> tuple[Any, Any]:
        stored = dict(tables.rows("id, n", "id"))
        return stored, list(
            tables.run(f"SELECT epoch, reason, row_data FROM {tables}_bad ORDER BY id")
        )

    return found


def row(id_: int | None, n: int = 1, x: float = 0.5) -> dict[str, Any]:
    return {"id": id_, "n": n, "x": x}


@pytest.mark.parametrize("atomicity", ["epoch", "chunk"])
def test_bad_rows_of_server_and_client_are_put_aside(
    tables: Table, found: Any, atomicity: str
) -> None:
    bad = forgiving(tables.url, tables, atomicity=atomicity, chunkRows="4")
    bad.sink.check()
    rows = [row(i) for i in range(10)]
    rows[3], rows[5], rows[8] = row(3, 300), row(None), row(8, 1, float("inf"))
    bad.run(0, rows, [row(20, -999)])
    bad.run(0, rows)
    stored, letters = found()
    assert stored == dict.fromkeys({0, 1, 2, 4, 6, 7, 9}, 1)
    assert [epoch for epoch, _, _ in letters] == [0] * 4
    reasons = [reason for _, reason, _ in letters]
    for reason, said in zip(
        reasons, ("id=3: 1264", "Column 'id' is null", "column 'x': inf", "id=20"), strict=True
    ):
        assert said in reason
    assert json.loads(letters[0][2]) == {"id": 3, "n": 300, "x": 0.5}


def test_sum_that_overflows_in_a_later_epoch_is_put_aside(tables: Table, found: Any) -> None:
    bad = forgiving(tables.url, tables)
    bad.sink.check()
    bad.run(0, [row(1, 100), row(2, 100)])
    bad.run(1, [row(1, 100), row(2, 1)])
    stored, letters = found()
    assert stored == {1: 100, 2: 101}
    assert [(epoch, "id=1" in reason) for epoch, reason, _ in letters] == [(1, True)]


@pytest.mark.slow
def test_each_is_put_aside_once_whichever_statement_the_network_cuts(
    mysql_proxy: Proxy, tables: Table, found: Any
) -> None:
    bad = forgiving(mysql_proxy.url, tables)
    bad.sink.check()
    bad.run(0, [row(1)])
    run = lambda epoch: bad.run_until_done(epoch, [row(1), row(epoch + 1, 300)])  # noqa: E731
    last = cut_each(mysql_proxy, "cut_reply", run, is_query)
    stored, letters = found()
    assert last > 12
    assert stored == {1: last + 1}
    assert [epoch for epoch, _, _ in letters] == list(range(1, last + 1))


def test_epoch_that_is_stuck_chunk_by_chunk_goes_on_once_bad_rows_may_go_aside(
    tables: Table, found: Any
) -> None:
    stuck = tables.checked(ROWS, key="id", writeMode="increment", atomicity="chunk")
    rows = [row(1), row(2, 300), row(3)]
    with pytest.raises(RowRefused, match="id=2"):
        stuck.run(0, rows)
    stuck.restart(onBadRow="deadLetter", deadLetter=f"{tables}_bad")
    stuck.sink.check()
    stuck.run(0, rows)
    stored, letters = found()
    assert stored == {1: 1, 3: 1}
    assert len(letters) == 1


def test_row_that_is_larger_than_a_packet_is_put_aside_and_cut(private_mysql: Private) -> None:
    server, packet = private_mysql("--max-allowed-packet=64K"), 65536
    schema = pa.schema([("id", pa.int64()), ("s", pa.string())])
    large = MySqlQuery(
        schema,
        url=server.url,
        dbtable="t",
        key="id",
        createTable="true",
        onBadRow="deadLetter",
        deadLetter="bad",
    )
    large.sink.check()
    large.run(0, [{"id": 1, "s": "x" * packet}, {"id": 2, "s": "y"}])
    with client(server.url) as mysql:
        mysql.execute("SELECT id, s FROM t")
        assert mysql.fetchall() == ((2, "y"),)
        mysql.execute("SELECT reason, LENGTH(row_data) FROM bad")
        ((reason, length),) = mysql.fetchall()
    assert re.match("cut, because it is larger than .*id=1: the row takes 65,5", reason)
    assert 0 <= length < packet


UNLUCKY = (
    "IF NEW.n = 0 THEN SIGNAL SQLSTATE '45000' SET MYSQL_ERRNO = 30001, MESSAGE_TEXT = 'unlucky';"
    " END IF"
)


N = "id BIGINT PRIMARY KEY, n INT"
BY_RANGE = "PARTITION BY RANGE (id) (PARTITION p VALUES LESS THAN (7)"
REFUSED: dict[str, tuple[str, int | None, str]] = {
    "a null": (f"{N} NOT NULL", None, r"id=7.*'n' cannot be null"),
    "too large": ("id BIGINT PRIMARY KEY, n TINYINT", 300, r"id=7.*Out of range.*'n'"),
    "negative": (f"{N} UNSIGNED", -1, r"id=7.*Out of range.*'n'"),
    "a check": (f"{N}, CHECK (n < 5)", 6, r"id=7.*(?i:constraint)"),
    "partition": (f"{N}) {BY_RANGE}", 1, r"id=7.*partition"),
    "a generated column divides by zero": (f"{N}, g INT AS (10 / n) STORED", 0, "id=7"),
    "a CHECK divides by zero": (f"{N}, CHECK (10 / n > 0)", 0, "id=7"),
    "a trigger signals a number of its own": (N, 0, "id=7"),
}


@pytest.mark.variants
@pytest.mark.parametrize("case", REFUSED)
def test_row_that_the_server_refuses_is_named_and_may_go_aside(table: Table, case: str) -> None:
    definition, value, said = REFUSED[case]
    table.create(definition)
    if "trigger" in case:
        each = f"BEFORE INSERT ON {table} FOR EACH ROW BEGIN {UNLUCKY}; END"
        table.run(f"CREATE TRIGGER {table}_t {each}")
    query = table.checked(COUNTER, key="id")
    rows = [{"id": id_, "n": 1} for id_ in range(6)], [{"id": 7, "n": value}, {"id": 6, "n": 1}]
    with pytest.raises(BadRow, match=said):
        query.run(0, *rows)
    assert table.count() == 0
    assert query.sink.store.session.live.connection.open
    query.restart(onBadRow="deadLetter", deadLetter=f"{table}_bad")
    query.run(0, *rows)
    assert table.stored("id") == [(id_,) for id_ in range(7)]
    assert table.count("_bad") == 1


ALL_BARRED = "SIGNAL SQLSTATE '{}' SET MYSQL_ERRNO = {}, MESSAGE_TEXT = {}"


def barred(table: Table, signal: str) -> None:
    """Make a table whose trigger refuses rows."""
    table.create("id INT PRIMARY KEY, n INT")
    declared = "DECLARE said TEXT DEFAULT CONCAT('not ', NEW.id);"
    each = f"BEFORE INSERT ON {table} FOR EACH ROW BEGIN {declared} {signal}; END"
    table.run(f"CREATE TRIGGER {table}_t {each}")


@pytest.mark.parametrize(
    ("number", "error"), [(9001, StoreUnreachable), (9999, StoreRefused), (1999, StoreRefused)]
)
def test_answer_that_names_no_row_puts_none_aside(
    table: Table, number: int, error: type[SparkonceError]
) -> None:
    """ProxySQL, for one, has numbers of its own."""
    barred(table, ALL_BARRED.format("HY000", number, "'no server'"))
    query = table.aside(COUNTER)
    with pytest.raises(error, match=f"{number} no server"):
        query.run(0, [{"id": 1, "n": 1}])
    assert table.count("_bad") == 0


@pytest.mark.parametrize("index", ["UNSIGNED ARRAY", "CHAR(3) ARRAY"])
def test_row_that_an_index_over_json_refuses_is_named(
    table: Table, mysql_name: str, index: str
) -> None:
    if mysql_name != "mysql":
        pytest.skip("MariaDB has no such indexes")
    indexed = f"INDEX f ((CAST(j->'$.a' AS {index})))"
    table.create(f"id INT PRIMARY KEY, j JSON, {indexed}")
    schema = pa.schema([("id", pa.int64()), ("j", pa.string())])
    query = table.query(schema, key="id")
    with pytest.raises(BadRow, match="id=1"):
        query.run(0, [{"id": 1, "j": '{"a": ["xxxx"]}'}])


BAD_ROW = (BadRow, RowRefused)
FOLDED = {"key": "id", "sequenceColumn": "n"}
WAYS: list[Any] = [{}, {"atomicity": "chunk", "chunkRows": "100"}, *slow_cases(FOLDED)]
CLOSED = "SIGNAL SQLSTATE '45000' SET MESSAGE_TEXT = 'closed'"
PARTITIONS = "PARTITION BY RANGE (id) (PARTITION p0 VALUES LESS THAN (0))"


BROKEN = {
    "no partition": ("{table} (id BIGINT PRIMARY KEY, n INT) " + PARTITIONS, ()),
    "a CHECK that nothing passes": ("{table} (id BIGINT PRIMARY KEY, n INT, CHECK (n < 0))", ()),
    "an empty parent table": (
        "{table} (id BIGINT PRIMARY KEY, n INT, FOREIGN KEY (n) REFERENCES {table}_p (id))",
        ("CREATE TABLE {table}_p (id INT PRIMARY KEY)",),
    ),
    "an audit table that refuses": (
        "{table} (id BIGINT PRIMARY KEY, n INT)",
        (
            "CREATE TABLE {table}_p (what CHAR(1))",
            "CREATE TRIGGER {table}_t AFTER INSERT ON {table} FOR EACH ROW"
            " INSERT INTO {table}_p VALUES (CONCAT('row ', NEW.id))",
        ),
    ),
}


@pytest.fixture
def broken(table: Table) -> MySqlQuery:
    return table.query(COUNTER, onBadRow="deadLetter", deadLetter=f"{table}_bad")


def make_broken(table: Table, case: str) -> None:
    definition, others = BROKEN[case]
    statements = [f"CREATE TABLE {definition}", *others]
    if "_p (id)" in definition:
        statements.reverse()
    for statement in statements:
        table.run(statement.format(table=table))


def close_table(table: Table) -> None:
    """Let a trigger refuse all rows, except those of a negative number."""
    table.run(
        f"CREATE TRIGGER {table}_t BEFORE INSERT ON {table} FOR EACH ROW"
        f" BEGIN IF NEW.id >= 0 THEN {CLOSED}; END IF; END"
    )


@pytest.mark.parametrize(
    ("case", "way"),
    [
        ("no partition", {}),
        *slow_rows(
            ("no partition", {"atomicity": "chunk", "chunkRows": "100"}),
            ("no partition", FOLDED),
            *((case, {}) for case in list(BROKEN)[1:]),
        ),
    ],
)
def test_good_rows_by_the_thousands_do_not_go_aside(
    broken: MySqlQuery, table: Table, case: str, way: dict[str, str]
) -> None:
    make_broken(table, case)
    broken.restart(**way)
    broken.sink.check()
    for _ in range(3):  # a supervisor
        with pytest.raises(BAD_ROW, match=r"of epoch 0 can't be stored.* allows 200") as error:
            broken.run(0, ones(range(2000)))
        broken.restart()
    assert "200 x refused before" in str(error.value) if "chunkRows" in way else "201 x"
    aside = table.count("_bad")
    assert aside == (200 if "chunkRows" in way else 0)
    broken.restart(maxBadRows="100%")
    broken.run(0, ones(range(2000)))
    assert (table.count("_bad"), table.count()) == (2000, 0)


@pytest.mark.parametrize("way", [WAYS[0], *slow_cases(WAYS[1])])
def test_small_partitions_hide_nothing(
    broken: MySqlQuery, table: Table, way: dict[str, str]
) -> None:
    make_broken(table, "no partition")
    broken.restart(**way)
    broken.sink.check()
    with pytest.raises(BAD_ROW, match="201 of the 2,000 rows of epoch 0"):
        broken.run(0, *(ones(range(10 * n, 10 * n + 10)) for n in range(200)))


@pytest.mark.parametrize("way", WAYS)
def test_ten_bad_rows_alone_in_a_partition_stop_nothing(
    broken: MySqlQuery, table: Table, way: dict[str, str], caplog: pytest.LogCaptureFixture
) -> None:
    table.create("id BIGINT PRIMARY KEY, n INT")
    close_table(table)
    broken.restart(**way)
    broken.sink.check()
    with caplog.at_level(logging.WARNING, "sparkonce"):
        ledger = broken.run(0, ones(range(10)), ones(range(-990, 0)))
    assert (table.count("_bad"), table.count()) == (10, 990)
    assert (ledger.totals.rows, ledger.totals.aside, ledger.totals.unstored) == (1000, 10, 0)
    (said,) = [one for one in caplog.messages if "can't be stored" in one]
    assert f"10 of 1,000 rows of epoch 0 of {broken.name} can't be stored, and go to table" in said
    assert f"{table}_bad" in said


@pytest.mark.parametrize("way", [*slow_cases(WAYS[0]), *WAYS[1:]])
def test_a_slow_stream_into_a_broken_table_stops_too_until_a_row_is_stored(
    broken: MySqlQuery, table: Table, way: dict[str, str]
) -> None:
    table.create("id BIGINT PRIMARY KEY, n INT")
    close_table(table)
    broken.restart(**way)
    broken.sink.check()
    for epoch in range(5):
        assert broken.run(epoch, ones(range(epoch, epoch + 2))).totals.unstored == 2 * epoch + 2
        broken.restart()
    with pytest.raises(BAD_ROW, match=r"the last 10 of earlier epochs"):
        broken.run(5, ones(range(5, 6)))
    assert table.count("_bad") == 10
    broken.restart(maxBadRows="20")
    assert broken.run(5, ones(range(5, 6))).totals.unstored == 11
    broken.restart(maxBadRows="10%")
    assert broken.run(6, ones(range(-1, 1))).totals.unstored == 0
    assert broken.run(7, ones(range(8, 18))).totals.unstored == 10
