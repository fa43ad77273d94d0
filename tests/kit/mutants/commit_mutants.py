"""A core whose commit has a fault: what it does with the store."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from typing import Any
from unittest import mock

from tests.kit.mutants.mutant import CHUNKS, ROWS, Mutant
from tests.ledgers import by_part, with_fields

from sparkonce.errors import StoreUnreachable
from sparkonce.exactly_once.commit import Committer, Standing, leftovers
from sparkonce.exactly_once.driver import Driver
from sparkonce.exactly_once.ledger import Ledger, from_record
from sparkonce.exactly_once.registers import Learned, Registers
from sparkonce.exactly_once.staging import stage
from sparkonce.protocol import Advance, Receipt, Record, Staged, Task, no_progress
from sparkonce.store import Store

COMMITTER, REGISTERS = (
    "sparkonce.exactly_once.commit.Committer",
    "sparkonce.exactly_once.registers.Registers",
)
DECIDE, STAND = Committer._decide, Committer._stand
Step = Callable[[], Record]


def attempts_of(receipts: Sequence[Receipt]) -> list[str]:
    return sorted(receipt.task.attempt for receipt in receipts if receipt.rows)


def _only_reads(self: Registers, new: Ledger) -> Ledger:
    return from_record(self.store.read(new.name), new.name) or Ledger.unwritten(
        new.name, new.owner.query_id, new.target
    )


def _gives_up(_: Registers, new: Ledger, step: Step) -> Learned:
    ledger = from_record(step(), new.name)
    assert ledger is not None
    return Learned(ledger)


def _starts_over(self: Registers, new: Ledger, step: Step) -> Learned:
    try:
        return _gives_up(self, new, step)
    except StoreUnreachable as error:
        return Learned(with_fields(new, token="", stamp=""), error)


def _believes(self: Registers, new: Ledger, step: Step) -> Learned:
    try:
        return _gives_up(self, new, step)
    except StoreUnreachable:
        return Learned(new)


def _writes_over(self: Committer, decided: Ledger, *rest: Any) -> Learned:
    newest = self.store.read(decided.name).stamp
    return DECIDE(self, replace(decided, replaces=newest), *rest)


def _finishes_first(
    self: Registers, ledger: Ledger, advance: Advance = no_progress, since: float | None = None
) -> Ledger:
    if ledger.decision.manifest is None:
        return ledger
    done = self.swap(ledger.finished())
    self.patience.run(lambda: self.store.apply(ledger.decision.manifest, advance, since))
    return done


def _goes_by_its_own_plan(self: Registers, ledger: Ledger, *_: Any, **__: Any) -> Ledger:
    """The decided chunks are dropped, as if the epoch that is replayed would bring them again."""
    if ledger.decision.manifest is None:
        return ledger
    self.store.discard(ledger.name, sorted(ledger.decision.held))
    return self.swap(
        ledger.moved(**by_part(ledger, epoch=ledger.decision.epoch - 1, manifest=None, token=""))
    )


def _rolls_by_todays_plan(self: Committer, driver: Driver) -> Standing:
    finish = self.registers.finish

    def by_plan(ledger: Ledger) -> Ledger:
        manifest = replace(ledger.decision.manifest, detail=self.plan.stored)
        return finish(with_fields(ledger, manifest=manifest))

    with mock.patch.object(self.registers, "finish", by_plan):
        return STAND(self, driver)


def _cleans_or_dies(self: Committer, ledger: Ledger, receipts: Sequence[Receipt] = ()) -> None:
    over = {*attempts_of(receipts), *leftovers(self.store, ledger)} - ledger.decision.held
    self.store.discard(ledger.name, sorted(over))


def _forgets_leftovers(_: Store, _ledger: Ledger, **_fresh: bool) -> list[str]:
    return []


def _this_epoch_only(store: Store, ledger: Ledger, **_fresh: bool) -> list[str]:
    over = leftovers(store, ledger)
    now = {one.attempt for one in store.staged(ledger.name) if one.epoch == ledger.decision.epoch}
    return [attempt for attempt in over if attempt in now]


def _whatever_run(staged: Staged) -> tuple[str, str, int]:
    return staged.query_id, "", staged.epoch


def _every_attempt_for_itself(staged: Staged) -> tuple[str, str, int]:
    return staged.query_id, staged.attempt, staged.epoch


def _stages_by_epoch(store: Store, task: Task, batches: Iterable[Any], *how: Any) -> Receipt:
    ledger = from_record(store.read(task.sink), task.sink)
    if ledger is not None and ledger.decision.epoch >= task.epoch:
        return Receipt(task, skipped=ledger.decision.token)
    return stage(store, task, batches, *how)


def _passes_over_none(receipts: Any) -> list[Receipt]:
    return [receipt for receipt in receipts if receipt is not None]


COMMIT_MUTANTS = [
    Mutant(
        "outcome resolved by reading only",
        "a write without an answer is looked for, and taken for lost if it is not there yet",
        "C02",
        patches={f"{REGISTERS}._fence": _only_reads},
    ),
    Mutant(
        "unknown outcome fails the batch",
        "a write without an answer fails the commit",
        "C02",
        patches={f"{REGISTERS}.learn": _gives_up},
    ),
    Mutant(
        "unknown outcome taken as failure",
        "a write without an answer is begun anew",
        "C02",
        patches={f"{REGISTERS}.learn": _starts_over},
    ),
    Mutant(
        "unknown outcome taken as success",
        "a write without an answer is taken for done",
        "C02",
        patches={f"{REGISTERS}.learn": _believes},
    ),
    Mutant(
        "finished before applied",
        "an epoch is marked as done, and then applied",
        "C01",
        (CHUNKS, ROWS),
        patches={f"{REGISTERS}.finish": _finishes_first},
    ),
    Mutant(
        "decided epoch given up",
        "an epoch that is decided and not applied is dropped, for Spark to replay it",
        "C06",
        (CHUNKS, ROWS),
        patches={f"{REGISTERS}.finish": _goes_by_its_own_plan},
    ),
    Mutant(
        "roll-forward by today's options",
        "an epoch that was decided yesterday is applied as today's plan has it",
        "C06",
        (CHUNKS, ROWS),
        patches={f"{COMMITTER}._stand": _rolls_by_todays_plan},
    ),
    Mutant(
        "decision over whatever is there",
        "the ledger is read again before the decision, and not judged again",
        "C04",
        patches={f"{COMMITTER}._decide": _writes_over},
    ),
    Mutant(
        "leftovers never cleaned",
        "a commit drops what its own receipts name, and nothing else",
        "C08",
        patches={"sparkonce.exactly_once.commit.leftovers": _forgets_leftovers},
    ),
    Mutant(
        "gc by epoch",
        "a run that starts again keeps alive what those before it have left",
        "C19",
        patches={"sparkonce.operate.admin._of": _whatever_run},
    ),
    Mutant(
        "gc by attempt",
        "a task that is done grows old while its run goes on, and is dropped",
        "C19",
        patches={"sparkonce.operate.admin._of": _every_attempt_for_itself},
    ),
    Mutant(
        "clean-up fails the commit",
        "an epoch that took effect is reported as failed, since its log could not be cleaned",
        "C08",
        patches={f"{COMMITTER}._clean": _cleans_or_dies},
    ),
    Mutant(
        "zombies of older epochs never cleaned",
        "a commit cleans its own epoch only",
        "C12",
        patches={"sparkonce.exactly_once.commit.leftovers": _this_epoch_only},
    ),
    Mutant(
        "None message ignored",
        "an epoch is committed without the rows of a task that gave no message",
        "C11",
        patches={"sparkonce.spark.writer.require_messages": _passes_over_none},
    ),
    Mutant(
        "skip without asking whose epoch",
        "a task skips its rows where the ledger has its epoch, though of another query",
        "I01",
        patches={"sparkonce.tck.simulation.actors.stage": _stages_by_epoch},
    ),
]
