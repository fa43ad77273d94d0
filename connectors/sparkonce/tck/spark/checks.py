"""The checks of rules Q01 to Q10. Each causes its fault, or raises `NotReached`.

A check says what happened; the suite then reads the target and judges the rule.
"""

from __future__ import annotations

import os
import signal
import time
from collections.abc import Callable

from sparkonce.spark.session import SETTINGS
from sparkonce.tck.spark.bench import Bench
from sparkonce.tck.spark.faults import (
    AFTER_ROWS,
    AFTER_WRITE,
    DRAWN,
    FAIL,
    HOLD,
    RELEASED,
    Note,
    Plan,
)
from sparkonce.tck.spark.hits import (
    attempts_at,
    await_hit,
    epoch_to_hit,
    executors_at,
    rows_sent,
)
from sparkonce.tck.spark.kills import KILLS, kill_near
from sparkonce.tck.spark.query import WATCHED, Shape
from sparkonce.tck.spark.remote import RemoteDriver
from sparkonce.tck.spark.trial import PATIENCE, NotGiven, NotReached, Trial, until

Check = Callable[[Bench, Trial], str]
STOPS = 2
NO_PYTHON = "not again at its very end, as the sink runs no Python in tasks"


def plain(bench: Bench, trial: Trial) -> str:
    """Q01: files of several sizes."""
    for rows in (100, 1, 1000):
        trial.put(rows=rows)
    trial.run(bench.local(trial.sink))
    return f"{trial.noted('commits')} epochs"


def replay(bench: Bench, trial: Trial) -> str:
    """Q02: the last epoch again, first with more epochs to follow, then alone."""
    driver = bench.local(trial.sink)
    trial.put(2)
    trial.run(driver)
    trial.put()
    trial.replay(driver, 1)
    trial.replay(driver, 2)
    return "2 epochs replayed"


def failing_task(bench: Bench, trial: Trial) -> str:
    """Q03: an attempt that fails as it sends its rows, and one that fails after its write."""
    driver = bench.local(trial.sink)
    failed = 0
    for point in (AFTER_ROWS, AFTER_WRITE):
        epoch = epoch_to_hit(bench, trial, point, FAIL, rows=600)
        trial.run(driver, WATCHED)
        failed += len(attempts_at(bench, point, epoch)) > 1
    return _often(failed, "a task failed after its rows, and ran again")


def killed_driver(bench: Bench, trial: Trial) -> str:
    """Q04: SIGKILL at random moments: in the next second, and around the commit."""
    random, kills, halfway = bench.random("Q04"), 0, 0
    trial.put(3)
    while kills < len(KILLS) or (not halfway and kills < 2 * len(KILLS)):
        trial.put(3)
        point, span = KILLS[kills % len(KILLS)]
        halfway += _kill_once(bench, trial, point, random.uniform(0.0, span))
        kills += 1
    if not halfway:
        raise NotReached(f"none of {kills} drivers was killed after it had sent rows")
    trial.run(bench.local(trial.sink), WATCHED)
    done = f"{kills} drivers killed, {halfway} between sent rows and Spark's record"
    return f"{done}, seed {bench.seed}"


def _kill_once(bench: Bench, trial: Trial, point: str, delay: float) -> bool:
    """Kill a new driver; return whether a task of its last epoch had sent its rows."""
    before = trial.noted("commits")

    def sent() -> bool:
        begun = trial.noted("commits")
        return begun > before and rows_sent(bench, begun)

    kill_near(bench, trial, point, delay, sent)
    if not trial.in_mid_epoch and trial.noted("commits") == trial.files:
        raise NotReached("the query ended before its driver could be killed")
    return trial.in_mid_epoch and rows_sent(bench, trial.noted("commits"))


def lost_executor(bench: Bench, trial: Trial) -> str:
    """Q05: SIGKILL for the JVM of a task that has sent its rows, and of one after its write."""
    driver = bench.clustered(trial.sink)
    lost = 0
    for point in (AFTER_ROWS, AFTER_WRITE):
        # On a slow machine a twin may be quicker than the task to hold.
        lost += _lose(bench, trial, driver, point) or _lose(bench, trial, driver, point)
    return _often(lost, "an executor was killed in the middle of a task")


