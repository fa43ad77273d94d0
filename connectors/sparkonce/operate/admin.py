"""Operations on the ledgers of any store."""

from __future__ import annotations

import time
from dataclasses import dataclass, replace
from functools import partial
from typing import TypeAlias

from sparkonce.errors import RecordDamaged, SparkonceError, StoreLostData
from sparkonce.exactly_once import registers
from sparkonce.exactly_once.commit import leftovers
from sparkonce.exactly_once.driver import Offsets
from sparkonce.exactly_once.ledger import Ledger, Ownership, from_record, kin_of
from sparkonce.exactly_once.neighbours import finish_late
from sparkonce.exactly_once.registers import CLAIM, Registers, holder_of
from sparkonce.protocol import Advance, Applied, Record, Staged, no_progress
from sparkonce.store import Patience, Store

BESIDE = CLAIM, registers.OFFSETS
"""Prefixes of the names of records that are not ledgers."""

GRACE = 3600.0
"""Seconds after which staged rows count as leftovers, the default of ``sparkonce gc``."""

TOMBSTONE = 30 * 86400.0
"""Seconds for which a tombstone stays, so that the sink rejects a query that still runs."""


Computation: TypeAlias = tuple[str, str, int]
"""Query, run and epoch: its attempts wait for each other, and not for those of another run."""


@dataclass(frozen=True)
class SinkStatus:
    """One sink.

    Attributes:
        ledger: None if the sink has none yet, or an unreadable one.
        staged: the attempts in its log.
        damage: why its ledger, or the list of staged attempts, is unreadable.
    """

    name: str
    ledger: Ledger | None
    staged: tuple[Staged, ...]
    damage: RecordDamaged | None = None

    @property
    def known(self) -> bool:
        """Whether the store has anything of the sink but a tombstone."""
        exists = bool(self.staged) or self.damage is not None
        return exists or (self.ledger is not None and not self.ledger.owner.forgotten)

    @property
    def is_unfinished(self) -> bool:
        """Whether an epoch is decided and only partly applied."""
        return self.ledger is not None and self.ledger.decision.manifest is not None

    @property
    def staged_chunks(self) -> int:
        """The number of chunks that its attempts have in the log."""
        return sum(staged.chunks for staged in self.staged)

    @property
    def staged_bytes(self) -> int:
        """The bytes of its chunks in the log."""
        return sum(staged.bytes for staged in self.staged)

    def is_old_tombstone(self, age: float) -> bool:
        """Whether the sink was forgotten, and nobody has used it for `age` seconds."""
        return self._is_idle(age) and self.ledger is not None and self.ledger.owner.forgotten

    def is_leftover(self, age: float) -> bool:
        """Whether nobody needs the ledger, and nothing has written it for `age` seconds.

        So it is if a query ended without a decision, or after a batch without a name.
        """
        ledger = self.ledger
        unneeded = ledger is not None and (ledger.may_go or ledger.is_done_with)
        return self._is_idle(age) and unneeded

    def _is_idle(self, age: float) -> bool:
        ledger = self.ledger
        return ledger is not None and not self.staged and time.time() - ledger.updated >= age

    def matches(self, target: str | None, age: float, *, undecided: bool) -> bool:
        """Whether the sink fits: its target, `age` seconds without a write, no decision yet.

        The last only if `undecided`; None as the target fits any.
        """
        ledger = self.ledger
        if ledger is None:
            return False
        fits = target in (None, ledger.target) and time.time() - ledger.updated >= age
        return fits and (ledger.untouched or not undecided)

    @property
    def state(self) -> str:
        """The state in words: what the sink waits for."""
        if self.damage is not None:
            return str(self.damage)
        if self.ledger is None or self.ledger.decision.epoch < 0:
            return "nothing decided yet"
        if self.ledger.decision.manifest is None:
            return "nothing waits"
        chunks = counted(len(self.ledger.decision.manifest.chunks), "chunk")
        return f"decided, {chunks} to apply: restart the query, or run recover"

    def leftovers(self, grace: float) -> list[Staged]:
        """Staged attempts that no decision holds, and whose epochs are over or stale.

        Empty if a record is damaged: nobody knows what is decided.

        Args:
            grace: seconds after which the epoch of a run is stale, if no attempt of that run stages
                a chunk of it. A task that has ended waits while the others stage, but it does not
                wait for those of the next run.
        """
        if self.damage is not None:
            return []
        newest: dict[Computation, float] = {}
        for staged in self.staged:
            newest[_of(staged)] = min(staged.age, newest.get(_of(staged), staged.age))
        stale = {computation for computation, age in newest.items() if age >= grace}
        return [staged for staged in self.staged if self._may_go(staged, stale)]

    def _may_go(self, staged: Staged, stale: set[Computation]) -> bool:
        is_stale = _of(staged) in stale
        if self.ledger is None:
            return is_stale
        is_over = self.ledger.is_over(staged.query_id, staged.epoch)
        return staged.attempt not in self.ledger.decision.held and (is_over or is_stale)

    def to_json(self) -> dict[str, object]:
        """The status as JSON values."""
        ledger = self.ledger
        return {
            "sink": self.name,
            "state": self.state,
            "target": ledger.target if ledger else None,
            "query": ledger.owner.query_id if ledger else None,
            "retired": list(ledger.owner.retired) if ledger else [],
            "generation": ledger.owner.generation if ledger else None,
            "epoch": ledger.decision.epoch if ledger else None,
            "rows": ledger.totals.rows if ledger else 0,
            "dropped": ledger.totals.dropped if ledger else 0,
            "dead_letters": ledger.totals.aside if ledger else 0,
            "unstored": ledger.totals.unstored if ledger else 0,
            "epochs": ledger.totals.epochs if ledger else 0,
            "checkpoint": ledger.owner.checkpoint if ledger else None,
            "updated": ledger.updated if ledger else None,
            "staged_attempts": len(self.staged),
            "staged_chunks": self.staged_chunks,
            "staged_bytes": self.staged_bytes,
            "history": [pace._asdict() for pace in ledger.totals.paces] if ledger else [],
        }


