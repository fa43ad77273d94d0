"""The kit's rules of batches: sinks that break one are found, and ours hold all."""

from __future__ import annotations

from pathlib import Path

import pytest
from demo.java import java_home
from integration import batch_mutants
from integration.sinks import counting

from sparkonce.tck.batch import BatchContract, BatchSink
from sparkonce.tck.findings import BROKEN
from sparkonce.tck.spark import batch_checks, checks
from sparkonce.tck.spark.bench import Bench
from sparkonce.tck.spark.run import run_check
from sparkonce.tck.spark.sink import StreamingSink

pytestmark = pytest.mark.long


@pytest.fixture(scope="module")
def env(tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    return {"JAVA_HOME": str(java_home(tmp_path_factory.mktemp("java")))}


@pytest.mark.parametrize("rule", batch_mutants.MUTANTS)
def test_a_sink_that_breaks_a_rule_is_found(
    bench: Bench, env: dict[str, str], tmp_path: Path, rule: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    for module in (checks, batch_checks):  # of the kills, the one that is sure to find it
        monkeypatch.setattr(module, "KILLS", ((checks.EFFECT, 0.1),))
    broken = batch_mutants.sink(tmp_path, env, batch_mutants.MUTANTS[rule])
    finding = run_check(bench, rule, broken)
    assert finding.outcome == BROKEN, finding.said
    assert finding.lost or finding.doubled or finding.alien, finding.said


def in_batches(sink: StreamingSink, **overwriting: str) -> BatchSink:
    """The same target, written to in batches."""
    return BatchSink(
        sink.read,
        format=sink.format,
        options=sink.options,
        env=sink.env,
        named={"txnAppId": "{job}", "txnVersion": "{version}"},
        overwriting={**sink.options, **overwriting},
    )


class TestRedisBatch(BatchContract):
    @pytest.fixture
    def sink(self, redis_url: str, unique: str, env: dict[str, str]) -> BatchSink:
        return in_batches(counting(redis_url, unique, env=env), writeMode="upsert")