def _lose(bench: Bench, trial: Trial, driver: RemoteDriver, point: str) -> bool:
    """Whether an executor was killed, and its task ran again elsewhere."""
    epoch = epoch_to_hit(bench, trial, point, HOLD)
    driver.start(trial.query(WATCHED))
    victim = await_hit(bench, trial, driver, point, epoch)
    if victim is not None:
        os.kill(victim.executor, signal.SIGKILL)
    bench.board.release()
    trial.finish(driver)
    # By its process, not its attempt number: a retry of the whole stage reuses the number.
    return victim is not None and executors_at(bench, point, epoch) > {victim.executor}


def redrawn(bench: Bench, trial: Trial) -> str:
    """Q10: SIGKILL for executors whose random rows some tasks have read, and others have not."""
    driver = bench.clustered(trial.sink)
    if not all(map(driver.knows, SETTINGS)):
        raise NotGiven(f"this Spark has no {SETTINGS[0]}, so no sink can keep the rule on it")
    # A twin of the held task may end it before the kill of the executors.
    lost = _redraw(bench, trial, driver) or _redraw(bench, trial, driver)
    if not lost:
        raise NotReached("Spark never drew rows again for a part of an epoch")
    return "Spark drew rows again after some tasks of the epoch had sent theirs"


def _redraw(bench: Bench, trial: Trial, driver: RemoteDriver) -> bool:
    """Whether Spark drew rows again after tasks that had read the first ones were done."""
    shape = Shape(partitions=8, random=True, watched=True)
    epoch = epoch_to_hit(bench, trial, AFTER_ROWS, HOLD, rows=800)
    driver.start(trial.query(shape))
    held = await_hit(bench, trial, driver, AFTER_ROWS, epoch)
    if held is not None:
        until(lambda: len(_sent(bench, epoch)) >= 4, "other tasks send their rows", driver)
        for executor in {held.executor, *(one.executor for one in _draws(bench, epoch))}:
            os.kill(executor, signal.SIGKILL)
    bench.board.release()
    gave_up = driver.wait(PATIENCE).error
    again = len(_draws(bench, epoch)) > 1
    if gave_up:  # Spark may abandon the epoch, for a restart to replay
        trial.run(driver, shape)
    return held is not None and again


def _sent(bench: Bench, epoch: int) -> set[int]:
    """The partitions whose rows a task sent to the sink, except the held one."""
    return {note.partition for note in bench.board.notes(AFTER_ROWS, epoch)} - {0}


def _draws(bench: Bench, epoch: int) -> list[Note]:
    return bench.board.notes(DRAWN, epoch)


def twins(bench: Bench, trial: Trial) -> str:
    """Q06: a slow first attempt beside a quick twin; then two attempts that end together."""
    driver = bench.clustered(trial.sink)
    launched = 0
    for held in ((AFTER_ROWS, 1), (AFTER_WRITE, 2)):
        launched += _twin(bench, trial, driver, *held) or _twin(bench, trial, driver, *held)
    return _often(launched, "a twin sent the rows of a slow task, too")


def _twin(bench: Bench, trial: Trial, driver: RemoteDriver, point: str, attempts: int) -> bool:
    """Whether a twin sent the rows of a task as well."""
    epoch = epoch_to_hit(bench, trial, point, HOLD, attempts=attempts)
    driver.start(trial.query(WATCHED))
    slow = await_hit(bench, trial, driver, point, epoch)
    if slow is not None:
        _await_twin(bench, driver, point, epoch)
    bench.board.release()
    trial.finish(driver)
    return slow is not None


def _await_twin(bench: Bench, driver: RemoteDriver, point: str, epoch: int) -> None:
    def twin_came() -> bool:
        return len(attempts_at(bench, point, epoch)) > 1

    until(twin_came, "Spark launches a twin of the slow task", driver, 90.0)


