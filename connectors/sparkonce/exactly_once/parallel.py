"""Steps that wait for a store, several at once."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from typing import TypeVar

T = TypeVar("T")


def in_order(steps: Iterable[Callable[[], T]], width: int, name: str) -> Iterator[T]:
    """What each step gives, in their order. One that fails lets no other begin.

    Args:
        steps: taken one by one, at most one more than run at once.
        width: how many run at once.
        name: of the threads.
    """
    pool, gate = ThreadPoolExecutor(width, name), _Gate()
    try:
        running: deque[Future[T]] = deque()
        for step in steps:
            running.append(pool.submit(gate.take, step))
            if len(running) > width:
                yield running.popleft().result()
        while running:
            yield running.popleft().result()
    finally:
        pool.shutdown(wait=True, cancel_futures=True)


class _Gate:
    """Lets steps begin until one fails.

    The pool's threads look here: who waits for the steps hears of a failure too late, when the
    thread that had it may already be at the next one.
    """

    def __init__(self) -> None:
        self._failure: BaseException | None = None

    def take(self, step: Callable[[], T]) -> T:
        # No lock: a step that slips in just now could as well have begun just before the failure.
        if self._failure is not None:
            raise self._failure
        try:
            return step()
        except BaseException as failure:
            self._failure = failure
            raise
