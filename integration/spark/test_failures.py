"""Drivers that die, queries that are stopped, servers that vanish: through real Spark."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
import redis
from integration.support.driver import DriverProcess
from integration.support.proxy import Proxy
from integration.support.runs import Job, once
from integration.support.servers.redis import RedisProcess
from pyspark.errors import StreamingQueryException
from pyspark.sql import SparkSession

EVALSHA, MULTI = b"\r\nEVALSHA\r\n", b"\r\nMULTI\r\n"
PATIENCE = 300.0


@pytest.fixture
def counting(spark: SparkSession, redis_url: str, unique: str, tmp_path: Path) -> Job:
    job = Job(spark, tmp_path / "job", redis_url, unique)
    job.options |= {"writeMode": "increment", "chunkRows": "1000"}
    return job


def wait_until(reached: Callable[[], bool]) -> None:
    deadline = time.monotonic() + PATIENCE
    while not reached():
        assert time.monotonic() < deadline, "it did not come to that"
        time.sleep(0.02)


@pytest.fixture
def driver(counting: Job) -> Iterator[Callable[[], DriverProcess]]:
    started: list[DriverProcess] = []

    def start() -> DriverProcess:
        started.append(DriverProcess(counting))
        return started[-1]

    yield start
    for one in started:
        one.close()


@pytest.mark.slow
@pytest.mark.parametrize(
    ("request_", "at"),
    [pytest.param(MULTI, (7, 3), id="staging"), pytest.param(EVALSHA, (4, 1), id="deciding")],
)
def test_killed_driver_loses_and_doubles_nothing(
    counting: Job,
    driver: Callable[[], DriverProcess],
    redis_proxy: Proxy,
    request_: bytes,
    at: tuple[int, int],
) -> None:
    """Killed twice in the middle of an epoch; what it had on its way arrives after its death."""
    for start in range(0, 30_000, 10_000):
        counting.put(range(start, start + 10_000))
    direct, counting.url = counting.url, redis_proxy.url
    for nth in at:
        cuts = redis_proxy.cuts
        redis_proxy.stall(request_, nth=nth)
        victim = driver()
        wait_until(lambda cuts=cuts: redis_proxy.cuts > cuts)
        victim.kill()
        redis_proxy.restore()
    assert driver().process.wait(PATIENCE) == 0
    counting.url = direct
    assert counting.counts() == once(range(30_000))
    sink = counting.sink()
    assert sink.ledger is not None
    assert (sink.ledger.decision.epoch, sink.ledger.totals.rows, sink.staged) == (2, 30_000, ())


@pytest.mark.slow
def test_query_stopped_in_mid_commit_replays_its_epoch(counting: Job, redis_proxy: Proxy) -> None:
    counting.put(range(10))
    counting.run()
    direct, counting.options["url"] = counting.url, redis_proxy.url
    counting.options["maxRetries"] = "1"
    redis_proxy.stall(EVALSHA)
    counting.put(range(10, 20))
    query = counting.start()
    wait_until(lambda: redis_proxy.cuts == 1)
    query.stop()
    redis_proxy.restore()
    counting.options["url"] = direct
    counting.put(range(20, 30))
    counting.run()
    assert counting.counts() == once(range(30))
    assert counting.sink().staged == ()


def test_server_that_is_down_at_start_is_named(counting: Job) -> None:
    counting.options |= {"url": "redis://127.0.0.1:1", "maxRetries": "0"}
    counting.put(range(10))
    message = counting.refused()
    assert "StoreUnreachable" in message
    assert "check option url and the server" in message


def test_server_lost_in_mid_query_fails_the_query_and_a_restart_goes_on(
    counting: Job, private_redis: Callable[..., RedisProcess]
) -> None:
    server = private_redis("appendonly yes", "appendfsync always")
    counting.url = server.url
    counting.options |= {"url": server.url, "maxRetries": "1"}
    for start in range(0, 50, 10):
        counting.put(range(start, start + 10))
    query = counting.start()
    wait_until(lambda: query.lastProgress is not None)
    server.kill()
    with pytest.raises(StreamingQueryException, match="check option url and the server"):
        query.awaitTermination(PATIENCE)
    server.start()
    counting.run()
    assert counting.counts() == once(range(50))


@pytest.mark.slow
def test_key_of_another_type_names_itself_and_the_query_goes_on_once_it_is_gone(
    counting: Job, unique: str
) -> None:
    with redis.Redis.from_url(counting.url) as client:
        client.set(f"{unique}:7", "not a hash")
        counting.put(range(20))
        message = counting.refused()
        assert f"RowRefused: Redis refused key '{unique}:7' in epoch 0: WRONGTYPE" in message
        client.delete(f"{unique}:7")
    counting.run()
    assert counting.counts() == once(range(20))


def test_null_key_fails_its_epoch_and_nothing_of_it_takes_effect(counting: Job) -> None:
    counting.transform = lambda rows: rows.selectExpr("if(id = 13, null, id) as id", "n")
    counting.put(range(10))
    counting.put(range(10, 20))
    message = counting.refused()
    assert "BadRow: Column 'id' is null in a row" in message
    assert counting.counts() == once(range(10))
    counting.transform = lambda rows: rows
    counting.run()
    assert counting.counts() == once(range(20))


def test_misspelt_option_is_refused_before_any_row(counting: Job) -> None:
    counting.options["writeMod"] = "increment"
    counting.put(range(10))
    message = counting.refused()
    assert "OptionError: Option 'writemod' is unknown" in message
    assert "did you mean 'writeMode'?" in message
    assert counting.rows() == {}