class Admin:
    """Commands over one store. Each is safe beside running queries."""

    def __init__(self, store: Store) -> None:
        self.store = store
        self.registers = Registers(store, Patience(max_retries=3))

    def sinks(self) -> list[SinkStatus]:
        """Every sink of the store except forgotten ones."""
        return [sink for sink in self._all() if sink.known]

    def sink(self, name: str) -> SinkStatus:
        """One sink."""
        staged: tuple[Staged, ...] = ()
        try:
            staged = tuple(self.store.staged(name, fresh=True))
            return SinkStatus(name, from_record(self.store.read(name), name), staged)
        except RecordDamaged as damage:
            return SinkStatus(name, None, staged, damage)

    def recover(
        self,
        sink: SinkStatus,
        advance: Advance = no_progress,
        *,
        accept_loss: bool = False,
        over_newer: bool = False,
    ) -> Ledger | None:
        """Finish a decided epoch without Spark.

        If the store lost chunks, `accept_loss` skips the rest of the epoch. `over_newer` applies
        the epoch even over what others have decided since.

        Raises:
            BatchOvertaken: others have decided since, without `over_newer`.
            RowRefused: the server rejects a row.
            StoreLostData: the store lost chunks, without `accept_loss`.
        """
        # The epoch in `sink` may be finished by now, or followed by another.
        ledger = self.registers.load(sink.name)
        # Until it is finished: a query that restarts may move the ledger before the swap.
        while ledger is not None and ledger.decision.manifest is not None:
            decided = ledger
            try:
                ledger = finish_late(self.registers, decided, advance, over_newer=over_newer)
            except StoreLostData:
                if not accept_loss:
                    raise
                # Without applying it; no row counts as stored, so the count of bad rows continues.
                ledger = self.registers.swap(decided.finished(Applied(stored=False)))
        return ledger

    def drop(self, sink: SinkStatus) -> Ledger | None:
        """Give up the rest of a decided epoch. The applied rows stay.

        Returns the ledger from before, with the dropped epoch; None if no epoch is unfinished.
        """
        while True:
            ledger = self.registers.load(sink.name)
            if ledger is None or ledger.decision.manifest is None:
                return None
            given_up = ledger.given_up()
            if self.registers.swap(given_up).stamp == given_up.stamp:
                over = sorted(ledger.decision.manifest.attempts)
                self.store.discard(sink.name, over, given_up.stamp)
                return ledger

    def offsets(self, ledger: Ledger | None) -> dict[int, Offsets]:
        """The kept offsets of the last two decided epochs, by epoch."""
        return {} if ledger is None else registers.kept_offsets(self.store, ledger)

    def gc(self, sink: SinkStatus, grace: float) -> int:
        """Doom and discard attempts that no decision can hold; returns their number.

        A commit that needs them then fails. So does the commit of an epoch that computes for longer
        than `grace` seconds between two chunks.
        """
        # As of now, not of the operator's confirmation: tasks may have staged since.
        over = self.sink(sink.name).leftovers(grace)
        if not over:
            return 0
        absent = Ledger.unwritten(sink.name, over[0].query_id, target="")
        attempts = {staged.attempt: staged.query_id for staged in over}
        return len(self.registers.doom(sink.name, absent, attempts))

    def forget(self, name: str) -> None:
        """Retire a sink's query for good, free its checkpoint path, discard its log.

        The ledger stays as a tombstone, so that the sink rejects a query that still runs, instead
        of taking it for a new one. `sweep` finally removes it.

        Raises:
            SparkonceError: an epoch is decided and not yet applied.
        """
        tombstone = None
        while tombstone is None:
            ledger = self._to_be_buried(name)
            # Read before the tombstone: records of a query that starts after it stay.
            beside = self._beside(name, self._claims())
            tombstone = self._bury(ledger)
        self.registers.drop(beside)
        # Again, for late chunks; under the stamp, as a new query may have decided by now.
        self.store.discard(name, leftovers(self.store, tombstone, fresh=True), tombstone.stamp)

    def _bury(self, ledger: Ledger) -> Ledger | None:
        """Replace a ledger by a tombstone, and return it; None if the ledger has moved."""
        name = ledger.name
        if ledger.decision.manifest is not None:
            raise SparkonceError(
                f"Sink {name!r} has an epoch that is decided and not yet applied",
                why="to forget it now would lose the rest of that epoch",
                todo="run sparkonce recover first; if the store rejects a row, `sparkonce recover"
                f" URL --sink {name} --drop` gives up the rows that are not applied yet",
            )
        tombstone = ledger.moved(
            owner=replace(ledger.owner.retire(), forgotten=True),
            totals=replace(ledger.totals, unstored=0, history=""),
        )
        # In one step where the store can: a full store accepts only writes that free memory.
        over = leftovers(self.store, tombstone, fresh=True)
        bury = partial(self.store.doom, name, tombstone.to_record(), tombstone.replaces, over)
        there = self.registers.learn(tombstone, bury).ledger
        return tombstone if there.stamp == tombstone.stamp else None

    def _to_be_buried(self, name: str) -> Ledger:
        """The ledger of a sink; for an unreadable one, what a tombstone needs."""
        record = self.registers.read(name)
        try:
            return from_record(record, name) or self._unwritten(name)
        except RecordDamaged:
            blank = self._unwritten(name)
            owner = replace(blank.owner, inherits=True)
            return replace(blank, owner=owner, revision=record.revision, stamp=record.stamp)

    def _unwritten(self, name: str) -> Ledger:
        """A ledger for a sink without one: its queries are those with staged attempts."""
        absent = Ledger.unwritten(name, "", target="")
        queries = {staged.query_id for staged in self.store.staged(name, fresh=True)}
        # By default the sink id is the id of its query, which may run without staged attempts.
        owner = Ownership(absent.sink_id, retired=tuple(sorted(queries)))
        return replace(absent, owner=owner)

    def sweep(self, grace: float, age: float = TOMBSTONE) -> int:
        """Remove ledgers that nobody needs any more; returns their number.

        These are ledgers without a decision whose last write is `grace` seconds old: a query that
        still computes its first epoch starts a new one. They are also tombstones that nobody has
        used for `age` seconds. If their query returns even later, the sink rejects it because the
        store lacks epochs (`SinkBehindCheckpoint`), unless it never got beyond its first epoch.
        """
        # Listed once: a claim that changes meanwhile has another stamp, and stays.
        claims, gone, found = self._claims(), 0, self._all()
        # Whoever finishes an old decision must find all later ones.
        waiting = {kin_of(sink.name) for sink in found if sink.is_unfinished or sink.damage}
        for sink in found:
            if kin_of(sink.name) in waiting:
                continue
            if sink.ledger is not None and (sink.is_old_tombstone(age) or sink.is_leftover(grace)):
                # Read before the removal of the ledger: records of a query that starts later stay.
                beside = self._beside(sink.name, claims)
                left = self.store.swap(sink.name, Record(), sink.ledger.stamp)
                if not left.revision:
                    self.registers.drop(beside)
                    gone += 1
        return gone

    def _all(self) -> list[SinkStatus]:
        names = [name for name in self.store.names() if not name.startswith(BESIDE)]
        return [self.sink(name) for name in names]

    def _claims(self) -> dict[str, Record]:
        names = [name for name in self.store.names() if name.startswith(CLAIM)]
        return {name: self.store.read(name) for name in names}

    def _beside(self, sink: str, claims: dict[str, Record]) -> dict[str, Record]:
        """The present records beside a ledger: its claims and its offsets."""
        own = {name: claim for name, claim in claims.items() if _holds(sink, name, claim)}
        return own | registers.offsets_records(self.store, sink)


def _of(staged: Staged) -> Computation:
    return staged.query_id, staged.run, staged.epoch


def _holds(sink: str, name: str, claim: Record) -> bool:
    try:
        return holder_of(claim, name) == sink
    except RecordDamaged:
        return False


def counted(number: int, what: str) -> str:
    """A number with its noun, as in "1 sink"."""
    return f"{number:,} {what}{'' if number == 1 else 's'}"


def ago(moment: float) -> str:
    """The age of a Unix time, in words."""
    passed = max(0.0, time.time() - moment)
    for size, unit in ((86400, "d"), (3600, "h"), (60, "min")):
        if passed >= size:
            return f"{passed / size:.0f} {unit} ago"
    return f"{passed:.0f} s ago"
