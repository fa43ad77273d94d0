"""`format("redis")` under the streaming half of the conformance kit: all of its rules hold."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest
from demo.java import java_home
from integration.support.kit import counting, redis_stream, two_streams_of_redis
from integration.support.redis import Keys
from integration.support.servers.redis import connect, require_followable

from sparkonce.spark.session import SETTINGS
from sparkonce.tck.findings import BROKEN, NOT_GIVEN
from sparkonce.tck.sources import SourceContract, StreamingSource
from sparkonce.tck.spark.bench import Bench
from sparkonce.tck.spark.run import run_check
from sparkonce.tck.streaming import StreamingContract, StreamingSink


@pytest.fixture
def sink(keys: Keys, tmp_path: Path) -> StreamingSink:
    return counting(keys.url, keys, env={"JAVA_HOME": str(java_home(tmp_path))})


@pytest.mark.slow
class TestRedisStreaming(StreamingContract):
    @pytest.fixture
    def sink(self, sink: StreamingSink) -> StreamingSink:
        return sink


@pytest.mark.slow
def test_a_spark_that_mixes_computations_is_found_out(sink: StreamingSink, tmp_path: Path) -> None:
    """No sink can keep the promise with these settings off; so the sink warns of them."""
    off = replace(sink, settings=dict.fromkeys(SETTINGS, "false"))
    with Bench(tmp_path / "bench") as bench:
        finding = run_check(bench, "Q10", off)
        logs = "".join(path.read_text() for path in (tmp_path / "bench").rglob("driver.log"))
    if finding.outcome != NOT_GIVEN:  # a Spark that compares nothing need not be told to
        assert (finding.outcome, bool(finding.lost), bool(finding.doubled)) == (BROKEN, True, True)
    assert "Spark may mix two computations of an epoch" in logs


@pytest.fixture
def streams(keys: Keys, tmp_path: Path) -> Iterator[StreamingSource]:
    require_followable(keys.url)
    yield redis_stream(keys.url, keys, {"JAVA_HOME": str(java_home(tmp_path))})
    with connect(keys.url) as client:
        client.unlink(keys, f"{keys}:other")


def test_a_stream_that_is_left_out_for_a_time(
    bench: Bench, streams: StreamingSource, keys: Keys
) -> None:
    run_check(bench, "F14", two_streams_of_redis(keys.url, keys, streams.env)).insist()


@pytest.mark.slow
class TestRedisStreams(SourceContract):
    @pytest.fixture
    def source(self, streams: StreamingSource) -> StreamingSource:
        return streams
