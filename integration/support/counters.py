"""Queries that count: each epoch adds 1 to the counter of each of its rows."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING

import pyarrow as pa
from integration.support.epochs import DirectQuery, MySqlQuery

from sparkonce.errors import SparkonceError

if TYPE_CHECKING:
    from pymysql.cursors import Cursor


COUNTER = pa.schema([("id", pa.int64()), ("n", pa.int64())])


def counting(url: str, table: str, **options: str) -> MySqlQuery:
    return MySqlQuery(COUNTER, url=url, dbtable=table, key="id", writeMode="increment", **options)


def one(id_: int) -> dict[str, int]:
    return {"id": id_, "n": 1}


def ones(ids: range) -> list[dict[str, int]]:
    return [one(id_) for id_ in ids]


def counts(mysql: Cursor, table: str) -> Counter[int]:
    """How often each row took effect: a multiset."""
    mysql.execute(f"SELECT id, n FROM {table}")
    return Counter(dict(mysql.fetchall()))


def until_committed(query: DirectQuery, epoch: int, ids: range) -> list[SparkonceError]:
    """Run an epoch of ones in two partitions as Spark would; its failures."""
    middle = len(ids) // 2
    return query.run_until_done(epoch, ones(ids[:middle]), ones(ids[middle:]))
