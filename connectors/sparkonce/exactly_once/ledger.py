"""The ledger: the record of a sink's decisions, one in the store for each sink.

A `Ledger` is immutable; each function here returns a successor. The store writes it by
compare-and-set on its stamp. It has three parts, which change independently:

- `Ownership`: who may decide. A takeover changes it.
- `Decision`: the last decision. It has a manifest until all chunks are applied.
- `Totals`: counts. The only rule that uses them asks whether the sink has ever decided an epoch.
"""

from __future__ import annotations

import json
import time
import uuid
from collections.abc import Collection, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from typing import Any, TypeVar

from sparkonce import codec
from sparkonce.codec import FORGET, Whole, reading
from sparkonce.errors import StoreError
from sparkonce.exactly_once.driver import Offsets
from sparkonce.exactly_once.totals import HISTORY, Pace, Start, Totals
from sparkonce.protocol import ALL_STORED, FORMAT, Applied, Manifest, Record, digest

PAST_RUNS = 32
"""How many superseded runs a ledger keeps, and how many that replayed, to distinguish a second
driver from a restart."""

PAST_QUERIES = 64
"""How many retired queries a ledger keeps; it takes older ones for new queries."""


@dataclass(frozen=True)
class Ownership(Whole):
    """Who may decide. Only a decision changes the run, only a takeover the query.

    Attributes:
        query_id: the Spark query that owns the sink now.
        generation: 1 for the first query, one more for each that replaced another.
        retired: queries that owned it before, newest last; they can never commit again.
        inherits: whether a replaced query had decided something, or was forgotten.
        run_id: the run (one ``start()`` of the query) that decided last.
        past_runs: the runs before it, newest last.
        replayed: the runs that have replayed an epoch and decided none, with that epoch.
        checkpoint: the location of the query's checkpoint; None if unknown.
        repeatable: applying the rows of all of its epochs again would change nothing.
        once: its only writer is a batch without a name; nobody needs it after that finishes.
        forgotten: an operator has dropped the sink; the next query starts over.
    """

    query_id: str
    generation: int = 1
    # Never has the query itself after its first write: `resumed` removes a query that returns
    # before any decision.
    retired: tuple[str, ...] = ()
    inherits: bool = False
    # Only a run outside of `past_runs` decides. A run among them is a second driver's, or an old
    # one that woke up: it must not decide, whatever its epoch.
    run_id: str = ""
    past_runs: tuple[str, ...] = ()
    replayed: Mapping[str, int] = field(default_factory=dict)
    checkpoint: str | None = None
    repeatable: bool = False
    once: bool = False
    forgotten: bool = False

    @property
    def with_retired(self) -> tuple[str, ...]:
        """The retired queries, including the present one."""
        return united(self.retired, (self.query_id,))

    def resumed(self, *, once: bool) -> Ownership:
        """A copy for its query, which may return after it was retired.

        It is the same object if nothing changes: then no write is needed.
        """
        if self.query_id not in self.retired and self.once == once:
            return self
        others = tuple(query for query in self.retired if query != self.query_id)
        return replace(self, retired=others, once=once)

    def retire(self) -> Ownership:
        """A copy with its query retired, so that it can never commit again."""
        return replace(self, retired=self.with_retired)

    def succeeded_by(self, query_id: str) -> Ownership:
        """The next generation, owned by another query."""
        return replace(
            self,
            query_id=query_id,
            retired=self.with_retired,
            generation=self.generation + 1,
            replayed={},
            repeatable=self.repeatable or self.forgotten,  # after a tombstone all starts over
            inherits=self.inherits
            or self.forgotten,  # else an abort would free the forgotten query
            forgotten=False,
        )

    def decided_by(self, run_id: str) -> Ownership:
        """A copy in which this run has decided, and superseded the run before.

        An empty run id, of an epoch without tasks, leaves the run unchanged.
        """
        run_id, past = run_id or self.run_id, self.past_runs
        if self.run_id and self.run_id != run_id:
            past = (*past, self.run_id)[-PAST_RUNS:]
        replayed = {run: epoch for run, epoch in self.replayed.items() if run != run_id}
        return replace(self, run_id=run_id, past_runs=past, replayed=replayed)

    def replayed_by(self, run_id: str, epoch: int) -> Ownership:
        """A copy in which this run has replayed the last epoch, and may decide the next one.

        A replay supersedes no run: a driver that slept replays as well, beside the run that has
        superseded it.
        """
        if run_id in ("", self.run_id):
            return self
        others = [(run, at) for run, at in self.replayed.items() if run != run_id]
        return replace(self, replayed=dict([*others, (run_id, epoch)][-PAST_RUNS:]))


def united(*retired: Sequence[str]) -> tuple[str, ...]:
    """Retired queries of several ledgers, without the oldest ones."""
    return tuple(dict.fromkeys(query for queries in retired for query in queries))[-PAST_QUERIES:]


PAST_DOOMED = 256
"""How many doomed attempts a ledger keeps beside those of the last abort."""

T = TypeVar("T")


def sink_name(sink_id: str, target: str) -> str:
    """The name of the ledger of one sink id and one target."""
    return f"{sink_id}@{digest(target)}"