def other_parallelism(bench: Bench, trial: Trial) -> str:
    """Q07: a replay in fewer tasks, and one in more."""
    driver, tasks = bench.local(trial.sink), (3, 1, 5)
    trial.put(2)
    trial.run(driver, Shape(partitions=tasks[0]))
    for epoch, partitions in enumerate(tasks[1:], start=1):
        trial.put()
        trial.replay(driver, epoch, Shape(partitions=partitions))
    return f"epochs of {tasks[0]} tasks replayed in {tasks[1]}, of {tasks[1]} in {tasks[2]}"


def other_rows(bench: Bench, trial: Trial) -> str:
    """Q08: replays of a query that chooses ids and tasks at random."""
    driver = bench.local(trial.sink)
    shape = Shape(partitions=3, random=True, choose=True, watched=True)
    trial.put(2)
    bench.board.announce(Plan())
    trial.run(driver, shape)
    first = _digest(bench, 1)
    for _ in range(2):
        bench.board.announce(Plan())
        trial.replay(driver, 1, shape)
        if _digest(bench, 1) == first:
            raise NotReached("the replay computed the very same rows")
    return "1 epoch replayed twice, with other ids"


def _digest(bench: Bench, epoch: int) -> int:
    return sum(note.digest for note in bench.board.notes(AFTER_ROWS, epoch))


def stopped(bench: Bench, trial: Trial) -> str:
    """Q09: stops while tasks run, then after their end while the commit runs."""
    driver, random = bench.local(trial.sink), bench.random("Q09")
    for _ in range(STOPS):
        _stop_in_task(bench, trial, driver)
    tries = committing = 0
    point = AFTER_WRITE
    while committing < STOPS and tries < 6 * STOPS:
        tries += 1
        hit = _stop_soon(bench, trial, driver, point, random.uniform(0.0, 0.06))
        committing += bool(hit)
        if hit is None and not committing:
            point = AFTER_ROWS
    if not committing:
        raise NotReached(f"none of {tries} stops fell between the tasks and Spark's record")
    trial.run(driver, WATCHED)
    return f"stopped {STOPS} times in tasks, {committing} times between tasks and Spark's record"


def _stop_in_task(bench: Bench, trial: Trial, driver: RemoteDriver) -> None:
    epoch = epoch_to_hit(bench, trial, AFTER_ROWS, HOLD)
    driver.start(trial.query(WATCHED))
    await_hit(bench, trial, driver, AFTER_ROWS, epoch)
    trial.ended(driver.stop())
    bench.board.release()
    if not trial.in_mid_epoch:
        raise NotReached("the query was stopped while a task ran, but its epoch had ended")


def _stop_soon(
    bench: Bench, trial: Trial, driver: RemoteDriver, point: str, delay: float
) -> bool | None:
    """Stop a delay after a held task continues; return whether that was before Spark's record.

    None if no task reached that point: the sink runs no Python, or knew the epoch already.
    """
    epoch = epoch_to_hit(bench, trial, point, HOLD)
    driver.start(trial.query(WATCHED))
    if await_hit(bench, trial, driver, point, epoch) is None:
        return None
    bench.board.release()
    until(lambda: bool(bench.board.notes(RELEASED)), "the held task continues", driver)
    time.sleep(delay)
    trial.ended(driver.stop())
    return trial.in_mid_epoch


def _often(hits: int, what: str) -> str:
    if not hits:
        raise NotReached(f"this never happened: {what}")
    return f"twice {what}" if hits == 2 else f"once {what}; {NO_PYTHON}"


CHECKS: dict[str, Check] = {
    "Q01": plain,
    "Q02": replay,
    "Q03": failing_task,
    "Q07": other_parallelism,
    "Q08": other_rows,
    "Q09": stopped,
    "Q04": killed_driver,
    "Q05": lost_executor,
    "Q06": twins,
    "Q10": redrawn,
}
