"""More bad rows than `maxBadRows` lets go aside stop the query: the table may be at fault."""

from __future__ import annotations

import logging
from collections.abc import Iterator
from typing import Any

import pytest
from integration.support.counters import COUNTER
from integration.support.epochs import MySqlQuery
from integration.support.marks import slow_cases, slow_rows
from pymysql.cursors import Cursor

from sparkonce.errors import BadRow, RowRefused, SparkonceError

Make = Any
REFUSED = (BadRow, RowRefused)
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


@pytest.fixture(scope="session", params=["mysql", *slow_cases("mariadb")])
def mysql_name(request: pytest.FixtureRequest) -> str:
    return str(request.param)


def ones(start: int, stop: int) -> list[dict[str, int]]:
    return [{"id": n, "n": 1} for n in range(start, stop)]


@pytest.fixture
def query(mysql: Cursor, mysql_url: str, table: str) -> Iterator[MySqlQuery]:
    where = {"url": mysql_url, "dbtable": table, "deadLetter": f"{table}_bad"}
    yield MySqlQuery(COUNTER, onBadRow="deadLetter", **where)
    for name in (table, f"{table}_p", f"{table}_bad"):
        mysql.execute(f"DROP TABLE IF EXISTS {name}")


def make(mysql: Cursor, table: str, case: str) -> None:
    definition, others = BROKEN[case]
    statements = [f"CREATE TABLE {definition}", *others]
    if "_p (id)" in definition:
        statements.reverse()
    for statement in statements:
        mysql.execute(statement.format(table=table))


def close(mysql: Cursor, table: str) -> None:
    """Let a trigger refuse all rows, except those of a negative number."""
    mysql.execute(
        f"CREATE TRIGGER {table}_t BEFORE INSERT ON {table} FOR EACH ROW"
        f" BEGIN IF NEW.id >= 0 THEN {CLOSED}; END IF; END"
    )


def count(mysql: Cursor, table: str) -> int:
    mysql.execute(f"SELECT COUNT(*) FROM {table}")
    ((found,),) = mysql.fetchall()
    return int(found)


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
    query: MySqlQuery, mysql: Cursor, table: str, case: str, way: dict[str, str]
) -> None:
    make(mysql, table, case)
    query.restart(**way)
    query.sink.check()
    for _ in range(3):  # a supervisor
        with pytest.raises(REFUSED, match=r"of epoch 0 can't be stored.* lets 200 go") as error:
            query.run(0, ones(0, 2000))
        query.restart()
    assert "200 x refused before" in str(error.value) if "chunkRows" in way else "201 x"
    aside = count(mysql, f"{table}_bad")
    assert aside == (200 if "chunkRows" in way else 0)
    query.restart(maxBadRows="100%")
    query.run(0, ones(0, 2000))
    assert (count(mysql, f"{table}_bad"), count(mysql, table)) == (2000, 0)


@pytest.mark.parametrize("way", [WAYS[0], *slow_cases(WAYS[1])])
def test_small_partitions_hide_nothing(
    query: MySqlQuery, mysql: Cursor, table: str, way: dict[str, str]
) -> None:
    make(mysql, table, "no partition")
    query.restart(**way)
    query.sink.check()
    with pytest.raises(REFUSED, match="201 rows of 2,000 of epoch 0"):
        query.run(0, *(ones(10 * n, 10 * n + 10) for n in range(200)))


@pytest.mark.parametrize("way", WAYS)
def test_ten_bad_rows_alone_in_a_partition_stop_nothing(
    query: MySqlQuery,
    mysql: Cursor,
    table: str,
    way: dict[str, str],
    caplog: pytest.LogCaptureFixture,
) -> None:
    mysql.execute(f"CREATE TABLE {table} (id BIGINT PRIMARY KEY, n INT)")
    close(mysql, table)
    query.restart(**way)
    query.sink.check()
    with caplog.at_level(logging.WARNING, "sparkonce"):
        ledger = query.run(0, ones(0, 10), ones(-990, 0))
    assert (count(mysql, f"{table}_bad"), count(mysql, table)) == (10, 990)
    assert (ledger.totals.rows, ledger.totals.aside, ledger.totals.unstored) == (1000, 10, 0)
    (said,) = [one for one in caplog.messages if "can't be stored" in one]
    assert f"10 of 1,000 rows of epoch 0 of {query.name} can't be stored, and go to table" in said
    assert f"{table}_bad" in said


@pytest.mark.parametrize("way", [*slow_cases(WAYS[0]), *WAYS[1:]])
def test_a_slow_stream_into_a_broken_table_stops_too_until_a_row_is_stored(
    query: MySqlQuery, mysql: Cursor, table: str, way: dict[str, str]
) -> None:
    mysql.execute(f"CREATE TABLE {table} (id BIGINT PRIMARY KEY, n INT)")
    close(mysql, table)
    query.restart(**way)
    query.sink.check()
    for epoch in range(5):
        assert query.run(epoch, ones(epoch, epoch + 2)).totals.unstored == 2 * epoch + 2
        query.restart()
    with pytest.raises(REFUSED, match=r"behind 10 in epochs before it, of which none was stored"):
        query.run(5, ones(5, 6))
    assert count(mysql, f"{table}_bad") == 10
    query.restart(maxBadRows="20")
    assert query.run(5, ones(5, 6)).totals.unstored == 11
    query.restart(maxBadRows="10%")
    assert query.run(6, ones(-1, 1)).totals.unstored == 0
    assert query.run(7, ones(8, 18)).totals.unstored == 10


@pytest.mark.parametrize("atomicity", ["epoch", "chunk"])
def test_rows_that_tasks_refuse_stop_an_epoch_before_it_is_decided(
    query: MySqlQuery, mysql: Cursor, table: str, atomicity: str
) -> None:
    mysql.execute(f"CREATE TABLE {table} (id BIGINT PRIMARY KEY, n INT)")
    query.restart(key="id", atomicity=atomicity)
    query.sink.check()
    rows: list[dict[str, Any]] = [*ones(0, 89), *({"id": None, "n": n} for n in range(11))]
    with pytest.raises(BadRow, match=r"11 rows of 100 of epoch 0 .*11 x a key that is NULL") as it:
        query.run(0, rows)
    assert "Nothing of the epoch took effect" in str(it.value)
    assert count(mysql, f"{table}_bad") == count(mysql, table) == 0
    query.restart(maxBadRows="11")
    query.run(0, rows)
    assert (count(mysql, f"{table}_bad"), count(mysql, table)) == (11, 89)


def test_a_number_of_rows_is_that_and_none_is_none(
    query: MySqlQuery, mysql: Cursor, table: str
) -> None:
    mysql.execute(f"CREATE TABLE {table} (id BIGINT PRIMARY KEY, n INT)")
    close(mysql, table)
    query.restart(maxBadRows="0")
    query.sink.check()
    with pytest.raises(SparkonceError, match="1 rows of 3 of epoch 0"):
        query.run(0, ones(-2, 1))
    assert count(mysql, table) == 0
