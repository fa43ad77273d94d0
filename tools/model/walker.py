"""Plays a path of the model on the core, which must reach the same states."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any

from tools.model.mapping import QUERIES, WHYS, WRITES, is_claim
from tools.model.network import (
    Parted,
    ScriptedActor,
    Stage,
    is_asked,
    is_next,
    is_of_neighbours,
    is_read,
    lost,
)
from tools.model.paths import Path
from tools.model.roles import IDS, Roles, Staging, admin_of
from tools.model.scopes import Scope
from tools.model.tlc import Function, tla

from sparkonce.errors import BatchUnfinished
from sparkonce.operate.admin import SinkStatus
from sparkonce.tck.explore.frozen import frozen
from sparkonce.tck.explore.turns import Pool
from sparkonce.tck.simulation.actors import Run
from sparkonce.tck.simulation.memory import MemoryStore

SHOWN = frozenset({"act", "d", "pc", "x", "a", "arrives", "late", "heard", "again"})


@dataclass(frozen=True)
class Played:
    """The result of playing a path.

    Attributes:
        steps: the number of steps that the core followed.
        parted: why the core left the path; empty if it reached the end.
        left: the step at which the core left the path: its action and its request.
    """

    steps: int
    parted: str = ""
    left: str = ""


def play(path: Path, scope: Scope, memory: MemoryStore) -> Played:
    """Play a path."""
    pool = Pool()
    stage = Stage(memory, pool)
    walker = Walker(path, Roles(scope, stage))
    try:
        with frozen():
            stage.run(walker.through)
    finally:
        pool.close()
    return Played(walker.steps, walker.parted, walker.left)


THROUGH = frozenset({"failed", "note", "off"})
"""The places of a driver whose commit has ended."""
COMPARED = WRITES | {"cut", "row"}
"""Requests of the model that change the store if they have an effect."""


@dataclass
class Life:
    """A run at one of its epochs.

    Attributes:
        actor: the actor of the commit, once it has begun.
        has_listed: whether a batch has listed the sinks that it must wait for.
    """

    run: Run
    epoch: int
    actor: ScriptedActor | None = None
    has_listed: bool = False


class Walker:
    """Follows a path of the model."""

    def __init__(self, path: Path, roles: Roles) -> None:
        self.path, self.roles, self.network = path, roles, roles.network
        self.view, self.tasks = roles.view, roles.tasks
        self.lives: dict[str, Life] = {}
        self._kept: dict[str, Any] = {}
        self.steps, self.parted, self.left = 0, "", ""

    def through(self) -> None:
        """Follow the path as far as the core does."""
        try:
            for step in self.path:
                self._take(step)
                self.steps += 1
            self.require_next(self.path[-1]["at"])
        except Parted as parted:
            step = self.path[self.steps] if self.steps < len(self.path) else Function(act="ends")
            shown = {name: one for name, one in step.items() if name in SHOWN}
            self.parted = f"step {self.steps + 1}, {tla(shown)}: {parted}"
            of = step["m"]["kind"] if "m" in step else step.get("pc", "")
            self.left = f"{step['act']} {of}".strip()
        finally:
            self.roles.end()

    def _take(self, step: Function) -> None:
        handler: Callable[[Function], None] = getattr(self, f"on_{step['act']}")
        handler(step)
        self.network.sent = step["sent"]
        if "d" in step:
            self.require_at(step)
        seen, shown = self.roles.see(), step["shown"]
        for name, one in shown.items():
            if seen[name] != one:
                raise Parted(f"{name} is {tla(seen[name])}, not {tla(one)}")

    # -- drivers

    def on_starts(self, step: Function) -> None:
        run = Run(self.roles.query(step["q"]), f"run{len(self.view.runs)}")
        self.view.number(run.run_id)
        self.lives[step["d"]] = Life(run, step["e"])

    def on_commits(self, step: Function) -> None:
        life = self.lives[step["d"]]
        receipts = [self.tasks[a - 1].receipt() for a in step["as"]]
        offsets = [self._offsets(life, epoch) for epoch in (life.epoch, life.epoch - 1)]
        life.actor = self.roles.actor(
            f"commit {step['d']}",
            lambda one: self.roles.through(life.run, one).commit(life.epoch, receipts, *offsets),
        )

    def _offsets(self, life: Life, epoch: int) -> str | None:
        plan = self.roles.plans.get((life.run.query.id, epoch))
        return None if plan is None else f"plan {plan}"

    def on_looks(self, step: Function) -> None:
        actor = self._actor_of(step)
        own = self.lives[step["d"]].run.query.name
        if step["pc"] == "neighbours":
            self._look_at_neighbours(self.lives[step["d"]], actor)
            return
        self.network.until(actor, lambda one: is_read(one, step, own))
        actor.go(self.network.perform)
        if step["pc"] == "look" and actor.pending is not None and actor.pending.name == "read":
            actor.go(self.network.perform)  # if a chunk is missing, it reads why

    def _look_at_neighbours(self, life: Life, actor: ScriptedActor) -> None:
        """All reads about other sinks are one step; listings are current."""
        self.roles.subject.settle()
        if not life.has_listed:
            self.network.until(actor, lambda one: one.name == "unfinished")
        life.has_listed = True
        while actor.pending is not None and is_of_neighbours(actor.pending, life.run.query.name):
            actor.go(self.network.perform)

    def on_asks(self, step: Function) -> None:
        actor, message = self._actor_of(step), step["m"]
        network, late = self.network, message if step["late"] else None
        request = network.until(actor, lambda one: is_asked(one, message, self.view))
        fate = network.fate(arrives=step["arrives"], heard=step["heard"], late=late)
        changed = network.changes(actor, fate)
        if message["kind"] in COMPARED and changed != (step["arrives"] and step["does"]):
            raise Parted(f"the store {'accepts' if changed else 'does not accept'} {request}")
        if step["at"][step["d"]]["pc"] == "fence":  # it gives up, and reads the outcome
            while actor.pending is not None and actor.pending.name == request.name != "read":
                actor.go(lost)

    def _actor_of(self, step: Function) -> ScriptedActor:
        actor = self.lives[step["d"]].actor
        if actor is None:
            raise Parted("the driver has no commit")
        return actor

    def on_notes(self, step: Function) -> None:
        life = self.lives[step["d"]]
        if step["at"][step["d"]]["pc"] == "off":
            del self.lives[step["d"]]
        else:
            self.lives[step["d"]] = Life(life.run, life.epoch + 1)

    def on_dies(self, step: Function) -> None:
        actor = self.lives.pop(step["d"]).actor
        if actor is not None:
            actor.die()

    def require_at(self, step: Function) -> None:
        """Check that a driver is where the model has it: whether its commit ended, and why."""
        at, life = step["at"][step["d"]], self.lives.get(step["d"])
        actor = life.actor if life is not None else None
        if actor is None or at["pc"] not in THROUGH:
            return
        if at["pc"] == "off":
            del self.lives[step["d"]]
        self.network.close(actor)
        if _why(actor.error) != at["why"]:
            raise Parted(f"the core ends with {actor.error!r}, not with {at['why']!r}")

    def require_next(self, at: Function) -> None:
        """Check that, at the end of a path, living actors next send the model's requests."""
        for d, life in self.lives.items():
            if life.actor is not None and at[d]["pc"] not in THROUGH:
                wanted = partial(is_next, at=at[d], own=life.run.query.name)
                self.network.until(life.actor, wanted)

    def on_task(self, step: Function) -> None:
        life = self.lives[step["d"]]
        self.roles.plans.setdefault(
            (life.run.query.id, life.epoch), self.view.runs[life.run.run_id]
        )
        task = life.run.task(life.epoch, step["p"] - 1)
        self.view.numbers[task.attempt] = len(self.view.numbers) + 1
        staging = Staging(task, step["size"], self.roles.stage, self.view.converging)
        self.tasks.append(staging)
        self.network.until(staging.actor, lambda one: one.name == "read")
        staging.actor.go(self.network.perform)

    def on_recovers(self, step: Function) -> None:
        self._recover(step, accept_loss=False)

    def on_accepts(self, step: Function) -> None:
        self._recover(step, accept_loss=True)

    def _recover(self, step: Function, *, accept_loss: bool) -> None:
        sink = SinkStatus(self.roles.sink(step["x"]), None, ())
        actor = self.roles.actor(
            "operator", lambda one: admin_of(one).recover(sink, accept_loss=accept_loss)
        )
        self.lives[step["d"]] = Life(Run(self.roles.query("a"), ""), 0, actor)
        self.network.until(actor, lambda one: one.name == "read")
        actor.go(self.network.perform)

    # -- tasks

    def on_stages(self, step: Function) -> None:
        staging = self.tasks[step["a"] - 1]
        request = self.network.until(staging.actor, lambda one: one.name == "stage")
        message = Function(kind="stage", c=(step["a"], request.chunk.seq + 1))  # type: ignore[union-attr]
        late, arrives = message if step["late"] else None, step["arrives"]
        staging.actor.go(self.network.fate(arrives=arrives, heard=arrives, late=late))

    def on_fails(self, step: Function) -> None:
        staging = self.tasks[step["a"] - 1]
        staging.fail()
        self.network.emit(staging.actor, "discard", step["sent"])

    # -- aborts and commands

    def on_dooms(self, step: Function) -> None:
        staging = self.tasks[step["a"] - 1]
        run, task = (
            Run(self.roles.query(QUERIES[staging.task.query_id]), staging.task.run_id),
            staging.task,
        )
        receipts = [staging.claimed()]
        actor = self.roles.actor(
            "abort", lambda one: self.roles.through(run, one).abort(task.epoch, receipts)
        )
        self.network.emit(actor, "doom", step["sent"])

    def on_leaves(self, step: Function) -> None:
        pending = [one["drop"] for one in self.network.sent if one["kind"] == "drop"]
        dropping = {self.tasks[a - 1].task.attempt for drop in pending for a in drop}
        run = Run(self.roles.query(step["x"] if step["x"] != "s" else "a"), "")
        ledger = self.roles.subject.ledger(run.query.name)
        run.query.id = ledger.owner.query_id
        dropped = set(ledger.decision.doomed) - dropping
        actor = self.roles.actor(
            "abort",
            lambda one: self.roles.through(run, one).committer()._leave(run.driver(0), dropped),
        )
        self.network.emit(actor, "swap", step["sent"])

    def on_sweeps(self, step: Function) -> None:
        run = Run(self.roles.query("a"), "")
        receipts = [self.tasks[a - 1].claimed() for a in step["as"]]

        def clean(actor: ScriptedActor) -> None:
            committer = self.roles.through(run, actor).committer()
            ledger = committer.registers.load(self.roles.sink(step["x"]))
            committer._clean(ledger, receipts)  # type: ignore[arg-type]

        actor = self.roles.actor("commit", clean)
        if step["late"]:
            self.network.emit(actor, "discard", step["sent"])
        else:
            self.network.until(actor, lambda one: one.name == "discard")
            actor.go(self.network.perform)

    def on_forgets(self, step: Function) -> None:
        self.roles.subject.settle()
        actor = self.roles.actor(
            "operator", lambda one: admin_of(one).forget(self.roles.sink(step["x"]))
        )
        self.network.emit(actor, "doom", step["sent"])

    # -- events from outside

    def on_delivers(self, step: Function) -> None:
        network, message = self.network, step["m"]
        if step["again"] and not step["does"]:
            network.repeat(message, step["sent"])
        else:
            network.deliver(message, again=step["again"], sent=step["sent"])

    def on_refuses(self, step: Function) -> None:
        self.network.refused = {self.tasks[a - 1].task.attempt for a in step["as"]}

    def on_calms(self, _: Function) -> None:
        self.network.refused = set()

    def on_keeps(self, _: Function) -> None:
        self._kept = self.roles.stage.memory.snapshot()
        self.view.keep()

    def on_loses(self, _: Function) -> None:
        lost = self.roles.values["Loss"]
        if lost == "suffix":
            self.view.lose()
        memory, kept = self.roles.stage.memory, self._kept
        if lost == "ledger":
            claims = {name: one for name, one in memory.records.items() if is_claim(name)}
            ledgers = {name: one for name, one in kept["records"].items() if not is_claim(name)}
            memory.restore({"records": claims | ledgers})
        else:
            memory.restore(kept if lost == "suffix" else {"log": kept["log"]})

    def on_restores(self, step: Function) -> None:
        q = IDS[step["q"]]
        self.roles.plans = {
            key: plan
            for key, plan in self.roles.plans.items()
            if key[0] != q or key[1] <= step["e"]
        }


def _why(error: Exception | None) -> str:
    """The model's name of an error; for an unfinished batch, the name of its cause."""
    cause = error.__cause__ if isinstance(error, BatchUnfinished) else error
    name = "" if cause is None else type(cause).__name__
    return WHYS.get(name, name)