def kin_of(name: str) -> str:
    """The suffix in the names of all sinks that write to the target of this one."""
    return f"@{name.rpartition('@')[2]}"


@dataclass(frozen=True)
class Decision(Whole):
    """The last decided epoch of the owner, and the doomed attempts.

    Attributes:
        epoch: its number; -1 before the first.
        token: its random name; empty before the first. It changes if an operator gives the epoch
            up.
        manifest: the decided attempts until all are applied, else None.
        stream: of a batch with a name, the query whose ``foreachBatch`` wrote it. Empty outside of
            one, None for an epoch of any other kind.
        offsets: digest of Spark's ``offsets/N`` of the epoch, if it was readable.
        former_offsets: the same for the epoch before.
        decided_at: Unix time of the decision, in seconds.
        was_dropped: whether an operator gave it up.
        doomed: attempts that an abort or gc discards, with their queries; no driver can decide them
            any more. None of them is in the manifest.
    """

    # Epoch and token belong together: -1 and empty before the first decision of an owner, and again
    # after a takeover, since its query counts epochs from 0.
    epoch: int = -1
    token: str = ""
    # From the decision until its finish. Meanwhile everyone who finds it may apply it.
    manifest: Manifest | None = None
    stream: str | None = None
    offsets: str | None = None
    former_offsets: str | None = None
    decided_at: float = 0.0
    was_dropped: bool = False
    # Disjoint from the attempts of the manifest: a decided chunk is never discarded, and a
    # discarded one never decided. `dooming` ensures the first, `guards.require_not_doomed` the
    # second.
    doomed: Mapping[str, str] = field(default_factory=dict)

    @property
    def held(self) -> set[str]:
        """The attempts that the manifest holds: they must not be discarded."""
        return self.manifest.attempts if self.manifest else set()

    def followed_by(
        self, manifest: Manifest, offsets: Offsets | None, stream: str | None
    ) -> Decision:
        """The next decision, not yet applied."""
        return Decision(
            epoch=manifest.epoch,
            token=manifest.token,
            manifest=manifest,
            stream=stream,
            offsets=offsets.digest if offsets else None,
            # After a gap that `onLostCommit` allows, these do not belong to the epoch before.
            former_offsets=self.offsets if manifest.epoch == self.epoch + 1 else None,
            decided_at=time.time(),
            # Another query, about to take the sink over, may have doomed attempts: these stay.
            doomed={a: query for a, query in self.doomed.items() if query != manifest.query_id},
        )

    def dooming(self, attempts: Mapping[str, str]) -> Decision:
        """A copy with these attempts doomed, except those that it holds.

        It keeps only the newest of earlier doomed attempts; the others were discarded long ago.
        """
        doomed = {**dict([*self.doomed.items()][-PAST_DOOMED:]), **attempts}
        return replace(self, doomed={one: by for one, by in doomed.items() if one not in self.held})


