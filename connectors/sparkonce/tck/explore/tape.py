"""What happens in a schedule, request by request, with the store after each: for docs/model.

A line says what was asked and by whom, whether it took effect and was answered, and whether it will
come late.
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
    """Something that happened.

    Attributes:
        what: name of a request, or of an event.
        who: the actor; empty for what comes from outside.
        store: its state afterwards.
        request: if it was one.
        fault: what went wrong with it.
        delivered: whether the request came late.
        current: whether the record that a request replaces was there when it was sent.
        more: about an event.
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
        """Something that is no request."""
        if self.running:
            self.lines.append(Line(what, who, self.memory.snapshot(), more=more))

    def request(
        self, request: Request, fault: Fault | None, before: Record, *, delivered: bool = False
    ) -> None:
        """A request that was sent, or comes late; `before` is the record that it found."""
        if self.running:
            state, who = self.memory.snapshot(), request.actor.name
            current = before.stamp == request.over
            line = Line(request.name, who, state, request, fault, delivered, current)
            self.lines.append(line)
