"""Drivers and tasks as Spark runs them, over the real core."""

from __future__ import annotations

import contextlib
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import Any

from sparkonce.errors import CheckpointReplaced, QueryRetired, SparkonceError, StoreUnreachable
from sparkonce.protocol import Receipt, Task
from sparkonce.tck.explore.rows import staged
from sparkonce.tck.explore.turns import Actor
from sparkonce.tck.explore.world import World
from sparkonce.tck.simulation.actors import Query, Run
from sparkonce.tck.simulation.faults import Crash
from sparkonce.tck.simulation.oracles import with_witness
from sparkonce.tck.simulation.restarts import Checkpoint

TASK_TRIES = 2
ROWS = (1, 2)
OTHER_ROWS = (1, 0, 2)


@dataclass
class Stream:
    """A streaming query with its checkpoint. Several drivers may share it.

    Attributes:
        offsets_known: whether the driver can read the checkpoint's offsets.
        refusals: the errors that stopped its runs, except crashes.
        unexplained: the errors among them that struck the first run of the query.
        drivers: the number of concurrent drivers.
        runs: how many have begun.
    """

    world: World
    query: Query
    offsets_known: bool = True
    checkpoint: Checkpoint = field(default_factory=Checkpoint)
    refusals: list[SparkonceError] = field(default_factory=list)
    unexplained: list[SparkonceError] = field(default_factory=list)
    drivers: int = 1
    runs: int = 0

    def start(self, actor: Actor) -> Run:
        """A new run, whose options differ from those of the run before."""
        self.runs += 1
        run_id = f"{self.query.id}-run{self.runs}"
        plan = self.world.subject.plan
        plan = replace(plan, repeatable=self.query.repeatable, stored={"options": run_id})
        return Run(replace(self.query, plan=plan, through=self.world.client(actor)), run_id)

    def note(self, who: str, error: SparkonceError) -> None:
        """Record why a run ended."""
        self.refusals.append(error)
        if isinstance(error, CheckpointReplaced | QueryRetired):
            self.world.require_owned(error)
        if self.drivers == self.runs == 1:
            self.unexplained.append(error)
        self.world.mark(type(error).__name__)
        self.world.say(who, f"stopped: {type(error).__name__}: {error.what}")


@dataclass
class Partition:
    """The state of one partition of an epoch: its attempts, and the first that succeeded."""

    number: int
    trying: int = 0
    tried: int = 0
    receipt: Receipt | None = None
    rows: Counter[str] = field(default_factory=Counter)

    @property
    def over(self) -> bool:
        """Whether the driver stops waiting for it."""
        return self.receipt is not None or self.trying == 0


