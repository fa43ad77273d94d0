"""`StreamingContract`: a black box around any streaming sink of PySpark.

A third party joins with one fixture::

    from sparkonce.tck.streaming import StreamingContract, StreamingSink

    class TestMySink(StreamingContract):
        @pytest.fixture
        def sink(self) -> StreamingSink:
            return StreamingSink(read=how_often_each_id_is_there, format="mine", options={...})

Spark must be able to start, so JAVA_HOME must be set where there is no ``java`` on the PATH.
Where the environment variable SPARKONCE_TCK_REPORT names a directory, each class leaves a report
there: a table, and JSON. SPARKONCE_TCK_SEED, a number, chooses other moments for kills and stops.
Without pytest, `run_contract` gives the findings, and `sparkonce.tck.report` their table.
"""

from __future__ import annotations

import os
import shutil
import tempfile
from pathlib import Path
from typing import ClassVar

import pytest

from sparkonce.tck import report
from sparkonce.tck.contract import Contract
from sparkonce.tck.findings import LEFT_OUT, NOT_GIVEN, Finding
from sparkonce.tck.spark.bench import Bench
from sparkonce.tck.spark.run import run_check, run_contract
from sparkonce.tck.spark.sink import StreamingSink

__all__ = ["Finding", "StreamingContract", "StreamingSink", "run_contract"]

REPORT = "SPARKONCE_TCK_REPORT"


class Record:
    """The Sparks of one class of tests, and what they have found."""

    def __init__(self, bench: Bench) -> None:
        self.bench = bench
        self.title = ""
        self.findings: list[Finding] = []

    def check(self, number: str, sink: StreamingSink) -> None:
        """Check one rule; the test passes, fails or is skipped by what is found."""
        self.title = sink.title
        finding = run_check(self.bench, number, sink)
        self.findings.append(finding)
        if finding.outcome in (LEFT_OUT, NOT_GIVEN):
            pytest.skip(finding.seen)
        finding.insist()

    def close(self, name: str) -> None:
        """End all Sparks, and write the report if one is wanted."""
        self.bench.reset()
        shutil.rmtree(self.bench.home, ignore_errors=True)
        if os.environ.get(REPORT) and self.findings:
            found = sorted(self.findings, key=lambda finding: finding.rule.number)
            report.write(Path(os.environ[REPORT]), name, self.title, found)


class StreamingContract(Contract):
    """The rules of a streaming query. The tests stand in the order that starts fewest Sparks."""

    @pytest.fixture
    def sink(self) -> StreamingSink:
        """The sink to be checked: a subclass must say."""
        raise NotImplementedError("a subclass of StreamingContract needs a fixture `sink`")

    record: ClassVar[Record]

    @classmethod
    def setup_class(cls) -> None:
        """Spark itself starts with the first test."""
        cls.record = Record(Bench(Path(tempfile.mkdtemp(prefix="sparkonce-tck-"))))

    @classmethod
    def teardown_class(cls) -> None:
        """End all Sparks, and leave the report."""
        cls.record.close(cls.__name__)

    def test_q01_every_row_takes_effect_once(self, sink: StreamingSink) -> None:
        """Checks Q01."""
        self.record.check("Q01", sink)

    def test_q02_a_replayed_epoch(self, sink: StreamingSink) -> None:
        """Checks Q02."""
        self.record.check("Q02", sink)

    def test_q03_a_task_that_fails(self, sink: StreamingSink) -> None:
        """Checks Q03."""
        self.record.check("Q03", sink)

    def test_q07_another_parallelism(self, sink: StreamingSink) -> None:
        """Checks Q07."""
        self.record.check("Q07", sink)

    def test_q08_a_replay_of_other_rows(self, sink: StreamingSink) -> None:
        """Checks Q08."""
        self.record.check("Q08", sink)

    def test_q09_a_stopped_query(self, sink: StreamingSink) -> None:
        """Checks Q09."""
        self.record.check("Q09", sink)

    def test_q04_a_killed_driver(self, sink: StreamingSink) -> None:
        """Checks Q04."""
        self.record.check("Q04", sink)

    def test_q05_a_lost_executor(self, sink: StreamingSink) -> None:
        """Checks Q05."""
        self.record.check("Q05", sink)

    def test_q06_speculative_twins(self, sink: StreamingSink) -> None:
        """Checks Q06."""
        self.record.check("Q06", sink)

    def test_q10_rows_that_are_drawn_again(self, sink: StreamingSink) -> None:
        """Checks Q10."""
        self.record.check("Q10", sink)
