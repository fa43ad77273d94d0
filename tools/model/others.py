"""What tasks do at each step of docs/model/walks.tla; and aborts, operators, the server."""

from __future__ import annotations

from typing import Any

from tools.model.cast import IDS, NAMES, Cast, admin_of
from tools.model.names import is_claim
from tools.model.puppets import Puppet
from tools.model.tla import Function

from sparkonce.tck.simulation.actors import Run


class Others:
    """Plays all but drivers.

    Args:
        cast: with whom.
    """

    def __init__(self, cast: Cast) -> None:
        self.cast = cast
        self._kept: dict[str, Any] = {}

    # -- tasks

    def on_stages(self, step: Function) -> None:
        """It stages a chunk."""
        staging = self.cast.tasks[step["a"] - 1]
        request = self.cast.network.until(staging.puppet, lambda one: one.name == "stage")
        message = Function(kind="stage", c=(step["a"], request.chunk.seq + 1))  # type: ignore[union-attr]
        late, arrives = message if step["late"] else None, step["arrives"]
        staging.puppet.go(self.cast.network.fate(arrives=arrives, heard=arrives, late=late))

    def on_fails(self, step: Function) -> None:
        """It fails, and drops what it has staged."""
        staging = self.cast.tasks[step["a"] - 1]
        staging.fail()
        self.cast.network.emit(staging.puppet, "discard", step["sent"])

    # -- aborts and commands

    def on_dooms(self, step: Function) -> None:
        """Spark aborts an epoch with one attempt."""
        staging = self.cast.tasks[step["a"] - 1]
        run, task = (
            Run(self.cast.query(NAMES[staging.task.query_id]), staging.task.run_id),
            staging.task,
        )
        receipts = [staging.claimed()]
        puppet = self.cast.puppet(
            "abort", lambda one: self.cast.through(run, one).abort(task.epoch, receipts)
        )
        self.cast.network.emit(puppet, "doom", step["sent"])

    def on_leaves(self, step: Function) -> None:
        """Who has aborted takes an undecided ledger away."""
        pending = [one["drop"] for one in self.cast.network.sent if one["kind"] == "drop"]
        dropping = {self.cast.tasks[a - 1].task.attempt for drop in pending for a in drop}
        run = Run(self.cast.query(step["x"] if step["x"] != "s" else "a"), "")
        ledger = self.cast.subject.ledger(run.query.name)
        run.query.id = ledger.owner.query_id
        dropped = set(ledger.decision.doomed) - dropping
        puppet = self.cast.puppet(
            "abort",
            lambda one: self.cast.through(run, one).committer()._leave(run.driver(0), dropped),
        )
        self.cast.network.emit(puppet, "swap", step["sent"])

    def on_sweeps(self, step: Function) -> None:
        """Who has committed drops leftovers."""
        run = Run(self.cast.query("a"), "")
        receipts = [self.cast.tasks[a - 1].claimed() for a in step["as"]]

        def clean(puppet: Puppet) -> None:
            committer = self.cast.through(run, puppet).committer()
            ledger = committer.registers.load(self.cast.sink(step["x"]))
            committer._clean(ledger, receipts)  # type: ignore[arg-type]

        puppet = self.cast.puppet("commit", clean)
        if step["late"]:
            self.cast.network.emit(puppet, "discard", step["sent"])
        else:
            self.cast.network.until(puppet, lambda one: one.name == "discard")
            puppet.go(self.cast.network.perform)

    def on_forgets(self, step: Function) -> None:
        """An operator forgets a sink."""
        self.cast.subject.settle()
        puppet = self.cast.puppet(
            "operator", lambda one: admin_of(one).forget(self.cast.sink(step["x"]))
        )
        self.cast.network.emit(puppet, "doom", step["sent"])

    # -- what comes from outside

    def on_delivers(self, step: Function) -> None:
        """A request arrives late."""
        network, message = self.cast.network, step["m"]
        if step["again"] and not step["does"]:
            network.repeat(message, step["sent"])
        else:
            network.deliver(message, again=step["again"], sent=step["sent"])

    def on_refuses(self, step: Function) -> None:
        """From now on the server refuses the rows of these attempts."""
        self.cast.network.refused = {self.cast.tasks[a - 1].task.attempt for a in step["as"]}

    def on_calms(self, _: Function) -> None:
        """It refuses nothing more."""
        self.cast.network.refused = set()

    def on_keeps(self, _: Function) -> None:
        """This state may come back."""
        self._kept = self.cast.stage.memory.snapshot()
        self.cast.eyes.keep()

    def on_loses(self, _: Function) -> None:
        """Some of it does."""
        lost = self.cast.values["Loss"]
        if lost == "suffix":
            self.cast.eyes.lose()
        memory, kept = self.cast.stage.memory, self._kept
        if lost == "ledger":
            claims = {name: one for name, one in memory.records.items() if is_claim(name)}
            ledgers = {name: one for name, one in kept["records"].items() if not is_claim(name)}
            memory.restore({"records": claims | ledgers})
        else:
            memory.restore(kept if lost == "suffix" else {"log": kept["log"]})

    def on_restores(self, step: Function) -> None:
        """A checkpoint goes back."""
        q = IDS[step["q"]]
        self.cast.plans = {
            key: plan for key, plan in self.cast.plans.items() if key[0] != q or key[1] <= step["e"]
        }
