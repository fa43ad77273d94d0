"""`format("redis")` under the streaming half of the conformance kit: all of its rules hold."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from pathlib import Path

import pytest
import redis
from demo.java import java_home

from sparkonce.spark.shuffle import SETTINGS
from sparkonce.tck.findings import BROKEN
from sparkonce.tck.spark.bench import Bench
from sparkonce.tck.spark.run import run_check
from sparkonce.tck.streaming import StreamingContract, StreamingSink


def counters(url: str, name: str) -> Counter[str]:
    """The counter of each id: how often it took effect."""
    with redis.Redis.from_url(url, decode_responses=True) as client:
        keys = list(client.scan_iter(f"{name}:*", count=10_000))
        with client.pipeline(transaction=False) as pipe:
            for key in keys:
                pipe.hget(key, "n")
            counted = zip(keys, pipe.execute(), strict=True)
            return Counter({key.split(":", 1)[1]: int(times) for key, times in counted})


@pytest.fixture
def sink(redis_url: str, unique: str, tmp_path: Path) -> StreamingSink:
    return StreamingSink(
        read=lambda: counters(redis_url, unique),
        format="redis",
        options={"url": redis_url, "key": f"{unique}:{{id}}", "writeMode": "increment"},
        env={"JAVA_HOME": str(java_home(tmp_path))},
    )


def test_an_epoch_that_is_replayed_takes_effect_once(bench: Bench, sink: StreamingSink) -> None:
    """The one rule of a stream that is always checked on real Spark; the others take minutes."""
    run_check(bench, "Q02", sink).insist()


@pytest.mark.long
class TestRedisStreaming(StreamingContract):
    @pytest.fixture
    def sink(self, sink: StreamingSink) -> StreamingSink:
        return sink


@pytest.mark.long
def test_a_spark_that_mixes_computations_is_found_out(sink: StreamingSink, tmp_path: Path) -> None:
    """No sink can keep the promise with these settings off; so the sink warns of them."""
    off = replace(sink, settings=dict.fromkeys(SETTINGS, "false"))
    with Bench(tmp_path / "bench") as bench:
        finding = run_check(bench, "Q10", off)
        logs = "".join(path.read_text() for path in (tmp_path / "bench").rglob("driver.log"))
    assert (finding.outcome, bool(finding.lost), bool(finding.doubled)) == (BROKEN, True, True)
    assert "Spark may mix two computations of an epoch" in logs
