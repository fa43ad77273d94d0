"""Streams of Redis under the kit's rules of sources: all of them hold."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from demo.java import java_home
from integration.servers.redis import connect
from integration.sources import redis_stream

from sparkonce.tck.sources import SourceContract, StreamingSource
from sparkonce.tck.spark.bench import Bench
from sparkonce.tck.spark.run import run_check


@pytest.fixture
def source(redis_url: str, unique: str, tmp_path: Path) -> Iterator[StreamingSource]:
    yield redis_stream(redis_url, unique, {"JAVA_HOME": str(java_home(tmp_path))})
    with connect(redis_url) as client:
        client.unlink(unique)


def test_a_range_that_is_replayed_is_the_same(bench: Bench, source: StreamingSource) -> None:
    """The one rule of a source that is always checked on real Spark; the others take minutes."""
    run_check(bench, "F02", source).insist()


@pytest.mark.long
def test_entries_that_vanish_are_missed(bench: Bench, source: StreamingSource) -> None:
    run_check(bench, "F07", source).insist()


@pytest.mark.conformance
class TestRedisStreams(SourceContract):
    @pytest.fixture
    def source(self, source: StreamingSource) -> StreamingSource:
        return source
