"""A store that loses what it acknowledged, and what can honestly be promised then.

*A suffix*: the whole store goes back to an earlier state, target included, as a failover to an
asynchronous replica does. What is lost is lost. Promised: what took effect is still each query's
first epochs, without a gap, each once and whole; a query that goes on from an epoch that the
store no longer has is refused (`SinkBehindCheckpoint`) before anything more is written. Not
promised: that a query which was replaced stays so, where that is among what was lost; nor that a
query that begins anew finds out what an older one has lost, whose checkpoint it does not have.

*Records*: a ledger alone goes back, to before a commit that Spark has noted, while its rows
stay. Promised: the same refusal, and so no row twice. Not promised, as nothing in the store could
tell: anything where Spark had not noted that commit, or where a second driver of the lost epoch
is still at work; so the explorer does not lose a ledger then.

*The log*: chunks vanish, or come back. Promised: before the decision the batch fails
(`StagedDataMissing`) and is replayed; after it, `StoreLostData`, until an operator accepts the
loss (``sparkonce recover --accept-loss``), which leaves out the rest of that epoch alone. Chunks
that come back never take effect again.

A store that applies an epoch row by row keeps the promise about a suffix only where nobody is
applying at that moment: an applier that has its chunks in hand does not see that the decision
is gone; nor between its look at chunks or ledger and what it decides or drops by that. The other
profiles look in the step that applies, decides or drops.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from sparkonce.tck.explore.requests import ledger_in
from sparkonce.tck.simulation.converging import ConvergingStore

if TYPE_CHECKING:
    from sparkonce.protocol import Record
    from sparkonce.tck.explore.requests import Request
    from sparkonce.tck.explore.tape import Tape
    from sparkonce.tck.explore.watch import Watch
    from sparkonce.tck.simulation.memory import MemoryStore

NOTHING, SUFFIX, RECORDS, LOG = range(4)


class Losses:
    """What the store can lose, once in a schedule.

    Attributes:
        kind: what this store loses.
        happened: whether it has.
        busy: how many tries of each epoch are under way, by query and epoch.
    """

    def __init__(self, memory: MemoryStore, watch: Watch, tape: Tape) -> None:
        self._memory, self._watch, self._tape = memory, watch, tape
        self._backup: dict[str, Any] | None = None
        self.kind, self.happened = NOTHING, False
        self.busy: dict[str, list[int]] = {}

    def events(self, late: list[Request]) -> list[Callable[[], str]]:
        """What can happen now."""
        if self.happened:
            return []
        found: list[Callable[[], str]] = [self._keep]
        backup = self._backup
        if backup is None:
            return found
        if self.kind == SUFFIX and self._may_lose_suffix(backup):
            found += [lambda: self._lose(backup, late)] * 3
        if self.kind == LOG and backup["log"] != self._memory.log:
            found += [lambda: self._lose({"log": backup["log"]}, late)] * 3
        if self.kind == RECORDS:
            for name in self._lost_ledgers(backup["records"], late):
                found.append(lambda name=name: self._lose_ledger(name))  # type: ignore[misc]
        return found

    def _keep(self) -> str:
        self._backup = self._memory.snapshot()
        self._tape.event("keeps", "")
        return "-- this state of the store will come back"

    def _lose(self, state: dict[str, Any], late: list[Request]) -> str:
        if self.kind == SUFFIX and isinstance(self._memory, ConvergingStore):
            # A failover cuts connections: what was to be applied over them is lost as well.
            late[:] = [one for one in late if one.name in ("stage", "swap", "doom")]
        self._memory.restore(state)
        return self._note("suffix" if self.kind == SUFFIX else "log")

    def _lose_ledger(self, name: str) -> str:
        backup = (self._backup or {})["records"]
        self._memory.records.pop(name, None)
        if name in backup:
            self._memory.records[name] = backup[name]
        return self._note("records")

    def _note(self, what: str) -> str:
        self.happened = True
        self._watch.forget_open()
        self._watch.marks.add(f"lost {what}")
        self._tape.event("loses", "", lost=what)
        return f"-- the store loses: {what}"

    # -- when a loss would break what nobody can promise

    def _may_lose_suffix(self, backup: dict[str, Any]) -> bool:
        memory = self._memory
        if all(backup[name] == getattr(memory, name) for name in memory.state):
            return False
        if not isinstance(memory, ConvergingStore):
            return True
        return not (memory.looking or self._watch.committing or self._watch.anything_open)

    def _lost_ledgers(self, backup: dict[str, Record], late: list[Request]) -> list[str]:
        pending = {request.sink for request in late if request.new is not None}
        return [
            name
            for name, now in sorted(self._memory.records.items())
            if name not in pending and self._may_lose(backup.get(name), now)
        ]

    def _may_lose(self, then: Record | None, now: Record) -> bool:
        body = ledger_in(now)
        if body is None:
            return False
        old = (ledger_in(then) if then else None) or {**body, "epoch": -1}
        if old["epoch"] >= body["epoch"] or body["manifest"]:
            return False
        query = body["query_id"]
        same = (old["query_id"], old["retired"]) == (query, body["retired"])
        noted = self._watch.checkpoints[query].committed >= body["epoch"]
        at_work = any(epoch <= body["epoch"] for epoch in self.busy.get(query, []))
        return same and noted and not at_work and not (then is None and body["retired"])
