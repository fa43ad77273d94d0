"""Writers of streams and of batches: what Spark calls on the driver and in every task.

Spark creates a writer on the driver for each epoch, and pickles it into every task. It creates
another one for ``commit`` and ``abort``, so a writer holds no state but its options.
"""

from __future__ import annotations

import logging
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

import pyspark

from sparkonce import errors
from sparkonce.errors import OptionError, UnsupportedQuery, error_text
from sparkonce.exactly_once.driver import Driver
from sparkonce.exactly_once.guards import require_messages
from sparkonce.exactly_once.ledger import new_token, sink_name
from sparkonce.protocol import Follows, Origin, Plan, Receipt, Task, attempt_of
from sparkonce.spark import storage
from sparkonce.spark.checkpoint import Checkpoint, require_planned, require_readable, require_seen
from sparkonce.spark.features import (
    ArrowWriter,
    Shipped,
    StreamArrowWriter,
    WriterCommitMessage,
    errors_first,
)
from sparkonce.spark.session import (
    EPOCH,
    QUERY,
    RUN,
    Context,
    SparkSettings,
    batch_execution,
    batch_session,
    epoch_context,
    lacks_checksums,
    task_context,
    warn_of_mixing,
)
from sparkonce.spark.storage import Unreadable, without_refresh

if TYPE_CHECKING:
    import pyarrow as pa

    from sparkonce.exactly_once.driver import Driver
    from sparkonce.sink import Sink


@dataclass(frozen=True)
class Message(WriterCommitMessage):
    """A receipt from a task to the driver, with the settings that only tasks see."""

    receipt: Receipt
    session: SparkSettings = field(default_factory=SparkSettings)


class SinkWriter(Shipped):
    """The common base of writers of streams and of batches.

    Attributes:
        overwrite: whether the rows replace all rows of the target.
        plan: for the target as of the moment when Spark created this writer.
    """

    overwrite = False
    plan: Plan[Any] | None = None

    def __init__(self, connector: str, options: dict[str, str], schema: pa.Schema) -> None:
        super().__init__(connector, options, schema)
        self._require_fit()

    def _require_fit(self) -> None:
        """Reject all errors that are known before Spark reads a row."""
        self.plan = self._sink().check().plan

    def _sink(self) -> Sink:
        """The sink of this writer; a process keeps its connection."""
        from sparkonce.sink import open_sink

        errors.set_up_logging()
        sink = open_sink(self.connector, self.options, self.schema, overwrite=self.overwrite)
        # The plan as of the creation of this writer, so that a commit notices an altered target.
        return sink if self.plan is None else replace(sink, plan=self.plan)

    def _stage(
        self, origin: Origin, context: Context, batches: Iterator[pa.RecordBatch]
    ) -> Message:
        """Stage the rows of one task, and add the settings that only tasks see."""
        from sparkonce.values import spark_types

        sink = self._sink()
        # A batch without a name has no sink id that another batch could share.
        own = None if origin.follows is Follows.ONCE else sink.options["sinkId"]
        task = Task(
            origin.query_id,
            origin.run_id,
            origin.epoch,
            sink=sink_name(own or origin.query_id, sink.plan.target),
            partition=context.partitionId(),
            # Spark reuses attempt numbers after a stage retry; a twin has the same partition.
            attempt=attempt_of(origin.run_id, new_token()),
            follows=origin.follows,
            named=origin.named,
            stream=origin.stream,
        )
        receipt = sink.write(task, spark_types.as_announced(batches, self.schema))
        session = SparkSettings.seen_by(context.getLocalProperty, pyspark.__version__)
        return Message(receipt, session)


def _receipts_in(messages: Sequence[WriterCommitMessage | None]) -> Iterator[Receipt | None]:
    """The receipts of the tasks; None for a task that failed."""
    for message in messages:
        yield message.receipt if isinstance(message, Message) else None


def _staged_in(messages: Sequence[WriterCommitMessage | None]) -> list[Receipt]:
    """The receipts of the tasks that succeeded: all that an abort has to discard."""
    return [receipt for receipt in _receipts_in(messages) if receipt is not None]


