"""A batch without a name that writes to the target of the streams; nobody restarts it."""

from __future__ import annotations

import contextlib
from collections import Counter
from dataclasses import dataclass, field, replace

from sparkonce.errors import SparkonceError
from sparkonce.protocol import Follows, Receipt, Task
from sparkonce.tck.explore.rows import staged
from sparkonce.tck.explore.turns import Actor
from sparkonce.tck.explore.world import World
from sparkonce.tck.simulation.actors import Query, Run
from sparkonce.tck.simulation.faults import Crash
from sparkonce.tck.simulation.oracles import with_witness
from sparkonce.tck.simulation.restarts import Checkpoint

ROWS = 3


@dataclass
class Batch:
    """An actor that writes a batch.

    Attributes:
        name: of its query.
        checkpoint: the rows that it staged; no epoch counts as committed.
        refusals: the errors that stopped it.
    """

    world: World
    name: str
    checkpoint: Checkpoint = field(default_factory=Checkpoint)
    refusals: list[SparkonceError] = field(default_factory=list)

    @property
    def query(self) -> Query:
        """The query that writes."""
        plan = replace(self.world.subject.plan, stored={"options": self.name})
        follows = Follows.ONCE
        return Query(self.world.subject, self.name, checkpoint=None, plan=plan, follows=follows)

    def __call__(self, actor: Actor) -> None:
        """Stage and commit; abort if that fails."""
        run = Run(replace(self.query, through=self.world.client(actor)), "")
        task = run.task(0)
        with contextlib.suppress(Crash):
            try:
                self._commit(actor, run, self._staged(run, task))
            except SparkonceError as error:
                self.refusals.append(error)
                self.world.mark(f"batch: {type(error).__name__}")
                self.world.say(actor.name, f"stopped: {type(error).__name__}: {error.what}")

    def _staged(self, run: Run, task: Task) -> Receipt:
        rows = [f"{self.name}/0#{task.attempt}.{number}" for number in range(ROWS)]
        self.checkpoint.handed[0].append(Counter(rows))
        self.world.watch.options[task.attempt] = self.name
        return staged(run, task, with_witness(rows))

    def _commit(self, actor: Actor, run: Run, receipt: Receipt) -> None:
        with self.world.finishing(actor):
            try:
                run.commit(0, [receipt])
                self.world.mark("batch written")
            except SparkonceError:
                self.world.watch.aborted.add(receipt.task.attempt)
                with contextlib.suppress(SparkonceError):
                    run.abort(0, [receipt])
                raise
