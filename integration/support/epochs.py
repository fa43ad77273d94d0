"""Epochs written straight through the core into a real store, without Spark."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from itertools import count
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from sparkonce.errors import SparkonceError
from sparkonce.exactly_once.commit import Committer
from sparkonce.exactly_once.driver import Driver
from sparkonce.exactly_once.ledger import Ledger, new_token, sink_name
from sparkonce.protocol import Follows, Receipt, Task, attempt_of
from sparkonce.sink import Sink, open_sink
from sparkonce.store import Patience

if TYPE_CHECKING:
    from integration.support.proxy import Proxy

REDIS = "pyspark_redis.connector:RedisConnector"
MYSQL = "pyspark_mysql.connector:MySqlConnector"
OF_OPENSEARCH = "pyspark_opensearch.connector:OpenSearchConnector"
ELASTICSEARCH = "pyspark_elasticsearch.connector:ElasticsearchConnector"
if os.environ.get("SPARKONCE_TEST_ELASTICSEARCH", "").startswith("opensearch"):
    ELASTICSEARCH = OF_OPENSEARCH
COUNTER = pa.schema([("id", pa.int64()), ("n", pa.int64())])
LONG_AGO = 3600.0
"""Seconds after which another driver may have taken over."""


class Named(str):
    """The name of a test's private target, its URL, and a plain client.

    A copy is plain text, because a copy of options needs no client.
    """

    url: str
    client: Any

    def __new__(cls, name: str, url: str, client: Any) -> Any:
        made = super().__new__(cls, name)
        made.url, made.client = url, client
        return made

    def __reduce__(self) -> tuple[type, tuple[str]]:
        return str, (str(self),)


def one(id_: int) -> dict[str, int]:
    """A row that adds 1 to the counter of this id."""
    return {"id": id_, "n": 1}


def ones(ids: Iterable[int]) -> list[dict[str, int]]:
    return [one(id_) for id_ in ids]


class DirectQuery:
    """A streaming query in miniature: a query id, a run id, and epochs of Arrow batches."""

    connector, overwrite, follows = REDIS, False, Follows.NEXT

    def __init__(self, schema: pa.Schema, **options: str) -> None:
        self.schema, self.options = schema, {"maxRetries": "3", **options}
        self.query_id, self.run_id = new_token(), new_token()

    @property
    def sink(self) -> Sink:
        return open_sink(self.connector, self.options, self.schema, overwrite=self.overwrite)

    @property
    def name(self) -> str:
        return sink_name(self.sink.options["sinkId"] or self.query_id, self.sink.plan.target)

    def restart(self, **options: str) -> None:
        """A new driver on the same checkpoint."""
        self.run_id = new_token()
        self.options.update(options)

    def stage(self, epoch: int, *partitions: Sequence[Mapping[str, Any]]) -> list[Receipt]:
        tables = [pa.Table.from_pylist(list(rows), self.schema) for rows in partitions]
        return self.stage_batches(epoch, *(table.to_batches() for table in tables))

    def stage_batches(self, epoch: int, *partitions: Sequence[pa.RecordBatch]) -> list[Receipt]:
        return [
            self.write(self.task(epoch, number), batches)
            for number, batches in enumerate(partitions)
        ]

    def task(self, epoch: int, partition: int) -> Task:
        attempt = attempt_of(self.run_id, new_token())
        named = self.name, partition, attempt
        return Task(self.query_id, self.run_id, epoch, *named, follows=self.follows)

    def write(self, task: Task, batches: Sequence[pa.RecordBatch]) -> Receipt:
        return replace(self.sink, patience=Patience(3, first=0.01)).write(task, batches)

    def driver(self, epoch: int) -> Driver:
        into = self.name, self.sink.plan.target, self.sink.options["checkpointLocation"]
        return Driver(self.query_id, self.run_id, epoch, *into, follows=self.follows)

    def commit(self, epoch: int, receipts: list[Receipt]) -> Ledger:
        return self.committer().commit(self.driver(epoch), receipts)

    def run(self, epoch: int, *partitions: Sequence[Mapping[str, Any]]) -> Ledger:
        return self.commit(epoch, self.stage(epoch, *partitions))

    def run_until_done(
        self,
        epoch: int,
        *partitions: Sequence[Mapping[str, Any]],
        tries: int = 5,
        between: Callable[[], object] = lambda: None,
    ) -> list[SparkonceError]:
        """Run an epoch like Spark, with a new driver after each failure; return the failures."""
        failures: list[SparkonceError] = []
        while True:
            try:
                self.run(epoch, *partitions)
            except SparkonceError as failure:
                failures.append(failure)
                if len(failures) == tries:
                    raise
                between()
                self.restart()
            else:
                return failures

    def run_batches(self, epoch: int, *partitions: Sequence[pa.RecordBatch]) -> Ledger:
        return self.commit(epoch, self.stage_batches(epoch, *partitions))

    def committer(self) -> Committer:
        sink = self.sink
        return Committer(sink.store, sink.plan, sink.policy, Patience(3, first=0.01))


def dies(*_: Any, **__: Any) -> None:
    raise KeyboardInterrupt


def until_committed(query: DirectQuery, epoch: int, ids: range) -> list[SparkonceError]:
    """Run an epoch of ones in two partitions like Spark; return its failures."""
    middle = len(ids) // 2
    return query.run_until_done(epoch, ones(ids[:middle]), ones(ids[middle:]))


def cut_each(
    proxy: Proxy,
    fault: str,
    run: Callable[[int], object],
    of: Callable[[bytes], bool] = lambda _: True,
) -> int:
    """Run epochs 1, 2, 3, losing their first, second, third request; return the first intact one.

    Args:
        proxy: the proxy between the query and its store.
        fault: the fate of a request.
        run: runs an epoch until it is done.
        of: selects the requests that count.
    """

    def is_whole(nth: int) -> bool:
        cuts = proxy.cuts
        getattr(proxy, fault)(of, nth=nth)
        run(nth)
        proxy.restore()
        return proxy.cuts == cuts

    return next(filter(is_whole, count(1)))


Make = Callable[..., DirectQuery]
"""Makes a query from a schema and options."""


class MySqlQuery(DirectQuery):
    """A query that writes to MySQL or MariaDB."""

    connector, checked = MYSQL, None

    @property
    def sink(self) -> Sink:
        """Uses the plan for the target at the time when tasks last staged the epoch's rows."""
        return replace(super().sink, plan=self.checked) if self.checked else super().sink

    def write(self, task: Task, batches: Sequence[pa.RecordBatch]) -> Receipt:
        self.checked = super().sink.check().plan
        return super().write(task, batches)

    def restart(self, **options: str) -> None:
        super().restart(**options)
        self.checked = None

    def committer(self) -> Committer:
        self.checked = self.checked or super().sink.check().plan
        return super().committer()


class ElasticsearchQuery(DirectQuery):
    """A query that writes to Elasticsearch."""

    connector = ELASTICSEARCH
