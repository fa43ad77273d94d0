"""The state of the two streams, from the ledgers in Redis and Spark's checkpoints."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from sparkonce.operate.admin import SinkStatus
from sparkonce.operate.arguments import admin_of
from sparkonce.spark.checkpoint import Checkpoint

STREAMS = ("flights", "airports")
"""The streams by the directories of their checkpoints."""

KEY_PREFIX = "sparkonce-demo"


@dataclass(frozen=True)
class Stream:
    """The progress of a stream, by its ledger.

    Attributes:
        applying: an epoch is decided and only partly applied.
        staging: rows of the next epoch are staged.
    """

    rows: int = 0
    epochs: int = 0
    applying: bool = False
    staging: bool = False


Streams = Mapping[str, Stream]


@dataclass(frozen=True)
class Caught:
    """The effect of SIGKILL on a stream.

    Attributes:
        rows: the rows that its ledger counted.
        epoch: the epoch that Spark has to replay; None if it was between two.
        found: what Redis had of that epoch.
    """

    rows: int
    epoch: int | None
    found: str


class Ledgers:
    """The ledgers of both streams."""

    def __init__(self, url: str, checkpoints: Path) -> None:
        self.admin = admin_of(url, (f"keyPrefix={KEY_PREFIX}",))
        self.checkpoints = checkpoints

    def read(self) -> dict[str, Stream]:
        """The progress of each stream."""
        sinks = self._sinks()
        return {name: _stream(sinks.get(name)) for name in STREAMS}

    def caught(self) -> dict[str, Caught]:
        """The state of each stream after the driver was killed."""
        sinks = self._sinks()
        return {
            name: _caught(sinks.get(name), _to_replay(self.checkpoints / name)) for name in STREAMS
        }

    def _sinks(self) -> dict[str, SinkStatus]:
        queries = {Checkpoint(str(self.checkpoints / name)).query_id(): name for name in STREAMS}
        return {
            queries[sink.ledger.owner.query_id]: sink
            for sink in self.admin.sinks()
            if sink.ledger and sink.ledger.owner.query_id in queries
        }


def _stream(sink: SinkStatus | None) -> Stream:
    if sink is None or sink.ledger is None:
        return Stream()
    ledger = sink.ledger
    decision, totals = ledger.decision, ledger.totals
    chunks = len(decision.manifest.chunks) if decision.manifest else 0
    applying = 0 < _unapplied(sink, decision.epoch) < chunks
    staging = _unapplied(sink, decision.epoch + 1) > 0
    return Stream(totals.rows, totals.epochs, applying, staging)


def _unapplied(sink: SinkStatus, epoch: int) -> int:
    """The chunks of an epoch that are not applied, decided or not."""
    return sum(part.chunks for part in sink.staged if part.epoch == epoch)


def _to_replay(checkpoint: Path) -> int | None:
    """The epoch that Spark has started and not committed, by the files of its checkpoint."""
    begun, committed = _newest(checkpoint / "offsets"), _newest(checkpoint / "commits")
    return begun if begun > committed else None


def _newest(log: Path) -> int:
    return max((int(file.name) for file in log.glob("[0-9]*") if file.name.isdigit()), default=-1)


def _caught(sink: SinkStatus | None, epoch: int | None) -> Caught:
    if sink is None or sink.ledger is None:
        return Caught(0, epoch, "nothing yet")
    decision, rows = sink.ledger.decision, sink.ledger.totals.rows
    if epoch is None:
        return Caught(rows, None, "")
    left = _unapplied(sink, epoch)
    if decision.epoch < epoch:
        found = f"{left} chunk{'s' * (left > 1)}, undecided" if left else "nothing yet"
    elif decision.manifest is None:
        found = "all; Spark did not know"
    else:
        chunks = len(decision.manifest.chunks)
        found = f"decided, {chunks - left} of {chunks} applied"
    return Caught(rows, epoch, found)
