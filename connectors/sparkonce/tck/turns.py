"""Actors that take turns at a store, call by call, in a given order. Nothing is left to chance."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator, Sequence
from typing import Any

from sparkonce.protocol import Store

Actor = Callable[[Store], object]
PATIENCE = 20.0
"""Seconds after which a turn that never comes is a failure of the test."""


class Turns:
    """Lets one actor at a time run, from one call to the store to its next one.

    Args:
        store: does the work.
        order: whose turn it is at each call; after its end the actors go on one after the other.
    """

    def __init__(self, store: Store, order: Sequence[int]) -> None:
        self._store, self._order = store, list(order)[::-1]
        self._seats: list[_Seat] = []
        self.failures: list[BaseException] = []
        self.calls: list[tuple[int, str]] = []

    def run(self, *actors: Actor) -> None:
        """Run the actors to their ends.

        Raises:
            BaseException: what an actor raised first.
        """
        self._seats = [_Seat(self, number, actor) for number, actor in enumerate(actors)]
        for seat in self._seats:
            seat.start()
        self._next().turn.release()
        for seat in self._seats:
            seat.join(PATIENCE)
        if self.failures:
            raise self.failures[0]

    def call(self, seat: _Seat, name: str, args: tuple[Any, ...]) -> Any:
        """One call by one actor, when its turn comes."""
        following = self._next()
        if following is not seat:
            following.turn.release()
            seat.wait()
        if self._order:
            self._order.pop()
        self.calls.append((seat.number, name))
        return getattr(self._store, name)(*args)

    def leave(self, seat: _Seat) -> None:
        """An actor came to its end."""
        seat.done = True
        if not all(seat.done for seat in self._seats):
            self._next().turn.release()

    def _next(self) -> _Seat:
        while self._order and self._seats[self._order[-1]].done:
            self._order.pop()
        if self._order:
            return self._seats[self._order[-1]]
        return next(seat for seat in self._seats if not seat.done)


class _Seat(threading.Thread):
    """The thread of one actor, and the store as that actor sees it."""

    def __init__(self, turns: Turns, number: int, actor: Actor) -> None:
        super().__init__(daemon=True)
        self.turns, self.number, self.actor = turns, number, actor
        self.turn, self.done = threading.Lock(), False
        self.turn.acquire()

    def run(self) -> None:
        try:
            self.wait()
            self.actor(_View(self))
        except BaseException as error:
            self.turns.failures.append(error)
        self.turns.leave(self)

    def wait(self) -> None:
        if not self.turn.acquire(timeout=PATIENCE):
            raise TimeoutError(f"actor {self.number} waits in vain for its turn")


class _View:
    def __init__(self, seat: _Seat) -> None:
        self._seat = seat

    def __getattr__(self, name: str) -> Callable[..., Any]:
        return lambda *args: self._seat.turns.call(self._seat, name, args)


def interleavings(
    first: int, second: int, *, alike: bool = False, step: int = 1
) -> Iterator[list[int]]:
    """Orders in which each of two actors is interrupted at most once, at any of its calls.

    Args:
        first: calls that actor 0 makes.
        second: calls that actor 1 makes.
        alike: whether actor 0 begins in all of them, as where both do the same.
        step: 2 to try only every second call of actor 0, and so on.
    """
    for before in range(0, first + 1, step):
        for between in range(second + 1):
            yield [0] * before + [1] * between + [0] * first
    if alike:
        return
    for before in range(1, second + 1):
        for between in range(1, first + 1):
            yield [1] * before + [0] * between + [1] * second
