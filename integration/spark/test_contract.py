"""The kit's rules of batches: sinks that break one are found, and ours hold all."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from pathlib import Path

import pytest
from demo.java import java_home
from elasticsearch import Elasticsearch
from integration.spark import batch_mutants
from integration.support.kit import counting, in_elasticsearch
from integration.support.marks import slow_cases
from integration.support.servers.finder import or_skip
from integration.support.servers.kafka import KafkaProcess
from tests.kit import log_source
from tests.kit.source_mutants import MUTANTS
from tools.outside import files, jdbc, redis_incr
from tools.outside.events import EventServer

from sparkonce.spark import features
from sparkonce.tck.batch import BatchContract, BatchSink
from sparkonce.tck.findings import BROKEN
from sparkonce.tck.sources import SourceContract, StreamingSource
from sparkonce.tck.spark import batch_checks, checks, kills
from sparkonce.tck.spark.batch_checks import BATCH_CHECKS, IN_FOREACH_BATCH
from sparkonce.tck.spark.bench import Bench
from sparkonce.tck.spark.run import run_check
from sparkonce.tck.spark.source_checks import NO_LIMITS, SOURCE_CHECKS
from sparkonce.tck.streaming import StreamingSink


@pytest.fixture(scope="module")
def env(tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    return {"JAVA_HOME": str(java_home(tmp_path_factory.mktemp("java")))}


@pytest.mark.parametrize("rule", slow_cases(*batch_mutants.MUTANTS))
def test_a_sink_that_breaks_a_rule_is_found(
    bench: Bench, env: dict[str, str], tmp_path: Path, rule: str, monkeypatch: pytest.MonkeyPatch
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
        self, elastic: Elasticsearch, elasticsearch_url: str, index: str, env: dict[str, str]
    ) -> BatchSink:
        """Through an alias, whose index is replaced where a batch overwrites."""
        described = counting(elasticsearch_url, f"{index}-first", env=env)
        elastic.indices.put_alias(index=f"{index}-first", name=index)
        sink = in_batches(described, writeMode="upsert")
        return replace(
            sink,
            read=lambda: in_elasticsearch(elasticsearch_url, index),
            options={**sink.options, "index": index},
            overwriting={**sink.overwriting, "index": index},
        )


@pytest.mark.parametrize("rule", slow_cases(*SOURCE_CHECKS))
def test_an_honest_source_keeps_all_rules(
    bench: Bench, env: dict[str, str], tmp_path: Path, rule: str
) -> None:
    run_check(bench, rule, log_source.source(tmp_path, env)).insist()


@pytest.mark.skipif(features.limits is None, reason=NO_LIMITS)
@pytest.mark.parametrize("mutant", slow_cases(*MUTANTS))
def test_a_source_that_breaks_a_rule_is_found(
    bench: Bench, env: dict[str, str], tmp_path: Path, mutant: str
) -> None:
    rule, words = MUTANTS[mutant]
    finding = run_check(bench, rule, log_source.source(tmp_path, env, mutant))
    assert finding.outcome == BROKEN, finding.said
    assert re.search(words, finding.said)


@pytest.mark.slow
def test_a_source_whose_changed_rows_move_must_say_so(
    bench: Bench, env: dict[str, str], tmp_path: Path
) -> None:
    source = log_source.moving(tmp_path, env)
    run_check(bench, "F02", source).insist()
    finding = run_check(bench, "F02", replace(source, newest=False))
    assert (finding.outcome, finding.lost, finding.doubled) == (BROKEN, 5, 0), finding.said


pytestmark = pytest.mark.slow


@pytest.fixture
def server() -> Iterator[EventServer]:
    with EventServer() as running:
        yield running


def meta_capi(server: EventServer, env: Mapping[str, str]) -> StreamingSink:
    pytest.importorskip("pyspark_datasources", reason="no pyspark-data-sources for this Python")
    from tools.outside import meta_capi

    return meta_capi.sink(server, env)


def counts_each_row_once_until_an_epoch_is_replayed(bench: Bench, sink: StreamingSink) -> None:
    plain = run_check(bench, "Q01", sink)
    assert plain.held, plain.said
    replayed = run_check(bench, "Q02", sink)
    assert (replayed.sent, replayed.lost, replayed.doubled) == (360, 0, 240), replayed.said


def test_foreach_batch_with_redis(
    bench: Bench, redis_url: str, unique: str, env: Mapping[str, str]
) -> None:
    sink = redis_incr.sink(redis_url, unique, env)
    counts_each_row_once_until_an_epoch_is_replayed(bench, sink)


@pytest.mark.parametrize("mysql_name", ["mysql"], scope="session")
def test_jdbc_in_batches(bench: Bench, mysql_url: str, table: str, env: Mapping[str, str]) -> None:
    sink = or_skip(lambda: jdbc.sink(mysql_url, table, env))
    again = run_check(bench, "B08", sink)
    assert (again.sent, again.lost, again.doubled) == (240, 0, 240), again.said


def test_meta_capi(bench: Bench, server: EventServer, env: Mapping[str, str]) -> None:
    counts_each_row_once_until_an_epoch_is_replayed(bench, meta_capi(server, env))


def test_meta_capi_goes_on_without_the_rows_of_a_refused_post(
    bench: Bench, env: Mapping[str, str]
) -> None:
    with EventServer(refused=1) as server:
        finding = run_check(bench, "Q01", meta_capi(server, env))
    assert finding.lost > 0
    assert finding.seen == "3 epochs", "the query did not fail"


@pytest.fixture(scope="module")
def kafka(env: Mapping[str, str]) -> Iterator[Callable[[], StreamingSource]]:
    pytest.importorskip("confluent_kafka", reason="no confluent-kafka for this Python")
    from tools.outside import kafka

    with or_skip(KafkaProcess) as broker:
        yield lambda: kafka.source(broker.address, env)


class TestKafka(SourceContract):
    @pytest.fixture
    def source(self, kafka: Callable[[], StreamingSource]) -> StreamingSource:
        return or_skip(kafka)


@pytest.mark.parametrize("rule", ["F01", "F02", "F05"])
def test_files_are_read_once(
    bench: Bench, env: Mapping[str, str], tmp_path: Path, rule: str
) -> None:
    run_check(bench, rule, files.source(tmp_path, env)).insist()


@pytest.mark.parametrize(
    ("rule", "words"),
    [
        ("F07", "rows vanished before the query read them, and the query did not fail"),
        ("F12", "progress has no latestOffset"),
    ],
)
def test_what_spark_does_not_know_of_files(
    bench: Bench, env: Mapping[str, str], tmp_path: Path, rule: str, words: str
) -> None:
    finding = run_check(bench, rule, files.source(tmp_path, env))
    assert (finding.outcome, finding.seen) == (BROKEN, words)
