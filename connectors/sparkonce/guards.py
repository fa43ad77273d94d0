"""When a commit must be refused. Pure functions of what was read; they write nothing.

Identity comes before any comparison of epochs: the epochs of two queries can't be compared.
"""

from __future__ import annotations

import enum
from collections.abc import Iterable
from dataclasses import dataclass, replace

from sparkonce.bad_rows import NONE, MaxBadRows
from sparkonce.errors import (
    CheckpointBehindSink,
    CheckpointDiverged,
    CheckpointReplaced,
    ConcurrentDriver,
    QueryRetired,
    SinkBehindCheckpoint,
    SinkRenamed,
    StagedDataMissing,
    StaleSkip,
    UnsupportedQuery,
)
from sparkonce.ledger import Ledger, united
from sparkonce.offsets import Offsets
from sparkonce.places import spelling
from sparkonce.protocol import Receipt


@dataclass(frozen=True)
class Policy:
    """What to do when sink and checkpoint disagree; each override is good for one case only.

    Attributes:
        repeatable: see `Plan`.
        on_new_checkpoint: ``continue:<old query id>``, ``fail``, or None for the default: a new
            checkpoint at the path of the old one goes on if both plans are repeatable.
        on_lost_commit: ``continue@<epoch>``, or None.
        max_bad_rows: how many rows of an epoch may go into dead letters.
    """

    repeatable: bool
    on_new_checkpoint: str | None = None
    on_lost_commit: str | None = None
    max_bad_rows: MaxBadRows = NONE


@dataclass(frozen=True)
class Driver:
    """Who commits what: one run of one query, at one epoch.

    Attributes:
        name: of the ledger.
        run_id: of this ``start()``; empty if it can't be known.
        checkpoint: where the checkpoint lies, None if not known.
        formerly: how earlier releases may have spelled that place.
        offsets: what ``offsets/<epoch>`` holds, None if it can't be read.
        offsets_before: the same of the epoch before.
    """

    name: str
    target: str
    query_id: str
    run_id: str
    epoch: int
    checkpoint: str | None = None
    offsets: Offsets | None = None
    offsets_before: Offsets | None = None
    formerly: tuple[str, ...] = ()

    def is_at(self, place: str | None) -> bool:
        """Whether its checkpoint lies at a place, as a ledger of any release has it."""
        return place is not None and (spelling(place) == self.checkpoint or place in self.formerly)


class Verdict(enum.Enum):
    """What a commit is: the next epoch, or a replay of the last one."""

    NEXT = "next"
    REPLAY = "replay"


def require_messages(receipts: Iterable[Receipt | None]) -> list[Receipt]:
    """The receipts, if every task gave one.

    Raises:
        UnsupportedQuery: one is None, as with a continuous trigger.
    """
    receipts = list(receipts)
    if any(receipt is None for receipt in receipts):
        raise UnsupportedQuery(
            "Spark called commit without the messages of its tasks",
            why="a continuous trigger does that, and then no epoch can be told from its replay",
            todo="use trigger(processingTime=...) or trigger(availableNow=True)",
        )
    return [receipt for receipt in receipts if receipt is not None]


def identify(ledger: Ledger | None, rival: Ledger | None, driver: Driver, policy: Policy) -> Ledger:
    """The ledger from which this driver may go on: the present one, or a new generation.

    Args:
        ledger: the one under the driver's own name.
        rival: the one of another name that holds the driver's checkpoint path and target.
        driver: who asks.
        policy: what the options allow.

    Raises:
        QueryRetired: the driver's query was replaced by another.
        SinkRenamed: the driver's query writes under another sink id.
        CheckpointReplaced: it would replace another, and nothing allows that.
    """
    for known in (ledger, rival):
        if known and known.retires(driver.query_id):
            raise _retired(known, driver)
    if rival is not None:
        if rival.query_id == driver.query_id:
            raise _renamed(rival, driver)
        _allow_replacing(rival, driver, policy, same_path=True)
    fresh = Ledger(driver.name, driver.query_id, driver.target, repeatable=policy.repeatable)
    base = ledger or fresh
    if base.query_id != driver.query_id:
        _allow_replacing(base, driver, policy, same_path=driver.is_at(base.checkpoint))
        base = base.succeeded_by(driver.query_id)
    if rival is not None and base.epoch < 0:
        base = _after(rival, base)
    return base.owned()


