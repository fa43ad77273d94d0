"""The kit against a real Elasticsearch: rows that are appended, and rows that are added up."""

from __future__ import annotations

import json
import logging
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from itertools import count
from pathlib import Path
from random import Random
from typing import Any

import pyarrow as pa
import pytest
from demo.java import java_home
from elasticsearch import Elasticsearch
from integration.support.elasticsearch import (
    CONNECTOR,
    MANY_SLOW,
    SLOW,
    Index,
    has_script_processor,
    searches,
)
from integration.support.kit import (
    ConnectorReads,
    counting,
    index_of_elasticsearch,
)
from integration.support.marks import slow_cases
from integration.support.proxy import Proxy
from integration.support.servers.elasticsearch import connect

from pyspark_elasticsearch.journal.indices import definition
from sparkonce.tck.connector_subject import ConnectorSubject
from sparkonce.tck.read_contract import ReadContract, ReadSubject
from sparkonce.tck.sources import SourceContract, StreamingSource
from sparkonce.tck.spark.bench import Bench
from sparkonce.tck.spark.checks import CHECKS
from sparkonce.tck.spark.run import run_check
from sparkonce.tck.store_contract import StoreContract
from sparkonce.tck.subject import NewSubject

WORLDS = 4
TARGET = {
    "settings": {"number_of_shards": 2, "number_of_replicas": 0, "refresh_interval": "-1"},
    "mappings": {
        "dynamic": "strict",
        "properties": {
            "id": {"type": "keyword"},
            "n": {"type": "long"},
            "sparkonce": {"type": "object", "enabled": False},
        },
    },
}
REFUSING = "sparkonce-kit-refuses"
ADDS = """def n = ctx._source.n == null ? 0L : ctx._source.n;
if (n == Long.MAX_VALUE) throw new IllegalArgumentException('too large');
ctx._source.n = n + params.n"""
MODES = {
    "append": {"writeMode": "append"},
    "increment": {"writeMode": "increment", "key": "id"},
    "script": {"writeMode": "update", "key": "id", "script": ADDS},
}


class ElasticsearchSubject(ConnectorSubject):
    """Indices of its own. A row is appended, or adds to the document of its id."""

    pace = 200

    def __init__(self, url: str, world: str, mode: str) -> None:
        self.limits = {"whole epochs": "an index shows each document by itself"}
        self.world, self.mode, self.client = world, mode, connect(url)
        if mode == "append" and not has_script_processor(self.client):
            self.limits |= {"refusal": "this server has no script processor to refuse rows with"}
        self.indices = f"{world}-ledger", f"{world}-log", f"{world}-target"
        options = {"url": url, "index": self.indices[2], "indexPrefix": world, **MODES[mode]}
        nowhere = {"url": "http://127.0.0.1:1", "timeout": "2"}
        super().__init__(CONNECTOR, options, nowhere=nowhere)

    def took_effect(self) -> Counter[str]:
        target = self.indices[2]
        self.client.indices.refresh(index=target)
        sums = {"n": {"sum": {"field": "n"}}}
        by = {"by": {"terms": {"field": "id", "size": 50_000}, "aggs": sums}}
        found = self.client.search(index=target, size=0, aggs=by)["aggregations"]["by"]["buckets"]
        return Counter({bucket["key"]: int(bucket["n"]["value"]) for bucket in found})

    def refuse(self, row: str) -> Callable[[], None]:
        """Let the mapping refuse it: its number becomes a word; or let its sum be too large."""
        if self.mode != "append":
            self.client.index(index=self.indices[2], id=row, document={"n": 2**63 - 1})
            return lambda: self.client.delete(index=self.indices[2], id=row)
        words = {"script": {"source": f"if (ctx.id == '{row}') ctx.n = 'a word'"}}
        self.client.ingest.put_pipeline(id=REFUSING, processors=[words])
        self._settings({"index.final_pipeline": REFUSING})
        return lambda: self._settings({"index.final_pipeline": None})

    def settle(self) -> None:
        self.client.indices.refresh(index=self.indices[1])

    def snapshot(self) -> dict[str, list[dict[str, Any]]]:
        self.client.indices.refresh(index=",".join(self.indices))
        found = {}
        for index in self.indices:
            hits = self.client.search(index=index, size=10_000, version=True)["hits"]["hits"]
            found[index] = hits
        return found

    def restore(self, state: Any) -> None:
        self.empty()
        for index, hits in state.items():
            for hit in hits:
                self.client.index(index=index, id=hit["_id"], document=hit["_source"])
        self.client.indices.refresh(index=",".join(self.indices))

    def empty(self) -> None:
        everything = ",".join(self.indices)
        self.client.indices.refresh(index=everything)
        self.client.delete_by_query(
            index=everything, query={"match_all": {}}, refresh=True, conflicts="proceed"
        )

    def _settings(self, settings: dict[str, Any]) -> None:
        self.client.indices.put_settings(index=self.indices[2], settings=settings)


