"""The checks of rules F01 to F14: the rows and epochs of a source, and their replays."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from sparkonce.spark import features
from sparkonce.tck.findings import cause
from sparkonce.tck.spark.bench import Bench
from sparkonce.tck.spark.offset_log import foreign, offsets, write_anew
from sparkonce.tck.spark.remote import RemoteDriver
from sparkonce.tck.spark.source import StreamingSource
from sparkonce.tck.spark.source_faults import begun_at_the_end, hit_in_mid_epoch, stopped
from sparkonce.tck.spark.source_trial import AT_LAST, SOON, SourceTrial
from sparkonce.tck.spark.trial import NotGiven, NotReached, QueryFailed, WrongDoing

SourceCheck = Callable[[Bench, SourceTrial], str]
FEW, LOST = 4, 10
PAUSE, IDLE = 0.02, 3.0
NO_LIMITS = "this Spark sets no limits for Python sources"


def plain(bench: Bench, trial: SourceTrial) -> str:
    """F01: appends of several sizes, while the query runs."""
    driver = bench.local(trial.source)
    driver.start(trial.endless())
    came = all(trial.append(rows) and trial.await_rows(driver) for rows in (100, 1, 30, 2, 300))
    trial.stop(driver)
    trial.run(driver)
    if not came and trial.records.ids() >= {*trial.sent}:
        raise WrongDoing("rows arrived after a restart of the query, and not while it ran")
    return f"{trial.noted('commits')} epochs"


def replay(bench: Bench, trial: SourceTrial) -> str:
    """F02: each epoch again, before later epochs, or after changes of rows; the last alone."""
    driver, rows = bench.local(trial.source), trial.append()
    trial.run(driver)
    for epoch in range(3):
        if epoch == 1:
            trial.change(rows[:5])
        if epoch < 2:
            rows = trial.append()
        trial.replay(driver, epoch)
        if len(trial.records.of(epoch)) < 2:
            raise NotReached(f"Spark did not ask for the rows of epoch {epoch} again")
    changed = "" if trial.source.change else "; no row was changed: the subject has no `change`"
    return f"3 epochs replayed{changed}"


def down(bench: Bench, trial: SourceTrial) -> str:
    """F03: rows that arrive while no query reads."""
    driver = bench.local(trial.source)
    for _ in range(2):
        trial.append()
        driver.start(trial.endless())
        trial.await_rows(driver)
        trial.stop(driver)
    trial.append()
    trial.run(driver)
    return "2 stops"


def limited(bench: Bench, trial: SourceTrial) -> str:
    """F05: many small appends, and a large one if the limit counts rows."""
    source, most = trial.source, trial.source.at_most(FEW)
    _require_limits(source)
    trial.options[source.limit] = str(FEW)
    for _ in range(4 * FEW + 1):
        trial.append(1)
    if not source.limits_appends:
        trial.append(2 * FEW + 1)
    driver = bench.local(source)
    driver.start(trial.endless())
    trial.await_rows(driver)
    trial.stop(driver)
    sizes = [len(one.ids) for one in trial.records.deliveries()]
    if max(sizes, default=0) > most:
        raise WrongDoing(f"an epoch had {max(sizes)} rows, and its maximum is {most}")
    if source.ordered:
        _require_order(trial)
    trial.run(driver)
    return f"{len(sizes)} epochs of at most {max(sizes, default=0)} rows, with a limit of {FEW}"


def _limits_given(source: StreamingSource) -> bool:
    return source.jvm or features.limits is not None


def _require_limits(source: StreamingSource) -> None:
    if not _limits_given(source):
        raise NotGiven(NO_LIMITS)


def _require_order(trial: SourceTrial) -> None:
    numbers = {row: at for at, row in enumerate(trial.sent)}
    before = -1
    for one in trial.records.deliveries():
        found = [numbers[row] for row in one.ids if row in numbers]
        if min(found, default=before) < before:
            raise WrongDoing(f"epoch {one.epoch} has rows that are older than earlier ones")
        before = max(found, default=before)


def available_now(bench: Bench, trial: SourceTrial) -> str:
    """F06: a query with availableNow, while others append row after row."""
    driver, source = bench.local(trial.source), trial.source
    there, is_limited = trial.append(3 * FEW), source.limit and _limits_given(source)
    if is_limited:  # rows that exist at its start cost it an epoch each few, so others come later
        trial.options[source.limit] = str(FEW)
        driver.start(trial.query())
        trial.await_epoch(driver)
    with trial.trickle(PAUSE) as meanwhile:
        if not is_limited:
            driver.start(trial.query())
        status = driver.wait(AT_LAST)
    trial.sent += meanwhile
    trial.ended(driver.stop())
    if status.running:
        raise WrongDoing(f"it had not ended after {AT_LAST:.0f} s, while rows were appended")
    if missing := {*there} - trial.records.ids():
        raise WrongDoing(f"it ended without {len(missing)} rows that existed at its start")
    trial.options = dict(source.options)
    trial.run(driver)
    return f"it ended while {len(meanwhile)} rows were appended"


def losing(bench: Bench, trial: SourceTrial) -> str:
    """F07: rows vanish before a query reads them, and before a replay reads them again."""
    driver, source = bench.local(trial.source), trial.source
    trial.append()
    trial.run(driver)
    gone = trial.append()[:LOST]
    trial.lose(gone)
    trial.sent = [row for row in trial.sent if row not in gone]
    report = _refused(trial, driver, "rows vanished before the query read them")
    if source.tolerant is None:
        return (
            f"{report}; the check did not try to tolerate the loss: the subject has no `tolerant`"
        )
    trial.options |= source.tolerant
    trial.append()
    trial.run(driver)
    trial.options = dict(source.options)
    return f"{report}; {_lost_again(trial, driver)}"


def _lost_again(trial: SourceTrial, driver: RemoteDriver) -> str:
    rows = trial.append()
    trial.run(driver)
    trial.uncommit(trial.noted("commits") - 1)
    trial.lose(rows[:LOST])
    _refused(trial, driver, "rows vanished before a replay read them")
    return "with the loss tolerated it continued, and then failed in a replay"


def _refused(trial: SourceTrial, driver: RemoteDriver, what: str) -> str:
    """The error of a query that must fail.

    Raises:
        WrongDoing: it does not.
    """
    driver.start(trial.query())
    error = driver.wait(3 * SOON).error
    if not error:
        raise WrongDoing(f"{what}, and the query did not fail")
    return f"the query failed: {cause(error)[:150]}"


def respelt_offsets(bench: Bench, trial: SourceTrial) -> str:
    """F08: a replay with offsets that are the same JSON in another spelling."""
    driver = bench.local(trial.source)
    for _ in range(2):
        trial.append()
        trial.run(driver)
    _require_plain_json(trial)
    write_anew(trial.checkpoint)
    trial.append()
    trial.replay(driver, trial.noted("commits") - 1)
    return "the check rewrote the offsets of all epochs, and replayed the last one"


def _require_plain_json(trial: SourceTrial) -> None:
    try:
        found = [what for one in offsets(trial.checkpoint) for what in foreign(one)]
    except ValueError as error:
        raise WrongDoing(f"an offset is not JSON: {error}") from None
    if found:
        raise WrongDoing(f"an offset holds {found[0]}")


def idle(bench: Bench, trial: SourceTrial) -> str:
    """F09: a query that has read everything available, and the same query after a restart."""
    driver = bench.local(trial.source)
    trial.append()
    driver.start(trial.endless())
    if not trial.await_rows(driver):
        raise QueryFailed("its rows did not arrive")
    _require_rest(trial, 0)
    trial.stop(driver)
    driver.start(trial.endless())
    _require_rest(trial, 1)
    trial.stop(driver)
    return f"{trial.noted('commits')} epochs, with one restart"


def _require_rest(trial: SourceTrial, most: int) -> None:
    before = trial.noted("offsets")
    time.sleep(IDLE + most)
    if (epochs := trial.noted("offsets") - before) > most:
        raise WrongDoing(f"{epochs} epochs in {IDLE + most:.0f} s, and nothing was new")


def progress(bench: Bench, trial: SourceTrial) -> str:
    """F12: the progress, after each of two epochs."""
    _require_limits(trial.source)
    driver, ends = bench.local(trial.source), list[object]()
    for _ in range(2):
        trial.append()
        trial.run(driver)
        ends.append(_latest(driver.epochs()))
    if ends[0] == ends[1]:
        raise WrongDoing(f"latestOffset did not move with new rows: {ends[0]}")
    return "latestOffset moves with the rows"


def _latest(epochs: Sequence[Mapping[str, Any]]) -> object:
    sources = [epoch["sources"][0] for epoch in epochs if epoch["numInputRows"]]
    if not sources or sources[-1]["endOffset"] is None:
        raise WrongDoing("progress has no endOffset of an epoch that had rows")
    if sources[-1]["latestOffset"] is None:
        raise WrongDoing("progress has no latestOffset")
    return sources[-1]["latestOffset"]


def fallen_back(bench: Bench, trial: SourceTrial) -> str:
    """F13: the newest rows that a query read are lost, and others follow."""
    driver, source = bench.local(trial.source), trial.source
    trial.append()
    trial.run(driver)
    rows = trial.append()
    trial.run(driver)
    trial.fall_back(rows[-LOST:])
    trial.append()
    report = _report(trial, driver)
    for _ in range(2):
        trial.append()
        trial.run(driver)
    trial.options = dict(source.options)
    trial.append()
    trial.run(driver)
    return report


def _report(trial: SourceTrial, driver: RemoteDriver) -> str:
    """A report of the query, which must have all rows unless it fails and tolerates no loss."""
    driver.start(trial.query())
    status = driver.wait(AT_LAST)
    if not status.error:
        trial.ended(status)
        return "it continued"
    if trial.source.tolerant is None:
        raise NotGiven(f"it failed, and the subject has no `tolerant`: {cause(status.error)[:150]}")
    trial.options |= trial.source.tolerant
    trial.run(driver)
    return f"with the loss tolerated it continued; before, it failed: {cause(status.error)[:150]}"


def left_out(bench: Bench, trial: SourceTrial) -> str:
    """F14: a query leaves some rows out for one run, and for two."""
    source = trial.source
    if not _limits_given(source):
        raise NotGiven("this Spark does not pass a Python source the position of the query")
    driver, fewer = bench.local(source), {**source.options, **(source.fewer or {})}
    for is_whole in (True, False, True, False, False, True):
        trial.append()
        trial.options = dict(source.options) if is_whole else fewer
        trial.run(driver)
    return "a query left some rows out for 3 of 6 runs"


SOURCE_CHECKS: dict[str, SourceCheck] = {
    "F01": plain,
    "F02": replay,
    "F03": down,
    "F04": begun_at_the_end,
    "F05": limited,
    "F06": available_now,
    "F07": losing,
    "F08": respelt_offsets,
    "F09": idle,
    "F11": stopped,
    "F12": progress,
    "F13": fallen_back,
    "F14": left_out,
    "F10": hit_in_mid_epoch,
}
"""In an order that starts few drivers."""
