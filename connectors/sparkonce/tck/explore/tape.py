"""The events of a schedule, request by request, with the store after each: for docs/model.

A line names the request and the actor. It says whether the request took effect, whether a reply
arrived, and whether the request will arrive late.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from sparkonce.protocol import Record
    from sparkonce.tck.explore.requests import Request
    from sparkonce.tck.simulation.faults import Fault
    from sparkonce.tck.simulation.memory import MemoryStore


@dataclass(frozen=True)
class Line:
    """One event.

    Attributes:
        what: name of a request, or of an event.
        who: the actor; empty for an external event.
        store: its state afterwards.
        request: the request, if the event is one.
        fault: its fault.
        delivered: whether the request arrived late.
        current: whether the store held the record that a request replaces when the actor sent it.
        more: details of an event.
    """

    what: str
    who: str
    store: Mapping[str, Any]
    request: Request | None = None
    fault: Fault | None = None
    delivered: bool = False
    current: bool = True
    more: Mapping[str, Any] = field(default_factory=dict)


class Tape:
    """Keeps the lines of one schedule.

    Args:
        memory: the store.
        running: whether it keeps any.

    Attributes:
        lines: so far.
    """

    def __init__(self, memory: MemoryStore, *, running: bool) -> None:
        self.memory, self.lines, self.running = memory, list[Line](), running

    def event(self, what: str, who: str, **more: Any) -> None:
        """Add an event that is not a request."""
        if self.running:
            self.lines.append(Line(what, who, self.memory.snapshot(), more=more))

    def request(
        self, request: Request, fault: Fault | None, before: Record, *, delivered: bool = False
    ) -> None:
        """Add a request, sent or delivered late; `before` is the record that it found."""
        if self.running:
            state, who = self.memory.snapshot(), request.actor.name
            current = before.stamp == request.over
            line = Line(request.name, who, state, request, fault, delivered, current)
            self.lines.append(line)
