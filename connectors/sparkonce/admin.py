"""What an operator does with the ledgers of a store, whatever store it is."""

from __future__ import annotations

import json
import time
from dataclasses import dataclass, replace
from typing import cast

from sparkonce.commit import CLAIM, leftovers
from sparkonce.errors import SparkonceError, StoreLostData
from sparkonce.ledger import Ledger, from_record, new_token
from sparkonce.protocol import Advance, MovableStore, Record, Staged, Store, ignore
from sparkonce.registers import Registers, contended
from sparkonce.retry import Patience


@dataclass(frozen=True)
class SinkStatus:
    """One sink: its ledger, if it has one yet, and what is staged for it."""

    name: str
    ledger: Ledger | None
    staged: tuple[Staged, ...]

    @property
    def known(self) -> bool:
        """Whether there is anything to tell of it."""
        return bool(self.staged) or (self.ledger is not None and not self.ledger.forgotten)

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
        return [staged for staged in self.staged if self._may_go(staged, grace)]

    def _may_go(self, staged: Staged, grace: float) -> bool:
        ledger = self.ledger
        if ledger is None:
            return staged.age >= grace
        over = ledger.is_over(staged.query_id, staged.epoch)
        return staged.attempt not in ledger.held and (over or staged.age >= grace)

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
        """Every sink of the store, but for those that were forgotten."""
        names = [name for name in self.store.names() if not name.startswith(CLAIM)]
        return [sink for sink in map(self.sink, names) if sink.known]

    def sink(self, name: str) -> SinkStatus:
        """One sink."""
        ledger = from_record(self.store.read(name))
        return SinkStatus(name, ledger, tuple(self.store.staged(name)))

    def recover(
        self, sink: SinkStatus, advance: Advance = ignore, *, accept_loss: bool = False
    ) -> Ledger | None:
        """Finish what is decided and not applied, without Spark.

        Args:
            sink: as it was found.
            advance: told how many rows were applied.
            accept_loss: where chunks are gone from the store, leave the rest of the epoch out.

        Raises:
            RowRefused: the server refuses a row.
            StoreLostData: chunks are gone, and that is not accepted.
        """
        ledger = self.registers.load(sink.name)
        while ledger is not None and ledger.manifest is not None:
            try:
                ledger = self.registers.finish(ledger, advance)
            except StoreLostData:
                if not accept_loss:
                    raise
                ledger = self.registers.swap(ledger.finished())
        return ledger

    def redirect(self, name: str, place: str) -> None:
        """Let the rest of a decided epoch go to another place, where the store can do that.

        The decision gets a new name, so that whoever still applies it as it was stops.

        Raises:
            SparkonceError: there is no such epoch, the store can't, or the ledger was written
                meanwhile.
        """
        ledger = self.registers.load(name)
        if ledger is None or ledger.manifest is None or not hasattr(self.store, "redirect"):
            raise _unmovable(name)
        store, token = cast("MovableStore", self.store), new_token()
        manifest = replace(store.redirect(ledger.manifest, place), token=token)
        moved = ledger.moved(manifest=manifest, token=token)
        if self.registers.swap(moved).stamp != moved.stamp:
            raise contended(name)

    def gc(self, sink: SinkStatus, grace: float) -> int:
        """Drop what no decision holds any more; the number of attempts dropped.

        They are doomed too, so that a commit that counts on them fails.
        """
        over = sink.leftovers(grace)
        if not over:
            return 0
        absent = Ledger(sink.name, over[0].query_id, target="")
        attempts = {staged.attempt: staged.query_id for staged in over}
        return len(self.registers.doom(sink.name, absent, attempts))

    def forget(self, name: str) -> None:
        """Retire a sink's query for ever, free its checkpoint path, drop what is staged.

        The ledger stays, as a tombstone: a query that still runs is refused, not taken for new.

        Raises:
            SparkonceError: an epoch is decided and not yet applied.
        """
        tombstone = self._bury(name)
        for claim in self.store.names():
            if claim.startswith(CLAIM):
                self._free(claim, name)
        self.store.discard(name, leftovers(self.store, tombstone))

    def _bury(self, name: str) -> Ledger:
        while True:
            ledger = self.registers.load(name) or self._unwritten(name)
            if ledger.manifest is not None:
                raise _unfinished(name)
            tombstone = ledger.moved(retired=ledger.with_retired(), forgotten=True)
            if self.registers.swap(tombstone).stamp == tombstone.stamp:
                return tombstone

    def _unwritten(self, name: str) -> Ledger:
        """A ledger for a sink that has none: its queries are those that have staged something."""
        absent = Ledger(name, "", target="")
        queries = {staged.query_id for staged in self.store.staged(name)}
        return replace(absent, query_id=absent.sink_id, retired=tuple(sorted(queries)))

    def _free(self, claim: str, name: str) -> None:
        held = self.store.read(claim)
        if held.revision and json.loads(held.body)["sink"] == name:
            body = json.dumps({"sink": None})
            self.store.swap(
                claim, Record(held.revision + 1, new_token(), "", body, replaces=held.stamp)
            )


def _unmovable(name: str) -> SparkonceError:
    return SparkonceError(
        f"No epoch of sink {name!r} can go to another place",
        why="none is decided and not yet applied, or the store keeps a target for good",
        todo="leave --to out",
    )


def _unfinished(name: str) -> SparkonceError:
    return SparkonceError(
        f"Sink {name!r} has an epoch that is decided and not yet applied",
        why="forgetting it now would lose the rest of that epoch",
        todo="run sparkonce recover first",
    )


def ago(moment: float) -> str:
    """How long ago a Unix time was, in words."""
    passed = max(0.0, time.time() - moment)
    for size, unit in ((86400, "d"), (3600, "h"), (60, "min")):
        if passed >= size:
            return f"{passed / size:.0f} {unit} ago"
    return f"{passed:.0f} s ago"
