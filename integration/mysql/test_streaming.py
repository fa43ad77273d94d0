"""`format("mysql")` under the streaming half of the kit."""

from __future__ import annotations

from pathlib import Path

import pytest
from demo.java import java_home
from integration.support.sinks import counting

from sparkonce.tck.spark.bench import Bench
from sparkonce.tck.spark.checks import CHECKS
from sparkonce.tck.spark.run import run_check
from sparkonce.tck.streaming import StreamingSink


@pytest.fixture
def sink(mysql_url: str, table: str, tmp_path: Path) -> StreamingSink:
    return counting(mysql_url, table, env={"JAVA_HOME": str(java_home(tmp_path))})


@pytest.mark.slow
@pytest.mark.parametrize("rule", CHECKS)
@pytest.mark.parametrize("mysql_name", ["mysql"], scope="session")
def test_a_stream_is_exactly_once(bench: Bench, sink: StreamingSink, rule: str) -> None:
    """What differs in MariaDB lies behind the steps of a store, and those are tested on both."""
    run_check(bench, rule, sink).insist()


@pytest.mark.slow
@pytest.mark.parametrize("mysql_name", ["mariadb"], scope="session")
def test_a_killed_driver_on_mariadb(bench: Bench, sink: StreamingSink) -> None:
    run_check(bench, "Q04", sink).insist()
