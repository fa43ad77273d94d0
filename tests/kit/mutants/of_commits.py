"""A core that commits, aborts or writes batches with a fault."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any
from unittest import mock

from tests.kit.mutants.mutant import CHUNKS, CORE, MUTANTS, ROWS, WHOLE, Mutant, leave_out, plant
from tests.ledgers import by_part, with_fields

from sparkonce.errors import RecordDamaged, StoreUnreachable
from sparkonce.exactly_once.commit import Committer, Standing, leftovers
from sparkonce.exactly_once.conflicts import lost_decision
from sparkonce.exactly_once.driver import Driver
from sparkonce.exactly_once.guards import Verdict, judge
from sparkonce.exactly_once.ledger import Ledger, from_record, kin_of
from sparkonce.exactly_once.neighbours import finish_others
from sparkonce.exactly_once.registers import Learned, Registers
from sparkonce.exactly_once.staging import stage
from sparkonce.protocol import Advance, Follows, Receipt, Record, Staged, Task, no_progress
from sparkonce.spark.writer import StreamWriter
from sparkonce.store import Store
from sparkonce.tck.simulation.memory import MemoryStore

COMMIT, LEDGER, GUARDS = f"{CORE}.commit", f"{CORE}.ledger.Ledger", f"{CORE}.guards"
COMMITTER, REGISTERS = f"{COMMIT}.Committer", f"{CORE}.registers.Registers"
DROPPED_IF_FAILED, RUN_OF = f"{CORE}.staging._dropped_if_failed", "sparkonce.operate.admin._of"
DECIDE, STAND, ABORT, LEAVE = (
    *(Committer._decide, Committer._stand),
    *(Committer.abort, Committer._leave),
)
DECIDED, WRITER_ABORT = Ledger.decided, StreamWriter.abort
Step = Callable[[], Record]


def _attempts_of(receipts: Sequence[Receipt]) -> list[str]:
    return sorted(receipt.task.attempt for receipt in receipts if receipt.rows)


# -- outcomes


@plant("outcome resolved by reading only", "C02", at=f"{REGISTERS}._fence")
def only_reads(self: Registers, new: Ledger) -> Ledger:
    """A write without an answer is looked for, and taken for lost if it is not there yet."""
    found = from_record(self.store.read(new.name), new.name)
    return found or Ledger.unwritten(new.name, new.owner.query_id, new.target)


@plant("unknown outcome fails the batch", "C02", at=f"{REGISTERS}.learn")
def gives_up(_: Registers, new: Ledger, step: Step) -> Learned:
    """A write without an answer fails the commit."""
    ledger = from_record(step(), new.name)
    assert ledger is not None
    return Learned(ledger)


@plant("unknown outcome taken as failure", "C02", at=f"{REGISTERS}.learn")
def starts_over(self: Registers, new: Ledger, step: Step) -> Learned:
    """A write without an answer is begun anew."""
    try:
        return gives_up(self, new, step)
    except StoreUnreachable as error:
        return Learned(with_fields(new, token="", stamp=""), error)


@plant("unknown outcome taken as success", "C02", at=f"{REGISTERS}.learn")
def believes(self: Registers, new: Ledger, step: Step) -> Learned:
    """A write without an answer is taken for done."""
    try:
        return gives_up(self, new, step)
    except StoreUnreachable:
        return Learned(new)


@plant("older ledger after the rows taken for a loss", "C24", CHUNKS, at=f"{COMMITTER}._finish")
def believes_any_node(
    self: Committer, taken: Ledger, since: float | None, driver: Driver
) -> Ledger:
    """A node that lags says that the epoch is not decided, and the commit fails."""
    done = self.registers.finish(taken, since=since)
    if done.decision.epoch < driver.epoch:
        raise lost_decision(done, driver)
    return done


# -- decisions and what is made of them


@plant("finished before applied", "C01", CHUNKS, ROWS, at=f"{REGISTERS}.finish")
def finishes_first(
    self: Registers, ledger: Ledger, advance: Advance = no_progress, since: float | None = None
) -> Ledger:
    """An epoch is marked as done, and then applied."""
    if ledger.decision.manifest is None:
        return ledger
    done = self.swap(ledger.finished())
    self.patience.run(lambda: self.store.apply(ledger.decision.manifest, advance, since))
    return done


@plant("decided epoch abandoned", "C06", CHUNKS, ROWS, at=f"{REGISTERS}.finish")
def goes_by_its_own_plan(self: Registers, ledger: Ledger, *_: Any, **__: Any) -> Ledger:
    """An epoch that is decided and not applied is dropped, for Spark to replay it."""
    if ledger.decision.manifest is None:
        return ledger
    self.store.discard(ledger.name, sorted(ledger.decision.held))
    return self.swap(
        ledger.moved(**by_part(ledger, epoch=ledger.decision.epoch - 1, manifest=None, token=""))
    )


@plant("roll-forward by today's options", "C06", CHUNKS, ROWS, at=f"{COMMITTER}._stand")
def rolls_by_todays_plan(self: Committer, driver: Driver) -> Standing:
    """An epoch that was decided yesterday is applied as today's plan has it."""
    finish = self.registers.finish

    def by_plan(ledger: Ledger) -> Ledger:
        manifest = replace(ledger.decision.manifest, detail=self.plan.stored)
        return finish(with_fields(ledger, manifest=manifest))

    with mock.patch.object(self.registers, "finish", by_plan):
        return STAND(self, driver)


