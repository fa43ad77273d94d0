"""Chunks are read one ahead, in order, and the thread that reads them leaves nothing behind."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import suppress

import pytest

from pyspark_mysql.ahead import FEW, read_ahead


class Reader:
    """Reads numbers, and knows in which thread, and how far ahead."""

    def __init__(self, broken: int | None = None) -> None:
        self.broken = broken
        self.read: list[int] = []
        self.threads: set[str] = set()

    def __call__(self, item: int) -> int:
        self.read.append(item)
        self.threads.add(threading.current_thread().name)
        if item == self.broken:
            raise ValueError(item)
        return item * 10


def taken(reader: Reader, count: int) -> Iterator[int]:
    with read_ahead(reader, range(count)) as found:
        yield from found


@pytest.mark.parametrize("count", [0, 1, FEW, FEW + 1, 50])
def test_all_items_come_in_order(count: int) -> None:
    reader = Reader()
    assert list(taken(reader, count)) == [item * 10 for item in range(count)]
    assert reader.read == list(range(count))


def test_few_items_need_no_thread() -> None:
    reader = Reader()
    list(taken(reader, FEW))
    assert reader.threads == {threading.current_thread().name}


def test_one_item_is_read_ahead_and_no_more() -> None:
    reader = Reader()
    for position, _ in enumerate(taken(reader, 20)):
        assert len(reader.read) <= position + 2


@pytest.mark.parametrize("broken", [0, 7, 19])
def test_an_error_of_the_reader_is_raised_and_the_thread_ends(broken: int) -> None:
    reader, before = Reader(broken), threading.active_count()
    with pytest.raises(ValueError, match=str(broken)):
        list(taken(reader, 20))
    assert len(reader.threads) == 1
    assert threading.active_count() == before


def test_whoever_stops_early_leaves_no_thread() -> None:
    reader, before = Reader(), threading.active_count()
    with suppress(KeyError), read_ahead(reader, range(20)) as found:
        raise KeyError(next(found))
    assert threading.active_count() == before
