"""Rows of an earlier try are written again: a conflict does not prove that copies have them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from elasticsearch import Elasticsearch
from integration.support.elasticsearch import (
    ROWS,
    STAMPED,
    Index,
    apply_again,
    decide,
    ids,
    keep_log,
    row,
    stamped,
)
from integration.support.epochs import ElasticsearchQuery

from pyspark_elasticsearch.journal.log import places
from sparkonce.protocol import Chunk, Part

pytestmark = pytest.mark.variants
SCRIPT = {"writeMode": "update", "script": "ctx._source.x += params.x"}
MODES = {
    "append": {"writeMode": "append"},
    "template": {"writeMode": "append", "index": "{index}-{name}", "createIndex": "false"},
    "routing": {"writeMode": "append", "routing": "name"},
    "upsert": {"key": "id"},
    "update": {"key": "id", "writeMode": "update"},
    "script": {"key": "id", "createIndex": "false", **SCRIPT},
    "version": {"key": "id", "versionColumn": "id"},
}


def numbers(client: Elasticsearch, index: str) -> dict[str, int]:
    """The sequence number of the last write of each document."""
    client.indices.refresh(index=f"{index}*")
    found = client.search(index=f"{index}*", size=100, seq_no_primary_term=True)["hits"]["hits"]
    return {hit["_id"]: hit["_seq_no"] for hit in found}


def sources(client: Elasticsearch, index: str) -> list[Any]:
    found = client.search(index=f"{index}*", size=100)["hits"]["hits"]
    return sorted((hit["_source"] for hit in found), key=str)


@pytest.mark.parametrize("mode", MODES)
def test_a_repeated_row_is_written_again_and_has_no_second_effect(index: Index, mode: str) -> None:
    options = {name: one.replace("{index}", index) for name, one in MODES[mode].items()}
    if mode == "script":
        index.fill({"id": {"type": "long"}, "x": {"type": "double"}}, [])
        for id_ in (1, 2, 3):
            index.client.index(index=index, id=str(id_), document={"id": id_, "x": 0.5})
    query = index.into(ROWS, chunkRows="2", **options)
    keep_log(query)
    manifest = decide(query, 0, [row(1), row(2, "b", None if mode != "script" else 2.0), row(3)])
    query.restart()
    query.run(0, [])
    before, was = numbers(index.client, index), sources(index.client, index)
    assert len(before) == 3
    apply_again(query, manifest)
    after = numbers(index.client, index)
    assert sources(index.client, index) == was
    assert {id_: at > before[id_] for id_, at in after.items()} == dict.fromkeys(before, True)


PARTIAL = {"enabled": False}, {"excludes": ["x"]}, {"includes": ["id"]}


@pytest.mark.parametrize("source", PARTIAL, ids=str)
def test_a_repeated_row_keeps_the_fields_that_its_source_lacks(
    index: Index, source: dict[str, Any]
) -> None:
    fields = {"id": {"type": "long"}, "name": {"type": "keyword"}, "x": {"type": "double"}}
    index.client.indices.create(index=index, mappings={"_source": source, "properties": fields})
    query = index.into(ROWS, writeMode="append", createIndex="false")
    keep_log(query)
    manifest = decide(query, 0, [row(1), row(2)])
    query.restart()
    query.run(0, [])
    before = numbers(index.client, index)
    for _ in range(2):
        apply_again(query, manifest)
    index.client.indices.refresh(index=index)
    found = index.client.search(index=index, query={"exists": {"field": "x"}})["hits"]["hits"]
    assert len(found) == 2
    after = numbers(index.client, index)
    assert {id_: at > before[id_] for id_, at in after.items()} == dict.fromkeys(before, True)


def test_a_repeated_row_keeps_what_others_have_changed(index: Index) -> None:
    query = index.into(ROWS, writeMode="append")
    keep_log(query)
    manifest = decide(query, 0, [row(1)])
    query.restart()
    query.run(0, [])
    index.client.index(index=index, id="later", document={"id": 2, "name": "b", "x": 0.5})
    index.client.update(
        index=index, id=next(iter(numbers(index.client, index))), doc={"name": "changed"}
    )
    names = sorted(one["name"] for one in index.documents().values())
    apply_again(query, manifest)
    assert sorted(one["name"] for one in index.documents().values()) == names


def test_a_repeated_row_of_a_stream_is_written_again_where_it_is(
    index: Index, stream: str, into_index: Callable[..., ElasticsearchQuery]
) -> None:
    query = into_index(STAMPED, writeMode="append", createIndex="false")
    keep_log(query)
    manifest = decide(query, 0, stamped(1, 2))
    query.restart()
    query.run(0, [])
    before = numbers(index.client, f".ds-{stream}")
    index.client.indices.rollover(alias=stream)
    apply_again(query, manifest)
    after = numbers(index.client, f".ds-{stream}")
    assert {id_: at > before[id_] for id_, at in after.items()} == dict.fromkeys(before, True)
    assert ids(index.client, stream) == {1: 1, 2: 1}


def test_an_equal_version_of_another_row_stays(index: Index) -> None:
    query = index.into(ROWS, key="name", versionColumn="id")
    query.run(0, [row(7, "a", 1.0)])
    query.run(1, [row(7, "a", 2.0)])
    assert [one["x"] for one in index.documents().values()] == [1.0]


def test_a_staged_chunk_is_written_again(index: Index) -> None:
    query = index.into(ROWS, writeMode="append")
    log = query.sink.store.log
    staged = Chunk(query.task(0, 0), 0, 1, b"a payload")
    log.append(staged)
    (place,) = places(query.name, [Part(0, staged.task.attempt, (1,), (len(staged.payload),))])
    first = index.client.get(index=log.indices.log, id=place.id)
    log.append(staged)
    second = index.client.get(index=log.indices.log, id=place.id)
    assert second["_seq_no"] > first["_seq_no"]
    assert second["_source"]["payload"] == first["_source"]["payload"]
    log.drop(query.name, [staged.task.attempt])
