"""The network between actors and store; a schedule's choices decide its faults and order."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator
from typing import Any

from sparkonce.errors import RowRefused, SparkonceError, StoreUnreachable
from sparkonce.protocol import Record
from sparkonce.tck.explore.choices import Choices
from sparkonce.tck.explore.losses import NOTHING, Losses
from sparkonce.tck.explore.requests import Client, Request, in_words, ledger_in
from sparkonce.tck.explore.tape import Tape
from sparkonce.tck.explore.turns import Actor, ActorTurns, Pool
from sparkonce.tck.explore.watch import APPLYING, Watch
from sparkonce.tck.memory_subject import MemorySubject
from sparkonce.tck.simulation.converging import ConvergingStore
from sparkonce.tck.simulation.faults import (
    DIES_AFTER,
    DIES_BEFORE,
    READS,
    REPLY_LOST,
    REQUEST_LOST,
    Crash,
    Fault,
)
from sparkonce.tck.simulation.memory import MemoryStore
from sparkonce.tck.simulation.oracles import require

LOSSY = [REQUEST_LOST, REPLY_LOST, DIES_BEFORE, DIES_AFTER]
LATE = [
    Fault("no reply, arrives later", late=1),
    Fault("dies, arrives later", late=1, crash=True),
    Fault("sent again later", effect=True, late=1, answer=True),
    Fault("no reply, sent again later", effect=True, late=1),
]
MOST_FAULTS = 8
MOST_REQUESTS = 1500
HOT = frozenset({"swap", "doom", "publish", "decide", "apply", "fence"})
"""Requests before which the choice of the next actor matters most."""

Event = Callable[[], str]


class World:
    """One store, the network to it, and every possible event.

    Args:
        memory: the store.
        choices: decide.
        pool: threads for actors.
        history: a list for the lines of the history, or None.
        tape: keeps the events, with the store after each, if it runs.

    Attributes:
        calm: whether faults have ended, and actors no longer take turns.
        faults: the number of faults so far.
        refused: rows that the server rejects for now.
    """

    def __init__(
        self,
        memory: MemoryStore,
        choices: Choices,
        pool: Pool,
        history: list[str] | None,
        tape: Tape,
    ) -> None:
        self.memory, self.choices, self.history, self.tape = memory, choices, history, tape
        self.watch, self.subject = Watch(), MemorySubject(memory)
        self.losses = Losses(memory, self.watch, tape)
        self.turns = ActorTurns(pool, self._choose)
        self.refused: set[str] = set()
        self.late: list[Request] = []
        self.faults = self.requests = 0
        self.calm = False
        self._switch, self._fault_rate = (0.0, 0.0)
        self._taking = memory.rows.append
        memory.take = self._take

    def temper(self, switch: float, fault_rate: float) -> None:
        """Set how often actors change, and how often requests fail."""
        self._switch, self._fault_rate = switch, fault_rate

    def client(self, actor: Actor) -> Client:
        """A client for an actor."""
        return Client(actor, self.memory, self)

    def say(self, actor: str, what: str) -> None:
        """Write a line of the history."""
        if self.history is not None:
            self.history.append(f"{actor:<14} {what}")

    def mark(self, what: str) -> None:
        """Record that the schedule covered an event."""
        self.watch.marks.add(what)

    @contextlib.contextmanager
    def finishing(self, actor: Actor) -> Iterator[None]:
        """In this block an actor may finish decisions of others, except those overtaken by now."""
        name = actor.name
        self.watch.committing[name], self.watch.overtaken[name] = "", self._overtaken()
        try:
            yield
        finally:
            self.watch.committing.pop(name, None)
            self.watch.overtaken.pop(name, None)

    def _overtaken(self) -> set[str]:
        """The tokens of unfinished decisions after which another sink has decided."""
        order, records = self.memory.order, self.memory.records
        return {
            one.token
            for name, one in records.items()
            if one.token and any(at > order.get(name, 0) for at in order.values())
        }

    def require_owned(self, error: SparkonceError) -> None:
        """I01: a query that has decided nothing blocks no other.

        Raises:
            AssertionError: no query has decided, and yet one was rejected for another.
        """
        ledgers = [body for body in map(ledger_in, self.memory.records.values()) if body]
        owned = self.watch.forgotten or any(body["epochs"] for body in ledgers)
        require(owned or self.losses.happened, f"I01: nothing is decided, and yet: {error}")

    # -- one request

    def carry(self, request: Request) -> Any:
        """Carry a request to the store at its actor's turn, with the chosen fault.

        Raises:
            AssertionError: a step broke a rule, or the actors never end.
            StoreUnreachable: no reply.
            Crash: the actor dies.
        """
        self.requests += 1
        require(self.requests < MOST_REQUESTS, "C06: wedged, the actors never end")
        if not self.calm:
            request.actor.next = request.name
            self.turns.turn(request.actor)
        self.watch.sent(request)
        fault = self._fault(request)
        return self._perform(request) if fault is None else self._fail(request, fault)

    def _fault(self, request: Request) -> Fault | None:
        if self.calm or self.faults >= MOST_FAULTS:
            return None
        kinds = LOSSY if request.name in READS else [*LOSSY, *LATE]
        refusable = bool(request.name in APPLYING or request.name == "publish")
        number = self.choices.pick(1 + len(kinds) + refusable, self._fault_rate)
        if number == 0:
            return None
        self.faults += 1
        if number > len(kinds):
            self._refuse(request)
            return None
        return kinds[number - 1]

    def _fail(self, request: Request, fault: Fault) -> Any:
        self.mark(fault.name)
        answer = self._perform(request, fault) if fault.effect else None
        if not fault.effect:
            self.say(request.actor.name, f"{request}: {fault}")
            self.tape.request(request, fault, self._record(request))
        if fault.late is not None:
            self.late.append(request)
        if fault.crash:
            self.watch.died(request.actor.name)
            raise Crash(fault.name)
        if fault.answer:
            return answer
        raise StoreUnreachable(fault.name)

    def _record(self, request: Request) -> Record:
        return self.memory.records.get(request.sink, Record())

    def _perform(
        self, request: Request, fault: Fault | None = None, *, delivered: bool = False
    ) -> Any:
        memory = self.memory
        reached, before = len(memory.rows), self._record(request)
        try:
            answer = request.step()
        except SparkonceError as error:
            self._refused_by_store(request, error)
            raise
        finally:
            self.tape.request(request, fault, before, delivered=delivered)
        now = self._record(request)
        self._say_result(request, answer, now, fault)
        self.watch.done(request, before, now, memory.rows[reached:])
        return answer

    def _say_result(self, request: Request, answer: Any, now: Record, fault: Fault | None) -> None:
        if self.history is not None:
            seen = in_words(answer) if isinstance(answer, Record) else answer
            if request.new is not None:
                done = now.stamp == request.new.stamp or request.name == "publish"
                seen = f"{'done' if done else 'refused'}, now {in_words(now)}"
            if isinstance(answer, list):
                seen = ",".join(str(getattr(one, "attempt", one)) for one in answer) or "none"
            ending = f"  [{fault}]" if fault else ""
            words = "" if seen is None else f": {seen}"
            self.say(request.actor.name, f"{request}{words}{ending}")

    def _refused_by_store(self, request: Request, error: SparkonceError) -> None:
        self.say(request.actor.name, f"{request}: {type(error).__name__}: {error.what}")
        if isinstance(error, RowRefused):
            after = request.name in APPLYING
            self.mark("row refused after the decision" if after else "row refused")

    # -- possible events between two requests

    def _choose(self, me: Actor | None, able: list[Actor]) -> Actor:
        while True:
            events = self._events()
            stays = bool(me is not None and able and able[0] is me)
            hot = bool(stays and able[0].next in HOT)
            rate = min(0.7, self._switch * 2) if hot else self._switch
            number = self.choices.pick(len(able) + len(events), rate)
            # Events precede other actors: their numbers stay when actors are removed.
            if not 0 < number <= len(events):
                return able[max(0, number - len(events))]
            self.say("", events[number - 1]())

    def _events(self) -> list[Event]:
        events = self.losses.events(self.late) if self.losses.kind != NOTHING else []
        if self.refused:
            events.append(self.accept)
        for request in self.late:
            events.append(lambda request=request: self.deliver(request))  # type: ignore[misc]
        if isinstance(self.memory, ConvergingStore):
            events.append(self._refresh)
        return events

    def deliver(self, request: Request) -> str:
        """Deliver a late request; nobody reads the reply."""
        self.late.remove(request)
        kind = "decide" if request.new is not None and request.decides else request.name
        self.mark(f"late {kind} delivered")
        records = dict(self.memory.records)
        self.say(f"({request.actor.name})", "late:")
        with contextlib.suppress(SparkonceError):
            self._perform(request, delivered=True)
        if records != self.memory.records:
            self.mark("late write took effect")
        return "" if self.history is None else "-- and nobody reads the reply"

    def _refresh(self) -> str:
        self.subject.settle()
        self.mark("listing refreshed")
        return "-- listings are refreshed"

    # -- rows that the server rejects

    def _refuse(self, request: Request) -> None:
        """From now on the server rejects the rows that this request would make take effect."""
        manifest = request.manifest
        if manifest is not None:
            self.refused.update(part.attempt for part in manifest.parts)
            self.tape.event("refuses", "", attempts=sorted(self.refused))
            self.say("", f"-- the server rejects rows of {sorted(self.refused)} from now on")

    def accept(self) -> str:
        """The server no longer rejects any row."""
        self.refused.clear()
        self.tape.event("accepts", "")
        return "-- the server no longer rejects any row"

    def _take(self, row: str) -> None:
        if self.refused and row.partition("#")[2].partition(".")[0] in self.refused:
            raise RowRefused(f"row {row} does not fit")
        self._taking(row)
