"""What tests of `spark.readStream.format("elasticsearch")` have in common."""

from __future__ import annotations

import pytest


@pytest.fixture(autouse=True)
def small(monkeypatch: pytest.MonkeyPatch) -> None:
    """Splits and pages of few documents."""
    monkeypatch.setattr("pyspark_elasticsearch.follow.feed.LARGE", 20)
    monkeypatch.setattr("pyspark_elasticsearch.read.pages.FIRST", 10)
