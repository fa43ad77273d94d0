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
    pool = ThreadPoolExecutor(width, name)
    try:
        running: deque[Future[T]] = deque()
        for step in steps:
            running.append(pool.submit(step))
            if len(running) > width:
                yield running.popleft().result()
        while running:
            yield running.popleft().result()
    finally:
        pool.shutdown(wait=True, cancel_futures=True)
