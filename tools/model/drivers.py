"""What drivers do at each step of docs/model/walks.tla, and operators who finish an epoch."""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial

from tools.model.cast import Cast, admin_of
from tools.model.messages import is_asked, is_next, is_of_neighbours, is_read
from tools.model.names import WHYS, WRITES
from tools.model.network import Parted
from tools.model.puppets import Puppet, lost
from tools.model.staging import Staging
from tools.model.tla import Function

from sparkonce.errors import BatchUnfinished
from sparkonce.operate.admin import SinkStatus
from sparkonce.tck.simulation.actors import Run

THROUGH = frozenset({"failed", "note", "off"})
"""Where a commit is over."""
COMPARED = WRITES | {"cut", "row"}
"""Requests of the model that change the store if they do anything."""


@dataclass
class Life:
    """A run at one of its epochs.

    Attributes:
        puppet: commits, once that has begun.
        has_listed: whether a batch has asked whom it must wait for.
    """

    run: Run
    epoch: int
    puppet: Puppet | None = None
    has_listed: bool = False


class Drivers:
    """Plays those who live in a place of the model.

    Args:
        cast: with whom.

    Attributes:
        lives: by place.
    """

    def __init__(self, cast: Cast) -> None:
        self.cast = cast
        self.lives: dict[str, Life] = {}

    def on_starts(self, step: Function) -> None:
        """A run begins an epoch."""
        run = Run(self.cast.query(step["q"]), f"run{len(self.cast.eyes.runs)}")
        self.cast.eyes.number(run.run_id)
        self.lives[step["d"]] = Life(run, step["e"])

    def on_commits(self, step: Function) -> None:
        """Its commit begins, with the receipts of these attempts."""
        life = self.lives[step["d"]]
        receipts = [self.cast.tasks[a - 1].receipt() for a in step["as"]]
        offsets = [self._offsets(life, epoch) for epoch in (life.epoch, life.epoch - 1)]
        life.puppet = self.cast.puppet(
            f"commit {step['d']}",
            lambda one: self.cast.through(life.run, one).commit(life.epoch, receipts, *offsets),
        )

    def _offsets(self, life: Life, epoch: int) -> str | None:
        plan = self.cast.plans.get((life.run.query.id, epoch))
        return None if plan is None else f"plan {plan}"

    def on_looks(self, step: Function) -> None:
        """It reads."""
        puppet = self._puppet_of(step)
        own = self.lives[step["d"]].run.query.name
        if step["pc"] == "neighbours":
            self._look_at_neighbours(self.lives[step["d"]], puppet)
            return
        self.cast.network.until(puppet, lambda one: is_read(one, step, own))
        puppet.go(self.cast.network.perform)
        if step["pc"] == "look" and puppet.pending is not None and puppet.pending.name == "read":
            puppet.go(self.cast.network.perform)  # where a chunk is missing, it asks why

    def _look_at_neighbours(self, life: Life, puppet: Puppet) -> None:
        """All that it reads of others is one step; listings have caught up."""
        self.cast.subject.settle()
        if not life.has_listed:
            self.cast.network.until(puppet, lambda one: one.name == "unfinished")
        life.has_listed = True
        while puppet.pending is not None and is_of_neighbours(puppet.pending, life.run.query.name):
            puppet.go(self.cast.network.perform)

    def on_asks(self, step: Function) -> None:
        """It sends a request."""
        puppet, message = self._puppet_of(step), step["m"]
        network, late = self.cast.network, message if step["late"] else None
        request = network.until(puppet, lambda one: is_asked(one, message, self.cast.eyes))
        fate = network.fate(arrives=step["arrives"], heard=step["heard"], late=late)
        changed = network.changes(puppet, fate)
        if message["kind"] in COMPARED and changed != (step["arrives"] and step["does"]):
            raise Parted(f"the store {'takes' if changed else 'does not take'} {request}")
        if step["at"][step["d"]]["pc"] == "fence":  # it gives up, and asks what became of it
            while puppet.pending is not None and puppet.pending.name == request.name != "read":
                puppet.go(lost)

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
        if puppet is None or at["pc"] not in THROUGH:
            return
        if at["pc"] == "off":
            del self.lives[step["d"]]
        self.cast.network.close(puppet)
        if _why(puppet.error) != at["why"]:
            raise Parted(f"the core ends with {puppet.error!r}, and not with {at['why']!r}")

    def require_next(self, at: Function) -> None:
        """See that those who live ask next for what the model says, once a path ends.

        Raises:
            Parted: one does not.
        """
        for d, life in self.lives.items():
            if life.puppet is not None and at[d]["pc"] not in THROUGH:
                wanted = partial(is_next, at=at[d], own=life.run.query.name)
                self.cast.network.until(life.puppet, wanted)

    def on_task(self, step: Function) -> None:
        """A task begins, and looks whether its epoch is decided."""
        life = self.lives[step["d"]]
        self.cast.plans.setdefault(
            (life.run.query.id, life.epoch), self.cast.eyes.runs[life.run.run_id]
        )
        task = life.run.task(life.epoch, step["p"] - 1)
        self.cast.eyes.numbers[task.attempt] = len(self.cast.eyes.numbers) + 1
        staging = Staging(task, step["size"], self.cast.stage, self.cast.eyes.converging)
        self.cast.tasks.append(staging)
        self.cast.network.until(staging.puppet, lambda one: one.name == "read")
        staging.puppet.go(self.cast.network.perform)

    def on_recovers(self, step: Function) -> None:
        """One finishes an epoch."""
        self._recover(step, accept_loss=False)

    def on_accepts(self, step: Function) -> None:
        """One leaves the rest of an epoch out, of which chunks are gone."""
        self._recover(step, accept_loss=True)

    def _recover(self, step: Function, *, accept_loss: bool) -> None:
        sink = SinkStatus(self.cast.sink(step["x"]), None, ())
        puppet = self.cast.puppet(
            "operator", lambda one: admin_of(one).recover(sink, accept_loss=accept_loss)
        )
        self.lives[step["d"]] = Life(Run(self.cast.query("a"), ""), 0, puppet)
        self.cast.network.until(puppet, lambda one: one.name == "read")
        puppet.go(self.cast.network.perform)


def _why(error: Exception | None) -> str:
    """What the model calls it: what stopped a batch that is left unfinished is its cause."""
    cause = error.__cause__ if isinstance(error, BatchUnfinished) else error
    name = "" if cause is None else type(cause).__name__
    return WHYS.get(name, name)
