"""The actors that play a path of the model: queries, tasks, operators, and their shared store."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import Any

from tools.model.mapping import QUERIES, Fields, StoreView
from tools.model.network import Network, ScriptedActor, Stage
from tools.model.scopes import Scope

from sparkonce.exactly_once.registers import Registers
from sparkonce.exactly_once.staging import ChunkSize
from sparkonce.operate.admin import Admin
from sparkonce.protocol import Follows, Receipt, Task
from sparkonce.tck.explore.requests import Request
from sparkonce.tck.explore.rows import Rows
from sparkonce.tck.memory_subject import MemorySubject
from sparkonce.tck.simulation import actors
from sparkonce.tck.simulation.actors import QUICK, Query, Run
from sparkonce.tck.simulation.oracles import WITNESS

A_ROW = ChunkSize(rows=1, bytes=1 << 20)


class Failed(Exception):
    """The error of a task that can't compute its rows."""


class Staging:
    """One attempt."""

    def __init__(self, task: Task, size: int, stage: Stage, converging: bool) -> None:
        self.task, self._size, self._converging = task, size, converging
        self.actor = ScriptedActor(f"task {task.attempt}", stage, self._work)

    def claimed(self) -> Receipt:
        """A receipt that names its chunks for a drop before the attempt has ended."""
        return Receipt(self.task, (1,) * self._size, (1,) * self._size)

    def _work(self, actor: ScriptedActor) -> Any:
        rows: Any = self._rows(actor)
        return actors.stage(actor.client, self.task, rows, _encode, A_ROW, actors.QUICK)  # type: ignore[attr-defined]

    def _rows(self, actor: ScriptedActor) -> Iterator[Rows]:
        task = self.task
        for number in range(self._size):
            row = f"{task.query_id}/{task.epoch}#{task.attempt}.{number}"
            yield Rows([WITNESS if self._converging else row])
        actor.carry(Request(actor.actor, "end", _nothing))

    def receipt(self) -> Receipt:
        """Its receipt, after it has run to its end."""
        while self.actor.pending is not None:
            self.actor.go(lambda one: one.step())
        receipt: Receipt = self.actor.answer
        return receipt

    def fail(self) -> None:
        """Let it fail at its current request."""
        self.actor.go(_fails)


def _fails(_: Request) -> Any:
    raise Failed


def _nothing() -> None:
    """The request at the end of its rows: it does nothing."""


def _encode(rows: Any) -> bytes:
    return json.dumps(list(rows)).encode()


IDS = {q: one for one, q in QUERIES.items()}
"""Ids of queries in the explorer, by their names in the model."""


class Roles:
    """Actors, their tasks, and the store.

    Attributes:
        tasks: the tasks in the order of their start.
        plans: by query and epoch, the run that planned it; represents the offsets.
    """

    def __init__(self, scope: Scope, stage: Stage) -> None:
        self.values, self.stage = scope.values, stage
        self.view = StoreView(self.values["Profile"] == "converging")
        self.network = Network(stage, self.view)
        self.subject = MemorySubject(stage.memory)
        self.tasks: list[Staging] = []
        self.plans: dict[tuple[str, int], int] = {}
        self._actors: list[ScriptedActor] = []

    def see(self) -> Fields:
        """The store in the form of the model."""
        return self.view.see(self.stage.memory.snapshot())

    def end(self) -> None:
        """End all living actors."""
        for actor in [*self._actors, *(task.actor for task in self.tasks)]:
            actor.die()

    def query(self, q: str) -> Query:
        """A query of the model."""
        policy = self.values["Policy"]
        follows = Follows.ONCE if q == "p" else Follows(self.values["Follows"])
        stream = follows is Follows.NEXT
        query = Query(
            self.subject,
            IDS[q],
            "orders" if self.values["SinkId"] else None,
            checkpoint="/checkpoints/orders" if stream else None,
            repeatable=policy == "repeatable",
            on_new_checkpoint="continue:a" if (policy, q) == ("continue", "b") else None,
            follows=follows,
            named=follows is Follows.GROWS,
        )
        query.plan = replace(self.subject.plan, repeatable=query.repeatable)
        return query

    def sink(self, x: str) -> str:
        """The name of a sink of the model."""
        return self.query("a" if x == "s" else x).name

    def actor(self, name: str, work: Callable[[ScriptedActor], Any]) -> ScriptedActor:
        """A new actor, at its first request."""
        actor = ScriptedActor(name, self.stage, work)
        self._actors.append(actor)
        return actor

    def through(self, run: Run, actor: ScriptedActor) -> Run:
        """A run whose requests are those of an actor."""
        return replace(run, query=replace(run.query, through=actor.client))


def admin_of(actor: ScriptedActor) -> Admin:
    """The operator's commands, without waits."""
    admin = Admin(actor.client)
    admin.registers = Registers(actor.client, QUICK)
    return admin