def _session_of(messages: Sequence[WriterCommitMessage | None]) -> SparkSettings:
    """The session that the tasks saw."""
    seen = (message.session for message in messages if isinstance(message, Message))
    return next(seen, SparkSettings())


def _warn_if_mixed(driver: Driver, session: SparkSettings) -> None:
    """Warn, once a run, that Spark may mix two computations of an epoch; see `may_mix`."""
    if mixing := lacks_checksums() or session.may_mix:
        warn_of_mixing(driver.run_id, driver.name, mixing)


class StreamWriter(SinkWriter, StreamArrowWriter):
    """Adapts Spark's three calls to staging, commit and abort."""

    def _require_fit(self) -> None:
        sink = self._sink()
        if sink.options["txnAppId"] is not None:
            raise OptionError(
                "Options txnAppId and txnVersion can't be set for a stream",
                why="Spark numbers its epochs itself",
                todo="omit both, or use df.write",
            )
        super()._require_fit()
        # For its errors: a missing file is rejected before a task stages a row.
        storage.storage_options(sink.options["checkpointStorageOptions"])
        if not sink.may_be_unreadable:
            require_seen(
                sink.options["checkpointLocation"], sink.options["sinkId"] or sink.plan.target
            )

    @errors_first()
    def write(self, iterator: Iterator[pa.RecordBatch]) -> Message:
        """Stage the rows of one task."""
        context = epoch_context()
        query_id, run_id, epoch = map(context.getLocalProperty, (QUERY, RUN, EPOCH))
        origin = Origin(str(query_id), run_id or "", int(epoch or -1))
        staged = self._stage(origin, context, iterator)
        place = self._place(self._sink(), staged.session)
        return replace(staged, session=staged.session.reaching(place, context.getLocalProperty))

    @errors_first()
    def commit(self, messages: Sequence[WriterCommitMessage | None], batchId: int) -> None:  # noqa: N803
        """Commit one epoch, so that it takes effect once."""
        receipts = require_messages(_receipts_in(messages))
        sink, session = self._sink(), _session_of(messages)
        given = storage.storage_options(sink.options["checkpointStorageOptions"])
        reached = replace(session.storage, given=given)
        checkpoint = Checkpoint(self._place(sink, session), reached)
        driver = _stream_driver(sink, checkpoint, receipts, batchId)
        view = checkpoint.look(driver.query_id, batchId)
        require_readable(view, driver.name, checkpoint.location, warn=sink.may_be_unreadable)
        require_planned(view, batchId, driver.checkpoint)
        _warn_if_mixed(driver, session)
        driver = replace(driver, offsets=view.offsets, offsets_before=view.before)
        sink.committer().commit(driver, receipts)

    @errors_first()
    def abort(self, messages: Sequence[WriterCommitMessage | None], batchId: int) -> None:  # noqa: N803
        """Discard what the tasks of one epoch staged, unless the epoch is decided."""
        receipts = _staged_in(messages)
        if receipts:
            sink = self._sink()
            # Named, but not read: Spark waits for an abort, and a dead server replies late.
            checkpoint = Checkpoint(self._place(sink, _session_of(messages)))
            sink.committer().abort(_stream_driver(sink, checkpoint, receipts, batchId), receipts)

    def _place(self, sink: Sink, session: SparkSettings) -> str | None:
        return session.place(sink.options["checkpointLocation"], self.options.get("queryname"))


def _stream_driver(
    sink: Sink, checkpoint: Checkpoint, receipts: Sequence[Receipt], epoch: int
) -> Driver:
    query_id, run_id = _query_and_run(checkpoint, receipts, epoch)
    place = without_refresh(checkpoint.place)
    return Driver(
        name=sink_name(sink.options["sinkId"] or query_id, sink.plan.target),
        target=sink.plan.target,
        query_id=query_id,
        run_id=run_id,
        epoch=epoch,
        checkpoint=place,
    )


def _query_and_run(
    checkpoint: Checkpoint, receipts: Sequence[Receipt], epoch: int
) -> tuple[str, str]:
    if receipts:
        return receipts[0].task.query_id, receipts[0].task.run_id
    try:
        query_id, trouble = checkpoint.query_id(), "it has no file metadata that names a query"
    except Unreadable as error:
        query_id, trouble = None, str(error)
    if query_id is None:
        raise UnsupportedQuery(
            f"Epoch {epoch} has no task, and the driver can't read the checkpoint: {trouble}",
            why="both lack the query id, which distinguishes a replay from new rows",
            todo="give the query at least one partition, for example with repartition(1)",
        )
    return query_id, ""  # no file has the run id; an empty one supersedes no run


