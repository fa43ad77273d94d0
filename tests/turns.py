"""Actors that take turns at a store, call by call, in a given order. Nothing is left to chance."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator, Sequence
from typing import Any

from sparkonce.protocol import Store

Actor = Callable[[Store], None]
PATIENCE = 20.0
"""Seconds after which a turn that never comes is a failure of the test."""


class Turns:
    """Lets one actor at a time call the store.

    Args:
        store: does the work.
        order: whose turn it is at each call; after its end the actors go on one after the other.
    """

    def __init__(self, store: Store, order: Sequence[int]) -> None:
        self._store, self._order = store, list(order)
        self._running: set[int] = set()
        self._turn = threading.Condition()
        self.failures: list[BaseException] = []
        self.calls: list[tuple[int, str]] = []

    def run(self, *actors: Actor) -> None:
        """Run the actors to their ends.

        Raises:
            BaseException: what an actor raised first.
        """
        self._running = set(range(len(actors)))
        threads = [
            threading.Thread(target=self._act, args=(number, actor), daemon=True)
            for number, actor in enumerate(actors)
        ]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join(PATIENCE)
        if self.failures:
            raise self.failures[0]
        assert not self._running

    def _act(self, number: int, actor: Actor) -> None:
        try:
            actor(_Seat(self, number))  # type: ignore[arg-type]
        except BaseException as error:
            self.failures.append(error)
        with self._turn:
            self._running.discard(number)
            self._turn.notify_all()

    def call(self, number: int, name: str, args: tuple[Any, ...]) -> Any:
        """One call by one actor, when its turn comes."""
        with self._turn:
            if not self._turn.wait_for(lambda: self._next() == number, PATIENCE):
                raise TimeoutError(f"actor {number} waits in vain for its turn to {name}")
            if self._order:
                self._order.pop(0)
            self.calls.append((number, name))
            try:
                return getattr(self._store, name)(*args)
            finally:
                self._turn.notify_all()

    def _next(self) -> int:
        while self._order and self._order[0] not in self._running:
            self._order.pop(0)
        return self._order[0] if self._order else min(self._running)


class _Seat:
    """The store as one actor sees it."""

    def __init__(self, turns: Turns, number: int) -> None:
        self._turns, self._number = turns, number

    def __getattr__(self, name: str) -> Callable[..., Any]:
        return lambda *args: self._turns.call(self._number, name, args)


def interleavings(first: int, second: int) -> Iterator[list[int]]:
    """Orders in which each actor is interrupted at most once, at any call.

    Args:
        first: calls that actor 0 makes.
        second: calls that actor 1 makes.
    """
    for before in range(first + 1):
        for between in range(second + 1):
            yield [0] * before + [1] * between + [0] * first
    for before in range(1, second + 1):
        for between in range(1, first + 1):
            yield [1] * before + [0] * between + [1] * second
