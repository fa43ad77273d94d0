"""Steps: tried again where nothing answered, and run side by side."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from types import SimpleNamespace

import pytest

from sparkonce.delivery import in_order
from sparkonce.errors import OptionError, StoreRefused, StoreUnreachable
from sparkonce.store import Patience


class Step:
    """Fails so many times, then answers."""

    def __init__(self, failures: int, error: Exception) -> None:
        self.left, self.error, self.calls = failures, error, 0

    def __call__(self) -> str:
        self.calls += 1
        if self.left:
            self.left -= 1
            raise self.error
        return "done"


@pytest.fixture
def naps(monkeypatch: pytest.MonkeyPatch) -> list[float]:
    """The waits that would have been; other threads of this process sleep as they do."""
    waits: list[float] = []
    monkeypatch.setattr("sparkonce.store.time", SimpleNamespace(sleep=waits.append))
    return waits


@pytest.mark.parametrize("failures", [0, 1, 3])
def test_a_step_is_tried_until_it_answers(failures: int, naps: list[float]) -> None:
    step = Step(failures, StoreUnreachable("away"))
    assert Patience(max_retries=3).run(step) == "done"
    assert step.calls == failures + 1
    assert len(naps) == failures


@pytest.mark.parametrize("retries", [0, 1, 3])
def test_patience_ends(retries: int, naps: list[float]) -> None:
    step = Step(99, StoreUnreachable("away"))
    with pytest.raises(StoreUnreachable):
        Patience(max_retries=retries).run(step)
    assert step.calls == retries + 1
    assert len(naps) == retries


@pytest.mark.parametrize("error", [StoreRefused("no"), OptionError("no"), ValueError("no")])
def test_an_answer_is_never_asked_for_again(error: Exception, naps: list[float]) -> None:
    step = Step(1, error)
    with pytest.raises(type(error)):
        Patience(max_retries=3).run(step)
    assert (step.calls, naps) == (1, [])


def test_waits_double_up_to_the_longest(naps: list[float]) -> None:
    Patience(max_retries=8, first=0.1, longest=5.0).run(Step(8, StoreUnreachable("away")))
    assert naps == [0.1, 0.2, 0.4, 0.8, 1.6, 3.2, 5.0, 5.0]


def test_the_most_retries_that_the_options_allow_can_be_waited_for() -> None:
    assert Patience(max_retries=1000).wait(1000) == 5.0


# -- steps run side by side in lanes: their results in order, and none after one that failed


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
