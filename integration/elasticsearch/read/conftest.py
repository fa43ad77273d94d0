"""What tests of `spark.read.format("elasticsearch")` have in common."""

from __future__ import annotations

import pytest
from integration.support.elasticsearch import MANY, Index, fill


@pytest.fixture(autouse=True)
def small(monkeypatch: pytest.MonkeyPatch) -> None:
    """Splits and pages of few documents."""
    monkeypatch.setattr("pyspark_elasticsearch.read.source.FEW", 100)
    monkeypatch.setattr("pyspark_elasticsearch.read.pages.FIRST", 20)


@pytest.fixture
def two(index: Index) -> Index:
    """The beginning of the names of two indices: of hundreds and of 3 documents."""
    for at, (many, kind) in enumerate([(MANY, "integer"), (3, "long")]):
        properties = {"n": {"type": kind}, f"only{at}": {"type": "keyword"}}
        documents = ({"n": number, f"only{at}": str(number)} for number in range(many))
        settings = {"number_of_shards": 2 - at}
        fill(index.client, f"{index}-{at}", properties, documents, settings=settings)
    return index
