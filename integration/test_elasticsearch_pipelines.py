"""Ingest pipelines that send rows elsewhere: by the name of its target a row is told again."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator
from datetime import datetime, timezone
from typing import Any

import pyarrow as pa
import pytest
from elasticsearch import Elasticsearch
from integration.documents import has_script_processor
from integration.epochs import ElasticsearchQuery, apply_again, decide

from sparkonce.errors import StoreRefused

ROWS = pa.schema([("@timestamp", pa.timestamp("us", "UTC")), ("id", pa.int64())])
Make = Callable[..., ElasticsearchQuery]
REROUTE: dict[str, Any] = {"reroute": {"destination": "elsewhere"}}
SCRIPT = {"script": {"source": "ctx._index = ctx._index + '-elsewhere'"}}
MOVED = "it could be there twice"


def rows(*ids: int) -> list[dict[str, Any]]:
    return [{"@timestamp": datetime(2024, 2, 29, tzinfo=timezone.utc), "id": id_} for id_ in ids]


def found(client: Elasticsearch, index: str) -> Counter[int]:
    client.indices.refresh(index=index)
    return Counter(hit["_source"]["id"] for hit in client.search(index=index)["hits"]["hits"])


@pytest.fixture
def pipeline(elastic: Elasticsearch, unique: str) -> Iterator[Callable[..., str]]:
    """Make a pipeline of these processors."""
    if not has_script_processor(elastic):
        pytest.skip("the server lacks the processors")
    made = []

    def make(*processors: dict[str, Any], name: str = unique) -> str:
        made.append(name)
        elastic.ingest.put_pipeline(id=name, processors=list(processors))
        return name

    yield make
    for name in made:
        elastic.options(ignore_status=(400, 404)).ingest.delete_pipeline(id=name)


@pytest.fixture
def stream(elastic: Elasticsearch, unique: str) -> Iterator[str]:
    """A data stream."""
    elastic.indices.put_index_template(name=unique, index_patterns=[unique], data_stream={})
    first = elastic.index(index=unique, document={"@timestamp": 0}, op_type="create")
    elastic.delete(index=first["_index"], id=first["_id"])
    yield unique
    elastic.options(ignore_status=(400, 405)).indices.delete_data_stream(name=unique)


@pytest.mark.parametrize(
    "processor",
    [
        REROUTE,
        {"set": {"field": "x", "value": 1, "on_failure": [REROUTE]}},
        {"foreach": {"field": "x", "processor": {"set": {"field": "_index", "value": "y"}}}},
        {"fingerprint": {"fields": ["id"], "target_field": "_id"}},
    ],
    ids=["reroute", "on failure", "within", "id"],
)
def test_pipeline_that_moves_rows_is_refused_at_start(
    into_index: Make, pipeline: Callable[..., str], processor: dict[str, Any]
) -> None:
    with pytest.raises(StoreRefused, match=MOVED):
        into_index(ROWS, pipeline=pipeline(processor))


@pytest.mark.parametrize("option", ["default_pipeline", "final_pipeline"])
def test_pipeline_of_the_index_that_calls_one_that_moves_rows_is_refused_at_start(
    into_index: Make,
    elastic: Elasticsearch,
    index: str,
    pipeline: Callable[..., str],
    option: str,
) -> None:
    called = pipeline(REROUTE, name=f"{index}-called")
    calling = pipeline({"pipeline": {"name": called}}, {"pipeline": {"name": index}}, name=index)
    elastic.indices.create(index=index, settings={f"index.{option}": calling})
    with pytest.raises(StoreRefused, match=f"{called}.*has 'reroute'.*{MOVED}"):
        into_index(ROWS, createIndex="false")
    into_index(ROWS, createIndex="false", key="id", writeMode="delete")  # no pipeline is asked


@pytest.mark.parametrize("plain", [True, False], ids=["index", "stream"])
def test_decided_rows_are_not_sent_again_through_a_pipeline_that_moves_them(
    into_index: Make,
    elastic: Elasticsearch,
    request: pytest.FixtureRequest,
    index: str,
    pipeline: Callable[..., str],
    plain: bool,
) -> None:
    """They may be there, from before that pipeline, and would be there once more elsewhere."""
    target = index if plain else request.getfixturevalue("stream")
    query = into_index(ROWS, index=target, createIndex=str(plain).lower())
    decide(query, 0, rows(1, 2))
    settings: dict[str, Any] = {"index.default_pipeline": pipeline(REROUTE)}
    elastic.indices.put_settings(index=target, settings=settings)
    query.restart()
    with pytest.raises(StoreRefused, match=MOVED):
        query.run(0, [])
    elastic.indices.put_settings(index=target, settings={"index.default_pipeline": None})
    query.restart()
    query.run(0, [])
    assert found(elastic, target) == Counter([1, 2])


def test_row_that_leaves_its_stream_unforeseen_is_taken_back_before_it_is_sent_again(
    into_index: Make, elastic: Elasticsearch, stream: str, pipeline: Callable[..., str]
) -> None:
    """The next index of the stream may have another pipeline, and a script moves rows unseen."""
    query = into_index(ROWS, index=stream, createIndex="false", chunkRows="2")
    query.run(0, rows(1))
    settings = {"index.default_pipeline": pipeline(SCRIPT)}
    elastic.indices.put_index_template(
        name=stream, index_patterns=[stream], data_stream={}, template={"settings": settings}
    )
    elastic.indices.rollover(alias=stream)
    for _ in range(2):
        query.restart()
        with pytest.raises(StoreRefused, match=rf"went to {stream}-elsewhere, and were taken back"):
            query.run(1, rows(2, 3, 4))
    assert found(elastic, f"{stream}-elsewhere") == Counter()
    elastic.ingest.put_pipeline(id=stream, processors=[])
    query.restart()
    query.run(1, [])
    assert found(elastic, stream) == Counter([1, 2, 3, 4])
    elastic.indices.delete(index=f"{stream}-elsewhere")


def test_row_that_a_pipeline_of_a_stream_drops_is_dropped_and_stops_nothing(
    into_index: Make, elastic: Elasticsearch, stream: str, pipeline: Callable[..., str]
) -> None:
    pipeline({"drop": {"if": "ctx.id == 2"}})
    elastic.indices.put_settings(index=stream, settings={"index.default_pipeline": stream})
    query = into_index(ROWS, index=stream, createIndex="false")
    again = decide(query, 0, rows(1, 2, 3))
    for _ in range(2):
        apply_again(query, again)
    query.restart()
    query.run(0, [])
    assert found(elastic, stream) == Counter([1, 3])
