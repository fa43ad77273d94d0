"""The loop that applies a decided epoch: what runs beside it ends with it."""

from __future__ import annotations

import threading
from collections.abc import Callable

import pytest

from sparkonce.delivery import DecisionOver, EpochDelivery
from sparkonce.errors import RowRefused, StoreUnreachable
from sparkonce.exactly_once.bad_rows import NONE, TooManyBadRows
from sparkonce.protocol import Manifest, Part

CHUNKS = 12
MANIFEST = Manifest(
    sink="orders@1",
    generation=1,
    query_id="a",
    epoch=7,
    token="token",
    target="t",
    detail={},
    parts=(Part(0, "attempt", (1,) * CHUNKS, (1,) * CHUNKS),),
)


class Slow(EpochDelivery[int]):
    """Several chunks at once, the first of which can't be put aside."""

    width = 3

    def __init__(self, fails: Callable[[], None]) -> None:
        super().__init__(MANIFEST, NONE, "table dead")
        self.fails, self.begun, self.late = fails, 0, threading.Event()

    def resume(self) -> int:
        return 0

    def apply_chunk(self, ordinal: int) -> int:
        self.begun += 1
        if ordinal:
            self.late.wait(0.2)
        return ordinal

    def put_aside(self, ordinal: int, chunk: int) -> None:  # noqa: ARG002
        self.fails()


def over() -> None:
    raise DecisionOver


def too_many() -> None:
    raise TooManyBadRows("12 rows can't be stored", "why", "todo")


def unreachable() -> None:
    raise StoreUnreachable("no answer")


def applying() -> list[str]:
    return [one.name for one in threading.enumerate() if one.name.startswith("sparkonce-apply")]


def test_no_chunk_is_applied_any_more_once_a_decision_is_over() -> None:
    """Else its threads write beside those of the driver that follows."""
    delivery = Slow(over)
    delivery.apply(lambda _: None)
    assert applying() == []
    assert delivery.begun <= 1 + Slow.width


@pytest.mark.parametrize(
    ("fails", "error", "words"),
    [
        (too_many, RowRefused, r"12 rows .* Epoch 7 stays decided"),
        (unreachable, StoreUnreachable, "no answer"),
    ],
)
def test_no_chunk_is_applied_any_more_behind_an_error(
    fails: Callable[[], None], error: type[Exception], words: str
) -> None:
    """Also while somebody holds the error, as who is about to try again does."""
    delivery = Slow(fails)
    with pytest.raises(error, match=words) as held:
        delivery.apply(lambda _: None)
    assert applying() == []
    assert delivery.begun <= 1 + Slow.width
    assert held.value


class Halfway(Slow):
    """The target has five chunks already, as the step of each finds out by itself."""

    width = 1

    def apply_chunk(self, ordinal: int) -> int:
        self.had = max(self.had, 5)
        return ordinal


def test_rows_that_the_target_had_are_no_progress() -> None:
    told = list[int]()
    Halfway(lambda: None).apply(told.append)
    assert told == [1] * (CHUNKS - 5)
