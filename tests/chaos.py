"""Spark's part in failures: it retries tasks, aborts, restarts, and replays the last epoch.

A replay computes other rows: each attempt invents its own row ids, in other numbers and over
other partitions. So rows of two attempts never look alike, and whatever took effect twice shows.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from dataclasses import dataclass, field

from sparkonce.errors import CommitRefused, StoreError, StoreLostData, StoreUnreachable
from sparkonce.protocol import Receipt
from tests.faults import Crash
from tests.kit import Query, Run, World

TASK_TRIES = 2
RESTARTS = 12


@dataclass
class Checkpoint:
    """A checkpoint directory, and what the test remembers of the epochs planned in it.

    Attributes:
        committed: the last epoch in the commit log.
        handed: the rows that each commit of an epoch was to make take effect.
        tried: how many epochs were begun.
    """

    committed: int = -1
    handed: dict[int, list[Counter[str]]] = field(default_factory=lambda: defaultdict(list))
    tried: int = 0


@dataclass
class Spark:
    """A driver of one query. Several may share a checkpoint.

    Attributes:
        refusals: what stopped its runs.
    """

    query: Query
    checkpoint: Checkpoint = field(default_factory=Checkpoint)
    refusals: list[CommitRefused] = field(default_factory=list)

    def run_to(self, last: int) -> None:
        """Commit all epochs up to `last`, restarting as often as it takes."""
        for _ in range(RESTARTS):
            if self.run_until_failure(last):
                return
        raise AssertionError(f"never got through: {self.refusals}")

    def run_until_failure(self, last: int) -> bool:
        """One run of the query; False if it failed or died."""
        run = self.query.start()
        try:
            for epoch in range(self.checkpoint.committed + 1, last + 1):
                self.epoch(run, epoch)
        except Crash:
            return False
        except StoreLostData:
            raise
        except CommitRefused as error:
            self.refusals.append(error)
            return False
        except StoreError:
            return False
        return True

    def epoch(self, run: Run, epoch: int) -> None:
        """Stage and commit one epoch; abort it if that fails."""
        self.checkpoint.tried += 1
        receipts: list[Receipt] = []
        rows: Counter[str] = Counter()
        try:
            for partition in range(1 + self.checkpoint.tried % 3):
                receipt, given = self._task(run, epoch, partition)
                receipts.append(receipt)
                rows.update(given if receipt.skipped is None else [])
            self.checkpoint.handed[epoch].append(rows)
            run.commit(epoch, receipts)
        except (StoreError, CommitRefused):
            self._abort(run, epoch, receipts)
            raise
        self.checkpoint.committed = max(self.checkpoint.committed, epoch)

    def _task(self, run: Run, epoch: int, partition: int) -> tuple[Receipt, list[str]]:
        for tried in range(TASK_TRIES):
            task = run.task(epoch, partition)
            number = 5 if partition == 0 else partition - 1
            rows = [f"{self.query.id}/{epoch}#{task.attempt}.{n}" for n in range(number)]
            try:
                return run.stage_task(task, rows), rows
            except StoreUnreachable:
                if tried == TASK_TRIES - 1:
                    raise
        raise AssertionError

    def _abort(self, run: Run, epoch: int, receipts: list[Receipt]) -> None:
        if receipts:
            try:
                run.abort(epoch, receipts)
            except StoreUnreachable:
                pass  # Spark logs it and goes down


def require_exactly_once(spark: Spark) -> None:
    """Each committed epoch took effect once: all rows of one commit, and no others.

    Raises:
        AssertionError: it did not, or an epoch that is not committed took effect in part.
    """
    for epoch, handed in spark.checkpoint.handed.items():
        prefix = f"{spark.query.id}/{epoch}#"
        found = Counter(row for row in spark.query.world.rows if row.startswith(prefix))
        lost = epoch <= spark.checkpoint.committed and not found
        assert not lost, f"epoch {epoch} was lost"
        assert not found or found in handed, f"epoch {epoch} took effect as {found}"


def require_in_order(world: World) -> None:
    """Epochs of a query took effect one after the other.

    Raises:
        AssertionError: they did not.
    """
    last: dict[str, int] = {}
    for row in world.rows:
        query, _, epoch = row.partition("#")[0].partition("/")
        assert int(epoch) >= last.get(query, 0), f"{row} came after a later epoch"
        last[query] = int(epoch)


def require_clean(world: World, *queries: Query) -> None:
    """Nothing is left staged, every row counted once, and the ledgers' totals agree.

    Raises:
        AssertionError: they do not.
    """
    assert world.staged() == 0
    assert max(world.took_effect().values()) == 1
    assert world.hits == len(world.rows)
    ledgers = {query.name: query.ledger for query in queries}.values()
    assert sum(ledger.rows for ledger in ledgers) == world.hits
    assert all(ledger.manifest is None for ledger in ledgers)
