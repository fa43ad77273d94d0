"""Actors that take turns at a store, in a given order. Nothing is left to chance.

A turn is a call to the store, or the work of an apply between two chunks.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator, Sequence
from typing import Any

from sparkonce.protocol import Advance, Applied, Manifest, no_progress
from sparkonce.store import Store

Actor = Callable[[Store], object]
PATIENCE = 20.0
"""Seconds after which a turn that does not start or end fails the test."""
CHUNK = "a chunk"
"""The name of a turn that continues after a chunk, in the middle of an apply."""


class Turns:
    """Lets one actor at a time run, from one turn to its next one.

    Args:
        connect: creates a client for each of the actors.
        order: the actor of each turn; after its end the actors run one after the other.
    """

    def __init__(self, connect: Callable[[], Store], order: Sequence[int]) -> None:
        self._connect, self._order = connect, list(order)[::-1]
        self._seats: list[_Seat] = []
        self.failures: list[BaseException] = []
        self.calls: list[tuple[int, str]] = []

    def run(self, *actors: Actor) -> None:
        """Run the actors to their ends.

        Raises:
            BaseException: the first error of an actor.
            AssertionError: an actor hangs.
        """
        self._seats = [
            _Seat(self, number, actor, self._connect()) for number, actor in enumerate(actors)
        ]
        for seat in self._seats:
            seat.start()
        self._next().turn.release()
        for seat in self._seats:
            self._see_off(seat)
        if self.failures:
            raise self.failures[0]

    def take(self, seat: _Seat, name: str) -> None:
        """Wait for this actor's turn."""
        following = self._next()
        if following is not seat:
            following.turn.release()
            seat.wait()
        if self._order:
            self._order.pop()
        self.calls.append((seat.number, name))

    def leave(self, seat: _Seat) -> None:
        """Take out an actor that has ended."""
        seat.done = True
        if not all(seat.done for seat in self._seats):
            self._next().turn.release()

    def _see_off(self, seat: _Seat) -> None:
        """Wait for the end of an actor, as long as any actor takes turns."""
        while seat.is_alive():
            taken = len(self.calls)
            seat.join(PATIENCE)
            if seat.is_alive() and len(self.calls) == taken:
                number, name = self._last_turn()
                raise AssertionError(f"actor {number} hangs in {name}")

    def _last_turn(self) -> tuple[int, str]:
        """The running actor that took a turn last, and its current call."""
        left = [seat.number for seat in self._seats if not seat.done]
        turns = [(n, name) for n, name in self.calls if n in left and name != CHUNK]
        return turns[-1] if turns else (left[0], "the work before its first call")

    def _next(self) -> _Seat:
        while self._order and self._seats[self._order[-1]].done:
            self._order.pop()
        if self._order:
            return self._seats[self._order[-1]]
        return next(seat for seat in self._seats if not seat.done)


class _Seat(threading.Thread):
    """The thread of one actor, and its client."""

    def __init__(self, turns: Turns, number: int, actor: Actor, store: Store) -> None:
        super().__init__(daemon=True)
        self.turns, self.number, self.actor, self.store = turns, number, actor, store
        self.turn, self.done = threading.Lock(), False
        self.turn.acquire()

    def run(self) -> None:
        try:
            self.wait()
            view: Any = _View(self)
            self.actor(view)
        except BaseException as error:
            self.turns.failures.append(error)
        self.turns.leave(self)

    def wait(self) -> None:
        if not self.turn.acquire(timeout=PATIENCE):
            raise TimeoutError(f"actor {self.number} never gets its turn")


class _View:
    """The store as an actor sees it."""

    def __init__(self, seat: _Seat) -> None:
        self._seat = seat

    def __getattr__(self, name: str) -> Callable[..., Any]:
        return lambda *args, **named: self._call(name, *args, **named)

    def apply(
        self, manifest: Manifest, advance: Advance = no_progress, since: float | None = None
    ) -> Applied:
        """See `Store.apply`. Others may have turns between two chunks."""
        left = len(manifest.chunks)

        def advanced(rows: int) -> None:
            nonlocal left
            advance(rows)
            left -= 1
            if left:  # The work after the last chunk is a separate turn.
                self._seat.turns.take(self._seat, CHUNK)

        applied: Applied = self._call("apply", manifest, advanced, since)
        return applied

    def _call(self, name: str, *args: Any, **named: Any) -> Any:
        self._seat.turns.take(self._seat, name)
        return getattr(self._seat.store, name)(*args, **named)


def interleavings(
    first: int, second: int, *, alike: bool = False, step: int = 1
) -> Iterator[list[int]]:
    """Orders in which each of two actors is interrupted at most once, at any of its calls.

    Args:
        first: the number of calls of actor 0.
        second: the number of calls of actor 1.
        alike: whether actor 0 begins in all of them, for two identical actors.
        step: 2 to interrupt the first actor only at every second call, and so on; a large step also
            lets the other actor continue only after some of its calls.
    """
    stride = max(1, step // 100)
    for before in range(0, first + 1, step):
        for between in range(second, -1, -stride):
            yield [0] * before + [1] * between + [0] * first
    if alike:
        return
    for before in range(1, second + 1, step):
        for between in range(first, 0, -stride):
            yield [1] * before + [0] * between + [1] * second
