"""What docs/outside-sinks.md says of two sinks from outside, as far as no chance is in it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

import pytest
from demo.java import java_home
from integration.support.servers.finder import or_skip
from tools.outside import jdbc, redis_incr
from tools.outside.events import EventServer

from sparkonce.tck.spark.bench import Bench
from sparkonce.tck.spark.run import run_check
from sparkonce.tck.streaming import StreamingSink

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def env(tmp_path_factory: pytest.TempPathFactory) -> Mapping[str, str]:
    return {"JAVA_HOME": str(java_home(tmp_path_factory.mktemp("java")))}


@pytest.fixture(scope="module")
def bench(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Bench]:
    with Bench(tmp_path_factory.mktemp("outside")) as sparks:
        yield sparks


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
