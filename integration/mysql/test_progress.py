"""Chunk by chunk, the ledger says how many rows of an epoch were put aside, whoever did it."""

from __future__ import annotations

import logging
from collections.abc import Iterator
from typing import Any

import pytest
from click.testing import CliRunner
from integration.support.counters import COUNTER
from integration.support.epochs import MySqlQuery
from integration.support.mysql_rivals import twin
from integration.support.proxy import Proxy
from pymysql.cursors import Cursor

from sparkonce.errors import RowRefused, SparkonceError
from sparkonce.exactly_once.ledger import Ledger
from sparkonce.operate.admin import Admin
from sparkonce.operate.cli import main

NEGATIVE = "IF NEW.id < 0 THEN SIGNAL SQLSTATE '45000' SET MESSAGE_TEXT = 'negative'; END IF;"
BROKEN = "IF NEW.id >= 1050 THEN INSERT INTO nowhere VALUES (1); END IF;"


def ones(*ids: int) -> list[dict[str, int]]:
    return [{"id": n, "n": 1} for n in ids]


@pytest.fixture
def target(mysql: Cursor, table: str) -> Iterator[str]:
    """A table that refuses negative numbers."""
    mysql.execute(f"CREATE TABLE {table} (id BIGINT PRIMARY KEY, n INT)")
    trigger(mysql, table, NEGATIVE)
    yield table
    mysql.execute(f"DROP TABLE IF EXISTS {table}_bad")


def trigger(mysql: Cursor, table: str, body: str) -> None:
    mysql.execute(f"DROP TRIGGER IF EXISTS {table}_t")
    mysql.execute(
        f"CREATE TRIGGER {table}_t BEFORE INSERT ON {table} FOR EACH ROW BEGIN {body} END"
    )


def query(url: str, table: str, **options: str) -> MySqlQuery:
    given = {"onBadRow": "deadLetter", "deadLetter": f"{table}_bad", "atomicity": "chunk"}
    return MySqlQuery(
        COUNTER, url=url, dbtable=table, key="id", chunkRows="50", **{**given, **options}
    )


def strict(url: str, table: str) -> MySqlQuery:
    """A query that puts no rows aside."""
    return MySqlQuery(COUNTER, url=url, dbtable=table, key="id", chunkRows="50", atomicity="chunk")


def letters(mysql: Cursor, table: str) -> int:
    mysql.execute(f"SELECT COUNT(*) FROM {table}_bad")
    ((found,),) = mysql.fetchall()
    return int(found)


def ledger(query: MySqlQuery) -> Ledger:
    found = Admin(query.sink.store).sink(query.name).ledger
    assert found is not None
    return found


def test_letters_of_an_earlier_generation_do_not_count(
    mysql: Cursor, mysql_url: str, target: str
) -> None:
    old = query(mysql_url, target, sinkId=target, maxBadRows="100%")
    old.sink.check()
    old.run(0, ones(*range(-200, 50)))
    trigger(mysql, target, NEGATIVE + BROKEN)
    new = query(mysql_url, target, sinkId=target, onNewCheckpoint=f"continue:{old.query_id}")
    rows = ones(-1, *range(1000, 1099))
    with pytest.raises(SparkonceError, match="nowhere"):
        new.run(0, rows)
    trigger(mysql, target, NEGATIVE)
    new.restart()
    assert new.run(0, rows).totals.aside == 201
    assert letters(mysql, target) == 201


def test_an_epoch_goes_on_without_the_right_to_read_dead_letters(
    mysql: Cursor, mysql_url: str, target: str, unique: str
) -> None:
    trigger(mysql, target, NEGATIVE + BROKEN)
    query(mysql_url, target).sink.check()
    mysql.execute(f"CREATE USER {unique} IDENTIFIED BY 'pw'")
    for name in (target, "sparkonce_ledger", "sparkonce_log"):
        mysql.execute(f"GRANT SELECT, INSERT, UPDATE, DELETE ON {name} TO {unique}")
    mysql.execute(f"GRANT INSERT ON {target}_bad TO {unique}")
    granted = query(mysql_url.replace("root@", f"{unique}:pw@"), target)
    rows = ones(-1, *range(1000, 1099))
    try:
        granted.sink.check()
        with pytest.raises(SparkonceError, match="nowhere"):
            granted.run(0, rows)
        trigger(mysql, target, NEGATIVE)
        granted.restart()
        assert granted.run(0, rows).totals.aside == 1
    finally:
        mysql.execute(f"DROP USER {unique}")


def test_rows_that_another_driver_put_aside_count(
    mysql: Cursor, mysql_url: str, target: str
) -> None:
    first = query(mysql_url, target)
    first.sink.check()
    store, other = first.sink.store, twin(first).sink.store
    apply = store.apply

    def beside(manifest: Any, *_: Any) -> Any:
        seen: list[int] = []
        return apply(manifest, lambda rows: seen.append(rows) or seen[1:] or other.apply(manifest))

    store.apply = beside
    try:
        assert first.run(0, ones(*range(50), *range(-8, 0))).totals.aside == 8
    finally:
        del store.apply
    assert letters(mysql, target) == 8


@pytest.mark.parametrize("more", [[], ["--option", "maxBadRows=0"]])
def test_recover_counts_what_was_put_aside_before(
    mysql: Cursor, mysql_url: str, target: str, more: list[str]
) -> None:
    trigger(mysql, target, NEGATIVE + BROKEN)
    stuck = query(mysql_url, target)
    stuck.sink.check()
    with pytest.raises(SparkonceError, match="nowhere"):
        stuck.run(0, ones(-1, *range(1000, 1099)))
    trigger(mysql, target, NEGATIVE)
    done = CliRunner().invoke(main, ["recover", mysql_url, "--sink", stuck.name, *more])
    assert done.exit_code == 0, done.output
    found = ledger(stuck)
    assert (
        found.decision.manifest,
        found.totals.rows,
        found.totals.aside,
        found.totals.unstored,
    ) == (None, 100, 1, 0)


def test_recover_makes_the_table_of_dead_letters(
    mysql: Cursor, mysql_url: str, target: str
) -> None:
    stuck = strict(mysql_url, target)
    stuck.sink.check()
    with pytest.raises(RowRefused, match="negative"):
        stuck.run(0, ones(-1, *range(99)))
    there = ["--option", f"deadLetter={target}_bad", "--sink", stuck.name]
    done = CliRunner().invoke(main, ["recover", mysql_url, *there])
    assert done.exit_code == 0, done.output
    assert (ledger(stuck).totals.aside, letters(mysql, target)) == (1, 1)


@pytest.mark.parametrize("atomicity", ["epoch", "chunk"])
def test_a_commit_whose_answer_is_lost_warns_of_what_it_put_aside(
    mysql: Cursor,
    mysql_proxy: Proxy,
    target: str,
    atomicity: str,
    caplog: pytest.LogCaptureFixture,
) -> None:
    lossy = query(mysql_proxy.url, target, atomicity=atomicity)
    lossy.sink.check()
    lossy.run(0, ones(0))
    staged = lossy.stage(1, ones(-1, 1))
    mysql_proxy.cut_reply(b"COMMIT", nth=1 if atomicity == "epoch" else 2)
    with caplog.at_level(logging.WARNING, "sparkonce"):
        assert lossy.commit(1, staged).totals.aside == 1
    assert mysql_proxy.cuts == 1
    assert sum("1 of 2 rows of epoch 1" in said for said in caplog.messages) == 1
    assert letters(mysql, target) == 1
