"""Streams of Redis under the kit's rules of sources: all of them hold."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

import pytest
from demo.java import java_home
from integration.servers.redis import connect

from sparkonce.tck.sources import SourceContract, StreamingSource
from sparkonce.tck.spark.bench import Bench
from sparkonce.tck.spark.run import run_check


@pytest.fixture
def source(redis_url: str, unique: str, tmp_path: Path) -> Iterator[StreamingSource]:
    with connect(redis_url) as client:

        def append(ids: Sequence[str]) -> None:
            with client.pipeline(transaction=False) as pipeline:
                for one in ids:
                    pipeline.xadd(unique, {"id": one})
                pipeline.execute()

        def lose(ids: Sequence[str]) -> None:
            gone = [key for key, entry in client.xrange(unique) if entry[b"id"].decode() in ids]
            client.xdel(unique, *gone)

        yield described(
            {"url": redis_url, "streams": unique},
            {"JAVA_HOME": str(java_home(tmp_path))},
            append=append,
            lose=lose,
            change=append,
        )
        client.unlink(unique)


def described(
    options: Mapping[str, str], env: Mapping[str, str], **functions: object
) -> StreamingSource:
    return StreamingSource(
        format="redis",
        options={**options, "startingPosition": "earliest"},
        schema="id string",
        latest={"startingPosition": "latest"},
        limit="maxRowsPerBatch",
        ordered=True,
        tolerant={"failOnDataLoss": "false"},
        env=env,
        **functions,  # type: ignore[arg-type]
    )


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