@dataclass(frozen=True)
class Ledger(Whole):
    """The ledger of a sink.

    Attributes:
        name: sink id and target, see `sink_name`.
        target: see `Plan`.
        owner: who may decide.
        decision: the last decision.
        totals: the counts.
        revision: every write moves it; 0 before the first.
        stamp: random, differs in every write.
        replaces: the stamp of the revision before this one.
        updated: Unix time of the last write, in seconds.
    """

    name: str
    target: str
    owner: Ownership
    decision: Decision = field(default_factory=Decision)
    totals: Totals = field(default_factory=Totals)
    # A write replaces only the revision whose stamp is `replaces`. Revisions may recur after a
    # failover that lost writes; stamps never do, so the store compares stamps.
    revision: int = 0
    stamp: str = ""
    replaces: str = ""
    updated: float = 0.0

    @classmethod
    def unwritten(
        cls, name: str, query_id: str, target: str, *, once: bool = False, repeatable: bool = False
    ) -> Ledger:
        """The ledger of a sink before its first write, owned by this query."""
        return cls(name, target, Ownership(query_id, once=once, repeatable=repeatable))

    @property
    def sink_id(self) -> str:
        """The sink id alone."""
        return self.name.rpartition("@")[0]

    @property
    def untouched(self) -> bool:
        """Whether the sink has never decided an epoch, so that it has nothing to own or lose."""
        # `epochs` counts over all owners, so a takeover without a decision leaves it untouched.
        return not (self.totals.epochs or self.owner.inherits)

    @property
    def may_go(self) -> bool:
        """Whether nobody needs it: it has no decision, and is not a tombstone."""
        return self.untouched and not self.owner.forgotten

    @property
    def is_done_with(self) -> bool:
        """Whether it is the record of a finished batch without a name."""
        return self.owner.once and self.decision.epoch >= 0 and self.decision.manifest is None

    @property
    def pace(self) -> Pace | None:
        """The pace of the last decided epoch; None before the first."""
        return self.totals.pace(self.decision.epoch)

    def may_be_left_by(self, query_id: str, dropped: Collection[str]) -> bool:
        """Whether an abort of its query, which has discarded these attempts, may remove it.

        Only this ledger knows of attempts that another abort has doomed and not yet discarded.
        """
        own = self.owner.query_id == query_id
        return self.may_go and own and self.decision.doomed.keys() <= set(dropped)

    def retires(self, query_id: str) -> bool:
        """Whether a query may never commit again. Without a decision no query is replaced."""
        return query_id in self.owner.retired and not self.may_go

    def has_decided(self, query_id: str, epoch: int) -> bool:
        """Whether this query has committed the epoch, so that tasks must skip its rows."""
        return self.owner.query_id == query_id and self.decision.epoch >= epoch

    def is_over(self, query_id: str, epoch: int) -> bool:
        """Whether no later decision can hold an attempt of this query and epoch."""
        return self.retires(query_id) or self.has_decided(query_id, epoch)

    # -- successors

    def moved(self, **changes: Any) -> Ledger:
        """The next revision, with `changes`."""
        stamps = {"stamp": new_token(), "replaces": self.stamp, "updated": time.time()}
        return replace(self, **{"revision": self.revision + 1, **stamps, **changes})

    def seen_at(self, checkpoint: str | None, target: str) -> Ledger:
        """A copy for a driver of its query with the checkpoint at this location."""
        return replace(self, owner=replace(self.owner, checkpoint=checkpoint), target=target)

    def succeeded_by(self, query_id: str) -> Ledger:
        """The next generation, owned by another query, before its first epoch."""
        # This loses no manifest: the new owner has finished the former owner's epoch before.
        decision = replace(self.decision, epoch=-1, token="", offsets=None, former_offsets=None)
        return replace(self, owner=self.owner.succeeded_by(query_id), decision=decision)

    def replayed_by(self, run_id: str) -> Ledger:
        """The next revision, see `Ownership.replayed_by`."""
        return self.moved(owner=self.owner.replayed_by(run_id, self.decision.epoch))

    def decided(
        self,
        manifest: Manifest,
        run_id: str,
        offsets: Offsets | None = None,
        *,
        start: Start | None = None,
        repeatable: bool = False,
        stream: str | None = None,
    ) -> Ledger:
        """The next revision, with this epoch decided by this run and not yet applied.

        One epoch that is not repeatable makes the sink so for good.
        """
        # All three parts move together: a ledger that names an epoch has also counted its rows.
        repeatable = repeatable and (self.owner.repeatable or not self.totals.epochs)
        return self.moved(
            owner=replace(self.owner.decided_by(run_id), repeatable=repeatable),
            decision=self.decision.followed_by(manifest, offsets, stream),
            totals=self.totals.decided(manifest, start),
        )

    def finished(self, applied: Applied = ALL_STORED) -> Ledger:
        """The next revision, with the decided epoch applied."""
        # Epoch and token stay: they identify a replay, whose tasks skip their rows.
        manifest, totals = self.decision.manifest, self.totals
        if manifest is not None:
            totals = totals.finished(manifest, applied)
        return self.moved(decision=replace(self.decision, manifest=None), totals=totals)

    def given_up(self) -> Ledger:
        """The next revision, with the rest of the decided epoch given up.

        The token changes: a driver that still applies the epoch finds another decision.
        """
        manifest, totals = self.decision.manifest, self.totals
        assert manifest is not None  # noqa: S101
        return self.moved(
            decision=replace(self.decision, manifest=None, token=new_token(), was_dropped=True),
            totals=replace(totals, dropped=totals.dropped + manifest.rows),
        )

    def dooming(self, attempts: Mapping[str, str]) -> Ledger:
        """The next revision, in which these attempts can't be decided any more."""
        return self.moved(decision=self.decision.dooming(attempts))

    def to_record(self) -> Record:
        """The ledger as the store keeps it."""
        body = json.dumps({"format": FORMAT, **asdict(self)}, separators=(",", ":"))
        # The record has a token only while the epoch is unfinished. Each step that applies compares
        # it, so a driver that sleeps past the finish changes nothing.
        token = self.decision.token if self.decision.manifest else ""
        return Record(self.revision, self.stamp, token, body)


def new_token() -> str:
    """A random name that nobody else will draw."""
    return uuid.uuid4().hex


def from_record(record: Record, name: str) -> Ledger | None:
    """The ledger in the record of this name; None if the record does not exist.

    Raises:
        RecordDamaged: the record is not a ledger, or that of another sink.
        StoreError: a newer release wrote it.
    """
    if record.revision == 0:
        return None
    with reading(name, FORGET):
        body = json.loads(record.body)
        if body.pop("format") > FORMAT:
            raise StoreError(
                "The ledger was written by a newer release of sparkonce",
                why="this release may misread its format",
                todo="upgrade sparkonce on this driver",
            )
        # A compare-and-set uses the store's own columns.
        ledger = codec.load(Ledger, body)
        ledger = replace(ledger, revision=record.revision, stamp=record.stamp)
        if ledger.name != name:
            raise ValueError(f"it is the ledger of {ledger.name!r}")
        if HISTORY.fullmatch(ledger.totals.history) is None:
            raise ValueError("history has another form")
        return ledger
