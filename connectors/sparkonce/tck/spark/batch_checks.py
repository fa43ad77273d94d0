"""The checks of rules B01 to B10: of batches, with the faults of the checks of queries."""

from __future__ import annotations

import time
from collections.abc import Callable

from sparkonce.tck.spark.bench import Bench
from sparkonce.tck.spark.checks import (
    failing_task,
    killed_driver,
    lost_executor,
    other_rows,
    twins,
)
from sparkonce.tck.spark.faults import AFTER_ROWS, FAIL
from sparkonce.tck.spark.hits import epoch_to_hit, rows_sent
from sparkonce.tck.spark.kills import KILLS, kill_near
from sparkonce.tck.spark.query import WATCHED, Shape
from sparkonce.tck.spark.trial import PATIENCE, ROWS, BatchTrial, NotReached, Trial

BatchCheck = Callable[[Bench, BatchTrial], str]
ALWAYS, LINGER = 99, 0.5


def plain(bench: Bench, trial: BatchTrial) -> str:
    """B01: batches of several sizes."""
    driver = bench.local(trial.sink)
    for rows in (100, 1, 1000):
        trial.put(rows=rows)
        trial.run(driver)
    return "3 batches"


def failing_job(bench: Bench, trial: BatchTrial) -> str:
    """B02: a task fails in all its attempts after others have written; then the job runs again."""
    driver = bench.local(trial.sink)
    trial.put()
    trial.run(driver)
    if _failed(bench, trial):
        return "a job failed, and left rows"
    bench.board.release()
    trial.run(driver, WATCHED)
    return "a job failed, and ran again"


def _failed(bench: Bench, trial: BatchTrial) -> bool:
    """Make a job fail; return whether it changed the target.

    Raises:
        NotReached: it did not fail.
    """
    before = trial.found()
    epoch_to_hit(bench, trial, AFTER_ROWS, FAIL, ALWAYS)
    driver = bench.local(trial.sink)
    driver.start(trial.query(WATCHED))
    if not driver.wait(PATIENCE).error:
        raise NotReached("the job did not fail")
    time.sleep(LINGER)
    changed = trial.found() != before
    if changed:
        trial.take_back(ROWS)
    return changed


def killed_job(bench: Bench, trial: BatchTrial) -> str:
    """B04: SIGKILL at random moments; then the same job again, with another driver."""
    random, halfway = bench.random("B04"), 0
    for point, span in KILLS:
        trial.put(rows=600)
        delay = random.uniform(0.0, span)
        halfway += kill_near(bench, trial, point, delay, lambda: rows_sent(bench, trial.next_epoch))
        trial.run(bench.local(trial.sink), WATCHED)
    if not halfway:
        raise NotReached("no driver was killed after it had sent rows, and before its job ended")
    return f"{len(KILLS)} drivers killed, {halfway} in the middle of a job, seed {bench.seed}"


def again(bench: Bench, trial: BatchTrial) -> str:
    """B08: finished jobs run again under their names, with another driver and other tasks."""
    for _ in range(2):
        trial.put()
        trial.run(bench.local(trial.sink))
        bench.kill()
        trial.run(bench.local(trial.sink), Shape(partitions=3))
    return "2 jobs ran twice each"


def overwriting(bench: Bench, trial: BatchTrial) -> str:
    """B09: two jobs that replace the existing rows, and between them one that fails."""
    driver = bench.local(trial.sink)
    trial.put()
    trial.run(driver)
    trial.mode = "overwrite"
    for _ in range(2):
        trial.forget()
        trial.put()
        trial.run(driver)
        if _failed(bench, trial):
            return "a job that was to overwrite failed, and changed the target"
        trial.take_back(ROWS)
        bench.board.release()
    return "2 jobs overwrote, 2 more failed"


BATCH_CHECKS: dict[str, BatchCheck] = {
    "B01": plain,
    "B02": failing_job,
    "B03": failing_task,
    "B08": again,
    "B09": overwriting,
    "B04": killed_job,
    "B05": lost_executor,
    "B06": twins,
}
IN_FOREACH_BATCH: dict[str, Callable[[Bench, Trial], str]] = {
    "B07": other_rows,
    "B10": killed_driver,
}
"""The rules of a batch inside a stream, with the checks of queries."""
