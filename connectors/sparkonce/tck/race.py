"""Calls that start at the same moment, each in a thread of its own."""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import TypeVar

T = TypeVar("T")


def race(calls: Sequence[Callable[[], T]]) -> list[T]:
    """Run the calls at once; what they return, in their order.

    Raises:
        Exception: what the first of them raised.
    """
    line = threading.Barrier(len(calls))

    def run(call: Callable[[], T]) -> T:
        line.wait()
        return call()

    with ThreadPoolExecutor(len(calls)) as pool:
        return [each.result() for each in [pool.submit(run, call) for call in calls]]
