"""Drivers that a check kills near a moment of their work."""

from __future__ import annotations

import time
from collections.abc import Callable

from sparkonce.tck.spark.bench import Bench
from sparkonce.tck.spark.faults import AFTER_ROWS, AFTER_WRITE, Plan
from sparkonce.tck.spark.query import WATCHED
from sparkonce.tck.spark.trial import Trial, until

EFFECT = "effect"
"""A moment after the tasks' own: rows have taken effect, some or all."""
# The observation before the kill of a driver, and the longest delay after it.
KILLS = ((AFTER_WRITE, 0.1), (AFTER_ROWS, 1.0), (EFFECT, 0.1))


def kill_near(
    bench: Bench, trial: Trial, point: str, delay: float, sent: Callable[[], bool]
) -> bool:
    """Kill a new driver a delay after a moment of `KILLS`; return whether it was still running.

    Args:
        bench: creates it.
        trial: the trial to run.
        point: the moment.
        delay: in seconds.
        sent: whether rows are sent, for a sink that runs no Python in tasks and reaches no other
            point.
    """
    bench.board.announce(Plan())
    driver, as_it_was = bench.victim(trial.sink), trial.found()

    def near() -> bool:
        if point == EFFECT:
            return trial.found() != as_it_was
        return bool(bench.board.notes(point)) or sent()

    try:
        driver.start(trial.query(WATCHED))
        until(near, "rows in flight", driver)
        time.sleep(delay)
        return driver.wait().running
    finally:
        driver.kill()
