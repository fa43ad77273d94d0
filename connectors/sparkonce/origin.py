"""Who writes: a stream, a batch inside ``foreachBatch``, a named batch, or one without a name."""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import Enum


class Follows(Enum):
    """Which epochs may come after one that is decided."""

    NEXT = "next"
    """A stream's: epoch N comes after N - 1, and any other is an error."""
    GROWS = "grows"
    """A batch's with a number: any higher one; one that writes nothing leaves a gap."""
    ONCE = "once"
    """A batch's without a number: there is no other, and a repetition can't be told from it."""


@dataclass(frozen=True)
class Origin:
    """One run of a writer, at one of its epochs; `Task` and `Driver` each act for one.

    Attributes:
        query_id: the streaming query, the ``txnAppId``, or a random name of a batch.
        run_id: of this ``start()`` of a query. Of a batch what runs it: the execution of the
            micro-batch, or the session of a batch with a name. Empty where it can't be known.
        epoch: the number of the micro-batch, the ``txnVersion``, or 0.
        follows: which epochs may come after it.
        named: whether ``txnAppId`` and ``txnVersion`` say who writes.
        stream: the query in whose ``foreachBatch`` that is; empty outside.
    """

    query_id: str
    run_id: str
    epoch: int
    follows: Follows = field(default=Follows.NEXT, kw_only=True)
    named: bool = field(default=False, kw_only=True)
    stream: str = field(default="", kw_only=True)
