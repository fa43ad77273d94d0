"""Queries that count: each epoch adds 1 to the counter of each of its rows."""

from __future__ import annotations

import time
from collections import Counter
from typing import TYPE_CHECKING

import pyarrow as pa
from integration.epochs import MySqlQuery, Query
from integration.servers.process import wait_until

from sparkonce.errors import SparkonceError

if TYPE_CHECKING:
    from pymysql.cursors import Cursor

    from sparkonce.protocol import Receipt

COUNTER = pa.schema([("id", pa.int64()), ("n", pa.int64())])


def counting(url: str, table: str, **options: str) -> MySqlQuery:
    return MySqlQuery(COUNTER, url=url, dbtable=table, key="id", writeMode="increment", **options)


def twin(query: MySqlQuery, **options: str) -> MySqlQuery:
    """A second driver on the same checkpoint, with connections of its own."""
    other = MySqlQuery(query.schema, **{**query.options, "chunkBytes": "5000000", **options})
    other.query_id = query.query_id
    return other


def ones(ids: range) -> list[dict[str, int]]:
    return [{"id": i, "n": 1} for i in ids]


def counts(mysql: Cursor, table: str) -> Counter[int]:
    """How often each row took effect: a multiset."""
    mysql.execute(f"SELECT id, n FROM {table}")
    return Counter(dict(mysql.fetchall()))


def until_committed(query: Query, epoch: int, ids: range) -> list[SparkonceError]:
    """Run an epoch as Spark would: abort on failure, and replay it in a new run."""
    errors: list[SparkonceError] = []
    while True:
        receipts: list[Receipt] = []
        try:
            receipts = query.stage(epoch, ones(ids[: len(ids) // 2]), ones(ids[len(ids) // 2 :]))
            query.commit(epoch, receipts)
        except SparkonceError as error:
            errors.append(error)
            assert len(errors) < 5, errors
            query.restart()
        else:
            return errors


def waits_for_a_lock(mysql: Cursor) -> None:
    """Wait until some transaction waits for a lock."""

    def waits() -> bool:
        time.sleep(0.15)  # asked more often, the server answers what it answered before
        mysql.execute(
            "SELECT COUNT(*) FROM information_schema.innodb_trx WHERE trx_state = 'LOCK WAIT'"
        )
        return bool(mysql.fetchone()[0])

    wait_until(waits, 10, "nothing waits for a lock")
