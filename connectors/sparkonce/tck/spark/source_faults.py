"""The checks of sources with a fault in the middle of an epoch."""

from __future__ import annotations

from sparkonce.tck.spark.bench import Bench
from sparkonce.tck.spark.faults import AFTER_ROWS, FAIL, HOLD, RECORDED, Plan
from sparkonce.tck.spark.hits import attempts_at, await_hit
from sparkonce.tck.spark.remote import RemoteDriver
from sparkonce.tck.spark.source_trial import SOON, SourceTrial
from sparkonce.tck.spark.trial import NotReached, QueryFailed, until

TRIES, MANY = 20, 300


def begun_at_the_end(bench: Bench, trial: SourceTrial) -> str:
    """F04: the first epoch fails after its rows are read; its replay runs with more rows."""
    trial.options |= trial.source.latest or {}
    trial.source.append(trial.new(20))
    driver = bench.local(trial.source)
    if not any(_fail_first_epoch(bench, trial, driver) for _ in range(TRIES)):
        raise NotReached(f"none of {TRIES} tries had a row in the first epoch")
    bench.board.release()
    for _ in range(2):
        trial.append()
        trial.run(driver)
    if len(trial.records.of(0)) < 2:
        raise NotReached("the first epoch was not read again")
    return "the first epoch failed, and was replayed after more appends"


def _fail_first_epoch(bench: Bench, trial: SourceTrial, driver: RemoteDriver) -> bool:
    """Make a new query fail while rows arrive; return whether its first epoch had any."""
    trial.begin_anew()
    bench.board.announce(Plan(RECORDED, FAIL, 0))
    with trial.trickle() as rows:
        driver.start(trial.endless())
        error = driver.wait(SOON).error
    first = trial.records.of(0)
    if not first:
        raise QueryFailed(error or "it had no first epoch, though rows arrived")
    # A row behind the one that arrived was appended after the start of the query.
    numbers = [rows.index(row) for row in first[0].ids if row in rows]
    trial.sent = rows[min(numbers, default=len(rows)) :]
    return bool(numbers)


def hit_in_mid_epoch(bench: Bench, trial: SourceTrial) -> str:
    """F10: a task fails; then a driver dies after it kept an epoch and before Spark's record."""
    driver = bench.local(trial.source)
    bench.board.announce(Plan(AFTER_ROWS, FAIL, trial.next_epoch))
    trial.append(MANY)
    trial.run(driver)
    if len(attempts_at(bench, AFTER_ROWS, 0)) < 2:
        raise NotReached("no task failed after it had read its rows")
    epoch = _kill(bench, trial, driver)
    trial.append()
    bench.board.release()
    trial.run(bench.local(trial.source))
    if len(trial.records.of(epoch)) < 2:
        raise NotReached("the epoch of the killed driver was not read again")
    return "a task failed and ran again, and a driver was killed between rows and Spark's record"


def _kill(bench: Bench, trial: SourceTrial, driver: RemoteDriver) -> int:
    """Kill the driver when it has kept the rows of an epoch; return the epoch's number."""
    epoch = trial.next_epoch
    bench.board.announce(Plan(RECORDED, HOLD, epoch))
    trial.append(MANY)
    driver.start(trial.endless())
    until(lambda: bool(bench.board.notes(RECORDED, epoch)), "an epoch is kept", driver)
    bench.kill()
    return epoch


def stopped(bench: Bench, trial: SourceTrial) -> str:
    """F11: a stop while a task runs, and one while the query waits for rows."""
    driver, epoch = bench.local(trial.source), trial.next_epoch
    bench.board.announce(Plan(AFTER_ROWS, HOLD, epoch))
    trial.append(MANY)
    driver.start(trial.endless())
    await_hit(bench, trial, driver, AFTER_ROWS, epoch)
    trial.stop(driver)
    if not trial.in_mid_epoch:
        raise NotReached("the query was stopped while a task ran, but its epoch had ended")
    bench.board.release()
    trial.append()
    driver.start(trial.endless())
    trial.await_rows(driver)
    trial.stop(driver)
    trial.run(driver)
    return "stopped while a task ran, and while the query was idle"
