"""Trying again: only what did not answer, so often, and at growing intervals."""

from __future__ import annotations

from types import SimpleNamespace

import pytest

from sparkonce.errors import OptionError, StoreRefused, StoreUnreachable
from sparkonce.exactly_once.retry import Patience


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
    monkeypatch.setattr("sparkonce.exactly_once.retry.time", SimpleNamespace(sleep=waits.append))
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
