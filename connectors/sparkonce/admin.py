"""What an operator does with the ledgers of a store, whatever store it is."""

from __future__ import annotations

import json
import time
from dataclasses import dataclass

from sparkonce.commit import CLAIM, is_over
from sparkonce.errors import SparkonceError
from sparkonce.ledger import Ledger, from_record
from sparkonce.protocol import Advance, Staged, Store, ignore
from sparkonce.registers import Registers
from sparkonce.retry import Patience


@dataclass(frozen=True)
class SinkStatus:
    """One sink: its ledger, if it has one yet, and what is staged for it."""

    name: str
    ledger: Ledger | None
    staged: tuple[Staged, ...]

    @property
    def state(self) -> str:
        """In words: what the sink waits for."""
        if self.ledger is None or self.ledger.epoch < 0:
            return "nothing decided yet"
        if self.ledger.manifest is None:
            return "finished"
        return f"decided, {len(self.ledger.manifest.chunks)} chunks to apply: run recover"

    def leftovers(self, grace: float) -> list[Staged]:
        """Staged attempts that no decision holds, and that are over or older than `grace` s."""
        held = self.ledger.manifest.attempts if self.ledger and self.ledger.manifest else set()
        return [
            staged
            for staged in self.staged
            if staged.attempt not in held and (staged.age >= grace or self._is_over(staged))
        ]

    def _is_over(self, staged: Staged) -> bool:
        return self.ledger is not None and is_over(self.ledger, staged.query_id, staged.epoch)

    def to_json(self) -> dict[str, object]:
        """The status as JSON values."""
        ledger = self.ledger
        return {
            "sink": self.name,
            "state": self.state,
            "target": ledger.target if ledger else None,
            "query": ledger.query_id if ledger else None,
            "retired": list(ledger.retired) if ledger else [],
            "generation": ledger.generation if ledger else None,
            "epoch": ledger.epoch if ledger else None,
            "rows": ledger.rows if ledger else 0,
            "epochs": ledger.epochs if ledger else 0,
            "checkpoint": ledger.checkpoint if ledger else None,
            "updated": ledger.updated if ledger else None,
            "staged_attempts": len(self.staged),
            "staged_chunks": sum(staged.chunks for staged in self.staged),
        }


class Admin:
    """Commands over one store. Each is safe beside running queries."""

    def __init__(self, store: Store) -> None:
        self.store = store
        self.registers = Registers(store, Patience(max_retries=3))

    def sinks(self) -> list[SinkStatus]:
        """Every sink of the store."""
        names = [name for name in self.store.names() if not name.startswith(CLAIM)]
        return [self.sink(name) for name in names]

    def sink(self, name: str) -> SinkStatus:
        """One sink."""
        ledger = from_record(self.store.read(name))
        return SinkStatus(name, ledger, tuple(self.store.staged(name)))

    def recover(self, sink: SinkStatus, advance: Advance = ignore) -> Ledger | None:
        """Finish what is decided and not applied, without Spark."""
        return self.registers.finish(sink.ledger, advance) if sink.ledger else None

    def gc(self, sink: SinkStatus, grace: float) -> int:
        """Drop what no decision holds any more; the number of attempts dropped.

        The revision is moved first, so that a decide that counts on them fails.
        """
        over = sink.leftovers(grace)
        if not over:
            return 0
        held: set[str] = set()
        if sink.ledger is not None:
            now = self.registers.move(sink.name, sink.ledger)
            held = now.manifest.attempts if now.manifest else set()
        dropped = [staged.attempt for staged in over if staged.attempt not in held]
        self.store.discard(sink.name, dropped)
        return len(dropped)

    def forget(self, sink: SinkStatus) -> None:
        """Drop a sink's ledger, its claim on a checkpoint and what is staged for it.

        Raises:
            SparkonceError: an epoch is decided and not yet applied.
        """
        if sink.ledger is not None and sink.ledger.manifest is not None:
            raise SparkonceError(
                f"Sink {sink.name!r} has an epoch that is decided and not yet applied",
                why="forgetting it now would lose the rest of that epoch",
                todo="run sparkonce recover first",
            )
        for name in self.store.names():
            if name.startswith(CLAIM) and self._claimed_by(name, sink.name):
                self.store.forget(name)
        self.store.forget(sink.name)

    def _claimed_by(self, claim: str, sink: str) -> bool:
        record = self.store.read(claim)
        return record.revision > 0 and json.loads(record.body)["sink"] == sink


def ago(moment: float) -> str:
    """How long ago a Unix time was, in words."""
    passed = max(0.0, time.time() - moment)
    for size, unit in ((86400, "d"), (3600, "h"), (60, "min")):
        if passed >= size:
            return f"{passed / size:.0f} {unit} ago"
    return f"{passed:.0f} s ago"
