"""Who plays a path of the model, and what they share."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

from tools.model.network import Network
from tools.model.puppets import Puppet, Stage
from tools.model.scopes import Scope
from tools.model.seen import Eyes, Fields
from tools.model.staging import Staging

from sparkonce.exactly_once.registers import Registers
from sparkonce.operate.admin import Admin
from sparkonce.protocol import Follows
from sparkonce.tck.memory_subject import MemorySubject
from sparkonce.tck.simulation.actors import QUICK, Query, Run

IDS = {"a": "a", "b": "n", "p": "p"}
"""Of queries, as the explorer has them."""
NAMES = {one: q for q, one in IDS.items()}


class Cast:
    """Puppets, their tasks, and the store.

    Args:
        scope: of the model.
        stage: for the puppets.

    Attributes:
        tasks: in the order in which they began.
        plans: by query and epoch, which run planned it; it stands for the offsets.
    """

    def __init__(self, scope: Scope, stage: Stage) -> None:
        self.values, self.stage = scope.values, stage
        self.eyes = Eyes(self.values["Profile"] == "converging")
        self.network = Network(stage, self.eyes)
        self.subject = MemorySubject(stage.memory)
        self.tasks: list[Staging] = []
        self.plans: dict[tuple[str, int], int] = {}
        self._puppets: list[Puppet] = []

    def see(self) -> Fields:
        """The store, as the model shows it."""
        return self.eyes.see(self.stage.memory.snapshot())

    def end(self) -> None:
        """End all who live."""
        for puppet in [*self._puppets, *(task.puppet for task in self.tasks)]:
            puppet.die()

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

    def puppet(self, name: str, work: Callable[[Puppet], Any]) -> Puppet:
        """Somebody new, at his first request."""
        puppet = Puppet(name, self.stage, work)
        self._puppets.append(puppet)
        return puppet

    def through(self, run: Run, puppet: Puppet) -> Run:
        """A run whose requests are those of a puppet."""
        return replace(run, query=replace(run.query, through=puppet.client))


def admin_of(puppet: Puppet) -> Admin:
    """The operator's commands, without waits."""
    admin = Admin(puppet.client)
    admin.registers = Registers(puppet.client, QUICK)
    return admin
