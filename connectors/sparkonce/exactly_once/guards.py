"""The checks that reject a commit. Pure functions of what the driver has read; they write nothing.

They compare identity before epochs: epochs of two queries are not comparable.
"""

from __future__ import annotations

import enum
from collections.abc import Iterable
from dataclasses import replace

from sparkonce import errors
from sparkonce.exactly_once import conflicts
from sparkonce.exactly_once.driver import Driver, Offsets, Policy
from sparkonce.exactly_once.ledger import Ledger, united
from sparkonce.protocol import Follows, Receipt


class Verdict(enum.Enum):
    """Whether a commit is the next epoch or a replay of the last one."""

    NEXT = "next"
    REPLAY = "replay"


def require_messages(receipts: Iterable[Receipt | None]) -> list[Receipt]:
    """The receipts, if every task returned one.

    Raises:
        UnsupportedQuery: one is None, as with a continuous trigger.
    """
    receipts = list(receipts)
    if any(receipt is None for receipt in receipts):
        raise errors.UnsupportedQuery(
            "Spark called commit without the messages of its tasks",
            why="a continuous trigger does that, and then no epoch differs from its replay",
            todo="use trigger(processingTime=...) or trigger(availableNow=True)",
        )
    return [receipt for receipt in receipts if receipt is not None]


def identify(ledger: Ledger | None, rival: Ledger | None, driver: Driver, policy: Policy) -> Ledger:
    """The ledger from which this driver may continue: the present one, or a new generation.

    `ledger` has the driver's own name. `rival` has another name, and holds the driver's checkpoint
    path and target.

    Raises:
        QueryRetired: another query replaced the driver's query.
        SinkRenamed: the driver's query writes under another sink id.
        CheckpointReplaced: the driver's query would replace another, and nothing allows that.
    """
    # First: a retired query is rejected whatever it commits, by either ledger that retired it.
    for known in (ledger, rival):
        if known and known.retires(driver.query_id):
            raise conflicts.retired(known, driver)
    if rival is not None:
        if rival.owner.query_id == driver.query_id:
            raise conflicts.renamed(rival, driver)
        _allow_replacing(rival, driver, policy, same_path=True)
    base = ledger or Ledger.unwritten(
        driver.name, driver.query_id, driver.target, once=driver.once, repeatable=policy.repeatable
    )
    # Its own ledger has another owner: option sinkId is set, or an operator moved a checkpoint.
    if base.owner.query_id != driver.query_id:
        _allow_replacing(base, driver, policy, same_path=driver.is_at(base.owner.checkpoint))
        base = base.succeeded_by(driver.query_id)
    if rival is not None and base.decision.epoch < 0:
        base = _after(rival, base)
    # The same object if nothing changes: `_establish` writes every ledger but the one it read.
    owner = base.owner.resumed(once=driver.once)
    return base if owner is base.owner else replace(base, owner=owner)


def judge(ledger: Ledger, driver: Driver, policy: Policy) -> Verdict:
    """Compare the epochs of a driver with those of its own ledger.

    Raises:
        ConcurrentDriver: a later run of this query has committed.
        CheckpointDiverged: the sink has decided the epoch with other offsets.
        VersionTaken: another query has written the version under this name.
        CheckpointBehindSink: the sink has a later epoch.
        VersionBehindSink: the sink has a later ``txnVersion`` of the batch.
        SinkBehindCheckpoint: the sink lacks epochs before this one.
    """
    # A run that replayed an earlier epoch, and finds this one decided by another, is a second
    # driver.
    replayed_before = ledger.owner.replayed.get(driver.run_id, driver.epoch) < driver.epoch
    passed = driver.run_id in ledger.owner.past_runs or (
        driver.epoch == ledger.decision.epoch and replayed_before
    )
    if passed and not _may_take_turns(driver):
        raise conflicts.concurrent_driver(ledger, driver)
    if driver.epoch == ledger.decision.epoch:
        if _taken_by_another(ledger, driver):
            raise conflicts.version_taken(ledger, driver)
        _require_same(ledger, driver, driver.offsets)
        return Verdict.REPLAY
    # Tasks of an older epoch have skipped or dropped their rows: nothing is left to compare.
    if driver.epoch < ledger.decision.epoch:
        raise _behind(ledger, driver)
    # A batch without rows leaves a gap in the numbers, and no batch has offsets.
    if driver.follows is not Follows.NEXT:
        return Verdict.NEXT
    if (
        driver.epoch > ledger.decision.epoch + 1
        and policy.on_lost_commit != conflicts.without_epochs(ledger, driver)
    ):
        raise conflicts.sink_behind(ledger, driver, policy)
    # A copy of the checkpoint may have read other rows before, under the same numbers.
    if driver.epoch == ledger.decision.epoch + 1:
        _require_same(ledger, driver, driver.offsets_before)
    return Verdict.NEXT


