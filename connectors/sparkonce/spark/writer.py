"""Writers of streams: what Spark calls on the driver and in every task of an epoch.

Spark makes a writer anew for every epoch on the driver, pickles it into every task, and makes
another one for ``commit`` and ``abort``; so a writer holds no state but its options.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

import pyspark

from sparkonce import logs
from sparkonce.errors import UnsupportedQuery
from sparkonce.guards import Driver, require_messages
from sparkonce.ledger import new_token, sink_name
from sparkonce.protocol import Receipt, Task, attempt_of
from sparkonce.registry import extra
from sparkonce.spark import arrival, shuffle, storage
from sparkonce.spark.checkpoint import Checkpoint, require_planned, require_readable, require_seen
from sparkonce.spark.features import StreamArrowWriter, WriterCommitMessage
from sparkonce.spark.pipelines import without_refresh
from sparkonce.spark.session import EPOCH, QUERY, RUN, Session, epoch_context
from sparkonce.spark.storage import Unreadable

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


class StreamWriter(StreamArrowWriter):
    """Adapts Spark's three calls to staging, commit and abort."""

    def __init__(self, connector: str, options: dict[str, str], schema: pa.Schema) -> None:
        self.connector, self.options, self.schema = connector, options, schema
        sink = self._sink()
        sink.check()
        storage.given(sink.storage)
        if not sink.may_be_unreadable:
            require_seen(sink.checkpoint, sink.sink_id or sink.plan.target)

    def __reduce__(self) -> tuple[Any, ...]:
        """See `arrival`."""
        return arrival.reduced(self, extra(self.connector))

    def write(self, iterator: Iterator[pa.RecordBatch]) -> Message:
        """Stage the rows of one task.

        Raises:
            SparkonceError: they can't be written, or are not of the columns that Spark announced.
        """
        from sparkonce import columns

        sink = self._sink()
        context = epoch_context()
        rows = columns.as_announced(iterator, self.schema)
        receipt = sink.write(_task(sink, context), rows)
        session = Session.seen_by(context.getLocalProperty, pyspark.__version__)
        place = self._place(sink, session)
        return Message(receipt, session.reaching(place, context.getLocalProperty))

    def commit(self, messages: Sequence[WriterCommitMessage | None], batchId: int) -> None:  # noqa: N803
        """Let one epoch take effect, once."""
        receipts = require_messages(_receipts(messages))
        sink, session = self._sink(), _session(messages)
        reached = replace(session.storage, given=storage.given(sink.storage))
        checkpoint = Checkpoint(self._place(sink, session), reached)
        driver = _who_has_read(sink, checkpoint, _driver(sink, checkpoint, receipts, batchId))
        if mixing := shuffle.lacking() or session.may_mix:
            shuffle.warn(driver.run_id, driver.name, mixing)
        _committer(sink).commit(driver, receipts)

    def abort(self, messages: Sequence[WriterCommitMessage | None], batchId: int) -> None:  # noqa: N803
        """Drop what the tasks of one epoch staged, unless it is decided."""
        receipts = [receipt for receipt in _receipts(messages) if receipt is not None]
        if receipts:
            sink = self._sink()
            checkpoint = Checkpoint(self._place(sink, _session(messages)))
            _committer(sink).abort(_driver(sink, checkpoint, receipts, batchId), receipts)

    def _sink(self) -> Sink:
        from sparkonce.sink import open_sink

        logs.set_up()
        return open_sink(self.connector, self.options, self.schema)

    def _place(self, sink: Sink, session: Session) -> str | None:
        return session.place(sink.checkpoint, self.options.get("queryname"))


def _driver(sink: Sink, checkpoint: Checkpoint, receipts: Sequence[Receipt], epoch: int) -> Driver:
    query_id, run_id = _query_and_run(checkpoint, receipts, epoch)
    place = without_refresh(checkpoint.place)
    return Driver(
        name=sink_name(sink.sink_id or query_id, sink.plan.target),
        target=sink.plan.target,
        query_id=query_id,
        run_id=run_id,
        epoch=epoch,
        checkpoint=place,
        formerly=tuple(one for one in checkpoint.spellings if one != place),
    )


def _who_has_read(sink: Sink, checkpoint: Checkpoint, driver: Driver) -> Driver:
    """The driver with the offsets that are compared.

    Raises:
        CheckpointUnreadable: it can't be read, and a warning is not enough.
        UnsupportedQuery: the checkpoint lacks the epoch's offsets.
    """
    view = checkpoint.look(driver.query_id, driver.epoch)
    require_readable(view, driver.name, checkpoint.location, warn=sink.may_be_unreadable)
    require_planned(view, driver.epoch, driver.checkpoint)
    return replace(driver, offsets=view.offsets, offsets_before=view.before)


def _committer(sink: Sink) -> Committer:
    from sparkonce.commit import Committer

    return Committer(sink.store, sink.plan, sink.policy, sink.patience)


def _receipts(messages: Sequence[WriterCommitMessage | None]) -> Iterator[Receipt | None]:
    for message in messages:
        yield message.receipt if isinstance(message, Message) else None


def _session(messages: Sequence[WriterCommitMessage | None]) -> Session:
    seen = (message.session for message in messages if isinstance(message, Message))
    return next(seen, Session())


def _task(sink: Sink, context: TaskContext) -> Task:
    query_id = str(context.getLocalProperty(QUERY))
    run_id = context.getLocalProperty(RUN) or ""
    return Task(
        sink=sink_name(sink.sink_id or query_id, sink.plan.target),
        query_id=query_id,
        run_id=run_id,
        epoch=int(context.getLocalProperty(EPOCH) or -1),
        partition=context.partitionId(),
        attempt=attempt_of(run_id, new_token()),
    )


def _query_and_run(
    checkpoint: Checkpoint, receipts: Sequence[Receipt], epoch: int
) -> tuple[str, str]:
    if receipts:
        return receipts[0].task.query_id, receipts[0].task.run_id
    try:
        query_id, trouble = checkpoint.query_id(), "no file metadata that names a query"
    except Unreadable as error:
        query_id, trouble = None, str(error)
    if query_id is None:
        raise UnsupportedQuery(
            f"Epoch {epoch} has no task, and the driver can't read the checkpoint: {trouble}",
            why="the query id, by which a replay is told from new rows, is in neither",
            todo="give the query at least one partition, for example with repartition(1)",
        )
    return query_id, ""