def judge(ledger: Ledger, driver: Driver, policy: Policy) -> Verdict:
    """Compare the epochs of a driver with those of its own ledger.

    Raises:
        ConcurrentDriver: a later run of this query has committed.
        CheckpointDiverged: the epoch was decided with other offsets.
        CheckpointBehindSink: the sink has a later epoch.
        SinkBehindCheckpoint: the sink lacks epochs before this one.
    """
    replayed_before = ledger.replayed.get(driver.run_id, driver.epoch) < driver.epoch
    if driver.run_id in ledger.past_runs or (driver.epoch == ledger.epoch and replayed_before):
        raise concurrent_driver(ledger, driver)
    if driver.epoch == ledger.epoch:
        _require_same(ledger, driver, driver.offsets)
        return Verdict.REPLAY
    if driver.epoch < ledger.epoch:
        raise _checkpoint_behind(ledger, driver)
    if driver.epoch > ledger.epoch + 1 and policy.on_lost_commit != f"continue@{driver.epoch}":
        raise _sink_behind(ledger, driver, policy)
    if driver.epoch == ledger.epoch + 1:
        _require_same(ledger, driver, driver.offsets_before)
    return Verdict.NEXT


def require_skips_of(token: str | None, receipts: list[Receipt], epoch: int) -> None:
    """Refuse a task that skipped its rows for any decision but this one.

    Raises:
        StaleSkip: a receipt names another decision.
    """
    for receipt in receipts:
        if receipt.skipped is not None and receipt.skipped != token:
            raise StaleSkip(
                f"Partition {receipt.task.partition} of epoch {epoch} skipped its rows for a"
                " decision that the ledger no longer holds",
                why="its rows were not staged, so committing the epoch would lose them",
                todo="restart the query; Spark replays the epoch",
            )


def require_not_doomed(ledger: Ledger, receipts: Iterable[Receipt]) -> None:
    """Refuse chunks that an abort or ``sparkonce gc`` is dropping.

    Raises:
        StagedDataMissing: a receipt names such an attempt.
    """
    for receipt in receipts:
        if receipt.task.attempt in ledger.doomed:
            raise StagedDataMissing(
                f"What partition {receipt.task.partition} of epoch {receipt.task.epoch} staged"
                " is being dropped",
                why="the epoch was aborted, or `sparkonce gc` took its rows for leftovers",
                todo="restart the query; nothing of the epoch took effect, and Spark replays it",
            )


def concurrent_driver(ledger: Ledger, driver: Driver) -> ConcurrentDriver:
    """The error for a driver that another one has overtaken."""
    return ConcurrentDriver(
        f"Another driver commits to {ledger.name!r}: run {ledger.run_id} has epoch {ledger.epoch},"
        f" while run {driver.run_id} commits epoch {driver.epoch}",
        why="two drivers on one checkpoint would each apply their own rows",
        todo="stop one of them; the one that goes on needs nothing",
    )


def _after(rival: Ledger, own: Ledger) -> Ledger:
    return replace(
        own,
        generation=max(own.generation, rival.generation + 1),
        retired=united(own.retired, rival.with_retired()),
        inherits=own.inherits or not rival.untouched,
    )


