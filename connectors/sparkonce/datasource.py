"""The only adapters to Spark: a data source whose stream writer stages, commits and aborts.

Spark makes a writer anew for every epoch on the driver, pickles it into every task, and makes
another one for ``commit`` and ``abort``; so a writer holds no state but its options.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar, NoReturn

import pyspark
from pyspark import TaskContext
from pyspark.sql.datasource import DataSource, DataSourceStreamArrowWriter, WriterCommitMessage

from sparkonce import checkpoint, logs, shuffle
from sparkonce.errors import UnsupportedQuery
from sparkonce.guards import Driver, require_messages, require_planned
from sparkonce.ledger import new_token, sink_name
from sparkonce.protocol import Receipt, Task, attempt_of

if TYPE_CHECKING:
    import pyarrow as pa
    from pyspark.sql.types import StructType

    from sparkonce.commit import Committer
    from sparkonce.sink import Sink

EPOCH, QUERY = "streaming.sql.batchId", "sql.streaming.queryId"


class SinkSource(DataSource):
    """The base of every connector's ``DefaultSource``.

    Attributes:
        connector: ``module:Class`` of the connector, imported when a query first uses it.
    """

    connector: ClassVar[str]

    def streamWriter(  # noqa: N802 (Spark's name)
        self, schema: StructType, overwrite: bool
    ) -> StreamWriter:
        """See pyspark. Checks options, schema and server before any row is read.

        Raises:
            UnsupportedQuery: complete output mode.
            SparkonceError: whatever else can be known now.
        """
        from sparkonce.spark_types import arrow_schema

        if overwrite:
            raise UnsupportedQuery(
                "Output mode complete can't be written",
                why="it replaces the whole target at every epoch, which this sink does not do",
                todo="use outputMode('append'), for an aggregate with a watermark",
            )
        return StreamWriter(self.connector, dict(self.options), arrow_schema(schema))

    def schema(self) -> NoReturn:
        """See pyspark. Spark asks for it to read.

        Raises:
            UnsupportedQuery: always.
        """
        raise self._writes_only()

    def reader(self, schema: StructType) -> NoReturn:  # noqa: ARG002
        """See `schema`, which Spark does not ask for where a user gives one."""
        raise self._writes_only()

    def streamReader(self, schema: StructType) -> NoReturn:  # noqa: ARG002, N802 (Spark's name)
        """See `reader`."""
        raise self._writes_only()

    def _writes_only(self) -> UnsupportedQuery:
        return UnsupportedQuery(
            f'format("{self.name()}") writes streams only',
            why="nothing of this package reads from a store into Spark",
            todo="use df.writeStream to write; to read, a connector or client of the store itself",
        )

    def writer(self, schema: StructType, overwrite: bool) -> NoReturn:  # noqa: ARG002
        """See pyspark. Batch writes are refused.

        Raises:
            UnsupportedQuery: always.
        """
        raise UnsupportedQuery(
            f'format("{self.name()}") writes streams only',
            why="a batch write has no epoch by which a repeated one could be told",
            todo="use writeStream, with trigger(availableNow=True) for a single run",
        )


@dataclass(frozen=True)
class Message(WriterCommitMessage):
    """A receipt on its way from a task to the driver.

    Attributes:
        may_mix: see `sparkonce.shuffle`; only tasks can see Spark's settings.
    """

    receipt: Receipt
    may_mix: str = ""


class StreamWriter(DataSourceStreamArrowWriter):
    """Adapts Spark's three calls to staging, commit and abort."""

    def __init__(self, connector: str, options: dict[str, str], schema: pa.Schema) -> None:
        self.connector, self.options, self.schema = connector, options, schema
        sink = self._sink()
        sink.check()

    def write(self, iterator: Iterator[pa.RecordBatch]) -> Message:
        """Stage the rows of one task.

        Raises:
            SparkonceError: they can't be written, or are not of the columns that Spark announced.
        """
        from sparkonce import columns

        sink = self._sink()
        context = _epoch_context()
        rows = columns.as_announced(iterator, self.schema)
        receipt = sink.write(_task(sink, context), rows)
        return Message(receipt, shuffle.may_mix(context.getLocalProperty, pyspark.__version__))

    def commit(self, messages: Sequence[WriterCommitMessage | None], batchId: int) -> None:  # noqa: N803
        """Let one epoch take effect, once."""
        receipts = require_messages(_receipts(messages))
        sink = self._sink()
        driver = _driver(sink, receipts, batchId)
        require_planned(driver, checkpoint.query_id(sink.checkpoint))
        for message in messages:
            if isinstance(message, Message) and message.may_mix:
                shuffle.warn(driver.run_id, driver.name, message.may_mix)
        _committer(sink).commit(driver, receipts)

    def abort(self, messages: Sequence[WriterCommitMessage | None], batchId: int) -> None:  # noqa: N803
        """Drop what the tasks of one epoch staged, unless it is decided."""
        receipts = [receipt for receipt in _receipts(messages) if receipt is not None]
        if receipts:
            sink = self._sink()
            _committer(sink).abort(_driver(sink, receipts, batchId), receipts)

    def _sink(self) -> Sink:
        from sparkonce.sink import open_sink

        logs.set_up()
        return open_sink(self.connector, self.options, self.schema)


