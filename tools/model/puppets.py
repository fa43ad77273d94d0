"""Actors that go no further than they are told: each stops at its next request."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from sparkonce.errors import StoreUnreachable
from sparkonce.tck.explore.requests import Client, Request
from sparkonce.tck.explore.turns import Actor, ActorTurns, Pool
from sparkonce.tck.simulation.faults import Crash
from sparkonce.tck.simulation.memory import MemoryStore

Fate = Callable[[Request], Any]


def lost(_: Request) -> Any:
    """What becomes of a request that nobody answers.

    Raises:
        StoreUnreachable: always.
    """
    raise StoreUnreachable("no answer")


def dead(_: Request) -> Any:
    """What becomes of one whose sender dies.

    Raises:
        Crash: always.
    """
    raise Crash("dies")


class Puppet:
    """Somebody who works with the core, from one request to the next.

    Attributes:
        pending: the request that it is about to send; None once it is through.
        answer: what its work gave.
        error: what it raised.
    """

    def __init__(self, name: str, stage: Stage, work: Callable[[Puppet], Any]) -> None:
        self.actor, self._stage, self._work = Actor(name, self._act), stage, work
        self.client = Client(self.actor, stage.memory, self)
        self.pending: Request | None = None
        self.answer: Any = None
        self.error: Exception | None = None
        self._fate: Fate = lost
        stage.turns.spawn(self.actor)
        self.go(lost)  # to its first request

    def go(self, fate: Fate) -> None:
        """Let this become of its request, and let it go on to the next one."""
        self._fate = fate
        self._stage.let(self.actor)

    def die(self) -> None:
        """End it."""
        while self.pending is not None:
            self.go(dead)

    def carry(self, request: Request) -> Any:
        """See `Carrier.carry`."""
        self.pending = request
        self._stage.turns.turn(self.actor)
        self.pending = None
        return self._fate(request)

    def _act(self, _: Actor) -> None:
        try:
            self.answer = self._work(self)
        except Exception as error:
            self.error = error
        except Crash:
            pass


class Stage:
    """Where puppets act, one at a time, while a director says who.

    Args:
        memory: the store.
        pool: threads.
    """

    def __init__(self, memory: MemoryStore, pool: Pool) -> None:
        self.memory = memory
        self.turns = ActorTurns(pool, self._choose)
        self._director = Actor("director", lambda _: None)
        self._chosen = self._director

    def run(self, direct: Callable[[], None]) -> None:
        """Let `direct` run, which tells puppets to go on.

        Raises:
            BaseException: what it raises.
        """
        self._director.work = lambda _: direct()
        self.turns.spawn(self._director)
        self.turns.run()

    def let(self, actor: Actor) -> None:
        """The director waits until this actor is at its next request, or through."""
        self._chosen = actor
        self.turns.turn(self._director)

    def _choose(self, me: Actor | None, _: list[Actor]) -> Actor:
        return self._chosen if me is self._director else self._director