def _allow_replacing(old: Ledger, driver: Driver, policy: Policy, *, same_path: bool) -> None:
    override = f"continue:{old.query_id}"
    if old.untouched or old.forgotten or policy.on_new_checkpoint == override:
        return
    repeatable = policy.repeatable and old.repeatable
    if same_path and repeatable and policy.on_new_checkpoint != "fail":
        return
    reached = f"up to epoch {old.epoch}" if old.epoch >= 0 else "or by those before it"
    raise CheckpointReplaced(
        f"Query {driver.query_id} at checkpoint {driver.checkpoint or 'not known'} is new to sink"
        f" {old.name!r}, which was written by query {old.query_id} at checkpoint"
        f" {old.checkpoint or 'not known'} {reached}",
        why="either the checkpoint was deleted or swapped, or a pipeline fully refreshed, and rows"
        " that are read again would be applied again; or both queries run, with one id or path",
        todo="if both queries shall run, give this one a sinkId and a checkpoint path of its own"
        " (on machines with disks of their own, too); else bring the old checkpoint back, or, if"
        f" reading rows again does no harm, set option onNewCheckpoint={override}",
    )


def _renamed(known: Ledger, driver: Driver) -> SinkRenamed:
    return SinkRenamed(
        f"Query {driver.query_id} writes to sink {known.name!r}, but now names {driver.name!r}",
        why="a new sink id has no memory of what this checkpoint has committed",
        todo=f"set option sinkId={known.sink_id} (or leave it out, if that is the query id);"
        " to write under another name, start a new checkpoint, whose rows are applied again",
    )


def _require_same(ledger: Ledger, driver: Driver, offsets: Offsets | None) -> None:
    if offsets and ledger.offsets and offsets.digest != ledger.offsets:
        raise _diverged(ledger, driver)


def _retired(known: Ledger, driver: Driver) -> QueryRetired:
    named = f" and a sinkId (not {known.sink_id!r})" if known.sink_id != known.query_id else ""
    return QueryRetired(
        f"Query {driver.query_id} was replaced as the owner of sink {known.name!r}",
        why="another query has gone on from there, or is about to: it takes the sink over before"
        " its first epoch; both would apply the same rows",
        todo="stop this query; if both shall run, begin this one anew, with a checkpoint path"
        f"{named} of its own; what it reads again is applied again",
    )


def _diverged(ledger: Ledger, driver: Driver) -> CheckpointDiverged:
    return CheckpointDiverged(
        f"Epoch {ledger.epoch} of checkpoint {driver.checkpoint} is not the epoch"
        f" {ledger.epoch} that sink {ledger.name!r} holds: their offsets differ",
        why="the checkpoint was restored or copied, or its host crashed and lost"
        f" offsets/{ledger.epoch}, which Spark does not sync to disk; it has since read other rows"
        " under this number",
        todo="go on with the checkpoint that wrote last; if offsets were lost, `sparkonce offsets"
        f" URL {ledger.name}` shows those that were decided, and --restore puts them back",
    )


def _checkpoint_behind(ledger: Ledger, driver: Driver) -> CheckpointBehindSink:
    return CheckpointBehindSink(
        f"Epoch {driver.epoch} of query {driver.query_id} comes after sink {ledger.name!r} has"
        f" decided epoch {ledger.epoch}",
        why="either the checkpoint was restored to an earlier state, or a second driver runs on"
        " it; the rows of this epoch have already taken effect",
        todo="stop the second driver, or bring back the checkpoint as it was at epoch"
        f" {ledger.epoch}; if it lost offsets in a crash of its host, `sparkonce offsets URL"
        f" {ledger.name}` shows those that were decided, and --restore puts them back",
    )


def _sink_behind(ledger: Ledger, driver: Driver, policy: Policy) -> SinkBehindCheckpoint:
    clean = "" if policy.repeatable else " (into an emptied target, as all rows are added again)"
    has = f"ends at epoch {ledger.epoch}" if ledger.epoch >= 0 else "holds no epoch"
    return SinkBehindCheckpoint(
        f"Epoch {driver.epoch} is next for query {driver.query_id}, but sink {ledger.name!r} {has}",
        why="the store lost commits that it had acknowledged (a failover, a restored backup), or"
        " the target or sinkId is new to this checkpoint; the rows in between are missing there",
        todo=f"restore the store; or start a new checkpoint to write all rows{clean}; or, to go"
        f" on without them, set option onLostCommit=continue@{driver.epoch}",
    )