def _committer(sink: Sink) -> Committer:
    from sparkonce.commit import Committer

    return Committer(sink.store, sink.plan, sink.policy, sink.patience)


def _receipts(messages: Sequence[WriterCommitMessage | None]) -> Iterator[Receipt | None]:
    for message in messages:
        yield message.receipt if isinstance(message, Message) else None


def _epoch_context() -> TaskContext:
    context = TaskContext.get()
    if context is None or None in map(context.getLocalProperty, (EPOCH, QUERY)):
        raise UnsupportedQuery(
            "This task belongs to no epoch of a streaming query",
            why="without an epoch no replay can be told from new rows",
            todo="use writeStream with trigger(processingTime=...) or trigger(availableNow=True)",
        )
    return context


def _task(sink: Sink, context: TaskContext) -> Task:
    query_id = str(context.getLocalProperty(QUERY))
    run_id = context.getLocalProperty("spark.jobGroup.id") or ""
    return Task(
        sink=sink_name(sink.sink_id or query_id, sink.plan.target),
        query_id=query_id,
        run_id=run_id,
        epoch=int(context.getLocalProperty(EPOCH) or -1),
        partition=context.partitionId(),
        attempt=attempt_of(run_id, new_token()),
    )


def _driver(sink: Sink, receipts: Sequence[Receipt], epoch: int) -> Driver:
    query_id, run_id = _query_and_run(sink, receipts, epoch)
    name = sink_name(sink.sink_id or query_id, sink.plan.target)
    checkpoint.warn_if_unreadable(sink.checkpoint, name)
    return Driver(
        name=name,
        target=sink.plan.target,
        query_id=query_id,
        run_id=run_id,
        epoch=epoch,
        checkpoint=checkpoint.canonical(sink.checkpoint),
        offsets=checkpoint.offsets(sink.checkpoint, epoch),
        offsets_before=checkpoint.offsets(sink.checkpoint, epoch - 1),
    )


def _query_and_run(sink: Sink, receipts: Sequence[Receipt], epoch: int) -> tuple[str, str]:
    if receipts:
        return receipts[0].task.query_id, receipts[0].task.run_id
    query_id = checkpoint.query_id(sink.checkpoint)
    if query_id is None:
        raise UnsupportedQuery(
            f"Epoch {epoch} has no task, and the checkpoint can't be read from the driver",
            why="the query id, by which a replay is told from new rows, is in neither",
            todo="give the query at least one partition, for example with repartition(1)",
        )
    return query_id, ""
