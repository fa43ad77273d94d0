"""The kit's rules of batches: sinks that break one are found, and ours hold all."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest
from demo.java import java_home
from elasticsearch import Elasticsearch
from integration.spark import batch_mutants
from integration.support.marks import slow_cases
from integration.support.sinks import counting, in_elasticsearch

from sparkonce.tck.batch import BatchContract, BatchSink
from sparkonce.tck.findings import BROKEN
from sparkonce.tck.spark import batch_checks, checks, kills
from sparkonce.tck.spark.batch_checks import BATCH_CHECKS, IN_FOREACH_BATCH
from sparkonce.tck.spark.bench import Bench
from sparkonce.tck.spark.run import run_check
from sparkonce.tck.spark.sink import StreamingSink


@pytest.fixture(scope="module")
def env(tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    return {"JAVA_HOME": str(java_home(tmp_path_factory.mktemp("java")))}


@pytest.mark.parametrize("rule", slow_cases(*batch_mutants.MUTANTS))
def test_a_sink_that_breaks_a_rule_is_found(
    bench: Bench,
    env: dict[str, str],
    tmp_path: Path,
    rule: str,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    for module in (checks, batch_checks):  # of the kills, the one that is sure to find it
        monkeypatch.setattr(module, "KILLS", ((kills.EFFECT, 0.1),))
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


@pytest.mark.parametrize("rule", slow_cases(*BATCH_CHECKS, *IN_FOREACH_BATCH))
def test_a_batch_into_redis_is_exactly_once(
    bench: Bench, redis_url: str, unique: str, env: dict[str, str], rule: str
) -> None:
    sink = in_batches(counting(redis_url, unique, env=env), writeMode="upsert")
    run_check(bench, rule, sink).insist()


@pytest.mark.slow
@pytest.mark.parametrize("mysql_name", ["mysql"], scope="session")
class TestMySqlBatch(BatchContract):
    @pytest.fixture
    def sink(self, mysql_url: str, table: str, env: dict[str, str]) -> BatchSink:
        return in_batches(counting(mysql_url, table, env=env), writeMode="upsert")


@pytest.mark.slow
class TestElasticsearchBatch(BatchContract):
    @pytest.fixture
    def sink(
        self, elastic: Elasticsearch, elasticsearch_url: str, unique: str, env: dict[str, str]
    ) -> Iterator[BatchSink]:
        """Through an alias, whose index is replaced where a batch overwrites."""
        described = counting(elasticsearch_url, f"{unique}-first", env=env)
        elastic.indices.put_alias(index=f"{unique}-first", name=unique)
        sink = in_batches(described, writeMode="upsert")
        yield replace(
            sink,
            read=lambda: in_elasticsearch(elasticsearch_url, unique),
            options={**sink.options, "index": unique},
            overwriting={**sink.overwriting, "index": unique},
        )
        elastic.indices.delete(index=",".join(elastic.indices.get(index=f"{unique}*").body))
