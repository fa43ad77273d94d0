"""Ledgers, claims and offsets in the store, written by compare-and-set.

If the reply to a write is lost, the driver learns the outcome by moving the revision, never by
reading alone: the write may still be in flight.
"""

from __future__ import annotations

import json
import logging
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial
from typing import NamedTuple

from sparkonce.codec import DELETE, reading
from sparkonce.errors import ConcurrentDriver, DecisionLost, StoreUnreachable
from sparkonce.exactly_once.driver import Driver, Offsets
from sparkonce.exactly_once.ledger import Ledger, from_record
from sparkonce.protocol import (
    Advance,
    Applied,
    AuxiliaryRecord,
    Manifest,
    Record,
    digest,
    no_progress,
)
from sparkonce.store import Patience, Store


@dataclass(frozen=True)
class Standing:
    """What a driver found: its ledger, a rival for its checkpoint, and the base of its decision."""

    ledger: Ledger | None
    rival: Ledger | None
    claim: Record | None
    base: Ledger

    def unfinished(self) -> Ledger | None:
        """A ledger with an unfinished epoch."""
        for ledger in (self.ledger, self.rival):
            if ledger is not None and ledger.decision.manifest is not None:
                return ledger
        return None

    def may_vanish(self) -> bool:
        """Whether an abort (see `_leave`) or gc may have removed one of its ledgers."""
        found = [one for one in (self.ledger, self.rival, self.base) if one is not None]
        return any(one.untouched or one.owner.forgotten for one in found)


class LostRace(Exception):
    """Another writer wrote the revision, or the outcome is unknown: the driver must try again.

    `unanswered` says why the outcome is unknown.
    """

    def __init__(self, unanswered: StoreUnreachable | None = None) -> None:
        super().__init__()
        self.unanswered = unanswered


LOST_RACES = 20
CLAIM = "checkpoint/"

log = logging.getLogger("sparkonce")


class Learned(NamedTuple):
    """The outcome of a write.

    Attributes:
        ledger: the present one, ours or another's.
        unanswered: the error of the write without a reply; None if the store replied.
    """

    ledger: Ledger
    unanswered: StoreUnreachable | None = None


class Registers:
    """The ledgers of one store."""

    def __init__(self, store: Store, patience: Patience) -> None:
        self.store, self.patience = store, patience

    def read(self, name: str) -> Record:
        """The record as last written."""
        return self.patience.run(lambda: self.store.read(name))

    def load(self, name: str) -> Ledger | None:
        """The ledger of a sink, None before its first write."""
        return from_record(self.read(name), name)

    def rival(self, ledger: Ledger | None, driver: Driver) -> tuple[Record | None, Ledger | None]:
        """The claim on the driver's checkpoint path, and the other sink that holds it.

        Both are None if the query has decided an epoch from there: then the claim is its own.
        """
        path = driver.checkpoint
        known = (
            ledger and ledger.has_decided(driver.query_id, 0) and ledger.owner.checkpoint == path
        )
        if path is None or known:
            return None, None
        name = claim_name(driver.target, path)
        claim = self.read(name)
        holder = holder_of(claim, name)
        rival = self.load(holder) if holder and holder != driver.name else None
        # A holder whose checkpoint has moved to another path since then has left this one.
        moved_away = rival is not None and not driver.is_at(rival.owner.checkpoint or path)
        return claim, None if moved_away else rival

    def drop(self, records: Mapping[str, Record]) -> None:
        """Remove records beside a ledger, unless somebody has written them since."""
        # Under their former stamp: a query that starts meanwhile has moved it.
        for name, record in records.items():
            if record.revision:
                self.store.swap(name, Record(), record.stamp)

    def swap(self, new: Ledger, *, applied: int = 0) -> Ledger:
        """Write the next revision of a ledger; returns the present one, ours or another's.

        `applied` is the number of chunks of the present decision that must be applied.

        Raises:
            DecisionLost: the ledger vanished.
        """
        record = new.to_record()
        step = partial(self.store.swap, new.name, record, new.replaces, applied)
        return self.learn(new, step).ledger

    def learn(self, new: Ledger, step: Callable[[], Record]) -> Learned:
        """Run a step that writes `new`, and learn its outcome even if the reply is lost."""
        try:
            return Learned(_known(new.name, step()))
        except StoreUnreachable as error:
            # A read alone does not suffice: the request may still be in flight.
            log.warning("%s; checking the outcome of the last write", error.what)
            return Learned(self.patience.run(lambda: self._fence(new)), error)

    def doom(self, name: str, absent: Ledger, attempts: Mapping[str, str]) -> list[str]:
        """Doom and discard these attempts; returns those that no decision holds already.

        The step moves the revision, so a decide in flight fails, and a second try finds its
        attempts doomed. Without a ledger, `absent` is written.

        Raises:
            StoreUnreachable: the attempts are doomed, but perhaps not discarded.
            ConcurrentDriver: something else writes the ledger all the time.
        """
        for _ in range(LOST_RACES):
            # Read again in each race: attempts that a decision holds by now must not be doomed.
            ledger = self.load(name) or absent
            doomed = ledger.dooming(attempts)
            free = sorted(set(attempts) & set(doomed.decision.doomed))
            step = partial(self.store.doom, name, doomed.to_record(), doomed.replaces, free)
            try:
                now, unanswered = self.learn(doomed, step)
            except DecisionLost:
                # Another abort, or gc, may remove a ledger without a decision.
                if not ledger.untouched:
                    raise
                continue
            if now.stamp == doomed.stamp:
                # The store may have written the record without discarding the attempts.
                if unanswered:
                    self.patience.run(partial(self.store.discard, name, free, now.stamp))
                return free
        raise contended(name)

    def finish(
        self, ledger: Ledger, advance: Advance = no_progress, since: float | None = None
    ) -> Ledger:
        """Apply a decided epoch from its manifest alone (roll forward), and mark it finished.

        Returns the present ledger: another driver may have continued from there. For `advance` and
        `since` see `Store.apply`.

        Raises:
            RowRefused: the server rejected a row; a later call resumes there.
            StoreLostData: the store lost a chunk that was not applied.
            ConcurrentDriver: something else writes the ledger all the time.
        """
        # Nothing is written between apply and swap: after a crash in between the next driver
        # applies the epoch again, and skips each applied chunk.
        epoch = ledger.owner.query_id, ledger.decision.epoch
        # The swap fails if others moved the ledger, or if a failover lost applied chunks.
        for _ in range(LOST_RACES):
            # Not by its token: after a failover another driver may have decided the epoch again.
            if (
                ledger.decision.manifest is None
                or (ledger.owner.query_id, ledger.decision.epoch) != epoch
            ):
                return ledger
            applied, since = self._applied(ledger.decision.manifest, advance, since), None
            ledger = self.swap(
                ledger.finished(applied), applied=len(ledger.decision.manifest.chunks)
            )
        raise contended(ledger.name)

    def _applied(self, manifest: Manifest, advance: Advance, since: float | None) -> Applied:
        """Apply with retries; only the first try may know that no other preceded it."""
        first = iter([since])
        return self.patience.run(lambda: self.store.apply(manifest, advance, next(first, None)))

    def _fence(self, new: Ledger) -> Ledger:
        """Make sure that `new` is written or never can be, by replacing what it replaces."""
        now = self.store.read(new.name)
        # The write has taken effect, or never can: the record that it replaces no longer exists.
        if now.stamp != new.replaces:
            return _known(new.name, now)
        ledger = from_record(now, new.name) or Ledger.unwritten(
            new.name, new.owner.query_id, new.target, once=new.owner.once
        )
        # After this write, the lost one finds another stamp, however late it arrives.
        moved = ledger.moved()
        return _known(new.name, self.store.swap(new.name, moved.to_record(), moved.replaces))


