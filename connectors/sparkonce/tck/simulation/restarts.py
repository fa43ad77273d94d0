"""Spark's part in failures: it retries tasks, aborts, restarts, and replays the last epoch.

A replay computes other rows: each attempt invents its own row ids, in another number and over
other partitions. So rows of two attempts never look alike, and every duplicate effect shows.
"""

from __future__ import annotations

import contextlib
from collections import Counter, defaultdict
from collections.abc import Callable
from dataclasses import dataclass, field

from sparkonce.errors import CommitRefused, StoreError, StoreLostData, StoreUnreachable
from sparkonce.protocol import Receipt
from sparkonce.tck.simulation.actors import Query, Run
from sparkonce.tck.simulation.faults import Crash
from sparkonce.tck.simulation.oracles import with_witness

TASK_TRIES = 2
RESTARTS = 12


@dataclass
class Checkpoint:
    """A checkpoint directory, and the test's memory of the epochs planned in it.

    Attributes:
        committed: the last epoch in the commit log.
        handed: the rows that each run of an epoch has staged.
        tried: how many epochs were begun.
    """

    committed: int = -1
    handed: dict[int, list[Counter[str]]] = field(default_factory=lambda: defaultdict(list))
    tried: int = 0


@dataclass
class Planned:
    """An epoch of one run, with what its tasks staged."""

    run: Run
    epoch: int
    receipts: list[Receipt] = field(default_factory=list)
    rows: Counter[str] = field(default_factory=Counter)


@dataclass
class SimulatedSpark:
    """A driver of one query. Several may share a checkpoint.

    Attributes:
        refusals: the errors that stopped its runs.
    """

    query: Query
    checkpoint: Checkpoint = field(default_factory=Checkpoint)
    refusals: list[CommitRefused] = field(default_factory=list)

    def run_to(self, last: int) -> None:
        """Commit all epochs up to `last`, with as many restarts as necessary."""
        for _ in range(RESTARTS):
            if self.run_until_failure(last):
                return
        raise AssertionError(f"never succeeded: {self.refusals}")

    def run_until_failure(self, last: int) -> bool:
        """One run of the query; False if it failed or died."""
        run = self.query.start()
        return self._survives(lambda: self._run(run, last))

    def plan(self, epoch: int) -> Planned:
        """Stage an epoch in a new run, for `commit`."""
        planned = Planned(self.query.start(), epoch)
        self._stage(planned)
        return planned

    def commit(self, planned: Planned) -> bool:
        """Commit a planned epoch, or abort it; False if it failed or died."""
        return self._survives(lambda: self._commit(planned))

    def _survives(self, work: Callable[[], None]) -> bool:
        try:
            work()
        except StoreLostData:
            raise
        except CommitRefused as error:
            self.refusals.append(error)
            return False
        except (Crash, StoreError):
            return False
        return True

    def _run(self, run: Run, last: int) -> None:
        for epoch in range(self.checkpoint.committed + 1, last + 1):
            planned = Planned(run, epoch)
            try:
                self._stage(planned)
            except StoreError:
                self._abort(planned)
                raise
            self._commit(planned)

    def _stage(self, planned: Planned) -> None:
        self.checkpoint.tried += 1
        for partition in range(1 + self.checkpoint.tried % 3):
            receipt, rows = self._task(planned, partition)
            planned.receipts.append(receipt)
            planned.rows.update(rows if receipt.skipped is None else [])
        self.checkpoint.handed[planned.epoch].append(planned.rows)

    def _commit(self, planned: Planned) -> None:
        try:
            planned.run.commit(planned.epoch, planned.receipts)
        except (StoreError, CommitRefused):
            self._abort(planned)
            raise
        self.checkpoint.committed = max(self.checkpoint.committed, planned.epoch)

    def _task(self, planned: Planned, partition: int) -> tuple[Receipt, list[str]]:
        for tried in range(TASK_TRIES):
            task = planned.run.task(planned.epoch, partition)
            number = 5 if partition == 0 else partition - 1
            rows = [f"{self.query.id}/{task.epoch}#{task.attempt}.{n}" for n in range(number)]
            try:
                return planned.run.stage_task(task, with_witness(rows)), rows
            except StoreUnreachable:
                if tried == TASK_TRIES - 1:
                    raise
        raise AssertionError

    def _abort(self, planned: Planned) -> None:
        if planned.receipts:
            # Spark logs an abort that fails, and stops nevertheless.
            with contextlib.suppress(StoreUnreachable):
                planned.run.abort(planned.epoch, planned.receipts)
