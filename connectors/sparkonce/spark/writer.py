"""Writers of streams: what Spark calls on the driver and in every task of an epoch.

Spark makes a writer anew for every epoch on the driver, pickles it into every task, and makes
another one for ``commit`` and ``abort``; so a writer holds no state but its options.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import pyspark

from sparkonce import logs
from sparkonce.errors import OptionError, UnsupportedQuery
from sparkonce.guards import Driver, require_messages, require_planned
from sparkonce.ledger import new_token, sink_name
from sparkonce.origin import Origin
from sparkonce.protocol import Receipt, Task, attempt_of
from sparkonce.spark import checkpoint, shuffle
from sparkonce.spark.features import StreamArrowWriter, WriterCommitMessage
from sparkonce.spark.pipelines import without_refresh
from sparkonce.spark.session import EPOCH, QUERY, RUN, Session, epoch_context

if TYPE_CHECKING:
    import pyarrow as pa
    from pyspark import TaskContext

    from sparkonce.commit import Committer
    from sparkonce.sink import Sink


@dataclass(frozen=True)
class Message(WriterCommitMessage):
    """A receipt on its way from a task to the driver, with the session that only tasks see."""

    receipt: Receipt
    session: Session = field(default_factory=Session)


class SinkWriter:
    """What writers of streams and of batches have in common.

    Attributes:
        overwrite: whether rows take the place of all that is in the target.
    """

    overwrite = False

    def __init__(self, connector: str, options: dict[str, str], schema: pa.Schema) -> None:
        self.connector, self.options, self.schema = connector, options, schema
        self._sink().check()

    def _sink(self) -> Sink:
        """The sink that it writes to; a process keeps it."""
        from sparkonce.sink import open_sink

        logs.set_up()
        return open_sink(self.connector, self.options, self.schema, overwrite=self.overwrite)

    def _stage(
        self, origin: Origin, context: TaskContext, batches: Iterator[pa.RecordBatch]
    ) -> Message:
        """Stage the rows of one task, and take along what only tasks see of the session."""
        from sparkonce import columns

        sink = self._sink()
        task = Task(
            origin.query_id,
            origin.run_id,
            origin.epoch,
            sink=sink_name(sink.sink_id or origin.query_id, sink.plan.target),
            partition=context.partitionId(),
            attempt=attempt_of(origin.run_id, new_token()),
            follows=origin.follows,
        )
        receipt = sink.write(task, columns.as_announced(batches, self.schema))
        return Message(receipt, Session.seen_by(context.getLocalProperty, pyspark.__version__))


class StreamWriter(SinkWriter, StreamArrowWriter):
    """Adapts Spark's three calls to staging, commit and abort."""

    def __init__(self, connector: str, options: dict[str, str], schema: pa.Schema) -> None:
        super().__init__(connector, options, schema)
        require_no_version(self._sink())

    def write(self, iterator: Iterator[pa.RecordBatch]) -> Message:
        """Stage the rows of one task.

        Raises:
            SparkonceError: they can't be written, or are not of the columns that Spark announced.
        """
        context = epoch_context()
        query_id, run_id, epoch = map(context.getLocalProperty, (QUERY, RUN, EPOCH))
        origin = Origin(str(query_id), run_id or "", int(epoch or -1))
        return self._stage(origin, context, iterator)

    def commit(self, messages: Sequence[WriterCommitMessage | None], batchId: int) -> None:  # noqa: N803
        """Let one epoch take effect, once."""
        receipts = require_messages(receipts_in(messages))
        sink, session = self._sink(), session_of(messages)
        driver = self._driver(sink, session, receipts, batchId)
        require_planned(driver, checkpoint.query_id(driver.checkpoint))
        if session.may_mix:
            shuffle.warn(driver.run_id, driver.name, session.may_mix)
        committer(sink).commit(driver, receipts)

    def abort(self, messages: Sequence[WriterCommitMessage | None], batchId: int) -> None:  # noqa: N803
        """Drop what the tasks of one epoch staged, unless it is decided."""
        receipts = [receipt for receipt in receipts_in(messages) if receipt is not None]
        if receipts:
            sink = self._sink()
            driver = self._driver(sink, session_of(messages), receipts, batchId)
            committer(sink).abort(driver, receipts)

    def _driver(
        self, sink: Sink, session: Session, receipts: Sequence[Receipt], epoch: int
    ) -> Driver:
        place = session.place(sink.checkpoint, self.options.get("queryname"))
        query_id, run_id = _query_and_run(place, receipts, epoch)
        name = sink_name(sink.sink_id or query_id, sink.plan.target)
        checkpoint.warn_if_unreadable(place, name)
        return Driver(
            name=name,
            target=sink.plan.target,
            query_id=query_id,
            run_id=run_id,
            epoch=epoch,
            checkpoint=without_refresh(checkpoint.canonical(place)),
            offsets=checkpoint.offsets(place, epoch),
            offsets_before=checkpoint.offsets(place, epoch - 1),
        )


def require_no_version(sink: Sink) -> None:
    """Refuse the name of a batch for a stream, which has one of its own.

    Raises:
        OptionError: there is one.
    """
    if sink.version is not None:
        raise OptionError(
            "Options txnAppId and txnVersion can't be set for a stream",
            why="Spark numbers its epochs itself",
            todo="leave both out, or use df.write",
        )


def committer(sink: Sink) -> Committer:
    """The commit algorithm over a sink."""
    from sparkonce.commit import Committer

    return Committer(sink.store, sink.plan, sink.policy, sink.patience)


def receipts_in(messages: Sequence[WriterCommitMessage | None]) -> Iterator[Receipt | None]:
    """What tasks have staged; None for one that failed."""
    for message in messages:
        yield message.receipt if isinstance(message, Message) else None


def session_of(messages: Sequence[WriterCommitMessage | None]) -> Session:
    """The session that the tasks saw."""
    seen = (message.session for message in messages if isinstance(message, Message))
    return next(seen, Session())


def _query_and_run(place: str | None, receipts: Sequence[Receipt], epoch: int) -> tuple[str, str]:
    if receipts:
        return receipts[0].task.query_id, receipts[0].task.run_id
    query_id = checkpoint.query_id(place)
    if query_id is None:
        raise UnsupportedQuery(
            f"Epoch {epoch} has no task, and the checkpoint can't be read from the driver",
            why="the query id, by which a replay is told from new rows, is in neither",
            todo="give the query at least one partition, for example with repartition(1)",
        )
    return query_id, ""