def holder_of(claim: Record, name: str) -> str | None:
    """The name of the sink that holds this claim; None without a claim.

    Raises:
        RecordDamaged: the record is not a claim.
    """
    if not claim.revision:
        return None
    with reading(name, DELETE):
        return str(json.loads(claim.body)["sink"])


def claim_name(target: str, checkpoint: str) -> str:
    """The name of the record that says which sink owns a checkpoint path."""
    return CLAIM + digest(f"{target}\n{checkpoint}")


def contended(name: str) -> ConcurrentDriver:
    """The error for a ledger that others always write first."""
    return ConcurrentDriver(
        f"This driver lost {LOST_RACES} races for the ledger of {name!r}",
        why="another process keeps changing this ledger",
        todo="stop the other driver or tool, and restart the query",
    )


def _known(name: str, record: Record) -> Ledger:
    ledger = from_record(record, name)
    if ledger is None:
        raise DecisionLost(
            f"The ledger of sink {name!r} vanished during a commit",
            why="the store was emptied or lost its last writes",
            todo="restore the store, then restart the query",
        )
    return ledger


# The offsets of the last two decided epochs, each in a record beside the ledger. Spark continues
# from those of the epoch before, so both may be needed; see `lost_offsets`.
OFFSETS = "offsets/"


def _offsets_name(sink: str, epoch: int) -> str:
    # Two alternating names: epoch N overwrites epoch N - 2, and nothing needs to be removed.
    return f"{OFFSETS}{digest(sink)}/{epoch % 2}"


def offsets_record(driver: Driver) -> AuxiliaryRecord | None:
    """The record of a decision's offsets; None if they are unreadable or too long."""
    packed = driver.offsets.packed if driver.offsets else None
    if packed is None:
        return None
    body = {"query": driver.query_id, "epoch": driver.epoch, "offsets": packed}
    return AuxiliaryRecord(_offsets_name(driver.name, driver.epoch), json.dumps(body))


def kept_offsets(store: Store, ledger: Ledger) -> dict[int, Offsets]:
    """The offsets of the last decided epoch and of the one before, as far as the store has them."""
    found: dict[int, Offsets] = {}
    decided = {
        ledger.decision.epoch: ledger.decision.offsets,
        ledger.decision.epoch - 1: ledger.decision.former_offsets,
    }
    for epoch, digest_of in decided.items():
        name = _offsets_name(ledger.name, epoch)
        record = store.read(name)
        if record.revision:
            with reading(name, DELETE):
                offsets = Offsets.unpacked(json.loads(record.body)["offsets"])
            # A store may write offsets before their decision, also those of an undecided epoch.
            if offsets.digest == digest_of:
                found[epoch] = offsets
    return found


def offsets_records(store: Store, sink: str) -> dict[str, Record]:
    """The records of a sink's offsets, by name, for all epochs."""
    return {name: store.read(name) for name in (_offsets_name(sink, 0), _offsets_name(sink, 1))}
