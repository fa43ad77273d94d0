"""Actors that stop at each request, and the network between them and the store."""

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
    """The fate of a request without a reply."""
    raise StoreUnreachable("no answer")


def dead(_: Request) -> Any:
    """The fate of a request whose sender dies."""
    raise Crash("dies")


class ScriptedActor:
    """An actor that runs the core, from one request to the next.

    Attributes:
        pending: the request that it is about to send; None once its work has ended.
        answer: the result of its work.
        error: the error that its work raised.
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
        """Apply this fate to its request, and let it run to the next one."""
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
    """Runs actors one at a time; a director chooses them."""

    def __init__(self, memory: MemoryStore, pool: Pool) -> None:
        self.memory = memory
        self.turns = ActorTurns(pool, self._choose)
        self._director = Actor("director", lambda _: None)
        self._chosen = self._director

    def run(self, direct: Callable[[], None]) -> None:
        """Run `direct`, which lets actors continue."""
        self._director.work = lambda _: direct()
        self.turns.spawn(self._director)
        self.turns.run()

    def let(self, actor: Actor) -> None:
        """Let the director wait until this actor reaches its next request, or ends."""
        self._chosen = actor
        self.turns.turn(self._director)

    def _choose(self, me: Actor | None, _: list[Actor]) -> Actor:
        return self._chosen if me is self._director else self._director


class Parted(Exception):
    """The core takes another step than the model."""


class Held(NamedTuple):
    """A request in flight; its sender lives only while it waits for the reply."""

    request: Request
    sender: ScriptedActor | None = None


class Network:
    """Carries requests as a path prescribes.

    Attributes:
        sent: the messages in flight in the model.
        refused: attempts whose rows the server refuses.
    """

    def __init__(self, stage: Stage, view: StoreView) -> None:
        self.memory, self.view = stage.memory, view
        self.sent: frozenset[Function] = frozenset()
        self.refused: set[str] = set()
        self._held: dict[Function, Held] = {}  # also messages that have arrived
        self._taking, self._refusing = self.memory.take, False
        self.memory.take = self._take

    def _take(self, row: str) -> None:
        if self._refusing:
            raise RowRefused(f"row {row} does not fit")
        self._taking(row)

    def perform(self, request: Request) -> Any:
        """Let the request take effect, and return its reply."""
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
        """The fate of a request; `late` is its message in the model, if it arrives late."""

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
        """Let an actor run to a request; its requests before that must change nothing."""
        while actor.pending is not None and not wanted(actor.pending):
            self.quietly(actor)
        if actor.pending is None:
            raise Parted(f"the core has ended, with {actor.error or actor.answer!r}")
        return actor.pending

    def quietly(self, actor: ScriptedActor) -> None:
        """Let it read, or repeat a request that took effect; drops of leftovers are lost."""
        request = actor.pending
        if request is None or request.name == "discard":
            if request is not None and names_held(self.memory.snapshot(), request):
                raise Parted(f"the core drops decided chunks: {request}")
            actor.go(lost)
        elif request.name in READING:
            actor.go(self.perform)
        elif self.changes(actor, self.perform):
            raise Parted(f"the core sends {request}")

    def changes(self, actor: ScriptedActor, fate: Fate) -> bool:
        """Apply this fate to its request; return whether that changes the store."""
        before = self.memory.snapshot()
        actor.go(fate)
        return bool(self.memory.snapshot() != before)

    def close(self, actor: ScriptedActor) -> None:
        """Let the actor run to its end."""
        while actor.pending is not None:
            self.quietly(actor)

    # -- in flight

    def emit(self, actor: ScriptedActor, name: str, sent: frozenset[Function]) -> None:
        """Let an actor run to the request of this name, which is in flight from now on."""
        new = sent - self.sent
        if new:
            [message] = new
            asked = self.until(actor, lambda one: is_sent(one, message, self.view))
            self._held[message] = Held(asked, actor)
        else:  # the model has only one such request
            self.until(actor, lambda one: one.name == name)
            actor.die()

    def deliver(self, message: Function, *, again: bool, sent: frozenset[Function]) -> None:
        """Deliver a message; the next requests of its sender are in flight, and the sender dies."""
        held, new = self._held[message], set(sent - (self.sent - {message}))
        if again:
            new.discard(self._keep(message, sent, Held(held.request)))
        if held.sender is None or held.sender.pending is not held.request:
            with contextlib.suppress(SparkonceError):
                self.perform(held.request)
        else:
            held.sender.go(self.perform)
            self._capture(held.sender, new)
        if not new <= self._held.keys():  # a failover can repeat a message and its successors
            raise Parted(f"the core does not continue with {[one['kind'] for one in new]}")

    def repeat(self, message: Function, sent: frozenset[Function]) -> None:
        """Deliver a message that does nothing, and will arrive once more."""
        held = self._held[message]
        self._keep(message, sent, held)
        with contextlib.suppress(SparkonceError):
            self.perform(held.request)

    def _keep(self, message: Function, sent: frozenset[Function], held: Held) -> Function:
        """The message's form from now on, after its stamp was drawn."""
        new = {message} & sent or sent - self.sent
        [same] = [one for one in new if one["kind"] == message["kind"]]
        self._held[same] = held
        return same

    def _capture(self, actor: ScriptedActor, new: set[Function]) -> None:
        while new and actor.pending is not None:
            request = actor.pending
            found = [one for one in new if is_sent(request, one, self.view)]
            if not found and request.name not in (*READING, "discard"):
                raise Parted(f"the core sends {request}")
            for message in found:
                self._held[message] = Held(request)
                new.discard(message)
            actor.go(self.perform if request.name in READING else lost)
        actor.die()


def _attempts(request: Request) -> set[str]:
    """The attempts whose rows the request applies."""
    manifest = request.manifest
    if manifest is None or request.name not in ("publish", "apply", "update"):
        return set()
    if request.name == "publish":
        return {part.attempt for part in manifest.parts}
    return {chunk_of(request)[0]}


def is_sent(request: Request, message: Function, view: StoreView) -> bool:
    """Whether a request is this message in flight: a drop, a doom, a removed ledger."""
    kind = message["kind"]
    if kind in ("free", "cut"):
        is_it = request.name == "swap" and is_claim(request.sink) == (kind == "free")
    else:
        is_it = request.name == {"drop": "discard", "doom": "doom"}.get(kind)
    named = message["drop"] if kind in ("drop", "doom") else ()
    return is_it and _is_about(request, message) and set(view.known(request.attempts)) >= set(named)


def is_asked(request: Request, message: Function, view: StoreView) -> bool:
    """Whether a request is this message of a driver."""
    kind = message["kind"]
    if not _is_of(request, kind) or not _is_about(request, message):
        return False
    if kind != "row":
        return True
    attempt, seq = chunk_of(request)
    return (ordinal(request), (view.numbers[attempt], seq + 1)) == (message["k"], message["c"])


def is_read(request: Request, step: Function, own: str) -> bool:
    """Whether a request is the read of a driver at this step."""
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
    """Whether a request is the next one of a driver."""
    if at["pc"] in ("ask", "row", "mark"):
        return _is_of(request, at["kind"] if at["pc"] == "ask" else at["pc"])
    if at["pc"] == "neighbours" and is_of_neighbours(request, own):
        return True
    return is_read(request, at, own)


def is_of_neighbours(request: Request, own: str) -> bool:
    """Whether a request is a read of a batch about other sinks."""
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
