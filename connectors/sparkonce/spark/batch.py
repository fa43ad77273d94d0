"""Writers of batches: ``df.write``, alone or inside ``foreachBatch``.

Spark makes one on the driver, and pickles it into every task and into ``commit`` and ``abort``.
"""

from __future__ import annotations

import logging
from collections.abc import Iterable, Iterator, Sequence
from typing import TYPE_CHECKING

from sparkonce.errors import OptionError, UnsupportedQuery, error_text
from sparkonce.exactly_once.driver import Driver
from sparkonce.exactly_once.guards import require_messages
from sparkonce.exactly_once.ledger import new_token
from sparkonce.origin import Follows, Origin
from sparkonce.protocol import Receipt
from sparkonce.spark.features import ArrowWriter, WriterCommitMessage
from sparkonce.spark.session import (
    EPOCH,
    EXECUTION,
    QUERY,
    Context,
    application,
    sessions,
    task_context,
)
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

log = logging.getLogger("sparkonce")

OF_STREAMS = (
    "checkpointLocation",
    "checkpointStorageOptions",
    "onUnreadableCheckpoint",
)


class BatchWriter(SinkWriter, ArrowWriter):
    """Adapts Spark's three calls for a batch to staging, commit and abort.

    Attributes:
        token: names the batch where nothing else does.
    """

    def __init__(
        self, connector: str, options: dict[str, str], schema: pa.Schema, *, overwrite: bool
    ) -> None:
        # Drawn on the driver: Spark pickles this writer into all tasks, and they share the name.
        self.token, self.overwrite = new_token(), overwrite
        _require_no_checkpoint(options)
        super().__init__(connector, options, schema)

    @errors_first()
    def write(self, iterator: Iterator[pa.RecordBatch]) -> Message:
        """Stage the rows of one task.

        Raises:
            SparkonceError: they can't be written, or are not of the columns that Spark announced.
        """
        context = task_context()
        return self._stage(origin(self._sink(), context, self.token), context, iterator)

    @errors_first()
    def commit(self, messages: Sequence[WriterCommitMessage | None]) -> None:
        """Let the batch take effect, once."""
        receipts = require_messages(receipts_in(messages))
        # Without a task nothing was staged, and nothing tells whose batch it is.
        if receipts:
            sink = self._sink()
            driver = _driver(sink, receipts[0])
            warn_if_mixed(driver, session_of(messages))
            _warn_of_repetition(sink, driver)
            sink.committer().commit(driver, receipts)

    @errors_first()
    def abort(self, messages: Sequence[WriterCommitMessage | None]) -> None:
        """Drop what the tasks of a batch staged, unless it is decided."""
        receipts = staged_in(messages)
        if receipts:
            sink = self._sink()
            sink.committer().abort(_driver(sink, receipts[0]), receipts)


def _require_no_checkpoint(options: Iterable[str]) -> None:
    """Refuse what compares a stream with its checkpoint, which a batch does not know.

    Raises:
        OptionError: such an option is set.
    """
    given = {name.lower() for name in options}
    found = [name for name in OF_STREAMS if name.lower() in given]
    if found:
        raise OptionError(
            f"Option {', '.join(found)} can't be set for a batch",
            why="a batch is told from its repetition by numbers alone, and reads no checkpoint",
            todo="leave it out, or write by writeStream.format(...), which compares offsets",
        )


def origin(sink: Sink, context: Context, token: str) -> Origin:
    """Who writes a batch: an application by its version, a batch of a stream, or nobody known.

    Args:
        sink: of the write.
        context: of a task; the properties of the thread that writes tell of ``foreachBatch``.
        token: names the batch where nothing else does.
    """
    query, epoch = map(context.getLocalProperty, (QUERY, EPOCH))
    stream = query if query and epoch else ""
    if sink.version is not None:
        run = _execution(context) if stream else _session(context)
        named = sink.version.app, run, sink.version.number
        return Origin(*named, follows=Follows.GROWS, named=True, stream=stream)
    if query and epoch:
        return Origin(query, _execution(context), int(epoch), follows=Follows.GROWS, stream=query)
    return Origin(token, "", 0, follows=Follows.ONCE)


def _session(context: Context) -> str:
    """The session of a batch outside a stream. A job that is run again has another one.

    Empty if it can't be known: then a second write can't be told from a job that is run again.
    """
    known = application(context), sessions(context)
    return "/".join(known) if all(known) else ""


def _execution(context: Context) -> str:
    """The execution of the micro-batch in whose ``foreachBatch`` a batch is written.

    The run of the stream stands in Spark's job group, which is the user's to set.

    Raises:
        UnsupportedQuery: Spark does not tell of it.
    """
    known = application(context), context.getLocalProperty(EXECUTION)
    if not all(known):
        raise UnsupportedQuery(
            "Spark does not tell which execution of its micro-batch writes this batch",
            why="without it a second write into one target can't be told from a replay of the"
            f" first, whose rows must not count twice; property {EXECUTION} has it",
            todo="write from the thread that Spark calls, or from a pyspark.InheritableThread,"
            " and leave that property as it is",
        )
    return "/".join(map(str, known))


def _driver(sink: Sink, receipt: Receipt) -> Driver:
    task = receipt.task
    into = task.sink, sink.plan.target
    writer = {"follows": task.follows, "named": task.named, "stream": task.stream}
    return Driver(task.query_id, task.run_id, task.epoch, *into, **writer)  # type: ignore[arg-type]


def _warn_of_repetition(sink: Sink, driver: Driver) -> None:
    """Say that a batch without a name can't be told from its repetition."""
    if driver.follows is Follows.ONCE and not sink.plan.repeatable:
        log.warning(
            error_text(
                f"A batch of rows for {driver.target} has no name",
                why="if it is written again, by a job that is run again or by a replay, its rows"
                " are applied again",
                todo="set options txnAppId and txnVersion; in foreachBatch write from the thread"
                " that Spark calls, or from a pyspark.InheritableThread",
            )
        )
