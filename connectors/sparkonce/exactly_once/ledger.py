"""The ledger: one record a sink, in the store, that says what was decided.

A `Ledger` is immutable; each function here gives the one that comes next. Writing it is a
compare-and-set on `revision`, which the store does.
"""

from __future__ import annotations

import json
import time
import uuid
from collections.abc import Collection, Mapping, Sequence
from dataclasses import asdict, dataclass, field, fields, replace
from functools import cache
from typing import Any, get_type_hints

from sparkonce.damage import FORGET, reading, require_kinds
from sparkonce.errors import StoreError
from sparkonce.exactly_once.offsets import Offsets
from sparkonce.exactly_once.pace import HISTORY, Pace, Start, followed
from sparkonce.protocol import ALL_STORED, FORMAT, Applied, Manifest, Part, Record, digest

PAST_DOOMED = 256
"""How many doomed attempts a ledger keeps beside those of the last abort."""

PAST_RUNS = 32
"""How many superseded runs a ledger remembers, and how many that replayed, to tell a second driver
from a restart."""

PAST_QUERIES = 64
"""How many retired queries a ledger remembers; one that was retired before is a new one to it."""


def sink_name(sink_id: str, target: str) -> str:
    """The name of the ledger of one sink id and one target."""
    return f"{sink_id}@{digest(target)}"


def kin_of(name: str) -> str:
    """How the names of all sinks end that write to the target of this one."""
    return f"@{name.rpartition('@')[2]}"


