"""An operator who runs the commands of ``sparkonce`` while queries run."""

from __future__ import annotations

from dataclasses import dataclass, field

from sparkonce.errors import BatchOvertaken, SparkonceError
from sparkonce.exactly_once.registers import Registers
from sparkonce.operate.admin import Admin, SinkStatus
from sparkonce.tck.explore.turns import Actor
from sparkonce.tck.explore.world import World
from sparkonce.tck.simulation.actors import QUICK
from sparkonce.tck.simulation.faults import Crash

COMMANDS = ("gc", "recover", "forget")
BESIDE_BATCHES = ("recover", "gc", "forget")


@dataclass
class Operator:
    """An actor that runs commands, one after the other.

    Attributes:
        commands: of `COMMANDS`.
        refusals: the errors that stopped them.
    """

    world: World
    commands: tuple[str, ...]
    refusals: list[SparkonceError] = field(default_factory=list)

    def __call__(self, actor: Actor) -> None:
        """Run all commands."""
        admin = admin_of(self.world, actor)
        for command in self.commands:
            try:
                self._give(admin, actor, command)
            except SparkonceError as error:
                self.world.tape.event("refused", actor.name, error=type(error).__name__)
                self.refusals.append(error)
                self.world.say(actor.name, f"{command}: {type(error).__name__}: {error.what}")
            except Crash:
                self.world.mark("operator dies")
            self.world.tape.event("ends", actor.name)

    def _give(self, admin: Admin, actor: Actor, command: str) -> None:
        sinks = admin.sinks()
        if command == "recover":
            sinks = [sink for sink in sinks if sink.is_unfinished] or sinks
        if not sinks:
            return
        sink = sinks[self.world.choices.pick(len(sinks), 0.7)]
        self.world.say(actor.name, f"{command} {sink.name.partition('@')[0]}")
        self.world.tape.event(command, actor.name)
        if command == "gc":
            self._clean(admin, sink)
        if command == "recover":
            self._recover(admin, actor, sink)
        if command == "forget":
            self.world.watch.forgotten.add(sink.name)
            admin.forget(sink.name)
            self.world.mark("forget")

    def _clean(self, admin: Admin, sink: SinkStatus) -> None:
        if admin.gc(sink, grace=0):
            self.world.mark("gc discards attempts")
        if admin.sweep(grace=0):
            self.world.mark("gc removes a ledger")

    def _recover(self, admin: Admin, actor: Actor, sink: SinkStatus) -> None:
        try:
            with self.world.finishing(actor):
                admin.recover(sink)
        except BatchOvertaken:
            self.world.mark("recover refused")
            self._insist(admin, actor, sink)
        if sink.is_unfinished:
            self.world.mark("recovered by the operator")

    def _insist(self, admin: Admin, actor: Actor, sink: SinkStatus) -> None:
        """Leave the epoch, apply it over newer rows, or drop it."""
        chosen = self.world.choices.pick(3, 0.95)
        if chosen == 1:
            self.world.say(actor.name, "recover --over-newer")
            admin.recover(sink, over_newer=True)
        if chosen == 2 and (dropped := admin.drop(sink)) is not None:
            self.world.say(actor.name, "recover --drop")
            self.world.watch.dropped.add((dropped.owner.query_id, dropped.decision.epoch))
            self.world.mark("dropped")


def admin_of(world: World, actor: Actor) -> Admin:
    """The operator's commands, without waits."""
    client = world.client(actor)
    admin = Admin(client)
    admin.registers = Registers(client, QUICK)
    return admin