def make_world(client: Elasticsearch, name: str) -> None:
    bodies = {"ledger": definition("ledger"), "log": definition("log"), "target": TARGET}
    for part, body in bodies.items():
        client.options(ignore_status=404).indices.delete(index=f"{name}-{part}")
        client.indices.create(index=f"{name}-{part}", **body)


@pytest.fixture(scope="module")
def worlds(elasticsearch_server: Any) -> Iterator[list[str]]:
    """Names of worlds that the checks use in turns."""
    names = [f"kit-{number}" for number in range(WORLDS)]
    with connect(elasticsearch_server.url) as client:
        for name in names:
            make_world(client, name)
        yield names
        for name in names:
            client.indices.delete(index=f"{name}-ledger,{name}-log,{name}-target")


@pytest.fixture(params=["append", *slow_cases("increment", "script")])
def new_subject(
    request: pytest.FixtureRequest,
    worlds: list[str],
    elasticsearch_url: str,
    caplog: pytest.LogCaptureFixture,
) -> Iterator[NewSubject]:
    caplog.set_level(logging.CRITICAL, logger="sparkonce")
    numbers = count()
    made: list[ElasticsearchSubject] = []

    def make() -> ElasticsearchSubject:
        world = worlds[next(numbers) % WORLDS]
        subject = ElasticsearchSubject(elasticsearch_url, world, request.param)
        subject.empty()
        made.append(subject)
        return subject

    yield make
    for subject in made:
        subject.client.close()


@pytest.mark.slow
@pytest.mark.variants
class TestElasticsearchStore(StoreContract):
    pass


FIELDS = {
    "id": {"type": "long"},
    "name": {"type": "keyword"},
    "n": {"type": "long"},
    "x": {"type": "double"},
    "flag": {"type": "boolean"},
    "at": {"type": "date"},
}

AT_ONCE = 5000
WHOLE = (-1, 0, 1, 99, 100, "5", 1.0)
TEXTS = ("", " ", "a", "A", "á", "ab", "a*", "a?b", "\\", "long " * 9, "1", "1.10", "true", "😀", 5)


DATES = (
    *("0001-01-01", "9999-12-31T23:59:59.999Z", "1969-12-31T23:59:59.9999Z", "1970-01-01"),
    *("2026-03-29T01:30:00.123456Z", 1700000000000),
)


DRAWN: list[tuple[dict[str, object], Sequence[object]]] = [
    *(({"type": kind}, WHOLE) for kind in ("byte", "short", "integer", "long")),
    ({"type": "byte"}, (-128, 127)),
    ({"type": "long"}, (-(2**63), -(2**53) - 1, 2**53 + 1, 2**63 - 1)),
    ({"type": "long", "null_value": 7}, (7, 8)),
    ({"type": "long", "index": False}, WHOLE),
    ({"type": "long", "doc_values": False}, WHOLE),
    ({"type": "long", "ignore_malformed": True}, (1, 2, 3)),
    *(({"type": kind}, (0.0, -0.0, 0.1, 1.5, -2.5)) for kind in ("double", "float", "half_float")),
    ({"type": "double"}, (5e-324, 1.7976931348623157e308, 2.0**53, 1 / 3)),
    ({"type": "boolean"}, (True, False, "true", "false", "")),
    ({"type": "keyword"}, TEXTS),
    ({"type": "keyword"}, (1.5, True, 7, "1.5", "\uffffb", "\U0001f600a")),
    ({"type": "keyword", "index": False}, TEXTS),
    ({"type": "keyword", "ignore_above": 5}, TEXTS),
    ({"type": "keyword", "normalizer": "low"}, TEXTS),
    ({"type": "keyword", "null_value": "none"}, TEXTS),
    ({"type": "text"}, TEXTS),
    ({"type": "ip"}, ("10.0.0.1", "::1", "0:0:0:0:0:0:0:1")),
    ({"type": "date"}, DATES),
    ({"type": "date", "format": "epoch_second"}, (0, 1, 1700000000)),
    ({"type": "date_nanos"}, ("2026-03-29T01:30:00.123456789Z", "1970-01-01T00:00:00Z")),
]
"""Mappings of a field, and values that it takes."""


