"""Spark's writer over a subject: the adapter that Spark calls, without Spark and options."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

from sparkonce.options import Options
from sparkonce.sink import Sink
from sparkonce.spark.writer import Message, StreamWriter
from sparkonce.tck.simulation.actors import QUICK, SMALL

if TYPE_CHECKING:
    from sparkonce.protocol import Receipt
    from sparkonce.tck.simulation.actors import Query


class Writer(StreamWriter):
    """The stream writer of a query of the kit."""

    def __init__(self, query: Query) -> None:
        self.query, self.options = query, {}

    def messages(self, receipts: Iterable[Receipt]) -> list[Message]:
        """Receipts as they travel from tasks to the driver."""
        return [Message(receipt) for receipt in receipts]

    def _sink(self) -> Sink:
        query, world = self.query, self.query.world
        given = {"sinkId": query.sink_id, "checkpointLocation": query.checkpoint}
        return Sink(
            options=Options({**given, "checkpointStorageOptions": None}, frozenset()),
            store=query.store,
            plan=query.plan or world.plan,
            encoder=lambda _: world.encode,
            policy=query.policy,
            patience=QUICK,
            size=SMALL,
            may_be_unreadable=True,
        )
