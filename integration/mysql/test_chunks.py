"""Chunks in the log: an epoch that is applied one by one, pieces of a large one, lost ones."""

from __future__ import annotations

import os
from collections.abc import Callable
from typing import Any

import pyarrow as pa
import pytest
from integration.support.epochs import MySqlQuery
from integration.support.servers.mysql import MySqlProcess
from pymysql.cursors import Cursor

from pyspark_mysql.store import MySqlStore
from pyspark_mysql.write.delivery import Delivery
from sparkonce.errors import BatchOvertaken, RowRefused, StagedDataMissing, StoreLostData
from sparkonce.operate.admin import Admin
from sparkonce.protocol import Applied, Follows

COUNTER = pa.schema([("id", pa.int64()), ("n", pa.int64())])
Make = Callable[..., MySqlQuery]


def test_chunk_by_chunk_a_refused_row_stays_decided_and_goes_on_once_mended(
    make: Make, stored: Any, mysql: Cursor, table: str
) -> None:
    query = make(
        COUNTER,
        "id BIGINT PRIMARY KEY, n TINYINT",
        key="id",
        writeMode="increment",
        atomicity="chunk",
        chunkRows="100",
    )
    mysql.execute(f"INSERT INTO {table} VALUES (250, 127)")
    ones = [{"id": i, "n": 1} for i in range(400)]
    with pytest.raises(RowRefused, match=r"id=250.*stays decided"):
        query.run(0, ones)
    assert len(stored()) == 201
    query.restart(atomicity="epoch")  # a roll-forward goes by the manifest
    with pytest.raises(RowRefused):
        query.run(0, ones)
    mysql.execute(f"UPDATE {table} SET n = 0")
    query.run(0, ones)
    assert stored() == [(i, int(i >= 200)) for i in range(400)]
    assert query.sink.store.staged(query.name) == []


def test_vanished_chunk_is_found_before_the_decision_and_after_it(
    make: Make, stored: Any, mysql: Cursor, table: str
) -> None:
    query = make(COUNTER, "id BIGINT PRIMARY KEY, n TINYINT", atomicity="chunk", chunkRows="10")
    mysql.execute(f"INSERT INTO {table} VALUES (15, 0)")
    receipts = query.stage(0, [{"id": i, "n": 1} for i in range(30)])
    where = f"sink = '{query.name}' AND seq = 2"
    mysql.execute(f"CREATE TEMPORARY TABLE kept SELECT * FROM sparkonce_log WHERE {where}")
    mysql.execute(f"DELETE FROM sparkonce_log WHERE {where}")
    with pytest.raises(StagedDataMissing, match="Chunk 2"):
        query.commit(0, receipts)
    mysql.execute("INSERT INTO sparkonce_log SELECT * FROM kept")
    with pytest.raises(RowRefused):
        query.commit(0, receipts)
    mysql.execute(f"DELETE FROM sparkonce_log WHERE {where}")
    mysql.execute(f"DELETE FROM {table} WHERE id = 15")
    with pytest.raises(StoreLostData, match="epoch 0 is decided"):
        query.commit(0, receipts)
    assert len(stored()) == 20


def test_piece_of_a_decided_chunk_that_is_gone_is_data_that_is_lost(
    make: Make, mysql: Cursor, table: str
) -> None:
    query = make(
        COUNTER,
        "id INT PRIMARY KEY, n TINYINT",
        key="id",
        writeMode="increment",
        atomicity="chunk",
    )
    mysql.execute(f"INSERT INTO {table} VALUES (0, 127)")
    rows = [{"id": i, "n": 1} for i in range(100)]
    with pytest.raises(RowRefused):
        query.run(0, rows)
    cut = "payload = LEFT(payload, LENGTH(payload) DIV 2)"
    mysql.execute(f"UPDATE sparkonce_log SET {cut} WHERE sink = '{query.name}'")
    with pytest.raises(StoreLostData, match="epoch 0 is decided"):
        query.run(0, rows)


@pytest.mark.slow
@pytest.mark.parametrize("mode", ["CHAIN", "RELEASE"])
def test_what_is_staged_behind_a_chunk_in_pieces_is_there_at_once(
    private_mysql: Callable[..., MySqlProcess], mode: str
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
    make: Make, stored: Any, mysql: Cursor
) -> None:
    query = make(COUNTER, "id BIGINT PRIMARY KEY, n INT", key="id", chunkRows="10")
    rows = [{"id": i, "n": 1} for i in range(300)]

    def connections() -> int:
        mysql.execute("SELECT COUNT(*) FROM information_schema.processlist WHERE db = DATABASE()")
        return int((mysql.fetchone() or [0])[0])

    before = connections()
    query.run(0, rows)
    assert connections() <= before + 1
    query.run(1, rows)
    assert connections() <= before + 1
    assert len(stored()) == 300


def test_who_began_before_a_decision_and_commits_after_it_came_later(
    make: Make, stored: Any, table: str, mysql_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A long transaction was open while a batch decided, and its driver died."""
    slow = make(COUNTER, "id BIGINT PRIMARY KEY, n INT", key="id")
    late = MySqlQuery(COUNTER, url=mysql_url, dbtable=table, key="id", atomicity="chunk")
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
    assert stored() == [(1, 2), (2, 1)]


class Dies(Exception):
    pass


def dies(*_: object) -> Applied:
    raise Dies