class ElasticsearchReads(ConnectorReads):
    """An index of one shard, which is read in several slices."""

    connector = CONNECTOR
    columns = 4
    words = ("sort", "fields", "hits", "pit_id", "timed_out", "total")

    def __init__(self, proxy: Proxy, client: Elasticsearch, index: str) -> None:
        self.proxy, self.client, self.index = proxy, client, index
        self.raw, self.numbers = {"url": proxy.url, "index": index}, count(1)
        client.indices.create(index=index, mappings={"dynamic": "strict", "properties": FIELDS})

    def fill(self, table: pa.Table) -> None:
        further = {name: {"type": "long"} for name in table.column_names if name not in FIELDS}
        self.client.indices.put_mapping(index=self.index, properties=further)
        lines = [
            json.dumps({"create": {"_id": str(row["id"])}})
            + "\n"
            + json.dumps({**row, "at": row["at"] and row["at"].isoformat()})
            for row in table.to_pylist()
        ]
        for at in range(0, len(lines), AT_ONCE):
            body = "\n".join(lines[at : at + AT_ONCE]) + "\n"
            told = self.client.bulk(index=self.index, body=body)
            assert not told["errors"], told["items"][0]
        self.client.indices.refresh(index=self.index)

    def churn(self) -> None:
        number = next(self.numbers)
        self.client.index(
            index=self.index, id=f"new{number}", document={"id": -number}, refresh=True
        )
        self.client.options(ignore_status=404).delete(index=self.index, id=f"new{number // 2}")

    def draw(self, random: Random) -> str:
        mapping, values = random.choice(DRAWN)
        settings = {"analysis": {"normalizer": {"low": {"type": "custom", "filter": "lowercase"}}}}
        self.index = self.raw["index"] = f"{self.index.partition('.')[0]}.{next(self.numbers)}"
        properties = {"v": mapping, "other": {"type": "long"}}
        self.client.indices.create(
            index=self.index, settings=settings, mappings={"properties": properties}
        )
        rows = [*values, *random.choices([*values, None], k=60)]
        lines = ('{"create": {}}\n' + json.dumps({"v": one, "other": 1}) for one in rows)
        self.client.bulk(index=self.index, body="\n".join(lines) + "\n", refresh=True)
        return str(mapping)

    @contextmanager
    def slow(self) -> Iterator[Callable[[], int]]:
        """A query that computes for a while of each document, of thousands."""
        lines = ['{"create": {}}', '{"id": 1}'] * MANY_SLOW
        self.client.bulk(index=self.index, body="\n".join(lines) + "\n", refresh=True)
        self.raw |= {"timeout": "0.3", "query": SLOW}
        yield lambda: sum(self.index in one for one in searches(self.client))

    def spoil(self) -> str:
        self.client.index(index=self.index, document={"n": [1, 2]}, refresh=True)
        return "n"


class TestElasticsearchReads(ReadContract):
    @pytest.fixture
    def reading(self, elasticsearch_proxy: Proxy, index: Index) -> ReadSubject:
        return ElasticsearchReads(elasticsearch_proxy, index.client, index)


@pytest.fixture
def java(tmp_path: Path) -> dict[str, str]:
    return {"JAVA_HOME": str(java_home(tmp_path))}


@pytest.mark.slow
@pytest.mark.parametrize("rule", CHECKS)
def test_a_stream_is_exactly_once(
    bench: Bench, index: Index, java: dict[str, str], rule: str
) -> None:
    run_check(bench, rule, counting(index.url, index, env=java)).insist()


@pytest.mark.slow
@pytest.mark.parametrize("rule", ["Q03", "Q08"])
@pytest.mark.parametrize("mode", ["append", "script"])
def test_another_mode_is_exactly_once(
    bench: Bench, index: Index, java: dict[str, str], mode: str, rule: str
) -> None:
    """Appended documents are named by their chunks, and a script is the user's."""
    sink = counting(index.url, index, env=java)
    options = {"url": index.url, "index": index, **MODES[mode]}
    run_check(bench, rule, replace(sink, options=options)).insist()


@pytest.mark.slow
class TestIndex(SourceContract):
    @pytest.fixture
    def source(self, index: Index, tmp_path: Path) -> StreamingSource:
        env = {"JAVA_HOME": str(java_home(tmp_path))}
        return index_of_elasticsearch(index.url, index, env)
