"""Steps run side by side in lanes: their results in order, and none after one that failed."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable

import pytest

from sparkonce.exactly_once.parallel import in_order


def test_results_come_in_the_order_of_the_steps() -> None:
    slow = threading.Event()
    first: Callable[[], object] = lambda: slow.wait(5)  # noqa: E731
    second: Callable[[], object] = lambda: slow.set() or "second"  # type: ignore[func-returns-value]  # noqa: E731
    assert list(in_order([first, second], 2, "lane")) == [True, "second"]


@pytest.mark.parametrize("width", [1, 2, 4])
def test_no_step_begins_after_one_has_failed(width: int) -> None:
    """Of rows in one lane a later one would be overwritten by the earlier one, once sent again."""
    began: list[int] = []
    ahead = threading.Barrier(width)

    def step(number: int) -> int:
        began.append(number)
        if number < width:
            ahead.wait(5)
            time.sleep(0.002)  # until the next step is queued
            raise ConnectionError(f"step {number}")
        return number

    for _ in range(100):
        began.clear()
        steps = [lambda number=number: step(number) for number in range(3 * width)]
        with pytest.raises(ConnectionError, match="step"):
            list(in_order(steps, width, "lane"))
        assert sorted(began) == list(range(width))
