"""What judges chaos runs sees harm: the count, the reader, what drivers say, the result."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from tools.chaos import elasticsearch, plan
from tools.chaos.batches import BatchesResult
from tools.chaos.drivers import EXPECTED, ChaosDriver
from tools.chaos.oracle import Reader, Verdict, compare
from tools.chaos.pipeline_stores import apart
from tools.chaos.pipelines import PipelinesResult
from tools.chaos.plan import Fault
from tools.chaos.result import Result, Struck
from tools.chaos.target import BOTH, Counts, Witness
from tools.chaos.topic import Event

from sparkonce import errors

TARGET: Any = SimpleNamespace(
    name="some",
    points=dict.fromkeys(("stage", "decide", "apply")),
    in_driver=("decide", "apply"),
    moves=True,
)
EVENTS = [Event(0, 0, bucket=1, amount=5), Event(0, 1, 1, 7), Event(2, 0, 3, 9)]
ROWS = [Witness(event.partition, event.offset, 1, event.amount) for event in EVENTS]
RIGHT: Counts = {at: {1: (2, 12), 3: (1, 9)}.get(at[1], (0, 0)) for at in BOTH}


def test_a_seed_draws_the_same_faults_and_as_many_kills_as_asked_for() -> None:
    drawn = plan.draw(7, 30, TARGET, disk=True)
    assert drawn == plan.draw(7, 30, TARGET, disk=True) != plan.draw(8, 30, TARGET, disk=True)
    assert sum(fault.kind in plan.KILLING for fault in drawn) == 30


@pytest.mark.parametrize(
    ("rows", "counters", "lost", "duplicated"),
    [
        (ROWS, {}, 0, 0),
        (ROWS[1:], {}, 1, 0),
        ([replace(ROWS[0], amount=6), *ROWS[1:]], {}, 1, 0),
        ([replace(ROWS[0], times=0, amount=0), *ROWS[1:]], {}, 1, 0),
        (ROWS, {("left", 1): (1, 7)}, 1, 0),
        (ROWS, {("left", 1): (2, 13)}, 1, 0),
        ([*ROWS, ROWS[0]], {}, 0, 1),
        ([replace(ROWS[0], times=2, amount=10), *ROWS[1:]], {}, 0, 1),
        (ROWS, {("right", 3): (2, 18)}, 0, 1),
        (ROWS, {("left", 99): (1, 5)}, 0, 1),
        ([replace(ROWS[0], times=0, amount=0), ROWS[1], *[ROWS[2]] * 2], {}, 1, 1),
    ],
    ids=[
        "well",
        "row lost",
        "row wrong",
        "row not counted",
        "count lost",
        "sum wrong",
        "row twice",
        "row counted twice",
        "count too many",
        "counter of nothing",
        "one lost and one doubled",
    ],
)
def test_what_is_lost_or_doubled_is_counted(
    rows: list[Witness], counters: Counts, lost: int, duplicated: int
) -> None:
    assert compare(EVENTS, rows, RIGHT | counters) == Verdict(3, lost, duplicated)


def test_second_document_of_a_counter_is_counted() -> None:
    right = {"side": "left", "bucket": 1, "n": 2, "amount": 12}
    assert elasticsearch._summed(iter([{**right, "n": 1}, right])) == {("left", 1): (3, 24)}


def test_reader_counts_torn_epochs_and_comes_back_after_a_failure() -> None:
    states: Iterator[tuple[int, int] | None] = iter([(1, 1), None, (3, 3), (5, 4), (5, 5)])

    def watch() -> Callable[[], tuple[int, int]]:
        def sides() -> tuple[int, int]:
            state = next(states, (5, 5))
            if state is None:
                raise ConnectionError
            return state

        return sides

    reader = Reader(watch, time.monotonic())
    while reader.reads < 5:
        time.sleep(0.01)
    reader.close()
    assert (reader.torn, reader.changes) == (1, 4)


RETRIED = "sparkonce.errors.StoreUnreachable: MySQL failed while staging rows: 1205\n"
FAILED = "26/11/22 09:16:44 ERROR MicroBatchExecution: Query rows [id = 9e] terminated with error\n"
LAST = "pyspark.errors.exceptions.captured.StreamingQueryException: [STREAM_FAILED] Query ended\n"
BEHIND = "sparkonce.errors.SinkBehindCheckpoint: Epoch 5 is next\n"
CONCURRENT = "org.apache.spark.SparkException: [CONCURRENT_STREAM_LOG_UPDATE] Concurrent update\n"
WORKER = "org.apache.spark.SparkException: Python worker exited unexpectedly (crashed).\n"
WORKERS = "org.apache.spark.SparkException: [PYTHON_DATA_SOURCE_ERROR] Traceback\n"
STRANGE = "redis.exceptions.ResponseError: WRONGTYPE\n"
BUG = "Traceback (most recent call last):\nKeyError: 'fence'\n"


@pytest.mark.parametrize(
    ("log", "name", "alarms"),
    [
        (RETRIED + FAILED + CONCURRENT + LAST, "CONCURRENT_STREAM_LOG_UPDATE", set()),
        (FAILED + WORKER + RETRIED + LAST, "Python worker exited", set()),
        (
            FAILED + BEHIND + LAST + FAILED + RETRIED,
            "SinkBehindCheckpoint",
            {"SinkBehindCheckpoint"},
        ),
        (FAILED + BUG + LAST, "KeyError", {"KeyError"}),
        (FAILED + WORKERS + STRANGE + LAST, "ResponseError", {"ResponseError"}),
        (FAILED + LAST, "StreamingQueryException", set()),
        ("java.lang.NullPointerException: ended at once\n", "NullPointerException", set()),
        ("", "unknown", set()),
    ],
    ids=["retried", "worker", "two queries", "bug", "strange", "Spark", "no query", "silent"],
)
def test_what_ended_a_driver_is_told_and_what_is_not_so_is_an_alarm(
    tmp_path: Path, log: str, name: str, alarms: set[str]
) -> None:
    driver = ChaosDriver.__new__(ChaosDriver)
    path = tmp_path / "driver.log"
    path.write_text(log)
    driver.log = path
    assert driver.end()[0] == name
    assert driver.alarms() == alarms
    assert vars(errors).keys() >= EXPECTED


def result(**changes: Any) -> Result:
    made = Result(store="redis", seed=1, planned=1, versions={}, rows=10, reads=5)
    made.struck.append(Struck(Fault(plan.DRIVER, "stage"), 1.0, 2.0, "", {"rows": 1}, 1))
    return replace(made, **changes)


@pytest.mark.parametrize(
    "harm",
    [
        {"lost": 1},
        {"duplicated": 1},
        {"torn": 1},
        {"residue": ["a chunk"]},
        {"broken": ["two drivers"]},
        {"alarms": ["driver-002: SinkBehindCheckpoint"]},
        {"struck": []},
        {"missed": {"reset at commit": "not within 90 s"}},
        {"rows": 0},
        {"reads": 0},
    ],
    ids=str,
)
def test_result_is_not_good(harm: dict[str, Any]) -> None:
    assert result().good
    assert not result(**harm).good


@pytest.mark.parametrize(
    "harm",
    [
        {"lost": {"log-to-index": 1}},
        {"duplicated": {"log-to-index": 1}},
        {"lost": {}},
        {"alarms": ["TypeError, once"]},
        {"broken": ["a query did not get on"]},
    ],
    ids=str,
)
@pytest.mark.parametrize("kind", [PipelinesResult, BatchesResult])
def test_result_of_several_stores_is_not_good(kind: Any, harm: dict[str, Any]) -> None:
    none = {"log-to-index": 0}
    made = kind(seed=1, kills=2, versions={}, lost=none, duplicated=none)
    assert made.good
    assert not replace(made, **harm).good


def test_rows_that_are_lost_stale_or_too_many_are_counted() -> None:
    source = {1: (1, "a"), 2: (2, "b"), 3: (3, None)}
    assert apart(source, source) == (0, 0)
    assert apart(source, {1: (1, "a"), 2: (2, "x"), 4: (4, "b")}) == (2, 1)
