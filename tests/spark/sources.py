"""A data source into the store in memory, called as Spark calls it, without Spark."""

from __future__ import annotations

import importlib
import pickle
from collections.abc import Mapping
from typing import Any

import pyarrow as pa
import pytest
from pyspark import TaskContext
from pyspark.serializers import CPickleSerializer
from pyspark.sql.types import LongType, StringType, StructField, StructType
from tests.scenarios import TARGET, MemoryWorld, encode

from sparkonce import sink
from sparkonce.options import COMMON
from sparkonce.protocol import Plan
from sparkonce.spark.source import SinkSource
from sparkonce.spark.writer import StreamWriter
from sparkonce.store import Store

SCHEMA = StructType([StructField("id", StringType()), StructField("n", LongType())])

RUN = "0b5e6a9e-7d3c-4f1a-9b1e-3c5d2e1f0a9b"


class MemoryConnector:
    """A connector to the world of the running test."""

    name = "memory"
    options = COMMON
    world = MemoryWorld()
    repeatable = False

    def plan(self, _: Mapping[str, Any], schema: pa.Schema) -> Plan[None]:
        return Plan(TARGET, repeatable=self.repeatable, columns=len(schema), detail=None, stored={})

    def encoder(self, _: Plan[None], __: object) -> Any:
        return encode

    def connect(self, _: Mapping[str, Any], plan: Plan[None] | None = None) -> Store:  # noqa: ARG002
        return self.world.memory


class Source(SinkSource):
    connector = "tests.spark.sources:MemoryConnector"

    @classmethod
    def name(cls) -> str:
        return "memory"


class Context:
    """A task context that knows what Spark's does."""

    properties: Mapping[str, str | None] = {}

    def getLocalProperty(self, name: str) -> str | None:  # noqa: N802
        return self.properties.get(name)

    def partitionId(self) -> int:  # noqa: N802
        return 3


def into_memory(monkeypatch: pytest.MonkeyPatch, *, repeatable: bool = False) -> MemoryWorld:
    """A world of the running test, into which the source writes."""
    found = MemoryWorld()
    # The class that `registry.load` finds, however pytest has imported this module.
    connector = importlib.import_module("tests.spark.sources").MemoryConnector
    monkeypatch.setattr(connector, "world", found)
    monkeypatch.setattr(connector, "repeatable", repeatable)
    sink._open.cache_clear()
    return found


def in_a_task(monkeypatch: pytest.MonkeyPatch) -> Context:
    """Be in a task of epoch 0 of query a, run `RUN`."""
    context = Context()
    context.properties = {
        "streaming.sql.batchId": "0",
        "sql.streaming.queryId": "a",
        "spark.jobGroup.id": RUN,
        "spark.app.id": "app",
        "spark.sql.execution.root.id": "3",
    }
    monkeypatch.setattr(TaskContext, "get", lambda: context)
    return context


def pickled(made: StreamWriter) -> bytes:
    """As it goes to executors."""
    return bytes(CPickleSerializer().dumps(made))


def writer(**options: str) -> StreamWriter:
    """What Spark gets for each epoch, as it arrives in a task. There is no checkpoint to read."""
    given = {"onunreadablecheckpoint": "warn", **options}
    made = Source(given).streamWriter(schema=SCHEMA, overwrite=False)
    copy = pickle.loads(pickled(made))
    assert isinstance(copy, StreamWriter)
    return copy