log = logging.getLogger("sparkonce")

OF_STREAMS = ("checkpointLocation", "checkpointStorageOptions", "onUnreadableCheckpoint")


class BatchWriter(SinkWriter, ArrowWriter):
    """Adapts Spark's three calls for a batch to staging, commit and abort."""

    def __init__(
        self, connector: str, options: dict[str, str], schema: pa.Schema, *, overwrite: bool
    ) -> None:
        # The name of a batch without any other. Spark pickles this writer into all tasks.
        self.token, self.overwrite = new_token(), overwrite
        _require_no_checkpoint(options)
        super().__init__(connector, options, schema)

    @errors_first()
    def write(self, iterator: Iterator[pa.RecordBatch]) -> Message:
        """Stage the rows of one task."""
        context = task_context()
        return self._stage(origin(self._sink(), context, self.token), context, iterator)

    @errors_first()
    def commit(self, messages: Sequence[WriterCommitMessage | None]) -> None:
        """Commit the batch, so that it takes effect once."""
        receipts = require_messages(_receipts_in(messages))
        # Without a task nothing is staged, and nothing names the batch.
        if receipts:
            sink = self._sink()
            driver = _batch_driver(sink, receipts[0])
            _warn_if_mixed(driver, _session_of(messages))
            _warn_of_repetition(sink, driver)
            sink.committer().commit(driver, receipts)

    @errors_first()
    def abort(self, messages: Sequence[WriterCommitMessage | None]) -> None:
        """Discard what the tasks of a batch staged, unless the batch is decided."""
        receipts = _staged_in(messages)
        if receipts:
            sink = self._sink()
            sink.committer().abort(_batch_driver(sink, receipts[0]), receipts)


def _require_no_checkpoint(options: Iterable[str]) -> None:
    """Reject options of a checkpoint, which a batch does not have."""
    given = {name.lower() for name in options}
    found = [name for name in OF_STREAMS if name.lower() in given]
    if found:
        raise OptionError(
            f"Option {', '.join(found)} can't be set for a batch",
            why="sparkonce recognizes a repeated batch by its number, and reads no checkpoint",
            todo="omit it, or use writeStream.format(...), which compares offsets",
        )


def origin(sink: Sink, context: Context, token: str) -> Origin:
    """The writer of a batch: an application with a version, a batch of a stream, or unknown.

    A task has the local properties of the writing thread, which show a ``foreachBatch``. `token`
    names a batch without any other name.
    """
    query, epoch = map(context.getLocalProperty, (QUERY, EPOCH))
    stream = query if query and epoch else ""
    run = batch_execution(context) if stream else batch_session(context)
    if sink.options["txnAppId"] is not None:
        named = sink.options["txnAppId"], run, sink.options["txnVersion"]
        return Origin(*named, follows=Follows.GROWS, named=True, stream=stream)
    if stream:
        return Origin(stream, run, int(epoch or 0), follows=Follows.GROWS, stream=stream)
    return Origin(token, "", 0, follows=Follows.ONCE)


def _batch_driver(sink: Sink, receipt: Receipt) -> Driver:
    task = receipt.task
    into = task.sink, sink.plan.target
    writer = {"follows": task.follows, "named": task.named, "stream": task.stream}
    return Driver(task.query_id, task.run_id, task.epoch, *into, **writer)  # type: ignore[arg-type]


def _warn_of_repetition(sink: Sink, driver: Driver) -> None:
    """Warn that nothing distinguishes a batch without a name from its repetition."""
    if driver.follows is Follows.ONCE and not sink.plan.repeatable:
        log.warning(
            error_text(
                f"A batch of rows for {driver.target} has no name",
                why="if a second run of the job or a replay writes it again, its rows are applied"
                " again",
                todo="set options txnAppId and txnVersion; in foreachBatch write from the thread"
                " that Spark calls, or from a pyspark.InheritableThread",
            )
        )