@plant("decision over any record", "C04", at=f"{COMMITTER}._decide")
def writes_over(self: Committer, decided: Ledger, *rest: Any) -> Learned:
    """The ledger is read again before the decision, and not judged again."""
    newest = self.store.read(decided.name).stamp
    return DECIDE(self, replace(decided, replaces=newest), *rest)


@plant("None message ignored", "C11", at="sparkonce.spark.writer.require_messages")
def passes_over_none(receipts: Any) -> list[Receipt]:
    """An epoch is committed without the rows of a task that gave no message."""
    return [receipt for receipt in receipts if receipt is not None]


@plant("skip without a check of the query", "I01", at="sparkonce.tck.simulation.actors.stage")
def stages_by_epoch(store: Store, task: Task, batches: Iterable[Any], *how: Any) -> Receipt:
    """A task skips its rows where the ledger has its epoch, though of another query."""
    ledger = from_record(store.read(task.sink), task.sink)
    if ledger is not None and ledger.decision.epoch >= task.epoch:
        return Receipt(task, skipped=ledger.decision.token)
    return stage(store, task, batches, *how)


# -- clean-up


@plant("leftovers never cleaned", "C08", at=f"{COMMIT}.leftovers")
def forgets_leftovers(_: Store, _ledger: Ledger, **_fresh: bool) -> list[str]:
    """A commit drops what its own receipts name, and nothing else."""
    return []


@plant("zombies of older epochs never cleaned", "C12", at=f"{COMMIT}.leftovers")
def cleans_this_epoch_only(store: Store, ledger: Ledger, **_fresh: bool) -> list[str]:
    """A commit cleans its own epoch only."""
    over = leftovers(store, ledger)
    now = {one.attempt for one in store.staged(ledger.name) if one.epoch == ledger.decision.epoch}
    return [attempt for attempt in over if attempt in now]


@plant("clean-up fails the commit", "C08", at=f"{COMMITTER}._clean")
def cleans_or_dies(self: Committer, ledger: Ledger, receipts: Sequence[Receipt] = ()) -> None:
    """An epoch that took effect is reported as failed, since its log could not be cleaned."""
    over = {*_attempts_of(receipts), *leftovers(self.store, ledger)} - ledger.decision.held
    self.store.discard(ledger.name, sorted(over))


@plant("gc by epoch", "C19", at=RUN_OF)
def whatever_run(staged: Staged) -> tuple[str, str, int]:
    """A run that starts again keeps alive what those before it have left."""
    return staged.query_id, "", staged.epoch


@plant("gc by attempt", "C19", at=RUN_OF)
def every_attempt_for_itself(staged: Staged) -> tuple[str, str, int]:
    """A task that is done grows old while its run goes on, and is dropped."""
    return staged.query_id, staged.attempt, staged.epoch


@plant("failed tasks never cleaned", "C18", at=DROPPED_IF_FAILED)
@contextlib.contextmanager
def keeps_what_failed(*_: Any) -> Iterator[None]:
    """What a task staged before it raised stays."""
    yield


@plant("clean-up hides the error of a task", "C18", at=DROPPED_IF_FAILED)
@contextlib.contextmanager
def hides_the_error(store: Store, task: Task) -> Iterator[None]:
    """A drop that fails is raised in place of what made the task fail."""
    try:
        yield
    except Exception:
        store.discard(task.sink, [task.attempt])
        raise


# -- aborts


@plant(
    "messages with None mishandled in abort", "C11", at="sparkonce.spark.writer.StreamWriter.abort"
)
def gives_up_on_none(self: StreamWriter, messages: Sequence[Any], epoch: int) -> None:
    """An abort with a None among its messages drops nothing."""
    if None not in messages:
        WRITER_ABORT(self, messages, epoch)


@plant("abort that undoes a published epoch", "A01", WHOLE, at=f"{COMMITTER}.abort")
def undoes(self: Committer, driver: Driver, receipts: Sequence[Receipt]) -> None:
    """An abort puts the ledger back to the epoch before, though its rows took effect."""
    ABORT(self, driver, receipts)
    ledger = self.registers.load(driver.name)
    if ledger is not None and ledger.decision.epoch == driver.epoch:
        self.registers.swap(
            ledger.moved(**by_part(ledger, epoch=driver.epoch - 1, token="", manifest=None))
        )


leave_out(
    "abort that drops nothing",
    "A01",
    f"{COMMITTER}.abort",
    "What the tasks of an aborted epoch staged stays.",
)


@plant("abort that drops a decided epoch", "A01", CHUNKS, ROWS, at=f"{COMMITTER}.abort")
def drops_all(self: Committer, driver: Driver, receipts: Sequence[Receipt]) -> None:
    """An abort drops chunks that a decision holds."""
    self.store.discard(driver.name, _attempts_of(receipts))


