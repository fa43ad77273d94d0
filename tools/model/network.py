"""Actors that stop at each request, and the way of their requests to the store."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, NamedTuple

from tools.model.mapping import (
    KINDS,
    READING,
    StoreView,
    chunk_of,
    given,
    is_claim,
    name_of,
    names_held,
    ordinal,
)
from tools.model.tlc import Function

from sparkonce.errors import RowRefused, SparkonceError, StoreUnreachable
from sparkonce.tck.explore.requests import Client, Request
from sparkonce.tck.explore.turns import Actor, ActorTurns, Pool
from sparkonce.tck.simulation.faults import Crash
from sparkonce.tck.simulation.memory import MemoryStore

Fate = Callable[[Request], Any]


def lost(_: Request) -> Any:
    """What becomes of a request that nobody answers."""
    raise StoreUnreachable("no answer")


def dead(_: Request) -> Any:
    """What becomes of one whose sender dies."""
    raise Crash("dies")


class ScriptedActor:
    """Somebody who works with the core, from one request to the next.

    Attributes:
        pending: the request that it is about to send; None once it is through.
        answer: what its work gave.
        error: what it raised.
    """

    def __init__(self, name: str, stage: Stage, work: Callable[[ScriptedActor], Any]) -> None:
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
    """Where actors act, one at a time, while a director says who."""

    def __init__(self, memory: MemoryStore, pool: Pool) -> None:
        self.memory = memory
        self.turns = ActorTurns(pool, self._choose)
        self._director = Actor("director", lambda _: None)
        self._chosen = self._director

    def run(self, direct: Callable[[], None]) -> None:
        """Let `direct` run, which tells actors to go on."""
        self._director.work = lambda _: direct()
        self.turns.spawn(self._director)
        self.turns.run()

    def let(self, actor: Actor) -> None:
        """The director waits until this actor is at its next request, or through."""
        self._chosen = actor
        self.turns.turn(self._director)

    def _choose(self, me: Actor | None, _: list[Actor]) -> Actor:
        return self._chosen if me is self._director else self._director


class Parted(Exception):
    """The core goes another way than the model."""


class Held(NamedTuple):
    """A request that is on its way; its sender lives only where it waits for the answer."""

    request: Request
    sender: ScriptedActor | None = None


class Network:
    """Carries requests as a path says.

    Attributes:
        sent: what the model has on its way.
        refused: attempts that the server refuses.
    """

    def __init__(self, stage: Stage, view: StoreView) -> None:
        self.memory, self.view = stage.memory, view
        self.sent: frozenset[Function] = frozenset()
        self.refused: set[str] = set()
        self._held: dict[Function, Held] = {}  # also those that have come
        self._taking, self._refusing = self.memory.take, False
        self.memory.take = self._take

    def _take(self, row: str) -> None:
        if self._refusing:
            raise RowRefused(f"row {row} does not fit")
        self._taking(row)

    def perform(self, request: Request) -> Any:
        """Let it take effect, and give its answer."""
        with self._fitting(request):
            answer = request.step()
        store = self.memory.snapshot()
        self.view.count(store, request)
        self.view.pass_by(store, {})
        return answer

    @contextmanager
    def _fitting(self, request: Request) -> Iterator[None]:
        self._refusing = not self.refused.isdisjoint(_attempts(request))
        try:
            yield
        finally:
            self._refusing = False

    def fate(self, *, arrives: bool, heard: bool, late: Function | None) -> Fate:
        """What becomes of a request; `late` is what the model calls it, if it comes late."""

        def become(request: Request) -> Any:
            if late is not None:
                self._held[late] = Held(request)
            if heard:
                return self.perform(request)
            if arrives:
                with contextlib.suppress(SparkonceError):
                    self.perform(request)
            return lost(request)

        return become

    # -- from actor to actor

    def until(self, actor: ScriptedActor, wanted: Callable[[Request], bool]) -> Request:
        """Let a actor go on to a request; what it asks for before changes nothing."""
        while actor.pending is not None and not wanted(actor.pending):
            self.quietly(actor)
        if actor.pending is None:
            raise Parted(f"the core is through, with {actor.error or actor.answer!r}")
        return actor.pending

    def quietly(self, actor: ScriptedActor) -> None:
        """Let it read, or send again what took effect before; drops of leftovers are lost."""
        request = actor.pending
        if request is None or request.name == "discard":
            if request is not None and names_held(self.memory.snapshot(), request):
                raise Parted(f"the core drops what is decided: {request}")
            actor.go(lost)
        elif request.name in READING:
            actor.go(self.perform)
        elif self.changes(actor, self.perform):
            raise Parted(f"the core asks for {request}")

    def changes(self, actor: ScriptedActor, fate: Fate) -> bool:
        """Let this become of its request, and say whether that changes the store."""
        before = self.memory.snapshot()
        actor.go(fate)
        return bool(self.memory.snapshot() != before)

    def close(self, actor: ScriptedActor) -> None:
        """Let it go on to its end."""
        while actor.pending is not None:
            self.quietly(actor)

    # -- on its way

    def emit(self, actor: ScriptedActor, name: str, sent: frozenset[Function]) -> None:
        """Let a actor come to the request, of this name, which is on its way from now on."""
        new = sent - self.sent
        if new:
            [message] = new
            asked = self.until(actor, lambda one: is_sent(one, message, self.view))
            self._held[message] = Held(asked, actor)
        else:  # the model knows one such request only
            self.until(actor, lambda one: one.name == name)
            actor.die()

    def deliver(self, message: Function, *, again: bool, sent: frozenset[Function]) -> None:
        """It arrives; what its sender does then is on its way, and the sender dies."""
        held, new = self._held[message], set(sent - (self.sent - {message}))
        if again:
            new.discard(self._keep(message, sent, Held(held.request)))
        if held.sender is None or held.sender.pending is not held.request:
            with contextlib.suppress(SparkonceError):
                self.perform(held.request)
        else:
            held.sender.go(self.perform)
            self._capture(held.sender, new)
        if not new <= self._held.keys():  # where a failover lets it take effect twice, so do those
            raise Parted(f"the core does not go on with {[one['kind'] for one in new]}")

    def repeat(self, message: Function, sent: frozenset[Function]) -> None:
        """It arrives, does nothing, and will come once more."""
        held = self._held[message]
        self._keep(message, sent, held)
        with contextlib.suppress(SparkonceError):
            self.perform(held.request)

    def _keep(self, message: Function, sent: frozenset[Function], held: Held) -> Function:
        """What it is called from now on, once its stamp is drawn."""
        new = {message} & sent or sent - self.sent
        [same] = [one for one in new if one["kind"] == message["kind"]]
        self._held[same] = held
        return same

    def _capture(self, actor: ScriptedActor, new: set[Function]) -> None:
        while new and actor.pending is not None:
            request = actor.pending
            found = [one for one in new if is_sent(request, one, self.view)]
            if not found and request.name not in (*READING, "discard"):
                raise Parted(f"the core asks for {request}")
            for message in found:
                self._held[message] = Held(request)
                new.discard(message)
            actor.go(self.perform if request.name in READING else lost)
        actor.die()


def _attempts(request: Request) -> set[str]:
    """Whose rows it makes take effect."""
    manifest = request.manifest
    if manifest is None or request.name not in ("publish", "apply", "update"):
        return set()
    if request.name == "publish":
        return {part.attempt for part in manifest.parts}
    return {chunk_of(request)[0]}


def is_sent(request: Request, message: Function, view: StoreView) -> bool:
    """Whether it is a message that is on its way: a drop, a doom, a ledger taken away."""
    kind = message["kind"]
    if kind in ("free", "cut"):
        is_it = request.name == "swap" and is_claim(request.sink) == (kind == "free")
    else:
        is_it = request.name == {"drop": "discard", "doom": "doom"}.get(kind)
    named = message["drop"] if kind in ("drop", "doom") else ()
    return is_it and _is_about(request, message) and set(view.known(request.attempts)) >= set(named)


def is_asked(request: Request, message: Function, view: StoreView) -> bool:
    """Whether it is a message of a driver."""
    kind = message["kind"]
    if not _is_of(request, kind) or not _is_about(request, message):
        return False
    if kind != "row":
        return True
    attempt, seq = chunk_of(request)
    return (ordinal(request), (view.numbers[attempt], seq + 1)) == (message["k"], message["c"])


def is_read(request: Request, step: Function, own: str) -> bool:
    """Whether it is what a driver reads at this step."""
    match step["pc"]:
        case "look" | "fetch":
            return request.name == step["pc"] and _is_at(request, step.get("k"))
        case "alone":
            return request.name == "unfinished"
        case "claim":
            return request.name == "read" and is_claim(request.sink)
        case "rival":
            return request.name == "read" and not is_claim(request.sink) and request.sink != own
        case _:
            return request.name == "read" and not is_claim(request.sink)


def is_next(request: Request, at: Function, own: str) -> bool:
    """Whether it is what a driver is about to do."""
    if at["pc"] in ("ask", "row", "mark"):
        return _is_of(request, at["kind"] if at["pc"] == "ask" else at["pc"])
    if at["pc"] == "neighbours" and is_of_neighbours(request, own):
        return True
    return is_read(request, at, own)


def is_of_neighbours(request: Request, own: str) -> bool:
    """Whether it is what a batch reads of others."""
    of_others = request.name in ("read", "decided_after") and request.sink != own
    return request.name == "unfinished" or of_others


def _is_of(request: Request, kind: str) -> bool:
    return kind in KINDS.get(request.name, ()) and is_claim(request.sink) == (kind == "claim")


def _is_about(request: Request, message: Function) -> bool:
    return is_claim(request.sink) or name_of(request.sink) == message["name"]


def _is_at(request: Request, k: int | None) -> bool:
    if request.name != "fetch" or request.manifest is None or k is None:
        return True
    part, seq = request.manifest.chunks[k - 1]
    return given(request)[1:] == (part.attempt, seq)