@dataclass(frozen=True)
class Ledger:
    """What a sink has decided.

    Attributes:
        name: sink id and target, see `sink_name`.
        query_id: the Spark query that owns the sink now.
        repeatable: applying the rows of all of its epochs again would change nothing.
        retired: queries that owned it before, newest last; they can never commit again.
        generation: 1 for the first query, one more for each that replaced another.
        epoch: the last decided epoch; -1 before the first.
        token: random name of that decision.
        manifest: the decision while it is being applied, else None.
        run_id: the run (one ``start()`` of the query) that decided last.
        stream: of a batch with a name, the query in whose ``foreachBatch`` that was; empty outside
            of one, None if a release decided it that did not know.
        past_runs: the runs before it, newest last.
        replayed: the runs that have replayed an epoch and decided none, with that epoch.
        checkpoint: where the query's checkpoint lies; None if it is not known.
        doomed: attempts that an abort or gc is about to drop, with their queries; they can't be
            decided any more.
        offsets: digest of Spark's ``offsets/N`` of the last decided epoch, if it could be read.
        former_offsets: the same of the epoch before.
        decided_at: Unix time of that decision, in seconds.
        rows: rows decided so far.
        dropped: rows of decisions that an operator gave up.
        was_dropped: whether the last decision is one of them.
        aside: how many of them went into dead letters.
        unstored: how many of them did so since the last row that was stored, over whole epochs.
        epochs: epochs decided so far.
        updated: Unix time of the last write, in seconds.
        revision: moved by every write; 0 if never written.
        stamp: random, differs in every write.
        replaces: the stamp of the revision before this one.
        inherits: whether a query that this one replaced had decided something, or was forgotten.
        once: its only writer is a batch without a name; nobody asks for it once that is finished.
        forgotten: an operator has dropped the sink; whoever comes next starts anew.
        history: the pace of its last epochs, a line for each, newest last.
    """

    name: str
    query_id: str
    target: str
    repeatable: bool = False
    retired: tuple[str, ...] = ()
    generation: int = 1
    epoch: int = -1
    token: str = ""
    manifest: Manifest | None = None
    run_id: str = ""
    stream: str | None = None
    past_runs: tuple[str, ...] = ()
    replayed: Mapping[str, int] = field(default_factory=dict)
    doomed: Mapping[str, str] = field(default_factory=dict)
    checkpoint: str | None = None
    offsets: str | None = None
    former_offsets: str | None = None
    decided_at: float = 0.0
    rows: int = 0
    dropped: int = 0
    was_dropped: bool = False
    aside: int = 0
    unstored: int = 0
    epochs: int = 0
    updated: float = 0.0
    revision: int = 0
    stamp: str = ""
    replaces: str = ""
    inherits: bool = False
    once: bool = False
    forgotten: bool = False
    history: str = ""

    @property
    def sink_id(self) -> str:
        """The sink id alone."""
        return self.name.rpartition("@")[0]

    def moved(self, **changes: object) -> Ledger:
        """The next revision, with `changes`."""
        following = replace(
            self,
            revision=self.revision + 1,
            stamp=new_token(),
            replaces=self.stamp,
            updated=time.time(),
        )
        return replace(following, **changes)  # type: ignore[arg-type]

    @property
    def untouched(self) -> bool:
        """Whether nothing was ever decided, so that there is nothing to own and nothing to lose."""
        return not (self.epochs or self.inherits)

    @property
    def may_go(self) -> bool:
        """Whether nobody needs it: it holds no decision, and is no tombstone."""
        return self.untouched and not self.forgotten

    def may_be_left_by(self, query_id: str, dropped: Collection[str]) -> bool:
        """Whether an abort of its query, which has dropped these attempts, may take it away.

        What another abort dooms may still be there, and is known by this ledger alone.
        """
        return self.may_go and self.query_id == query_id and self.doomed.keys() <= set(dropped)

    @property
    def is_done_with(self) -> bool:
        """Whether it is the record of a batch without a name, that has taken effect."""
        return self.once and self.epoch >= 0 and self.manifest is None

    @property
    def held(self) -> set[str]:
        """The attempts that a decision holds: they may not be dropped."""
        return self.manifest.attempts if self.manifest else set()

    def retires(self, query_id: str) -> bool:
        """Whether a query may never commit again. Where nothing is decided nobody is replaced."""
        return query_id in self.retired and not self.may_go

    def owned(self) -> Ledger:
        """The same, with its query not among those retired, where it has come back."""
        if self.query_id not in self.retired:
            return self
        others = tuple(query for query in self.retired if query != self.query_id)
        return replace(self, retired=others)

    def has_decided(self, query_id: str, epoch: int) -> bool:
        """Whether this very query has committed the epoch, so that its rows must be skipped."""
        return self.query_id == query_id and self.epoch >= epoch

    def is_over(self, query_id: str, epoch: int) -> bool:
        """Whether no later decision can hold an attempt of this query and epoch."""
        return self.retires(query_id) or (query_id == self.query_id and epoch <= self.epoch)

    def seen_at(self, checkpoint: str | None, target: str) -> Ledger:
        """The same, for a driver of its query whose checkpoint lies there."""
        return replace(self, checkpoint=checkpoint, target=target)

    def replayed_by(self, run_id: str) -> Ledger:
        """The next revision: this run replayed the last epoch, and may decide the one behind it.

        Nobody is superseded: a driver that slept for long replays, too, beside the one that has
        taken over.
        """
        if run_id in ("", self.run_id):
            return self.moved()
        others = [(run, at) for run, at in self.replayed.items() if run != run_id]
        return self.moved(replayed=dict([*others, (run_id, self.epoch)][-PAST_RUNS:]))

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

        The run that decided before is superseded. An empty run id, of an epoch without tasks,
        leaves the run as it is.

        Args:
            manifest: what is decided.
            run_id: who decides.
            offsets: of the epoch.
            start: of its commit.
            repeatable: of the epoch. One that is not stays so, whatever the query does later.
            stream: see `Ledger`.
        """
        run_id, past = run_id or self.run_id, self.past_runs
        if self.run_id and self.run_id != run_id:
            past = (*past, self.run_id)[-PAST_RUNS:]
        return self.moved(
            run_id=run_id,
            stream=stream,
            past_runs=past,
            replayed={run: epoch for run, epoch in self.replayed.items() if run != run_id},
            epoch=manifest.epoch,
            token=manifest.token,
            manifest=manifest,
            repeatable=repeatable and (self.repeatable or not self.epochs),
            # A query about to take the sink over may have been aborted, too: its doom stays.
            doomed={a: query for a, query in self.doomed.items() if query != manifest.query_id},
            offsets=offsets.digest if offsets else None,
            # Behind a gap that `onLostCommit` lets pass these are not of the epoch before.
            former_offsets=self.offsets if manifest.epoch == self.epoch + 1 else None,
            decided_at=time.time(),
            rows=self.rows + manifest.rows,
            was_dropped=False,
            epochs=self.epochs + 1,
            history=followed(self.history, _pace(manifest, start)),
        )

    def finished(self, applied: Applied = ALL_STORED) -> Ledger:
        """The next revision, with the decided epoch applied."""
        unstored = self.unstored + applied.aside
        # An epoch without rows does not show that the table takes any.
        if self.manifest is not None and self.manifest.rows and applied.stored:
            unstored = 0
        aside, pace, history = self.aside + applied.aside, self.pace, self.history
        if pace is not None:
            history = followed(history.rpartition("\n")[0], pace.applied(applied.aside))
        return self.moved(manifest=None, aside=aside, unstored=unstored, history=history)

    def given_up(self) -> Ledger:
        """The next revision, with the decided epoch over, and the rest of it never applied.

        Its token goes: whoever still applies it finds another decision.
        """
        assert self.manifest is not None  # noqa: S101
        rows = self.dropped + self.manifest.rows
        return self.moved(manifest=None, token=new_token(), dropped=rows, was_dropped=True)

    @property
    def pace(self) -> Pace | None:
        """That of the last decided epoch; None if a release decided it that kept none."""
        line = self.history.rpartition("\n")[2]
        last = Pace.parsed(line) if line else None
        return last if last is not None and last.epoch == self.epoch else None

    @property
    def paces(self) -> list[Pace]:
        """Those of its last epochs, newest last."""
        return [Pace.parsed(line) for line in self.history.split("\n") if line]

    def succeeded_by(self, query_id: str) -> Ledger:
        """The next generation, owned by another query, before its first epoch."""
        return replace(
            self,
            query_id=query_id,
            retired=self.with_retired(),
            generation=self.generation + 1,
            epoch=-1,
            token="",
            offsets=None,
            former_offsets=None,
            replayed={},
            repeatable=self.repeatable or self.forgotten,  # behind a tombstone all begins anew
            inherits=self.inherits or self.forgotten,  # or an abort would free the forgotten query
            forgotten=False,
        )

    def dooming(self, attempts: Mapping[str, str]) -> Ledger:
        """The next revision, in which these attempts can't be decided any more.

        Of those doomed before, the newest are kept: the others were dropped long ago.

        Args:
            attempts: with the query of each.
        """
        doomed = {**dict([*self.doomed.items()][-PAST_DOOMED:]), **attempts}
        return self.moved(
            doomed={name: query for name, query in doomed.items() if name not in self.held}
        )

    def with_retired(self) -> tuple[str, ...]:
        """The queries that are retired once the present one is."""
        return united(self.retired, (self.query_id,))

    def to_record(self) -> Record:
        """The ledger as the store keeps it."""
        body = json.dumps({"format": FORMAT, **asdict(self)}, separators=(",", ":"))
        return Record(self.revision, self.stamp, self.token if self.manifest else "", body)


def united(*retired: Sequence[str]) -> tuple[str, ...]:
    """Retired queries of several ledgers, without those that were retired long ago."""
    return tuple(dict.fromkeys(query for queries in retired for query in queries))[-PAST_QUERIES:]


def new_token() -> str:
    """A random name that nobody else will draw."""
    return uuid.uuid4().hex


def from_record(record: Record, name: str) -> Ledger | None:
    """The ledger in the record of this name; None if there is no record.

    Raises:
        RecordDamaged: it is none, or that of another sink.
        StoreError: a newer release wrote it.
    """
    if record.revision == 0:
        return None
    with reading(name, FORGET):
        ledger = _parsed(record)
        if ledger.name != name:
            raise ValueError(f"it is the ledger of {ledger.name!r}")
        return ledger


def _parsed(record: Record) -> Ledger:
    body = json.loads(record.body)
    known = {one.name for one in fields(Ledger)}
    if body.pop("format") > FORMAT or not known.issuperset(body):
        raise StoreError(
            "The ledger was written by a newer release of sparkonce",
            why="its format may mean something that this release does not know",
            todo="upgrade sparkonce on this driver",
        )
    require_kinds(body, _kinds(Ledger))
    if HISTORY.fullmatch(body.get("history", "")) is None:
        raise ValueError("history has another form")
    manifest = _manifest(body["manifest"]) if body["manifest"] else None
    tuples = {name: tuple(body[name]) for name in ("retired", "past_runs")}
    stamps = {"revision": record.revision, "stamp": record.stamp}
    return Ledger(**{**body, **tuples, **stamps, "manifest": manifest})


def _pace(manifest: Manifest, start: Start | None) -> Pace:
    size = sum(sum(part.sizes) for part in manifest.parts)
    took = (start.stage, start.passed) if start else (0.0, 0.0)
    seconds = (round(one, 3) for one in took)
    return Pace(manifest.epoch, time.time(), manifest.rows, 0, size, len(manifest.chunks), *seconds)


def _manifest(body: dict[str, Any]) -> Manifest:
    require_kinds(body, _kinds(Manifest))
    return Manifest(**{**body, "parts": tuple(map(_part, body["parts"]))})


def _part(body: dict[str, Any]) -> Part:
    require_kinds(body, _kinds(Part))
    part = Part(body["partition"], body["attempt"], tuple(body["rows"]), tuple(body["sizes"]))
    if len(part.rows) != len(part.sizes):
        raise ValueError(f"attempt {part.attempt} has {len(part.rows)} chunks by their rows alone")
    return part


@cache
def _kinds(record: type) -> dict[str, Any]:
    """The types of its attributes, as they stand in the code."""
    return get_type_hints(record)
