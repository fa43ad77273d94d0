"""Writers of batches: ``df.write``, alone or inside ``foreachBatch``.

Spark makes one on the driver, and pickles it into every task and into ``commit`` and ``abort``.
"""

from __future__ import annotations

import logging
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from sparkonce.errors import told
from sparkonce.guards import Driver, require_messages
from sparkonce.ledger import new_token
from sparkonce.origin import Follows, Origin
from sparkonce.protocol import Receipt
from sparkonce.spark.features import ArrowWriter, WriterCommitMessage
from sparkonce.spark.session import EPOCH, QUERY, RUN, Context, task_context
from sparkonce.spark.writer import (
    Message,
    SinkWriter,
    committer,
    receipts_in,
    session_of,
    staged_in,
    warn_if_mixed,
)

if TYPE_CHECKING:
    import pyarrow as pa

    from sparkonce.sink import Sink

log = logging.getLogger("sparkonce")


class BatchWriter(SinkWriter, ArrowWriter):
    """Adapts Spark's three calls for a batch to staging, commit and abort.

    Attributes:
        token: names the batch where nothing else does.
    """

    def __init__(
        self, connector: str, options: dict[str, str], schema: pa.Schema, *, overwrite: bool
    ) -> None:
        self.token, self.overwrite = new_token(), overwrite
        super().__init__(connector, options, schema)

    def write(self, iterator: Iterator[pa.RecordBatch]) -> Message:
        """Stage the rows of one task.

        Raises:
            SparkonceError: they can't be written, or are not of the columns that Spark announced.
        """
        context = task_context()
        return self._stage(origin(self._sink(), context, self.token), context, iterator)

    def commit(self, messages: Sequence[WriterCommitMessage | None]) -> None:
        """Let the batch take effect, once."""
        receipts = require_messages(receipts_in(messages))
        if receipts:
            sink = self._sink()
            driver = _driver(sink, receipts[0])
            warn_if_mixed(driver, session_of(messages))
            _warn_of_repetition(sink, driver)
            committer(sink).commit(driver, receipts)

    def abort(self, messages: Sequence[WriterCommitMessage | None]) -> None:
        """Drop what the tasks of a batch staged, unless it is decided."""
        receipts = staged_in(messages)
        if receipts:
            sink = self._sink()
            committer(sink).abort(_driver(sink, receipts[0]), receipts)


def origin(sink: Sink, context: Context, token: str) -> Origin:
    """Who writes a batch: an application by its version, a batch of a stream, or nobody known.

    Args:
        sink: of the write.
        context: of a task; the properties of the thread that writes tell of ``foreachBatch``.
        token: names the batch where nothing else does.
    """
    if sink.version is not None:
        return Origin(sink.version.app, "", sink.version.number, follows=Follows.GROWS)
    query, run, epoch = map(context.getLocalProperty, (QUERY, RUN, EPOCH))
    if query and epoch:
        return Origin(query, run or "", int(epoch), follows=Follows.GROWS)
    return Origin(token, "", 0, follows=Follows.ONCE)


def _driver(sink: Sink, receipt: Receipt) -> Driver:
    task = receipt.task
    into = task.sink, sink.plan.target
    return Driver(task.query_id, task.run_id, task.epoch, *into, follows=task.follows)


def _warn_of_repetition(sink: Sink, driver: Driver) -> None:
    """Say that a batch without a name can't be told from its repetition."""
    if driver.follows is Follows.ONCE and not sink.plan.repeatable:
        log.warning(
            told(
                f"A batch of rows for {driver.target} has no name",
                why="if it is written again, by a job that is run again or by a replay, its rows"
                " are applied again",
                todo="set options txnAppId and txnVersion; in foreachBatch write from the thread"
                " that Spark calls, or from a pyspark.InheritableThread",
            )
        )
