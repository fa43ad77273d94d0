"""What the core does at each step of docs/model/walks.tla: its own code, played by puppets."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

from integration.model.names import KINDS, WHYS, is_claim
from integration.model.network import Network, Parted
from integration.model.puppets import Puppet, Stage
from integration.model.scopes import Scope
from integration.model.seen import Eyes, Fields, ordinal
from integration.model.staging import Staging
from integration.model.tla import Function

from sparkonce.exactly_once.registers import Registers
from sparkonce.operate.admin import Admin, SinkStatus
from sparkonce.origin import Follows
from sparkonce.tck.explore.requests import Request
from sparkonce.tck.memory_subject import MemorySubject
from sparkonce.tck.simulation.actors import QUICK, Query, Run

IDS = {"a": "a", "b": "n"}
"""Of queries, as the explorer has them."""
NAMES = {one: q for q, one in IDS.items()}


@dataclass
class Life:
    """A driver, or an operator who finishes an epoch: a run at one of its epochs.

    Attributes:
        puppet: commits, once that has begun.
    """

    run: Run
    epoch: int
    puppet: Puppet | None = None


class Acts:
    """Plays drivers, tasks and operators.

    Args:
        scope: of the model.
        stage: for the puppets.
    """

    def __init__(self, scope: Scope, stage: Stage) -> None:
        self.values, self.stage = scope.values, stage
        self.eyes = Eyes(self.values["Profile"] == "converging")
        self.network = Network(stage, self.eyes)
        self.subject = MemorySubject(stage.memory)
        self.lives: dict[str, Life] = {}
        self.tasks: list[Staging] = []
        self.plans: dict[tuple[str, int], int] = {}
        self.puppets: list[Puppet] = []
        self._runs = 0
        self._kept: dict[str, Any] = {}

    def see(self) -> Fields:
        """The store, as the model shows it."""
        return self.eyes.see(self.stage.memory.snapshot())

    def end(self) -> None:
        """End all who live."""
        for puppet in self.puppets:
            puppet.die()

    # -- queries and sinks

    def query(self, q: str) -> Query:
        """A query of the model."""
        policy, follows = self.values["Policy"], Follows(self.values["Follows"])
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

    def _puppet(self, name: str, work: Callable[[Puppet], Any]) -> Puppet:
        puppet = Puppet(name, self.stage, work)
        self.puppets.append(puppet)
        return puppet

    def _through(self, run: Run, puppet: Puppet) -> Run:
        return replace(run, query=replace(run.query, through=puppet.client))

    # -- drivers

    def on_starts(self, step: Function) -> None:
        """A run begins an epoch."""
        self._runs += 1
        run = Run(self.query(step["q"]), f"run{self._runs}")
        self.lives[step["d"]] = Life(run, step["e"])

    def on_commits(self, step: Function) -> None:
        """Its commit begins, with the receipts of these attempts."""
        life = self.lives[step["d"]]
        receipts = [self.tasks[a - 1].receipt() for a in step["as"]]
        offsets = [self._offsets(life, epoch) for epoch in (life.epoch, life.epoch - 1)]
        life.puppet = self._puppet(
            f"commit {step['d']}",
            lambda one: self._through(life.run, one).commit(life.epoch, receipts, *offsets),
        )

    def _offsets(self, life: Life, epoch: int) -> str | None:
        plan = self.plans.get((life.run.query.id, epoch))
        return None if plan is None else f"plan {plan}"

    def on_looks(self, step: Function) -> None:
        """It reads."""
        puppet = self._puppet_of(step)
        own = self.lives[step["d"]].run.query.name
        if step["pc"] == "neighbours":  # all that it reads of others is one step
            while puppet.pending is not None and _is_of_neighbours(puppet.pending, own):
                puppet.go(self.network.perform)
            return
        self.network.until(puppet, lambda one: _reads(one, step, own))
        puppet.go(self.network.perform)
        if step["pc"] == "look" and puppet.pending is not None and puppet.pending.name == "read":
            puppet.go(self.network.perform)  # where a chunk is missing, it asks why

    def on_asks(self, step: Function) -> None:
        """It sends a request."""
        puppet, message = self._puppet_of(step), step["m"]
        request = self.network.until(puppet, lambda one: _asks(one, message))
        late = message if step["late"] else None
        fate = self.network.fate(arrives=step["arrives"], heard=step["heard"], late=late)
        puppet.go(fate)
        if step["at"][step["d"]]["pc"] == "fence":  # it gives up, and asks what became of it
            while puppet.pending is not None and puppet.pending.name == request.name != "read":
                puppet.go(self.network.fate(arrives=False, heard=False, late=None))

    def _puppet_of(self, step: Function) -> Puppet:
        puppet = self.lives[step["d"]].puppet
        if puppet is None:
            raise Parted("nobody is there")
        return puppet

    def on_notes(self, step: Function) -> None:
        """Spark notes its epoch."""
        life = self.lives[step["d"]]
        if step["at"][step["d"]]["pc"] == "off":
            del self.lives[step["d"]]
        else:
            self.lives[step["d"]] = Life(life.run, life.epoch + 1)

    def on_dies(self, step: Function) -> None:
        """It dies."""
        puppet = self.lives.pop(step["d"]).puppet
        if puppet is not None:
            puppet.die()

    def require_at(self, step: Function) -> None:
        """See that a driver is where the model has it: through with its commit, and why.

        Raises:
            Parted: it is not.
        """
        at, life = step["at"][step["d"]], self.lives.get(step["d"])
        puppet = life.puppet if life is not None else None
        if puppet is None or at["pc"] not in ("failed", "note", "off"):
            return
        if at["pc"] == "off":
            self.on_dies(step)
            return
        self.network.close(puppet)
        why = "" if puppet.error is None else type(puppet.error).__name__
        if WHYS.get(why, why) != at["why"]:
            raise Parted(f"the core ends with {puppet.error!r}, and not with {at['why']!r}")

    # -- tasks

    def on_task(self, step: Function) -> None:
        """A task begins, and looks whether its epoch is decided."""
        life = self.lives[step["d"]]
        self.plans.setdefault((life.run.query.id, life.epoch), int(life.run.run_id[3:]))
        task = life.run.task(life.epoch, step["p"] - 1)
        self.eyes.numbers[task.attempt] = len(self.eyes.numbers) + 1
        staging = Staging(task, step["size"], self.stage, self.eyes.converging)
        self.tasks.append(staging)
        self.puppets.append(staging.puppet)
        self.network.until(staging.puppet, lambda one: one.name == "read")
        staging.puppet.go(self.network.perform)

    def on_stages(self, step: Function) -> None:
        """It stages a chunk."""
        staging = self.tasks[step["a"] - 1]
        request = self.network.until(staging.puppet, lambda one: one.name == "stage")
        message = Function(kind="stage", c=(step["a"], request.chunk.seq + 1))  # type: ignore[union-attr]
        late, arrives = message if step["late"] else None, step["arrives"]
        staging.puppet.go(self.network.fate(arrives=arrives, heard=arrives, late=late))

    def on_fails(self, step: Function) -> None:
        """It fails, and drops what it has staged."""
        staging = self.tasks[step["a"] - 1]
        staging.fail()
        self.network.emit(staging.puppet, "discard", step["sent"])

    # -- aborts and commands

    def on_dooms(self, step: Function) -> None:
        """Spark aborts an epoch with one attempt."""
        staging = self.tasks[step["a"] - 1]
        run, task = Run(self.query(NAMES[staging.task.query_id]), staging.task.run_id), staging.task
        receipts = [staging.claimed()]
        puppet = self._puppet(
            "abort", lambda one: self._through(run, one).abort(task.epoch, receipts)
        )
        self.network.emit(puppet, "doom", step["sent"])

    def on_leaves(self, step: Function) -> None:
        """Who has aborted takes an undecided ledger away."""
        pending = [one["drop"] for one in self.network.sent if one["kind"] == "drop"]
        dropping = {self.tasks[a - 1].task.attempt for drop in pending for a in drop}
        run = Run(self.query(step["x"] if step["x"] != "s" else "a"), "")
        ledger = self.subject.ledger(run.query.name)
        run.query.id = ledger.query_id
        dropped = set(ledger.doomed) - dropping
        puppet = self._puppet(
            "abort",
            lambda one: self._through(run, one).committer()._leave(run.driver(0), dropped),
        )
        self.network.emit(puppet, "swap", step["sent"])

    def on_sweeps(self, step: Function) -> None:
        """Who has committed drops leftovers."""
        run = Run(self.query("a"), "")
        receipts = [self.tasks[a - 1].claimed() for a in step["as"]]

        def clean(puppet: Puppet) -> None:
            committer = self._through(run, puppet).committer()
            ledger = committer.registers.load(self.sink(step["x"]))
            committer._clean(ledger, receipts)  # type: ignore[arg-type]

        puppet = self._puppet("commit", clean)
        if step["late"]:
            self.network.emit(puppet, "discard", step["sent"])
        else:
            self.network.until(puppet, lambda one: one.name == "discard")
            puppet.go(self.network.perform)

    def on_forgets(self, step: Function) -> None:
        """An operator forgets a sink."""
        self.subject.settle()
        puppet = self._puppet("operator", lambda one: _admin(one).forget(self.sink(step["x"])))
        self.network.emit(puppet, "doom", step["sent"])

    def on_recovers(self, step: Function) -> None:
        """One finishes an epoch."""
        self._recover(step, accept_loss=False)

    def on_accepts(self, step: Function) -> None:
        """One leaves the rest of an epoch out, of which chunks are gone."""
        self._recover(step, accept_loss=True)

    def _recover(self, step: Function, *, accept_loss: bool) -> None:
        sink = SinkStatus(self.sink(step["x"]), None, ())
        puppet = self._puppet(
            "operator", lambda one: _admin(one).recover(sink, accept_loss=accept_loss)
        )
        self.lives[step["d"]] = Life(Run(self.query("a"), ""), 0, puppet)
        self.network.until(puppet, lambda one: one.name == "read")
        puppet.go(self.network.perform)

    # -- what comes from outside

    def on_delivers(self, step: Function) -> None:
        """A request arrives late."""
        network, message = self.network, step["m"]
        if step["again"] and not step["does"]:
            network.repeat(message, step["sent"])
        else:
            network.deliver(message, again=step["again"], sent=step["sent"])

    def on_refuses(self, step: Function) -> None:
        """From now on the server refuses the rows of these attempts."""
        self.network.refused = {self.tasks[a - 1].task.attempt for a in step["as"]}

    def on_calms(self, _: Function) -> None:
        """It refuses nothing more."""
        self.network.refused = set()

    def on_keeps(self, _: Function) -> None:
        """This state may come back."""
        self._kept = self.stage.memory.snapshot()
        self.eyes.keep()

    def on_loses(self, _: Function) -> None:
        """Some of it does."""
        lost = self.values["Loss"]
        if lost == "suffix":
            self.eyes.lose()
        memory, kept = self.stage.memory, self._kept
        if lost == "ledger":
            claims = {name: one for name, one in memory.records.items() if is_claim(name)}
            ledgers = {name: one for name, one in kept["records"].items() if not is_claim(name)}
            memory.restore({"records": claims | ledgers})
        else:
            memory.restore(kept if lost == "suffix" else {"log": kept["log"]})

    def on_restores(self, step: Function) -> None:
        """A checkpoint goes back."""
        q = IDS[step["q"]]
        self.plans = {
            key: plan for key, plan in self.plans.items() if key[0] != q or key[1] <= step["e"]
        }




def _admin(puppet: Puppet) -> Admin:
    admin = Admin(puppet.client)
    admin.registers = Registers(puppet.client, QUICK)
    return admin


def _is_of_neighbours(request: Request, own: str) -> bool:
    return request.name == "names" or (request.name == "read" and request.sink != own)


def _reads(request: Request, step: Function, own: str) -> bool:
    """Whether it is what a driver reads at this step."""
    match step["pc"]:
        case "look" | "fetch":
            return request.name == step["pc"] and _is_at(request, step["k"])
        case "claim":
            return request.name == "read" and is_claim(request.sink)
        case "rival":
            return request.name == "read" and not is_claim(request.sink) and request.sink != own
        case _:
            return request.name == "read" and not is_claim(request.sink)


def _is_at(request: Request, k: int) -> bool:
    if request.name != "fetch" or request.manifest is None:
        return True
    part, seq = request.manifest.chunks[k - 1]
    given: tuple[Any, ...] = request.step.args  # type: ignore[attr-defined]
    return given[1:] == (part.attempt, seq)


def _asks(request: Request, message: Function) -> bool:
    """Whether it is this message of the model."""
    kind = message["kind"]
    if kind not in KINDS.get(request.name, ()) or is_claim(request.sink) != (kind == "claim"):
        return False
    return kind != "row" or ordinal(request) == message["k"]