class Epoch:
    """One try of one epoch by one run: tasks, then commit, then perhaps abort.

    Args:
        stream: the stream of the epoch.
        actor: the driver.
        run: the run.
        number: Spark's batch id.
    """

    def __init__(self, stream: Stream, actor: Actor, run: Run, number: int) -> None:
        self.stream, self.actor, self.run, self.number = stream, actor, run, number
        self.world, self.choices = stream.world, stream.world.choices
        self.partitions: list[Partition] = []
        self.attempts: list[str] = []

    @property
    def receipts(self) -> list[Receipt]:
        """The receipts that have arrived, of the first successful attempts."""
        return [one.receipt for one in self.partitions if one.receipt is not None]

    def through(self) -> None:
        """Stage, commit and record the commit.

        Raises:
            SparkonceError: it failed, and was aborted.
            Crash: the driver died.
        """
        busy = self.world.losses.busy.setdefault(self.stream.query.id, [])
        busy.append(self.number)
        begins = {"query": self.stream.query.id, "epoch": self.number, "run": self.run.run_id}
        self._event("begins", **begins)
        try:
            self._stage()
            self._commit()
        except SparkonceError:
            self._abort()
            raise
        finally:
            busy.remove(self.number)
        checkpoint = self.stream.checkpoint
        checkpoint.committed = max(checkpoint.committed, self.number)
        self._event("notes")
        self.world.say(self.actor.name, f"records epoch {self.number} as committed")

    def _event(self, what: str, **more: Any) -> None:
        self.world.tape.event(what, self.actor.name, **more)

    # -- tasks

    def _stage(self) -> None:
        self.partitions = [Partition(n) for n in range(1 + self.choices.pick(3, 0.4))]
        for one in self.partitions:
            self._try(one)
            if self.choices.pick(2, 0.15):
                self.world.mark("speculative twin")
                self._try(one)
        while self._again():
            if not self.world.calm:
                self.world.turns.wait(self.actor, self._settled)
        if any(one.receipt is None for one in self.partitions):
            raise StoreUnreachable("a task failed too often")

    def _settled(self) -> bool:
        return all(one.over for one in self.partitions)

    def _again(self) -> bool:
        """Whether to wait for tasks; it retries failed ones."""
        for one in self.partitions:
            if one.receipt is None and one.trying == 0 and one.tried < TASK_TRIES:
                self.world.mark("task retried")
                self._try(one)
        return not self._settled()

    def _try(self, one: Partition) -> None:
        one.trying += 1
        one.tried += 1
        name = f"task {self.actor.name.partition(' ')[2]}/{self.number}.{one.number}#{one.tried}"
        if self.world.calm:
            self._task(self.actor, one)
        else:
            task = Actor(name, lambda actor: self._task(actor, one))
            self.world.turns.spawn(task, self.actor)

    def _task(self, actor: Actor, one: Partition) -> None:
        query = replace(self.run.query, through=self.world.client(actor))
        run = Run(query, self.run.run_id)
        task = run.task(self.number, one.number)
        self.attempts.append(task.attempt)
        self.world.watch.options[task.attempt] = run.run_id
        rows = self._rows(task)
        self._event("task", by=actor.name, task=task, size=len(rows))
        try:
            receipt = staged(run, task, with_witness(rows))
        except (Crash, SparkonceError):
            self.world.mark("failed attempt")
            return
        finally:
            one.trying -= 1
        if one.receipt is None:
            one.receipt = receipt
            one.rows = Counter() if receipt.skipped is not None else Counter(rows)

    def _rows(self, task: Task) -> list[str]:
        numbers = ROWS if task.partition == 0 else OTHER_ROWS
        number = numbers[self.choices.pick(len(numbers), 0.4)]
        return [f"{task.query_id}/{task.epoch}#{task.attempt}.{n}" for n in range(number)]

    # -- commit and abort

    def _commit(self) -> None:
        rows = sum((one.rows for one in self.partitions), Counter[str]())
        self.stream.checkpoint.handed[self.number].append(rows)
        if not self.world.calm and self.choices.pick(2, 0.08):
            self.world.mark("commit failed and was aborted")
            self._event("gives up")
            self._elsewhere("commit", self._commit_unheard)
            raise StoreUnreachable("the commit worker is lost")
        try:
            self._commit_by(self.actor, self.run)
        except Crash:
            # The worker in which commit runs is a separate process; Spark may live on.
            if not self.choices.pick(2, 0.5):
                raise
            self.world.mark("abort while a commit's request may be late")
            raise StoreUnreachable("the commit worker died") from None

    def _commit_unheard(self, actor: Actor) -> None:
        run = Run(replace(self.run.query, through=self.world.client(actor)), self.run.run_id)
        busy = self.world.losses.busy[self.stream.query.id]
        busy.append(self.number)
        try:
            self._commit_by(actor, run)
        except SparkonceError as error:
            self.world.say(actor.name, f"{type(error).__name__}: {error.what}")
        except Crash:
            pass
        finally:
            busy.remove(self.number)

    def _commit_by(self, actor: Actor, run: Run) -> None:
        known, number = self.stream.offsets_known, self.number
        offsets = f"offsets {number}" if known else None
        before = f"offsets {number - 1}" if known and number else None
        self.world.watch.committing[actor.name] = self.stream.query.id
        tape = self.world.tape
        tape.event("commits", actor.name, receipts=self.receipts)
        try:
            run.commit(number, self.receipts, offsets, before)
            tape.event("commits no more", actor.name)
        except SparkonceError as error:
            tape.event("refused", actor.name, error=type(error).__name__)
            raise
        except Crash:
            tape.event("dies", actor.name)
            raise
        finally:
            self.world.watch.committing.pop(actor.name, None)

    def _elsewhere(self, what: str, work: Callable[[Actor], None]) -> None:
        worker = Actor(f"{what} {self.actor.name.partition(' ')[2]}", work)
        self.world.turns.spawn(worker, self.actor)

    def _abort(self) -> None:
        """Do what Spark does after a failed batch; Spark only logs an abort that fails."""
        self.world.watch.aborted.update(self.attempts)
        if self.receipts:
            self._event("aborts")
            with contextlib.suppress(SparkonceError):
                self.run.abort(self.number, self.receipts)
            self._event("aborts no more")


@dataclass
class DriverOf:
    """An actor that drives a stream; it restarts after failures and deaths.

    Attributes:
        last: the epoch after which it stops.
        starts: the maximum number of starts.
    """

    stream: Stream
    slot: int
    last: int
    starts: int

    def __call__(self, actor: Actor) -> None:
        """Run until every epoch is committed."""
        for start in range(self.starts):
            actor.name = f"driver {self.stream.query.id}{self.slot}{chr(97 + start)}"
            done = self._run(actor)
            self.stream.world.tape.event("ends", actor.name)
            if done:
                return

    def _run(self, actor: Actor) -> bool:
        try:
            run = self.stream.start(actor)
            for number in range(self.stream.checkpoint.committed + 1, self.last + 1):
                Epoch(self.stream, actor, run, number).through()
        except SparkonceError as error:
            self.stream.note(actor.name, error)
            return False
        except Crash:
            self.stream.world.say(actor.name, "dies")
            return False
        return True
