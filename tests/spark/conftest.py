"""Fixtures of the tests that call the adapters to Spark as Spark calls them."""

from __future__ import annotations

import pytest
from tests.scenarios import MemoryWorld
from tests.spark.sources import Context, in_a_task, into_memory


@pytest.fixture
def world(monkeypatch: pytest.MonkeyPatch) -> MemoryWorld:
    """The store in memory, into which the source writes."""
    return into_memory(monkeypatch)


@pytest.fixture
def task(monkeypatch: pytest.MonkeyPatch) -> Context:
    """Of a task of a stream, or inside ``foreachBatch``."""
    return in_a_task(monkeypatch)
