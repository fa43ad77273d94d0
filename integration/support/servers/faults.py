"""Which faults of the network are still to come, and which have happened."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from dataclasses import dataclass
from enum import Enum
from threading import Condition

Predicate = Callable[[bytes], bool]


class Kind(Enum):
    CUT_REQUEST = "cut request"
    CUT_REPLY = "cut reply"
    RESET = "reset"
    STALL = "stall"


@dataclass
class Fault:
    kind: Kind
    matches: Predicate
    countdown: int


class Plan:
    """The faults to come, in the order they were asked for; shared by all connections."""

    def __init__(self) -> None:
        self.changed = Condition()
        self.hits: list[int] = []
        self._coming: deque[Fault] = deque()
        self._epoch = 0

    def add(self, fault: Fault) -> None:
        with self.changed:
            self._coming.append(fault)

    def armed(self) -> bool:
        return bool(self._coming)

    def meet(self, request: bytes) -> tuple[bool, Kind | None]:
        """Say whether this request matches the next fault, and which fault befalls it now."""
        with self.changed:
            if not self._coming or not self._coming[0].matches(request):
                return False, None
            self._coming[0].countdown -= 1
            return True, self._coming.popleft().kind if not self._coming[0].countdown else None

    def count(self, client: int) -> None:
        """Note a fault that happened, with the port of the client that it befell."""
        with self.changed:
            self.hits.append(client)
            self.changed.notify_all()

    def forget(self) -> None:
        with self.changed:
            self._coming.clear()
            self._epoch += 1
            self.changed.notify_all()

    def stall(self, client: int) -> None:
        """Hold the calling thread until all faults are forgotten."""
        with self.changed:
            self.count(client)
            epoch = self._epoch
            self.changed.wait_for(lambda: self._epoch != epoch)
