"""Calls that start at the same moment, and a reader beside a writer: each in its own thread."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from typing import TypeVar

T = TypeVar("T")


def race(calls: Sequence[Callable[[], T]]) -> list[T]:
    """Run the calls concurrently; return their results, in their order.

    Raises:
        Exception: the first error of a call.
    """
    line = threading.Barrier(len(calls))

    def run(call: Callable[[], T]) -> T:
        line.wait()
        return call()

    with ThreadPoolExecutor(len(calls)) as pool:
        return [each.result() for each in [pool.submit(run, call) for call in calls]]


@contextmanager
def reading(look: Callable[[], T]) -> Iterator[list[T]]:
    """Look repeatedly while the block runs; yields the observations, in order.

    Raises:
        Exception: an error of a look.
    """
    seen: list[T] = []
    done = threading.Event()

    def read() -> None:
        while not done.is_set():
            seen.append(look())

    with ThreadPoolExecutor(1) as pool:
        reader = pool.submit(read)
        try:
            yield seen
        finally:
            done.set()
        reader.result()
