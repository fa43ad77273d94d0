"""Chunks in the log: an epoch that is applied one by one, pieces of a large one, lost ones."""

from __future__ import annotations

import logging
import os
from typing import Any

import pyarrow as pa
import pytest
from click.testing import CliRunner
from integration.support.epochs import COUNTER, MySqlQuery, ones
from integration.support.mysql import LOGGED, Private, Table, client, twin
from integration.support.proxy import Proxy
from integration.support.servers.mysql import QUICK, connect
from pymysql.cursors import Cursor

from pyspark_mysql.journal.log import DROPPED_BYTES
from pyspark_mysql.store import MySqlStore
from pyspark_mysql.write.delivery import Delivery
from sparkonce.errors import BatchOvertaken, RowRefused, SparkonceError, StoreLostData
from sparkonce.exactly_once.ledger import Ledger
from sparkonce.operate.admin import Admin
from sparkonce.operate.cli import main
from sparkonce.protocol import Applied, Follows


def overflowing(table: Table) -> MySqlQuery:
    """A query in chunks of 100 rows, whose row 250 exceeds its column."""
    query = table.make(
        COUNTER,
        "id BIGINT PRIMARY KEY, n TINYINT",
        key="id",
        writeMode="increment",
        atomicity="chunk",
        chunkRows="100",
    )
    table.run(f"INSERT INTO {table} VALUES (250, 127)")
    return query


def test_chunk_by_chunk_a_refused_row_stays_decided_and_goes_on_once_mended(table: Table) -> None:
    query = overflowing(table)
    rows = ones(range(400))
    with pytest.raises(RowRefused, match=r"id=250.*stays decided"):
        query.run(0, rows)
    assert len(table.stored()) == 201
    query.restart(atomicity="epoch")  # a roll-forward goes by the manifest
    with pytest.raises(RowRefused):
        query.run(0, rows)
    table.run(f"UPDATE {table} SET n = 0")
    query.run(0, rows)
    assert table.stored() == [(i, int(i >= 200)) for i in range(400)]
    assert query.sink.store.staged(query.name) == []


def test_recover_counts_the_rows_that_it_applies_alone(table: Table) -> None:
    query = overflowing(table)
    with pytest.raises(RowRefused):
        query.run(0, ones(range(400)))
    table.run(f"UPDATE {table} SET n = 0")
    done = CliRunner().invoke(main, ["recover", table.url, "--sink", query.name])
    assert "epoch 0: 200 of 400 rows applied now" in done.output


def test_piece_of_a_decided_chunk_that_is_gone_is_data_that_is_lost(table: Table) -> None:
    query = table.make(
        COUNTER, "id INT PRIMARY KEY, n TINYINT", key="id", writeMode="increment", atomicity="chunk"
    )
    table.run(f"INSERT INTO {table} VALUES (0, 127)")
    rows = [{"id": i, "n": 1} for i in range(100)]
    with pytest.raises(RowRefused):
        query.run(0, rows)
    cut = "payload = LEFT(payload, LENGTH(payload) DIV 2)"
    table.run(f"UPDATE sparkonce_log SET {cut} WHERE sink = '{query.name}'")
    with pytest.raises(StoreLostData, match="epoch 0 is decided"):
        query.run(0, rows)


@pytest.mark.slow
@pytest.mark.parametrize("mode", ["CHAIN", "RELEASE"])
def test_what_is_staged_behind_a_chunk_in_pieces_is_there_at_once(
    private_mysql: Private, mode: str
) -> None:
    """With COMMIT AND CHAIN as the server's default it would be in a transaction of its own."""
    small = ("--max-allowed-packet=64K", "--net-buffer-length=8K")
    server = private_mysql(f"--completion-type={mode}", *small)
    schema = pa.schema([("id", pa.int64()), ("s", pa.binary())])
    options = {"dbtable": "t", "key": "id", "createTable": "true", "chunkRows": "8"}
    query = MySqlQuery(schema, url=server.url, **options)
    query.sink.check()
    rows = [{"id": i, "s": os.urandom(8000)} for i in range(8)] + [{"id": 8, "s": b""}]
    receipts = query.stage(0, rows)
    other = MySqlQuery(schema, url=server.url, timeout="29", **options)
    staged = other.sink.store.staged(query.name)
    assert [each.chunks for each in staged] == [2]
    assert query.commit(0, receipts).totals.rows == 9


