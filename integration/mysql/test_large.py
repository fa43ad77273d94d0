"""What an epoch staged is dropped behind its commit, and so does not bound what an epoch holds."""

from __future__ import annotations

import os
from collections.abc import Callable

import pyarrow as pa
import pytest
from integration.support.epochs import MySqlQuery
from integration.support.mysql_following import LOGGED
from integration.support.servers.mysql import QUICK, MySqlProcess, connect
from pymysql.cursors import Cursor

from pyspark_mysql.journal.log import DROPPED_BYTES

pytestmark = pytest.mark.slow

MEGABYTE = 1024 * 1024
SCHEMA = pa.schema([("id", pa.int64()), ("at", pa.int64()), ("body", pa.binary())])


def changes(count: int) -> list[dict[str, object]]:
    """Changes of one key: much to stage, and a single row in the end."""
    return [{"id": 1, "at": at, "body": os.urandom(MEGABYTE)} for at in range(count)]


def keeping_latest(mysql: Cursor, url: str, table: str) -> MySqlQuery:
    """A query that keeps the latest change of each key; a chunk for each."""
    mysql.execute(f"CREATE TABLE {table} (id INT PRIMARY KEY, at INT, body LONGBLOB)")
    options = {"key": "id", "sequenceColumn": "at", "chunkRows": "1", "timeout": "2s"}
    return MySqlQuery(SCHEMA, url=url, dbtable=table, **options)


@pytest.fixture
def latest(mysql: Cursor, mysql_url: str, table: str) -> MySqlQuery:
    return keeping_latest(mysql, mysql_url, table)


def test_a_transaction_holds_the_rows_of_an_epoch_and_not_what_was_staged(
    private_mysql: Callable[..., MySqlProcess],
) -> None:
    """Else an epoch of half the size is refused, or takes longer than `timeout` to delete."""
    most = 2 * DROPPED_BYTES
    server = private_mysql(*QUICK, *LOGGED, f"--max-binlog-cache-size={most}")
    with connect(server.url) as client, client.cursor() as mysql:
        latest = keeping_latest(mysql, server.url, "t")
        receipts = latest.stage(0, changes(7), changes(7))
        assert sum(sum(one.sizes) for one in receipts) > 1.5 * most
        latest.commit(0, receipts)
        mysql.execute("SELECT id, at FROM t")
        assert mysql.fetchall() == ((1, 6),)
    assert latest.sink.store.staged(latest.name) == []


def test_what_keeps_the_log_from_being_cleaned_keeps_no_epoch_from_its_commit(
    latest: MySqlQuery, mysql_url: str, mysql: Cursor, table: str
) -> None:
    receipts = latest.stage(0, changes(5))
    with connect(mysql_url, autocommit=False) as other, other.cursor() as cursor:
        where = "sink = %s AND attempt = %s"
        staged = (latest.name, receipts[0].task.attempt)
        cursor.execute(f"SELECT seq FROM sparkonce_log WHERE {where} FOR UPDATE", staged)
        assert latest.commit(0, receipts).decision.epoch == 0
        mysql.execute(f"SELECT id, at FROM {table}")
        assert mysql.fetchall() == ((1, 4),)
        assert len(latest.sink.store.staged(latest.name)) == 1
    latest.run(1)
    assert latest.sink.store.staged(latest.name) == []


def test_few_chunks_go_with_their_epoch_and_need_no_second_transaction(
    latest: MySqlQuery, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each of them waits for the disk."""
    with monkeypatch.context() as patch:
        patch.setattr(latest.sink.store, "discard", lambda *_: None)
        latest.run(0, changes(2), changes(1))
    assert latest.sink.store.staged(latest.name) == []


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
