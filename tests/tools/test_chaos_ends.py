"""What drivers say when they end, and that nothing of it escapes a chaos run."""

from __future__ import annotations

import random
from contextlib import nullcontext
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from confluent_kafka import Producer
from tools.chaos import run as runs
from tools.chaos import topic
from tools.chaos.drivers import ChaosDriver, Mode
from tools.chaos.plan import Fault
from tools.chaos.result import Result
from tools.chaos.run import Run
from tools.chaos.world import Broken, ChaosWorld

RETRIED = "sparkonce.errors.StoreUnreachable: MySQL failed while staging rows: 1205\n"
FAILED = "26/11/22 09:16:44 ERROR MicroBatchExecution: Query {} [id = 9e24] terminated with error\n"
LAST = "pyspark.errors.exceptions.captured.StreamingQueryException: [STREAM_FAILED] Query ended\n"
BEHIND = "sparkonce.errors.SinkBehindCheckpoint: Epoch 5 is next\n"
CONCURRENT = "org.apache.spark.SparkException: [CONCURRENT_STREAM_LOG_UPDATE] Concurrent update\n"
WORKER = (
    "org.apache.spark.SparkException: Python worker exited unexpectedly (crashed).\n"
    "\tSuppressed: org.apache.spark.SparkException: Failed when perform abort: Traceback\n"
    + RETRIED
)
WORKERS = "org.apache.spark.SparkException: [PYTHON_DATA_SOURCE_ERROR] Traceback\n"
STRANGE = "redis.exceptions.ResponseError: WRONGTYPE\n"
BUG = "Traceback (most recent call last):\nKeyError: 'fence'\n"


class FakeDriver(ChaosDriver):
    def __init__(self, home: Path, log: str, *, alive: bool = False) -> None:
        path = home / "driver.log"
        path.write_text(log)
        words = lambda _: "its last words"  # noqa: E731
        self.home, self.mode = home, Mode()
        self.session: Any = SimpleNamespace(
            log=path, alive=alive, close=lambda: None, last_words=words
        )


@pytest.mark.parametrize(
    ("log", "name"),
    [
        (RETRIED + FAILED.format("rows") + CONCURRENT + LAST, "CONCURRENT_STREAM_LOG_UPDATE"),
        (
            FAILED.format("rows") + BEHIND + LAST + FAILED.format("counters") + RETRIED,
            BEHIND[17:37],
        ),
        (FAILED.format("rows") + WORKER + LAST, "Python worker exited"),
        (FAILED.format("rows") + BUG + LAST, "KeyError"),
        (FAILED.format("rows") + WORKERS + STRANGE + LAST, "ResponseError"),
        (FAILED.format("rows") + LAST, "StreamingQueryException"),
        ("java.lang.NullPointerException: ended at once\n", "NullPointerException"),
        ("", "unknown"),
    ],
    ids=["retried", "two queries", "worker", "bug", "strange", "Spark", "no query", "silent"],
)
def test_error_that_ended_a_driver_is_told(tmp_path: Path, log: str, name: str) -> None:
    assert FakeDriver(tmp_path, log).end()[0] == name


@pytest.mark.parametrize("said", [BEHIND, BUG, "sparkonce.errors.QueryRetired\n"])
def test_what_nothing_called_for_is_an_alarm_wherever_it_stands(tmp_path: Path, said: str) -> None:
    log = said + RETRIED + FAILED.format("rows") + RETRIED
    assert len(FakeDriver(tmp_path, log).alarms()) == 1


@pytest.mark.parametrize("said", [STRANGE, "ValueError: zip() argument 2 is shorter\n"])
def test_error_that_the_connector_has_not_made_its_own_is_an_alarm(
    tmp_path: Path, said: str
) -> None:
    assert len(FakeDriver(tmp_path, FAILED.format("rows") + WORKERS + said + LAST).alarms()) == 1


def test_what_faults_bring_about_is_no_alarm(tmp_path: Path) -> None:
    log = RETRIED + FAILED.format("rows") + WORKER + "sparkonce.errors.ConcurrentDriver: another\n"
    assert not FakeDriver(tmp_path, log).alarms()


def a_world(tmp_path: Path) -> ChaosWorld:
    nothing: Any = None
    return ChaosWorld(nothing, nothing, nothing, nothing, tmp_path, burst=1, deadline=0.0)


def test_alarms_of_drivers_count_whoever_ended_them_but_zombies(tmp_path: Path) -> None:
    world = a_world(tmp_path)
    killed, zombie = (tmp_path / name for name in ("driver-001", "driver-002"))
    killed.mkdir()
    zombie.mkdir()
    world.zombies = [FakeDriver(zombie, FAILED.format("rows") + BEHIND)]
    world._started = [FakeDriver(killed, FAILED.format("rows") + BEHIND), *world.zombies]
    assert world.alarms() == ["driver-001: SinkBehindCheckpoint"]
    assert world.ends() == {"SinkBehindCheckpoint": 1}