def test_reading_ahead_takes_one_connection_more_that_is_kept_for_the_next_epoch(
    table: Table,
) -> None:
    query = table.make(COUNTER, "id BIGINT PRIMARY KEY, n INT", key="id", chunkRows="10")
    rows = [{"id": i, "n": 1} for i in range(300)]

    def connections() -> int:
        return int(
            (
                table.run(
                    "SELECT COUNT(*) FROM information_schema.processlist WHERE db = DATABASE()"
                )[0]
                or [0]
            )[0]
        )

    before = connections()
    query.run(0, rows)
    assert connections() <= before + 1
    query.run(1, rows)
    assert connections() <= before + 1
    assert len(table.stored()) == 300


def test_who_began_before_a_decision_and_commits_after_it_came_later(
    table: Table, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A long transaction was open while a batch decided, and its driver died."""
    slow = table.make(COUNTER, "id BIGINT PRIMARY KEY, n INT", key="id")
    late = table.query(COUNTER, key="id", atomicity="chunk")
    late.follows = Follows.ONCE
    whole = Delivery.whole

    def beside(delivery: Delivery) -> Applied:
        monkeypatch.setattr(Delivery, "whole", whole)
        applied = delivery.whole()
        with monkeypatch.context() as dying:
            dying.setattr(MySqlStore, "apply", dies)
            with pytest.raises(Dies):
                late.run(0, [{"id": 2, "n": 1}])
        return applied

    monkeypatch.setattr(Delivery, "whole", beside)
    slow.run(0, [{"id": 1, "n": 2}])
    admin = Admin(late.sink.store)
    with pytest.raises(BatchOvertaken, match=slow.name):
        admin.recover(admin.sink(late.name))
    admin.recover(admin.sink(late.name), over_newer=True)
    assert table.stored() == [(1, 2), (2, 1)]


class Dies(Exception):
    pass


def dies(*_: object) -> Applied:
    raise Dies


MEGABYTE = 1024 * 1024
BODIES = pa.schema([("id", pa.int64()), ("at", pa.int64()), ("body", pa.binary())])


def changes(count: int) -> list[dict[str, object]]:
    """Changes of one key: much to stage, and a single row in the end."""
    return [{"id": 1, "at": at, "body": os.urandom(MEGABYTE)} for at in range(count)]


def keeping_latest(mysql: Cursor, url: str, table: str) -> MySqlQuery:
    """A query that keeps the latest change of each key; a chunk for each."""
    mysql.execute(f"CREATE TABLE {table} (id INT PRIMARY KEY, at INT, body LONGBLOB)")
    options = {"key": "id", "sequenceColumn": "at", "chunkRows": "1", "timeout": "2s"}
    return MySqlQuery(BODIES, url=url, dbtable=table, **options)


@pytest.fixture
def latest(table: Table) -> MySqlQuery:
    return keeping_latest(table.client, table.url, table)


@pytest.mark.slow
def test_a_transaction_holds_the_rows_of_an_epoch_and_not_what_was_staged(
    private_mysql: Private,
) -> None:
    """Else an epoch of half the size is refused, or takes longer than `timeout` to delete."""
    most = 2 * DROPPED_BYTES
    server = private_mysql(*QUICK, *LOGGED, f"--max-binlog-cache-size={most}")
    with client(server.url) as mysql:
        latest = keeping_latest(mysql, server.url, "t")
        receipts = latest.stage(0, changes(7), changes(7))
        assert sum(sum(one.sizes) for one in receipts) > 1.5 * most
        latest.commit(0, receipts)
        mysql.execute("SELECT id, at FROM t")
        assert mysql.fetchall() == ((1, 6),)
    assert latest.sink.store.staged(latest.name) == []


@pytest.mark.slow
def test_what_keeps_the_log_from_being_cleaned_keeps_no_epoch_from_its_commit(
    latest: MySqlQuery, table: Table
) -> None:
    receipts = latest.stage(0, changes(5))
    with connect(table.url, autocommit=False) as other, other.cursor() as cursor:
        where = "sink = %s AND attempt = %s"
        staged = (latest.name, receipts[0].task.attempt)
        cursor.execute(f"SELECT seq FROM sparkonce_log WHERE {where} FOR UPDATE", staged)
        assert latest.commit(0, receipts).decision.epoch == 0
        assert table.rows("id, at") == ((1, 4),)
        assert len(latest.sink.store.staged(latest.name)) == 1
    latest.run(1)
    assert latest.sink.store.staged(latest.name) == []


@pytest.mark.slow
def test_few_chunks_go_with_their_epoch_and_need_no_second_transaction(
    latest: MySqlQuery, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each of them waits for the disk."""
    with monkeypatch.context() as patch:
        patch.setattr(latest.sink.store, "discard", lambda *_: None)
        latest.run(0, changes(2), changes(1))
    assert latest.sink.store.staged(latest.name) == []


@pytest.mark.slow
def test_attempts_are_dropped_some_megabytes_and_some_hundred_chunks_at_a_time(
    latest: MySqlQuery, monkeypatch: pytest.MonkeyPatch
) -> None:
    store = latest.sink.store
    latest.sink.check()
    monkeypatch.setattr("pyspark_mysql.journal.log.DROPPED_PIECES", 5)
    monkeypatch.setattr("pyspark_mysql.journal.log.NAMED", 2)
    small = [{"id": 1, "at": at, "body": b""} for at in range(7)]
    kept = latest.stage(1, changes(1))[0]
    over = latest.stage(0, changes(6), [], small, small[:1])
    dropped: list[int] = []
    run = store.session.run

    def counted(sql: str, *values: object) -> object:
        if sql.startswith("DELETE"):
            dropped.append(sql.count("piece = "))
        return run(sql, *values)

    monkeypatch.setattr(store.session, "run", counted)
    store.discard(latest.name, [one.task.attempt for one in over])
    assert sum(dropped) == 14
    assert max(dropped) == 5
    assert [staged.attempt for staged in store.staged(latest.name)] == [kept.task.attempt]


NEGATIVE = "IF NEW.id < 0 THEN SIGNAL SQLSTATE '45000' SET MESSAGE_TEXT = 'negative'; END IF;"
BROKEN = "IF NEW.id >= 1050 THEN INSERT INTO nowhere VALUES (1); END IF;"


@pytest.fixture
def target(table: Table) -> Table:
    """A table that refuses negative numbers."""
    table.create("id BIGINT PRIMARY KEY, n INT")
    trigger(table, NEGATIVE)
    return table


def trigger(table: Table, body: str) -> None:
    table.run(f"DROP TRIGGER IF EXISTS {table}_t")
    table.run(f"CREATE TRIGGER {table}_t BEFORE INSERT ON {table} FOR EACH ROW BEGIN {body} END")


def query(url: str, table: str, **options: str) -> MySqlQuery:
    given = {"onBadRow": "deadLetter", "deadLetter": f"{table}_bad", "atomicity": "chunk"}
    return MySqlQuery(
        COUNTER, url=url, dbtable=table, key="id", chunkRows="50", **{**given, **options}
    )


def strict(table: Table) -> MySqlQuery:
    """A query that puts no rows aside."""
    return table.query(COUNTER, key="id", chunkRows="50", atomicity="chunk")


def ledger(query: MySqlQuery) -> Ledger:
    found = Admin(query.sink.store).sink(query.name).ledger
    assert found is not None
    return found


def test_letters_of_an_earlier_generation_do_not_count(target: Table) -> None:
    old = query(target.url, target, sinkId=target, maxBadRows="100%")
    old.sink.check()
    old.run(0, ones(range(-200, 50)))
    trigger(target, NEGATIVE + BROKEN)
    new = query(target.url, target, sinkId=target, onNewCheckpoint=f"continue:{old.query_id}")
    rows = ones([-1, *range(1000, 1099)])
    with pytest.raises(SparkonceError, match="nowhere"):
        new.run(0, rows)
    trigger(target, NEGATIVE)
    new.restart()
    assert new.run(0, rows).totals.aside == 201
    assert target.count("_bad") == 201


def test_an_epoch_goes_on_without_the_right_to_read_dead_letters(
    target: Table, unique: str
) -> None:
    trigger(target, NEGATIVE + BROKEN)
    query(target.url, target).sink.check()
    target.run(f"CREATE USER {unique} IDENTIFIED BY 'pw'")
    for name in (target, "sparkonce_ledger", "sparkonce_log"):
        target.run(f"GRANT SELECT, INSERT, UPDATE, DELETE ON {name} TO {unique}")
    target.run(f"GRANT INSERT ON {target}_bad TO {unique}")
    granted = query(target.url.replace("root@", f"{unique}:pw@"), target)
    rows = ones([-1, *range(1000, 1099)])
    granted.sink.check()
    with pytest.raises(SparkonceError, match="nowhere"):
        granted.run(0, rows)
    trigger(target, NEGATIVE)
    granted.restart()
    assert granted.run(0, rows).totals.aside == 1


def test_rows_that_another_driver_put_aside_count(target: Table) -> None:
    first = query(target.url, target)
    first.sink.check()
    store, other = first.sink.store, twin(first).sink.store
    apply = store.apply

    def beside(manifest: Any, *_: Any) -> Any:
        seen: list[int] = []
        return apply(manifest, lambda rows: seen.append(rows) or seen[1:] or other.apply(manifest))

    store.apply = beside
    try:
        assert first.run(0, ones([*range(50), *range(-8, 0)])).totals.aside == 8
    finally:
        del store.apply
    assert target.count("_bad") == 8


@pytest.mark.parametrize("more", [[], ["--option", "maxBadRows=0"]])
def test_recover_counts_what_was_put_aside_before(target: Table, more: list[str]) -> None:
    trigger(target, NEGATIVE + BROKEN)
    stuck = query(target.url, target)
    stuck.sink.check()
    with pytest.raises(SparkonceError, match="nowhere"):
        stuck.run(0, ones([-1, *range(1000, 1099)]))
    trigger(target, NEGATIVE)
    done = CliRunner().invoke(main, ["recover", target.url, "--sink", stuck.name, *more])
    assert done.exit_code == 0, done.output
    found = ledger(stuck)
    assert (
        found.decision.manifest,
        found.totals.rows,
        found.totals.aside,
        found.totals.unstored,
    ) == (None, 100, 1, 0)


def test_recover_makes_the_table_of_dead_letters(target: Table) -> None:
    stuck = strict(target)
    stuck.sink.check()
    with pytest.raises(RowRefused, match="negative"):
        stuck.run(0, ones([-1, *range(99)]))
    there = ["--option", f"deadLetter={target}_bad", "--sink", stuck.name]
    done = CliRunner().invoke(main, ["recover", target.url, *there])
    assert done.exit_code == 0, done.output
    assert (ledger(stuck).totals.aside, target.count("_bad")) == (1, 1)


@pytest.mark.parametrize("atomicity", ["epoch", "chunk"])
def test_a_commit_whose_answer_is_lost_warns_of_what_it_put_aside(
    mysql_proxy: Proxy, target: Table, atomicity: str, caplog: pytest.LogCaptureFixture
) -> None:
    lossy = query(mysql_proxy.url, target, atomicity=atomicity)
    lossy.sink.check()
    lossy.run(0, ones([0]))
    staged = lossy.stage(1, ones([-1, 1]))
    mysql_proxy.cut_reply(b"COMMIT", nth=1 if atomicity == "epoch" else 2)
    with caplog.at_level(logging.WARNING, "sparkonce"):
        assert lossy.commit(1, staged).totals.aside == 1
    assert mysql_proxy.cuts == 1
    assert sum("1 of 2 rows of epoch 1" in said for said in caplog.messages) == 1
    assert target.count("_bad") == 1
