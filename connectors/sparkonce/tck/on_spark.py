"""The base of the suites that run on Spark: they share its drivers, and write a report."""

from __future__ import annotations

import os
import shutil
import tempfile
from pathlib import Path
from typing import ClassVar

import pytest

from sparkonce.tck import report
from sparkonce.tck.findings import LEFT_OUT, NOT_GIVEN, Finding
from sparkonce.tck.spark.bench import Bench
from sparkonce.tck.spark.run import Subject, run_check
from sparkonce.tck.suites.suite import Contract

REPORT = "SPARKONCE_TCK_REPORT"


class Record:
    """The Spark drivers of one class of tests, and the findings."""

    def __init__(self, bench: Bench) -> None:
        self.bench = bench
        self.title = ""
        self.findings: list[Finding] = []

    def check(self, number: str, subject: Subject) -> None:
        """Check one rule; the test passes, fails or skips according to the finding."""
        self.title = subject.title
        finding = run_check(self.bench, number, subject)
        self.findings.append(finding)
        if finding.outcome in (LEFT_OUT, NOT_GIVEN):
            pytest.skip(finding.seen)
        finding.insist()

    def close(self, name: str) -> None:
        """Stop all drivers, and write the report if SPARKONCE_TCK_REPORT is set."""
        self.bench.reset()
        shutil.rmtree(self.bench.home, ignore_errors=True)
        if os.environ.get(REPORT) and self.findings:
            found = sorted(self.findings, key=lambda finding: finding.rule.number)
            report.write(Path(os.environ[REPORT]), name, self.title, found)


class SparkContract(Contract):
    """The base class. Its subclasses order their tests so that the fewest drivers start."""

    record: ClassVar[Record]

    @classmethod
    def setup_class(cls) -> None:
        """Spark itself starts with the first test."""
        cls.record = Record(Bench(Path(tempfile.mkdtemp(prefix="sparkonce-tck-"))))

    @classmethod
    def teardown_class(cls) -> None:
        """Stop all drivers, and write the report."""
        cls.record.close(cls.__name__)
