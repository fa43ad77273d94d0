"""The writer of streams: what Spark calls on the driver and in every task of an epoch.

Spark makes a writer anew for every epoch on the driver, pickles it into every task, and makes
another one for ``commit`` and ``abort``; so a writer holds no state but its options.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from sparkonce.errors import OptionError, UnsupportedQuery
from sparkonce.exactly_once.driver import Driver
from sparkonce.exactly_once.guards import require_messages
from sparkonce.exactly_once.ledger import sink_name
from sparkonce.origin import Origin
from sparkonce.protocol import Receipt
from sparkonce.spark import storage
from sparkonce.spark.checkpoint import Checkpoint, require_planned, require_readable, require_seen
from sparkonce.spark.features import StreamArrowWriter, WriterCommitMessage
from sparkonce.spark.places import without_refresh
from sparkonce.spark.session import EPOCH, QUERY, RUN, Session, epoch_context
from sparkonce.spark.storage import Unreadable
from sparkonce.spark.workers import errors_first
from sparkonce.spark.writer import (
    Message,
    SinkWriter,
    receipts_in,
    session_of,
    staged_in,
    warn_if_mixed,
)

if TYPE_CHECKING:
    import pyarrow as pa

    from sparkonce.sink import Sink


class StreamWriter(SinkWriter, StreamArrowWriter):
    """Adapts Spark's three calls to staging, commit and abort."""

    def _require_fit(self) -> None:
        sink = self._sink()
        require_no_version(sink)
        super()._require_fit()
        # Read for its errors: a file that is not there is refused before a row is staged.
        storage.given(sink.storage)
        if not sink.may_be_unreadable:
            require_seen(sink.checkpoint, sink.sink_id or sink.plan.target)

    @errors_first()
    def write(self, iterator: Iterator[pa.RecordBatch]) -> Message:
        """Stage the rows of one task.

        Raises:
            SparkonceError: they can't be written, or are not of the columns that Spark announced.
        """
        context = epoch_context()
        query_id, run_id, epoch = map(context.getLocalProperty, (QUERY, RUN, EPOCH))
        origin = Origin(str(query_id), run_id or "", int(epoch or -1))
        staged = self._stage(origin, context, iterator)
        place = self._place(self._sink(), staged.session)
        return replace(staged, session=staged.session.reaching(place, context.getLocalProperty))

    @errors_first()
    def commit(self, messages: Sequence[WriterCommitMessage | None], batchId: int) -> None:  # noqa: N803
        """Let one epoch take effect, once."""
        receipts = require_messages(receipts_in(messages))
        sink, session = self._sink(), session_of(messages)
        reached = replace(session.storage, given=storage.given(sink.storage))
        checkpoint = Checkpoint(self._place(sink, session), reached)
        driver = _who_has_read(sink, checkpoint, _driver(sink, checkpoint, receipts, batchId))
        warn_if_mixed(driver, session)
        sink.committer().commit(driver, receipts)

    @errors_first()
    def abort(self, messages: Sequence[WriterCommitMessage | None], batchId: int) -> None:  # noqa: N803
        """Drop what the tasks of one epoch staged, unless it is decided."""
        receipts = staged_in(messages)
        if receipts:
            sink = self._sink()
            # It is named and not read: Spark waits for an abort, and a dead server answers late.
            checkpoint = Checkpoint(self._place(sink, session_of(messages)))
            sink.committer().abort(_driver(sink, checkpoint, receipts, batchId), receipts)

    def _place(self, sink: Sink, session: Session) -> str | None:
        return session.place(sink.checkpoint, self.options.get("queryname"))


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
    return query_id, ""  # no file has the run; an empty one supersedes none
