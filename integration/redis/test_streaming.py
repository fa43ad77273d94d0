"""`format("redis")` under the streaming half of the conformance kit: all of its rules hold."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest
from demo.java import java_home
from integration.support.sinks import counting

from sparkonce.spark.session import SETTINGS
from sparkonce.tck.findings import BROKEN, NOT_GIVEN
from sparkonce.tck.spark.bench import Bench
from sparkonce.tck.spark.run import run_check
from sparkonce.tck.streaming import StreamingContract, StreamingSink


@pytest.fixture
def sink(redis_url: str, unique: str, tmp_path: Path) -> StreamingSink:
    return counting(redis_url, unique, env={"JAVA_HOME": str(java_home(tmp_path))})


@pytest.mark.slow
def test_an_epoch_that_is_replayed_takes_effect_once(bench: Bench, sink: StreamingSink) -> None:
    run_check(bench, "Q02", sink).insist()


@pytest.mark.slow
@pytest.mark.parametrize("rule", ["Q05", "Q06", "Q10"])
def test_what_spark_does_to_tasks_leaves_no_trace(
    bench: Bench, sink: StreamingSink, rule: str
) -> None:
    """A lost executor, twins that both send their rows, and rows that are drawn again."""
    run_check(bench, rule, sink).insist()


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
