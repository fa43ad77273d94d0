"""Reading ahead: while the server applies a chunk, a thread reads the next one."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from typing import TypeVar

Item = TypeVar("Item")
Found = TypeVar("Found")
FEW = 4
"""So many are not worth a thread, and a connection of its own."""


@contextmanager
def read_ahead(read: Callable[[Item], Found], items: Sequence[Item]) -> Iterator[Iterator[Found]]:
    """What `read` gives for each item, in their order.

    Args:
        read: called in a thread where there are more than a few items.
        items: to be read.
    """
    if len(items) <= FEW:
        yield map(read, items)
        return
    with ThreadPoolExecutor(1) as thread:
        yield _one_ahead(read, items, thread)


def _one_ahead(
    read: Callable[[Item], Found], items: Sequence[Item], thread: ThreadPoolExecutor
) -> Iterator[Found]:
    following = thread.submit(read, items[0])
    for item in items[1:]:
        found = following.result()
        following = thread.submit(read, item)
        yield found
    yield following.result()
