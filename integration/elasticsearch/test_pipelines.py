"""Ingest pipelines that send rows elsewhere: by the name of its target a row is told again."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable
from typing import Any

import pyarrow as pa
import pytest
from elasticsearch import Elasticsearch
from integration.support.elasticsearch import (
    STAMPED,
    Index,
    apply_again,
    decide,
    documents,
    has_script_processor,
    ids,
    stamped,
)
from integration.support.epochs import ElasticsearchQuery
from integration.support.marks import slow_cases

from sparkonce.errors import OptionError, RowRefused, StoreRefused

Make = Callable[..., ElasticsearchQuery]
REROUTE: dict[str, Any] = {"reroute": {"destination": "elsewhere"}}
SCRIPT = {"script": {"source": "ctx._index = ctx._index + '-elsewhere'"}}
MOVED = "a row could be stored twice"


@pytest.fixture
def pipeline(index: Index) -> Callable[..., str]:
    """Make a pipeline of these processors."""
    if not has_script_processor(index.client):
        pytest.skip("the server lacks the processors")

    def make(*processors: dict[str, Any], name: str = index) -> str:
        index.client.ingest.put_pipeline(id=name, processors=list(processors))
        return name

    return make


def with_pipeline(
    query: ElasticsearchQuery, elastic: Elasticsearch, name: str, *processors: dict[str, Any]
) -> None:
    """Let a pipeline be another one behind the last look at it, as one epoch is decided."""
    store = query.sink.store

    def prepare(manifest: Any) -> Any:
        made = type(store).prepare(store, manifest)
        elastic.ingest.put_pipeline(id=name, processors=list(processors))
        del store.prepare
        return made

    store.prepare = prepare


@pytest.mark.parametrize(
    "processor", [REROUTE, {"set": {"field": "_version", "value": 1}}], ids=["reroute", "version"]
)
def test_pipeline_that_moves_rows_is_refused_at_start(
    into_index: Make, pipeline: Callable[..., str], processor: dict[str, Any]
) -> None:
    with pytest.raises(StoreRefused, match=MOVED):
        into_index(STAMPED, pipeline=pipeline(processor))


@pytest.mark.parametrize("option", ["default_pipeline", "final_pipeline"])
def test_pipeline_of_the_index_that_calls_one_that_moves_rows_is_refused_at_start(
    index: Index, pipeline: Callable[..., str], option: str
) -> None:
    called = pipeline(REROUTE, name=f"{index}-called")
    calling = pipeline({"pipeline": {"name": called}}, {"pipeline": {"name": index}}, name=index)
    index.client.indices.create(index=index, settings={f"index.{option}": calling})
    with pytest.raises(StoreRefused, match=f"{called}.*has 'reroute'.*{MOVED}"):
        index.into(STAMPED, createIndex="false")
    index.into(STAMPED, createIndex="false", key="id", writeMode="delete")  # no pipeline is asked


def test_decided_rows_are_not_sent_again_through_a_pipeline_that_moves_them(
    index: Index, pipeline: Callable[..., str]
) -> None:
    """They may be there, from before that pipeline, and would be there once more elsewhere."""
    query = index.into(STAMPED)
    decide(query, 0, stamped(1, 2))
    settings: dict[str, Any] = {"index.default_pipeline": pipeline(REROUTE)}
    index.client.indices.put_settings(index=index, settings=settings)
    query.restart()
    with pytest.raises(StoreRefused, match=MOVED):
        query.run(0, [])
    index.client.indices.put_settings(index=index, settings={"index.default_pipeline": None})
    query.restart()
    query.run(0, [])
    assert ids(index.client, index) == Counter([1, 2])


def of_stream(stream: str, pipeline: str) -> dict[str, Any]:
    settings = {"index.default_pipeline": pipeline}
    template = {"settings": settings}
    return {"name": stream, "index_patterns": [stream], "data_stream": {}, "template": template}


def test_row_that_leaves_its_stream_unforeseen_is_taken_back_before_it_is_sent_again(
    into_index: Make, elastic: Elasticsearch, stream: str, pipeline: Callable[..., str]
) -> None:
    """The next index of the stream may have a pipeline, and come while an epoch is applied."""
    query = into_index(STAMPED, index=stream, createIndex="false", chunkRows="2")
    query.run(0, stamped(1))
    elastic.indices.put_index_template(**of_stream(stream, pipeline(SCRIPT)))
    store, apply = query.sink.store, query.sink.store.apply

    def apply_behind_a_rollover(*given: Any) -> Any:
        elastic.indices.rollover(alias=stream)
        return apply(*given)

    store.apply = apply_behind_a_rollover
    with pytest.raises(StoreRefused, match=rf"to {stream}-elsewhere/.*: 2 were removed"):
        query.run(1, stamped(2, 3, 4))
    store.apply = apply
    query.restart()
    with pytest.raises(OptionError, match="would pass through ingest pipeline"):
        query.run(1, [])
    assert ids(elastic, f"{stream}-elsewhere") == Counter()
    elastic.indices.put_settings(index=stream, settings={"index.default_pipeline": None})
    query.restart()
    query.run(1, [])
    assert ids(elastic, stream) == Counter([1, 2, 3, 4])


def test_data_stream_takes_no_rows_through_a_pipeline(
    into_index: Make, elastic: Elasticsearch, stream: str, pipeline: Callable[..., str]
) -> None:
    """Nothing in an answer tells a row that is dropped at one try, and written at another."""
    pipeline()
    with pytest.raises(OptionError, match=f"would pass through ingest pipeline '{stream}'"):
        into_index(STAMPED, index=stream, createIndex="false", pipeline=stream)
    query = into_index(STAMPED, index=stream, createIndex="false")
    query.run(0, stamped(1))
    elastic.indices.put_index_template(**of_stream(stream, stream))
    elastic.indices.rollover(alias=stream)
    with pytest.raises(OptionError, match="would pass through ingest pipeline"):
        query.run(1, stamped(2))
    elastic.indices.put_settings(index=stream, settings={"index.default_pipeline": "_none"})
    query.run(1, stamped(2))
    assert ids(elastic, stream) == Counter([1, 2])


TEXTS = pa.schema([("id", pa.int64()), ("text", pa.string())])
TEN = [{"id": id_, "text": f"{'ab'[id_ % 2]} x"} for id_ in range(10)]
UNSEEN: dict[str, dict[str, Any]] = {
    "csv": {"csv": {"field": "text", "target_fields": ["_id"], "separator": " "}},
    "dissect": {"dissect": {"field": "text", "pattern": "%{_id} %{rest}"}},
    "grok": {"grok": {"field": "text", "patterns": ["%{WORD:_id} %{WORD:rest}"]}},
    "script": {"script": {"source": "ctx._id = ctx.text"}},
    "index": {"script": {"source": "ctx._index = ctx._index + '-elsewhere'"}},
}


def stored(client: Elasticsearch, index: str) -> Counter[int]:
    """Of the index, and of those whose names begin alike."""
    client.indices.refresh(index=f"{index}*")
    hits = client.search(index=f"{index}*", size=100)["hits"]["hits"]
    return Counter(hit["_source"]["id"] for hit in hits)


@pytest.mark.parametrize("kind", ["csv", *slow_cases("index", "dissect", "grok", "script")])
def test_rows_that_a_pipeline_sends_elsewhere_unseen_are_taken_back_and_stop_the_query(
    index: Index, pipeline: Callable[..., str], kind: str
) -> None:
    query = index.into(TEXTS, pipeline=pipeline(), chunkRows="4")
    with_pipeline(query, index.client, index, UNSEEN[kind])
    with pytest.raises(StoreRefused, match=r"sent \d rows elsewhere, such as"):
        query.run(0, TEN)
    query.restart()
    with pytest.raises(StoreRefused, match=r"Ingest pipeline .* has"):
        query.run(0, [])
    assert stored(index.client, index) == Counter()
    pipeline()
    query.restart()
    query.run(0, [])
    assert stored(index.client, index) == Counter(range(10))


def test_document_that_was_written_over_elsewhere_is_told_and_not_deleted(
    index: Index, pipeline: Callable[..., str]
) -> None:
    query = index.into(TEXTS, key="id", pipeline=pipeline())
    with_pipeline(query, index.client, index, UNSEEN["csv"])
    index.client.index(index=index, id="a", document={"id": 100})
    with pytest.raises(StoreRefused, match="1 were removed, 1 remain there"):
        query.run(0, [{"id": 1, "text": "a x"}, {"id": 2, "text": "b x"}])
    assert stored(index.client, index) == Counter([1])


def test_row_that_a_pipeline_routes_to_another_shard_is_told_as_left_there(
    index: Index, pipeline: Callable[..., str]
) -> None:
    """No answer tells a routing, and without it a row is not found."""
    index.client.indices.create(index=index, settings={"number_of_shards": 5})
    fields = ["_id", "_routing"]
    away = {"csv": {"field": "text", "target_fields": fields, "separator": " "}}
    query = index.into(TEXTS, pipeline=pipeline())
    with_pipeline(query, index.client, index, away)
    with pytest.raises(StoreRefused, match=r"sent 10 rows elsewhere, such as") as error:
        query.run(0, [{"id": id_, "text": f"x{id_} r{id_}"} for id_ in range(10)])
    left = sum(stored(index.client, index).values())
    assert left
    assert f"{10 - left} were removed, {left} remain there, under their own" in str(error.value)


def test_row_that_a_pipeline_makes_newer_unseen_is_taken_back(
    index: Index, pipeline: Callable[..., str]
) -> None:
    query = index.into(TEXTS, key="id", pipeline=pipeline())
    with_pipeline(query, index.client, index, {"set": {"field": "_version", "value": 2**62}})
    with pytest.raises(StoreRefused, match=r"under another version.* 2 were removed"):
        query.run(0, TEN[:2])
    assert stored(index.client, index) == Counter()


@pytest.mark.parametrize("option", ["index template", "legacy template", "index"])
def test_pipeline_of_an_index_that_a_row_may_name_is_refused_before_the_decision(
    index: Index, pipeline: Callable[..., str], option: str
) -> None:
    """Such an index comes to be with its first row, as a template of the cluster says."""
    pipeline()
    query = index.into(TEXTS, index=f"{index}-{{text}}", createIndex="false")
    query.run(0, [{"id": 1, "text": "a"}])
    about = {"settings": {"index.final_pipeline": index}}
    if option == "index template":
        index.client.indices.put_index_template(
            name=index, index_patterns=[f"{index}-b*"], template=about
        )
    elif option == "legacy template":
        index.client.indices.put_template(name=index, index_patterns=[f"{index}-b*"], **about)
    else:
        index.client.indices.put_settings(index=f"{index}-a", **about)
    query.run(1, [{"id": 2, "text": "a"}])
    pipeline(UNSEEN["csv"])
    with pytest.raises(StoreRefused, match=f"pipeline '{index}' of .* has 'csv'"):
        query.run(2, [{"id": 3, "text": "b"}])
    assert stored(index.client, index) == Counter([1, 2])


def test_template_whose_names_become_data_streams_is_refused_before_the_decision(
    index: Index,
) -> None:
    given = {"index": f"{index}-{{text}}", "createIndex": "false"}
    index.client.indices.put_index_template(
        name=index, index_patterns=[f"{index}-*-b"], data_stream={}, priority=5
    )
    with pytest.raises(OptionError, match=f"index template {index} .* data streams"):
        index.into(TEXTS, key="id", **given)
    index.client.indices.put_index_template(
        name=f"{index}-plain", index_patterns=[f"{index}-*"], priority=6
    )
    index.into(TEXTS, key="id", **given)


def test_row_that_goes_through_a_pipeline_by_an_alias_or_is_dropped_is_where_it_should_be(
    index: Index, pipeline: Callable[..., str]
) -> None:
    index.client.indices.create(index=index, aliases={f"{index}-a": {}})
    pipeline({"drop": {"if": "ctx.id == 2"}})
    query = index.into(TEXTS, index=f"{index}-{{text}}", createIndex="false", pipeline=index)
    odd = [{"id": id_, "text": "a"} for id_ in (1, 2, 3)]
    apply_again(query, decide(query, 0, odd))
    query.restart()
    query.run(0, [])
    assert stored(index.client, index) == Counter([1, 3])


def test_rows_with_any_ids_and_routing_find_themselves_behind_a_pipeline(
    index: Index, pipeline: Callable[..., str]
) -> None:
    query = index.into(TEXTS, key="text", routing="text", pipeline=pipeline())
    texts = ['"', "\\", "/", "\u2028", "ü", "\x01", "\x7f", "\U0001f600", "%", "a b"]
    query.run(0, [{"id": id_, "text": text} for id_, text in enumerate(texts)])
    assert stored(index.client, index) == Counter(range(10))


COUNTS = pa.schema([("id", pa.int64()), ("n", pa.int64())])
MOST = 2**63 - 1
ONE_ROW = [{"id": 1, "n": 1}]


def test_sum_that_leaves_its_range_is_no_fault_of_the_mapping(index: Index) -> None:
    query = index.into(COUNTS, key="id", writeMode="increment")
    index.client.index(index=index, id="1", document={"id": 1, "n": MOST})
    with pytest.raises(RowRefused, match="leaves the range of a long") as refused:
        query.run(0, ONE_ROW)
    assert "can't be added" in refused.value.why
    assert "correct the document" in refused.value.todo


def test_what_an_index_or_pipeline_names_and_is_gone_is_told_before_the_decision(
    index: Index,
) -> None:
    if not has_script_processor(index.client):
        pytest.skip("the server lacks the processors")
    called, missing = f"{index}-in", {"name": f"{index}-no", "ignore_missing_pipeline": True}
    script = {"lang": "painless", "source": "ctx.n += 1"}
    processors = [{"pipeline": missing}, {"pipeline": {"name": called}}]
    index.client.ingest.put_pipeline(id=called, processors=[{"script": script}])
    index.client.ingest.put_pipeline(id=index, processors=processors)
    query = index.into(COUNTS)
    index.client.indices.put_settings(index=index, settings={"index.final_pipeline": index})
    query.run(0, ONE_ROW)
    index.client.ingest.delete_pipeline(id=called)
    with pytest.raises(OptionError, match=f"Ingest pipeline '{called}', .* does not exist"):
        query.run(1, ONE_ROW)
    index.client.ingest.put_pipeline(id=called, processors=[])
    query.run(1, ONE_ROW)
    assert sorted(row["n"] for row in index.documents().values()) == [1, 2]


def test_index_of_dead_letters_that_is_deleted_is_made_anew_with_its_mappings(
    index: Index, bad_index: str
) -> None:
    """A first letter would guess them: `row` a text, or an object."""
    query = index.into(
        COUNTS, key="id", writeMode="increment", onBadRow="deadLetter", deadLetter=bad_index
    )
    index.client.index(index=index, id="1", document={"id": 1, "n": MOST})
    query.run(0, ONE_ROW)
    made = index.client.indices.get_mapping(index=bad_index)[bad_index]
    index.client.indices.delete(index=bad_index)
    query.run(1, ONE_ROW)
    assert index.client.indices.get_mapping(index=bad_index)[bad_index] == made
    assert [one["epoch"] for one in documents(index.client, bad_index).values()] == [1]


@pytest.mark.parametrize("mode", ["append", "upsert"])
def test_bad_row_with_columns_named_as_the_request_of_an_update_is_put_aside(
    index: Index, bad_index: str, mode: str
) -> None:
    names = ["id", "script", "scripted_upsert", "n"]
    schema = pa.schema([(name, pa.string()) for name in names])
    columns = {name: {"type": "long" if name == "n" else "keyword"} for name in names}
    index.client.indices.create(index=index, mappings={"properties": columns})
    key = {"key": "id"} if mode == "upsert" else {}
    given = {"onBadRow": "deadLetter", "deadLetter": bad_index, "createIndex": "false"}
    query = index.into(schema, writeMode=mode, **key, **given)
    good = {**{name: name for name in names}, "n": "1"}
    query.run(0, [good, {**good, "id": "bad", "n": "no number"}])
    (letter,) = documents(index.client, bad_index).values()
    assert json.loads(letter["row"]) == {**good, "id": "bad", "n": "no number"}
    assert list(index.documents().values()) == [good]


def test_no_index_is_left_where_a_column_is_refused(index: Index, bad_index: str) -> None:
    schema = pa.schema([("a", pa.string()), ("a.b", pa.string())])
    with pytest.raises(OptionError, match=r"can.t merge a non object|cannot be changed") as refused:
        index.into(schema, onBadRow="deadLetter", deadLetter=bad_index)
    assert "rename the column" in refused.value.todo
    assert not index.client.indices.get(index=f"{index}*")


def test_column_with_a_dot_is_found_where_the_mapping_keeps_dots(index: Index) -> None:
    fields: dict[str, Any] = {"a.b": {"type": "keyword"}}
    mappings = {"dynamic": "strict", "subobjects": False, "properties": fields}
    index.client.indices.create(index=index, mappings=mappings)
    query = index.into(pa.schema([("a.b", pa.string())]), createIndex="false")
    query.run(0, [{"a.b": "x"}])
    assert list(index.documents().values()) == [{"a.b": "x"}]
