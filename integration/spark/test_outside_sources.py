"""What docs/outside-sinks.md says of two sources from outside."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from pathlib import Path

import pytest
from demo.java import java_home
from integration.support.servers.finder import or_skip
from integration.support.servers.kafka import KafkaProcess
from tools.outside import files

from sparkonce.tck.findings import BROKEN
from sparkonce.tck.sources import SourceContract, StreamingSource
from sparkonce.tck.spark.bench import Bench
from sparkonce.tck.spark.run import run_check

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def env(tmp_path_factory: pytest.TempPathFactory) -> Mapping[str, str]:
    return {"JAVA_HOME": str(java_home(tmp_path_factory.mktemp("java")))}


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
        ("F07", "rows vanished before they were read, and the query did not fail"),
        ("F12", "progress has no latestOffset"),
    ],
)
def test_what_spark_does_not_know_of_files(
    bench: Bench, env: Mapping[str, str], tmp_path: Path, rule: str, words: str
) -> None:
    finding = run_check(bench, rule, files.source(tmp_path, env))
    assert (finding.outcome, finding.seen) == (BROKEN, words)
