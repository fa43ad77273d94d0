"""Streams of Redis under the kit's rules of sources: all of them hold."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from demo.java import java_home
from integration.support.servers.redis import connect, require_followable
from integration.support.sources import redis_stream, two_streams_of_redis

from sparkonce.tck.sources import SourceContract, StreamingSource
from sparkonce.tck.spark.bench import Bench
from sparkonce.tck.spark.run import run_check


@pytest.fixture
def source(redis_url: str, unique: str, tmp_path: Path) -> Iterator[StreamingSource]:
    require_followable(redis_url)
    yield redis_stream(redis_url, unique, {"JAVA_HOME": str(java_home(tmp_path))})
    with connect(redis_url) as client:
        client.unlink(unique, f"{unique}:other")


@pytest.mark.slow
@pytest.mark.parametrize("rule", ["F02", "F07", "F13"])
def test_a_range_is_the_same_again_and_what_vanished_is_missed(
    bench: Bench, source: StreamingSource, rule: str
) -> None:
    run_check(bench, rule, source).insist()


def test_a_stream_that_is_left_out_for_a_time(
    bench: Bench, source: StreamingSource, redis_url: str, unique: str
) -> None:
    run_check(bench, "F14", two_streams_of_redis(redis_url, unique, source.env)).insist()


@pytest.mark.slow
class TestRedisStreams(SourceContract):
    @pytest.fixture
    def source(self, source: StreamingSource) -> StreamingSource:
        return source