@plant("abort without doom", "A02", CHUNKS, ROWS, at=f"{COMMITTER}.abort")
def dooms_nothing(self: Committer, driver: Driver, receipts: Sequence[Receipt]) -> None:
    """An abort looks whether its chunks are decided, and drops them while they are."""
    ledger = self.registers.load(driver.name)
    held = ledger.decision.held if ledger is not None else set()
    self.store.discard(driver.name, sorted({*_attempts_of(receipts)} - held))


@plant("doom of decided attempts", "A01", CHUNKS, ROWS, at=f"{LEDGER}.dooming")
def dooms_what_is_held(self: Ledger, attempts: Mapping[str, str]) -> Ledger:
    """An abort dooms, and drops, attempts that a decision holds."""
    return self.moved(**by_part(self, doomed={**self.decision.doomed, **attempts}))


@plant("doom ends with any decision", "A02", CHUNKS, ROWS, at=f"{LEDGER}.decided")
def decides_away_all_doom(self: Ledger, *decision: Any, **more: Any) -> Ledger:
    """What one query's abort has doomed can be decided once another query has decided."""
    return DECIDED(with_fields(self, doomed={}), *decision, **more)


leave_out(
    "doom ignored",
    "A02",
    f"{GUARDS}.require_not_doomed",
    "A commit that is tried again decides what an abort is about to drop.",
    *(CHUNKS, ROWS),
)


@plant("ledger removed that another abort needs", "A02", at=f"{COMMITTER}._leave")
def leaves_anyway(self: Committer, driver: Driver, _: Collection[str]) -> None:
    """An abort takes away the ledger in which another has doomed what it is about to drop."""
    ledger = self.registers.load(driver.name)
    LEAVE(self, driver, ledger.decision.doomed if ledger is not None else ())


# -- batches

leave_out(
    "second write of a batch skipped",
    "C20",
    f"{GUARDS}.require_first_write",
    "A run that writes a batch twice is taken for a replay, and its second rows are dropped.",
)
leave_out(
    "another query's version skipped",
    "C20",
    f"{GUARDS}._taken_by_another",
    "A version that another query wrote under the name is taken for a repetition.",
)
leave_out(
    "sessions that take turns are drivers of one checkpoint",
    "C20",
    f"{GUARDS}._may_take_turns",
    "A session whose name another one has used since is refused as superseded.",
)


@plant("numbers of a batch must follow each other", "C20", at=f"{GUARDS}.judge")
def wants_no_gap(ledger: Ledger, driver: Driver, policy: Any) -> Verdict:
    """A batch that leaves a gap is refused, as if the sink had lost some."""
    return judge(ledger, replace(driver, follows=Follows.NEXT), policy)


leave_out(
    "a batch ignores open decisions of others",
    "C21",
    f"{CORE}.neighbours.finish_others",
    "A batch decides before an epoch that another one has decided has taken effect.",
    *(CHUNKS, ROWS),
)
MUTANTS.append(
    Mutant(
        "record of a nameless batch stays",
        "C21",
        "Each batch leaves a ledger, and ledgers pile up.",
        patches={f"{LEDGER}.is_done_with": False},
    )
)


@plant("a batch reads each ledger of its target", "C21", at=f"{CORE}.neighbours.finish_others")
def reads_all(registers: Registers, driver: Driver) -> None:
    """It looks for unfinished ones by itself, and takes long beside many that are done."""
    for name in registers.store.names():
        registers.read(name)
    finish_others(registers, driver)


@plant("late decision undoes newer ones", "C22", CHUNKS, ROWS, at=f"{CORE}.neighbours.overtakers")
def nobody(*_: Any) -> list[Any]:
    """Whoever finishes a decision asks nobody what others have decided since."""
    return []


@plant(
    "an ended batch is forgotten while an older one waits",
    "C22",
    *(CHUNKS, ROWS),
    at=f"{COMMITTER}._end",
)
def ends_alone(self: Committer, done: Ledger) -> None:
    """The record of a batch goes, and the one that it overtook is finished over it."""
    if done.is_done_with:
        self.registers.drop({done.name: done.to_record()})


@plant("a dropped decision can still be applied", "C22", CHUNKS, ROWS, at=f"{LEDGER}.given_up")
def keeps_its_token(self: Ledger) -> Ledger:
    """The ledger holds a decision on, that was given up."""
    assert self.decision.manifest is not None
    return self.moved(**by_part(self, dropped=self.totals.dropped + self.decision.manifest.rows))


@plant("each batch counts as overtaken", "C22", CHUNKS, ROWS)
class SeesTheLast(MemoryStore):
    """A decision is refused because of others that came before it.

    The store lists who decided at all, in place of who did so later.
    """

    def _decided_after(self, name: str) -> list[str]:
        kin = kin_of(name)
        return [one for one in self.order if one != name and one.endswith(kin)]


@plant("an unreadable ledger counts as none", "C23", at=f"{CORE}.registers.from_record")
def none_if_damaged(record: Record, name: str) -> Ledger | None:
    """A sink whose record is damaged begins anew."""
    try:
        return from_record(record, name)
    except RecordDamaged:
        return None