def test_driver_that_ends_without_a_word_of_a_query_is_counted(tmp_path: Path) -> None:
    world = a_world(tmp_path)
    world.progress = SimpleNamespace(epochs=lambda: {"rows": 1})  # type: ignore[assignment]
    world.driver = FakeDriver(tmp_path, "java.lang.OutOfMemoryError: Java heap space\n")
    world._started = [world.driver]
    world.close()
    assert world.ends() == {"OutOfMemoryError": 1}


def test_every_driver_is_judged(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    said = FAILED.format("rows") + BEHIND
    monkeypatch.setattr("tools.chaos.world.ChaosDriver", lambda home, *_: _driver_at(home, said))
    world = a_world(tmp_path)
    monkeypatch.setattr(world, "_job", lambda: None)
    monkeypatch.setattr(world, "spark", SimpleNamespace(env={}))
    world.start()
    assert world.alarms() == ["driver-001: SinkBehindCheckpoint"]


def _driver_at(home: Path, log: str) -> FakeDriver:
    home.mkdir()
    return FakeDriver(home, log)


def test_alarms_are_in_the_result(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    run = run_of(tmp_path, [])
    run.result = Result("redis", seed=1, planned=0, versions={}, rows=1, reads=1)
    world: Any = SimpleNamespace(
        target=SimpleNamespace(url="", rows=list, counters=dict, residue=list),
        topic=SimpleNamespace(produced=1, events=list),
        progress=SimpleNamespace(epochs=dict),
        drivers=1,
        close=lambda: None,
        ends=dict,
        alarms=lambda: ["driver-001: SinkBehindCheckpoint"],
    )
    monkeypatch.setattr(runs, "LAST_BREATH", 0.0)
    monkeypatch.setattr(runs, "_gc", lambda _: 0)
    monkeypatch.setattr(runs, "_unfinished", lambda _: [])
    run._count(world)
    assert not run.result.good
    assert run.result.alarms == ["driver-001: SinkBehindCheckpoint"]


def test_what_breaks_the_run_ends_the_strikes(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def breaks(*_: object) -> str:
        raise Broken("two drivers ran on")

    monkeypatch.setattr(runs, "strike", breaks)
    world: Any = SimpleNamespace(driver=None)
    with pytest.raises(Broken):
        run_of(tmp_path, [])._strike(world, Fault("reset", "apply"), None)


def test_driver_that_had_ended_is_not_taken_for_one_that_is_killed(tmp_path: Path) -> None:
    """What it said would be lost, and the queries would not have to go on before the fault."""
    world, advanced = a_world(tmp_path), []
    world.progress = SimpleNamespace(epochs=lambda: {"rows": 1})  # type: ignore[assignment]
    world.driver = FakeDriver(tmp_path, FAILED.format("rows") + BEHIND)
    world.start = lambda: advanced.append("started")  # type: ignore[method-assign,assignment,func-returns-value]
    world.advance = lambda *_: advanced.append("advanced")  # type: ignore[method-assign]
    world.need(Mode(clustered=True))
    assert advanced == ["started", "advanced"]
    assert world._same_end[0] == 1


def test_fault_that_fails_in_an_unforeseen_way_is_missed_and_the_next_one_strikes(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def breaks(*_: object) -> str:
        raise TimeoutError("Kafka did not take the events")

    told: list[str] = []
    run = run_of(tmp_path, told)
    run.result = SimpleNamespace(missed={})  # type: ignore[assignment]
    monkeypatch.setattr(runs, "strike", breaks)
    fault = Fault("reset", "apply")
    world: Any = SimpleNamespace(driver=None)
    assert "MISSED" in run._strike(world, fault, None)
    assert run.result.missed == {str(fault): "TimeoutError: Kafka did not take the events"}


def run_of(tmp_path: Path, told: list[str], server: Any = None) -> Run:
    target = SimpleNamespace(name="redis", version="7", server=server, prepare=lambda: None)
    make: Any = lambda _: target  # noqa: E731
    return Run(make, tmp_path / "home", rows=1, kills=0, seed=1, tell=told.append)


class Stuck(nullcontext[None]):
    def __exit__(self, *_: object) -> None:
        raise OSError("target is busy")


def test_record_outlasts_what_fails_in_tidying_up(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    run = run_of(tmp_path, [], Stuck())
    monkeypatch.setattr(runs.small_disk, "why_not", lambda: "not as root")
    monkeypatch.setattr(run, "_run", lambda *_: setattr(run.result, "rows", 1_000_000))
    result = run()
    assert result.rows == 1_000_000
    assert result.broken == ["tidying up: OSError: target is busy"]


def test_broker_that_is_slow_is_waited_for(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(topic, "WAIT", 0.3)
    made = topic.Topic.__new__(topic.Topic)
    made.produced, made._random = 0, random.Random(1)
    nobody = {"bootstrap.servers": "127.0.0.1:1", "log_level": 0}
    made._producer = Producer({**nobody, "queue.buffering.max.messages": 10})
    with pytest.raises(TimeoutError, match="did not take"):
        made.produce(11)
    made._producer.purge()
