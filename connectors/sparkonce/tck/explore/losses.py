"""A store that loses acknowledged writes, and the guarantees that remain.

*A suffix*: the whole store returns to an earlier state, target included, as in a failover to an
asynchronous replica. The lost writes stay lost.

- Guaranteed: the target has the first epochs of each query, without a gap, each once and whole. A
  query that continues from an epoch that the store no longer has fails (`SinkBehindCheckpoint`)
  before it writes anything more.
- Not guaranteed: that a replaced query stays replaced, if the loss includes the replacement; nor
  that a new query detects the loss of an older one, whose checkpoint it does not have.

*Records*: only a ledger returns to an earlier state, before a commit that Spark has recorded, while
its rows stay.

- Guaranteed: the same error, and so no duplicate row.
- Not guaranteed, because nothing in the store shows the loss: anything if Spark had not recorded
  that commit, or if a second driver of the lost epoch still runs. Then the explorer loses no
  ledger.

*The log*: chunks vanish, or reappear.

- Guaranteed: before the decision the batch fails (`StagedDataMissing`), and Spark replays it. After
  the decision `StoreLostData` persists until an operator accepts the loss (``sparkonce recover
  --accept-loss``), which leaves out only the rest of that epoch. Chunks that reappear never take
  effect again.

A store that applies an epoch row by row keeps the guarantee about a suffix with two exceptions. No
process may be applying at that moment: one that has already read its chunks does not see that the
decision is lost. No process may be between a read of chunks or ledger and the decision or clean-up
that depends on it. The other profiles check in the step that applies, decides or discards.
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
    """The losses of the store, each at most once in a schedule.

    Attributes:
        kind: the kind of loss of this store.
        happened: whether the loss has occurred.
        busy: the number of current tries of each epoch, by query and epoch.
    """

    def __init__(self, memory: MemoryStore, watch: Watch, tape: Tape) -> None:
        self._memory, self._watch, self._tape = memory, watch, tape
        self._backup: dict[str, Any] | None = None
        self.kind, self.happened = NOTHING, False
        self.busy: dict[str, list[int]] = {}

    def events(self, late: list[Request]) -> list[Callable[[], str]]:
        """The losses that can occur now."""
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
        return "-- this state of the store will return"

    def _lose(self, state: dict[str, Any], late: list[Request]) -> str:
        if self.kind == SUFFIX and isinstance(self._memory, ConvergingStore):
            # A failover cuts connections: the requests to apply over them are lost as well.
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

    # -- conditions under which a loss would break what no store can guarantee

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
