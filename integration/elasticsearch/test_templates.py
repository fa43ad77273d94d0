"""Templates of the cluster that match too much, and what newer releases make of an index."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from typing import Any

import pyarrow as pa
import pytest
from elasticsearch import BadRequestError, Elasticsearch
from integration.support.documents import rows as stored
from integration.support.elasticsearch_decisions import decide
from integration.support.epochs import ElasticsearchQuery
from integration.support.marks import slow_cases

from sparkonce.errors import StoreRefused, StoreUnsafe

COUNTS = pa.schema([("id", pa.int64()), ("n", pa.int64())])
Make = Callable[..., ElasticsearchQuery]
ROWS = [{"id": id_, "n": 1} for id_ in range(3)]
LOST = {
    "index.translog.durability": "async",
    "index.default_pipeline": "no-such-pipeline",
    "index.final_pipeline": "no-such-pipeline",
}
SINK = {"properties": {"sink": {"type": "text"}}}
OTHERWISE = {
    "properties": {
        **{name: {"type": "date"} for name in ("payload", "body", "stamp", "token", "index")},
        **{name: {"type": "boolean"} for name in ("applied", "fence", "revision", "rows")},
        "letters": {"type": "keyword"},
    },
}
BROAD: dict[str, dict[str, Any]] = {
    "other fields": {"settings": LOST, "mappings": OTHERWISE},
    "logsdb": {"settings": {**LOST, "index.mode": "logsdb"}, "mappings": SINK},
    "no source": {"settings": LOST, "mappings": {**SINK, "_source": {"enabled": False}}},
}


@pytest.fixture
def template(elastic: Elasticsearch, unique: str) -> Iterator[Callable[..., str]]:
    """Make a template for all indices of this prefix, as one for `*` is for all; the prefix."""
    prefix = f"{unique}-own"

    def make(**of: Any) -> str:
        try:
            elastic.indices.put_index_template(
                name=prefix, index_patterns=[f"{prefix}*"], template=of
            )
        except BadRequestError as error:
            pytest.skip(f"this release knows no such template: {error.message}")
        return prefix

    yield make
    elastic.options(ignore_status=404).indices.delete_index_template(name=prefix)
    for name in ("ledger", "log", "bad", "target"):
        elastic.options(ignore_status=404).indices.delete(index=f"{prefix}-{name}")


@pytest.mark.parametrize("kind", ["logsdb", "other fields", *slow_cases("no source")])
def test_own_indices_are_what_they_must_be_whatever_a_template_says(
    into_index: Make,
    elastic: Elasticsearch,
    index: str,
    template: Callable[..., str],
    kind: str,
) -> None:
    prefix = template(**BROAD[kind])
    bad = f"{prefix}-bad"
    options = {"indexPrefix": prefix, "onBadRow": "deadLetter", "deadLetter": bad}
    query = into_index(COUNTS, writeMode="increment", key="id", **options)
    elastic.index(index=index, id="2", document={"id": 2, "n": 2**63 - 1})
    query.run(0, ROWS)
    decide(query, 1, ROWS)
    query.restart()
    query.run(1, [])
    counts = {row["id"]: row["n"] for row in stored(elastic, index)}
    assert counts == {0: 2, 1: 2, 2: 2**63 - 1}
    letters = stored(elastic, bad)
    assert [(one["sink"], one["epoch"]) for one in letters] == [(query.name, 0), (query.name, 1)]
    assert [int(json.loads(one["row"])["id"]) for one in letters] == [2, 2]


def test_own_index_that_keeps_less_than_is_written_is_refused_by_name(
    into_index: Make, template: Callable[..., str]
) -> None:
    """What a template leaves out of documents no later mapping brings back."""
    prefix = template(mappings={"_source": {"excludes": ["body"]}})
    words = f"{prefix}-ledger, of the connector's own, keeps a part of each _source"
    with pytest.raises(StoreUnsafe, match=words):
        into_index(COUNTS, indexPrefix=prefix)


def test_own_index_that_a_lifecycle_may_delete_is_refused_by_name(
    into_index: Make, elastic: Elasticsearch, template: Callable[..., str]
) -> None:
    prefix = template(settings={"index.lifecycle.name": "some"})
    with pytest.raises(StoreUnsafe, match=f"{prefix}-ledger, .* has index.lifecycle.name=some"):
        into_index(COUNTS, indexPrefix=prefix)
    elastic.ilm.remove_policy(index=f"{prefix}-ledger,{prefix}-log")
    into_index(COUNTS, indexPrefix=prefix)


def test_own_index_that_asks_for_a_routing_is_refused_by_name(
    into_index: Make, elastic: Elasticsearch, template: Callable[..., str]
) -> None:
    prefix = template(mappings={"_routing": {"required": True}})
    with pytest.raises(StoreRefused, match=r"_routing.required.*let no template .* match it"):
        into_index(COUNTS, indexPrefix=prefix)
    template()
    elastic.indices.create(index=f"{prefix}-log", mappings={"_routing": {"required": True}})
    with pytest.raises(StoreUnsafe, match=f"{prefix}-log, .* asks for a routing"):
        into_index(COUNTS, indexPrefix=prefix)


def test_own_index_with_a_pipeline_is_refused_by_name(
    into_index: Make, elastic: Elasticsearch, template: Callable[..., str]
) -> None:
    prefix = template()
    elastic.indices.create(index=f"{prefix}-ledger", settings={"index.final_pipeline": "some"})
    with pytest.raises(StoreUnsafe, match=f"{prefix}-ledger, .* has index.final_pipeline=some"):
        into_index(COUNTS, indexPrefix=prefix)


@pytest.mark.parametrize("mode", ["append", *slow_cases("upsert", "increment")])
def test_index_without_sequence_numbers_is_refused_by_name(
    into_index: Make, elastic: Elasticsearch, template: Callable[..., str], mode: str
) -> None:
    """They are off by default in the time series and columnar modes of newer releases."""
    prefix = template(settings={"index.disable_sequence_numbers": True})
    key = {} if mode == "append" else {"key": "id"}
    with pytest.raises(StoreUnsafe, match=r"has index\.disable_sequence_numbers=true"):
        into_index(COUNTS, index=f"{prefix}-target", writeMode=mode, **key)
    assert not elastic.indices.exists(index=f"{prefix}-target")


@pytest.mark.parametrize(
    "settings",
    [{"index.mode": "logsdb"}, *slow_cases({"index.mapping.source.mode": "synthetic"})],
    ids=["logsdb", "synthetic"],
)
def test_index_that_rebuilds_its_documents_takes_appends_and_no_updates(
    into_index: Make, elastic: Elasticsearch, template: Callable[..., str], settings: dict[str, Any]
) -> None:
    target = f"{template(settings=settings)}-target"
    with pytest.raises(StoreUnsafe, match=r"keeps no _source: .*rebuilt"):
        into_index(COUNTS, index=target, writeMode="increment", key="id")
    appended = pa.schema([("@timestamp", pa.timestamp("us", "UTC")), *COUNTS])
    query = into_index(appended, index=target)
    query.run(0, [{"@timestamp": 0, **row} for row in ROWS])
    assert len(stored(elastic, target)) == 3