def require_skips_of(token: str | None, receipts: list[Receipt], epoch: int) -> None:
    """Reject a task that skipped its rows for any decision but this one.

    Raises:
        StaleSkip: a receipt names another decision.
    """
    # A task reads the ledger before it skips; a failover may have lost that decision since.
    for receipt in receipts:
        if receipt.skipped is not None and receipt.skipped != token:
            raise errors.StaleSkip(
                f"Partition {receipt.task.partition} of epoch {epoch} skipped its rows for a"
                " decision that the ledger no longer holds",
                why="the task staged no rows, so committing the epoch would lose them",
                todo="restart the query; Spark replays the epoch",
            )


def require_not_doomed(ledger: Ledger, receipts: Iterable[Receipt]) -> None:
    """Reject chunks that an abort or ``sparkonce gc`` discards.

    Raises:
        StagedDataMissing: a receipt names a doomed attempt.
    """
    for receipt in receipts:
        if receipt.task.attempt in ledger.decision.doomed:
            raise errors.StagedDataMissing(
                f"The staged rows of partition {receipt.task.partition} of epoch"
                f" {receipt.task.epoch} are doomed",
                why="Spark aborted the epoch, or `sparkonce gc` took its rows for leftovers",
                todo="restart the query; nothing of the epoch took effect, and Spark replays it",
            )


def require_same_decision(first: Ledger, now: Ledger, driver: Driver) -> None:
    """Reject as no replay what another driver has decided since this commit began.

    Raises:
        ConcurrentDriver: the ledger holds another decision than at the first read.
    """
    # By token, not by epoch: the other driver may have decided the same epoch, from other rows.
    if now.decision.token != first.decision.token:
        raise conflicts.concurrent_driver(now, driver)


def require_first_write(first: Ledger, driver: Driver) -> None:
    """Reject the second write of one run and epoch of a batch, with other rows or the same.

    `first` is the ledger as this commit found it, without the mark of this commit.

    Raises:
        WrittenTwice: this run has already written or skipped the epoch.
    """
    if (
        driver.follows is not Follows.GROWS
        or driver.epoch != first.decision.epoch
        or not driver.run_id
    ):
        return
    skipped = first.owner.replayed.get(driver.run_id) == driver.epoch
    if skipped or driver.run_id == first.owner.run_id:
        raise conflicts.written_twice(first, driver)


def require_same_shape(shape: str, target: str, receipts: Iterable[Receipt]) -> None:
    """Reject rows that tasks have checked against other columns than the target has now.

    Raises:
        StoreRefused: someone altered the target; nothing is decided.
    """
    if any(receipt.rows and receipt.shape != shape for receipt in receipts):
        raise errors.StoreRefused(
            f"The columns of {target} were altered while tasks staged rows for it",
            why="the tasks checked the rows against the former columns",
            todo="restart the query, which checks them again",
        )


def _taken_by_another(ledger: Ledger, driver: Driver) -> bool:
    """Whether another query wrote the last version, as far as the ledger knows."""
    return driver.named and ledger.decision.stream not in (None, driver.stream)


def _may_take_turns(driver: Driver) -> bool:
    """Whether several may write under one name, whose versions alone define the order."""
    return driver.named


def _behind(ledger: Ledger, driver: Driver) -> errors.CommitRefused:
    return (conflicts.version_behind if driver.named else conflicts.checkpoint_behind)(
        ledger, driver
    )


def _after(rival: Ledger, own: Ledger) -> Ledger:
    owner = replace(
        own.owner,
        generation=max(own.owner.generation, rival.owner.generation + 1),
        retired=united(own.owner.retired, rival.owner.with_retired),
        inherits=own.owner.inherits or not rival.untouched,
    )
    return replace(own, owner=owner)


def _allow_replacing(old: Ledger, driver: Driver, policy: Policy, *, same_path: bool) -> None:
    override = f"continue:{old.owner.query_id}"
    # No decided row could count twice; or an operator gave the sink up, or names its query.
    if old.untouched or old.owner.forgotten or policy.on_new_checkpoint == override:
        return
    repeatable = policy.repeatable and old.owner.repeatable
    if same_path and repeatable and policy.on_new_checkpoint != "fail":
        return
    raise conflicts.replaced(old, driver, override)


def _require_same(ledger: Ledger, driver: Driver, offsets: Offsets | None) -> None:
    # Unknown offsets contradict nothing; `require_readable` rejects them, or warns.
    if offsets and ledger.decision.offsets and offsets.digest != ledger.decision.offsets:
        raise conflicts.diverged(ledger, driver)
