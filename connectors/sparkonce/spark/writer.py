"""What writers of streams and of batches have in common: staging, and messages to the driver."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

import pyspark

from sparkonce import logs
from sparkonce.exactly_once.ledger import new_token, sink_name
from sparkonce.origin import Follows, Origin
from sparkonce.protocol import Plan, Receipt, Task, attempt_of
from sparkonce.registry import extra
from sparkonce.spark import shuffle, workers
from sparkonce.spark.features import WriterCommitMessage
from sparkonce.spark.session import Context, Session

if TYPE_CHECKING:
    import pyarrow as pa

    from sparkonce.exactly_once.driver import Driver
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
        plan: for the target as it was when Spark made this writer.
    """

    overwrite = False
    plan: Plan[Any] | None = None

    def __init__(self, connector: str, options: dict[str, str], schema: pa.Schema) -> None:
        self.connector, self.options, self.schema = connector, options, schema
        self._require_fit()

    def _require_fit(self) -> None:
        """Refuse what can be known before any row is read."""
        self.plan = self._sink().check().plan

    def __reduce__(self) -> tuple[Any, ...]:
        """See `arrival`."""
        return workers.reduced(self, extra(self.connector))

    def _sink(self) -> Sink:
        """The sink that it writes to; a process keeps its connection."""
        from sparkonce.sink import open_sink

        logs.set_up()
        sink = open_sink(self.connector, self.options, self.schema, overwrite=self.overwrite)
        # As the target was when Spark made this writer, so that a commit sees if it was altered.
        return sink if self.plan is None else replace(sink, plan=self.plan)

    def _stage(
        self, origin: Origin, context: Context, batches: Iterator[pa.RecordBatch]
    ) -> Message:
        """Stage the rows of one task, and take along what only tasks see of the session."""
        from sparkonce.values import columns

        sink = self._sink()
        task = Task(
            origin.query_id,
            origin.run_id,
            origin.epoch,
            sink=sink_name(_known_as(sink, origin), sink.plan.target),
            partition=context.partitionId(),
            # Spark's attempt numbers come back after a stage retry; a twin has the same partition.
            attempt=attempt_of(origin.run_id, new_token()),
            follows=origin.follows,
            named=origin.named,
            stream=origin.stream,
        )
        receipt = sink.write(task, columns.as_announced(batches, self.schema))
        session = Session.seen_by(context.getLocalProperty, pyspark.__version__)
        return Message(receipt, session)


def _known_as(sink: Sink, origin: Origin) -> str:
    """The id of the sink; without a name a batch has none that another one could come to share."""
    own = None if origin.follows is Follows.ONCE else sink.sink_id
    return own or origin.query_id


def receipts_in(messages: Sequence[WriterCommitMessage | None]) -> Iterator[Receipt | None]:
    """What tasks have staged; None for one that failed."""
    for message in messages:
        yield message.receipt if isinstance(message, Message) else None


def staged_in(messages: Sequence[WriterCommitMessage | None]) -> list[Receipt]:
    """What those tasks have staged that did not fail: all that an abort has to drop."""
    return [receipt for receipt in receipts_in(messages) if receipt is not None]


def session_of(messages: Sequence[WriterCommitMessage | None]) -> Session:
    """The session that the tasks saw."""
    seen = (message.session for message in messages if isinstance(message, Message))
    return next(seen, Session())


def warn_if_mixed(driver: Driver, session: Session) -> None:
    """Say, once a run, that Spark may mix two computations of an epoch; see `shuffle`."""
    if mixing := shuffle.lacking() or session.may_mix:
        shuffle.warn(driver.run_id, driver.name, mixing)
