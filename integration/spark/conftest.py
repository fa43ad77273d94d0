"""Fixtures for tests of what is Spark's."""

from __future__ import annotations

from pathlib import Path

import pytest
from integration.support.runs import Job
from pyspark.sql import SparkSession


@pytest.fixture
def counting(spark: SparkSession, redis_url: str, unique: str, tmp_path: Path) -> Job:
    """A job that adds 1 for each row, to a counter of the row's own."""
    job = Job(spark, tmp_path / "job", redis_url, unique)
    job.options["writeMode"] = "increment"
    return job


@pytest.fixture
def upserting(spark: SparkSession, redis_url: str, unique: str, tmp_path: Path) -> Job:
    """A job that writes each row into a hash of its own."""
    return Job(spark, tmp_path / "job", redis_url, unique)
