"""Queries that count: each epoch adds 1 to the counter of each of its rows."""

from __future__ import annotations

import time
from collections import Counter
from typing import TYPE_CHECKING

import pyarrow as pa
from integration.epochs import DirectQuery, MySqlQuery
from integration.servers.process import wait_until

from sparkonce.errors import SparkonceError

if TYPE_CHECKING:
    from pymysql.cursors import Cursor


COUNTER = pa.schema([("id", pa.int64()), ("n", pa.int64())])


def counting(url: str, table: str, **options: str) -> MySqlQuery:
    return MySqlQuery(COUNTER, url=url, dbtable=table, key="id", writeMode="increment", **options)


def twin(query: MySqlQuery, **options: str) -> MySqlQuery:
    """A second driver on the same checkpoint, with connections of its own."""
    other = MySqlQuery(query.schema, **{**query.options, "maxRetries": "9", **options})
    other.query_id = query.query_id
    return other


def ones(ids: range) -> list[dict[str, int]]:
    return [{"id": i, "n": 1} for i in ids]


def counts(mysql: Cursor, table: str) -> Counter[int]:
    """How often each row took effect: a multiset."""
    mysql.execute(f"SELECT id, n FROM {table}")
    return Counter(dict(mysql.fetchall()))


def until_committed(query: DirectQuery, epoch: int, ids: range) -> list[SparkonceError]:
    """Run an epoch of ones in two partitions as Spark would; its failures."""
    middle = len(ids) // 2
    return query.run_until_done(epoch, ones(ids[:middle]), ones(ids[middle:]))


def waits_for_a_lock(mysql: Cursor) -> int:
    """Wait until a session of this database waits for a lock; its id."""
    waiting: list[tuple[int]] = []

    def waits() -> bool:
        time.sleep(0.15)  # asked more often, the server answers what it answered before
        mysql.execute(
            "SELECT id FROM information_schema.processlist WHERE db = DATABASE() AND id IN"
            " (SELECT trx_mysql_thread_id FROM information_schema.innodb_trx"
            " WHERE trx_state = 'LOCK WAIT')"
        )
        waiting.extend(mysql.fetchall())
        return bool(waiting)

    wait_until(waits, 10, "nothing waits for a lock")
    return waiting[0][0]
