"""Indices that take no rows, or would lose them: found at start, or in the middle of a query."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from typing import Any

import pyarrow as pa
import pytest
from elasticsearch import Elasticsearch
from integration.support.counted import counting, counts, set_block
from integration.support.counters import COUNTER, ones
from integration.support.documents import documents
from integration.support.elasticsearch_decisions import decide
from integration.support.epochs import ElasticsearchQuery

from sparkonce.errors import OptionError, StoreRefused, StoreUnsafe

Make = Callable[..., ElasticsearchQuery]


@pytest.mark.parametrize("block", ["write", "read_only"])
def test_read_only_index_is_refused_until_it_is_not(
    elasticsearch_url: str, elastic: Elasticsearch, counter_index: str, block: str
) -> None:
    query = counting(elasticsearch_url, counter_index)
    query.sink.check()
    receipts = query.stage(0, ones(range(5)))
    set_block(elastic, counter_index, block, True)
    with pytest.raises(StoreRefused, match=r"takes no writes.*remove the block"):
        query.commit(0, receipts)
    with pytest.raises(StoreRefused, match=f"has index.blocks.{block}"):
        counting(elasticsearch_url, counter_index, sinkId="other").sink.check()
    set_block(elastic, counter_index, block, None)
    query.restart()
    query.run(0, ones(range(5)))
    assert counts(elastic, counter_index) == Counter(range(5))


def test_index_whose_documents_can_not_be_looked_up_is_refused_before_the_decision(
    elasticsearch_url: str, elastic: Elasticsearch, counter_index: str
) -> None:
    query = counting(elasticsearch_url, counter_index)
    set_block(elastic, counter_index, "read", True)
    with pytest.raises(StoreRefused, match=r"has index\.blocks\.read"):
        query.run(0, ones(range(5)))
    set_block(elastic, counter_index, "read", None)
    query.run(0, [])
    assert counts(elastic, counter_index) == Counter()


def test_closed_index_is_named_and_goes_on_once_it_is_open(
    elasticsearch_url: str, elastic: Elasticsearch, counter_index: str
) -> None:
    query = counting(elasticsearch_url, counter_index)
    query.sink.check()
    receipts = query.stage(0, ones(range(5)))
    query.sink.store.prepare = lambda manifest: _prepared(query, manifest, elastic, counter_index)
    with pytest.raises(StoreRefused, match=r"closed.*_open"):
        query.commit(0, receipts)
    del query.sink.store.prepare
    with pytest.raises(StoreRefused, match="is closed"):
        counting(elasticsearch_url, counter_index, sinkId="other").sink.check()
    elastic.indices.open(index=counter_index)
    query.restart()
    query.run(0, [])
    assert counts(elastic, counter_index) == Counter(range(5))


def _prepared(query: ElasticsearchQuery, manifest: Any, client: Elasticsearch, index: str) -> Any:
    """Prepare, and then close the index."""
    made = type(query.sink.store).prepare(query.sink.store, manifest)
    client.indices.close(index=index)
    return made


def test_index_that_is_deleted_in_mid_query_is_not_made_anew(
    elasticsearch_url: str, elastic: Elasticsearch, counter_index: str
) -> None:
    query = counting(elasticsearch_url, counter_index)
    query.sink.check()
    query.run(0, ones(range(5)))
    elastic.indices.delete(index=counter_index)
    with pytest.raises(StoreRefused, match=r"no index .* any more"):
        query.run(1, ones(range(5)))
    assert not elastic.indices.exists(index=counter_index)


def test_pipeline_that_is_deleted_in_mid_query_makes_no_row_a_bad_one(
    into_index: Make, elastic: Elasticsearch, index: str, bad_index: str
) -> None:
    elastic.ingest.put_pipeline(id=index, processors=[])
    aside = {"onBadRow": "deadLetter", "deadLetter": bad_index}
    query = into_index(COUNTER, key="id", pipeline=index, **aside)
    elastic.ingest.delete_pipeline(id=index)
    with pytest.raises(OptionError, match="there is no ingest pipeline"):
        query.run(0, ones(range(5)))
    elastic.ingest.put_pipeline(id=index, processors=[])
    query.restart()
    query.run(0, ones(range(5)))
    elastic.ingest.delete_pipeline(id=index)
    assert len(documents(elastic, index)) == 5
    assert documents(elastic, bad_index) == {}


def test_index_that_is_deleted_under_a_decided_epoch_is_not_made_anew(
    into_index: Make, elastic: Elasticsearch, index: str
) -> None:
    elastic.indices.create(index=f"{index}-1", aliases={index: {}})
    elastic.indices.create(index=f"{index}-2")
    try:
        query = into_index(COUNTER, key="id", createIndex="false")
        decide(query, 0, ones(range(5)))
        move = {"add": {"index": f"{index}-2", "alias": index}}
        elastic.indices.update_aliases(actions=[move, {"remove_index": {"index": f"{index}-1"}}])
        query.restart()
        with pytest.raises(StoreRefused, match=f"no index {index}-1 any more"):
            query.run(0, [])
        assert not elastic.indices.exists(index=f"{index}-1")
        elastic.indices.create(index=f"{index}-1")
        query.run(0, [])
        assert len(documents(elastic, f"{index}-1")) == 5
    finally:
        elastic.indices.delete(index=f"{index}-1,{index}-2", ignore_unavailable=True)


@pytest.mark.parametrize("which", ["target", "ledger", "bad"])
def test_index_that_may_lose_what_it_acknowledged_is_refused(
    elasticsearch_url: str, elastic: Elasticsearch, counter_index: str, which: str
) -> None:
    own = f"{counter_index}-own"
    given = {"indexPrefix": own, "onBadRow": "deadLetter", "deadLetter": f"{own}-bad"}
    counting(elasticsearch_url, counter_index, **given).sink.check()
    index = counter_index if which == "target" else f"{own}-{which}"
    elastic.indices.put_settings(index=index, settings={"index.translog.durability": "async"})
    try:
        other = counting(elasticsearch_url, counter_index, **given, sinkId="b")
        with pytest.raises(StoreUnsafe, match=r"durability=async.*request"):
            other.sink.check()
    finally:
        elastic.indices.delete(index=f"{own}-ledger,{own}-log,{own}-bad")


def test_column_that_a_strict_mapping_lacks_is_named_at_start(
    elasticsearch_url: str, counter_index: str
) -> None:
    schema = pa.schema([("id", pa.int64()), ("nn", pa.int64())])
    query = ElasticsearchQuery(schema, url=elasticsearch_url, index=counter_index, key="id")
    with pytest.raises(OptionError, match=r"Column 'nn'.*strict.*did you mean 'n'"):
        query.sink.check()


TIME_SERIES: dict[str, Any] = {
    "settings": {
        "index.mode": "time_series",
        "index.routing_path": ["host"],
        "index.time_series.start_time": "2020-01-01T00:00:00Z",
        "index.time_series.end_time": "2040-01-01T00:00:00Z",
    },
    "mappings": {
        "properties": {
            "@timestamp": {"type": "date"},
            "host": {"type": "keyword", "time_series_dimension": True},
        }
    },
}


@pytest.mark.parametrize(
    ("about", "said"),
    [
        ({"mappings": {"_routing": {"required": True}}}, "name the column in option routing"),
        (TIME_SERIES, "has index.mode=time_series"),
    ],
    ids=["routing", "time series"],
)
@pytest.mark.parametrize("mode", ["append", "upsert", "update", "increment", "delete"])
def test_index_that_would_refuse_every_row_after_its_decision_is_refused_at_start(
    elasticsearch_url: str,
    elastic: Elasticsearch,
    index: str,
    mode: str,
    about: dict[str, Any],
    said: str,
) -> None:
    elastic.indices.create(index=index, **about)
    query = counting(elasticsearch_url, index, writeMode=mode)
    if mode == "append":
        query.options.pop("key")
    with pytest.raises(OptionError, match=said):
        query.sink.check()
    if "_routing" in about["mappings"]:
        schema = pa.schema([*COUNTER, ("land", pa.string())])
        given = {**query.options, "routing": "land"}
        fine = ElasticsearchQuery(schema, **given)
        fine.sink.check()
        fine.run(0, [{"id": 1, "n": 1, "land": "a"}])
        assert len(documents(elastic, index)) == (mode != "delete")


def test_index_that_is_not_there_is_named_at_start(elasticsearch_url: str, index: str) -> None:
    with pytest.raises(OptionError, match=rf"no index {index}.*createIndex"):
        counting(elasticsearch_url, index).sink.check()


@pytest.mark.parametrize("create", ["true", "false"])
def test_data_stream_that_is_not_there_is_named_at_start(
    into_index: Make, elastic: Elasticsearch, index: str, create: str
) -> None:
    elastic.indices.put_index_template(name=index, index_patterns=[index], data_stream={})
    try:
        with pytest.raises(OptionError, match=f"no data stream {index}.*name an index that"):
            into_index(COUNTER, key="id", createIndex=create)
        schema = pa.schema([("@timestamp", pa.int64())])
        with pytest.raises(OptionError, match=f"no data stream.*PUT _data_stream/{index}"):
            into_index(schema, createIndex=create)
        elastic.index(index=index, document={"@timestamp": 0}, op_type="create")
        into_index(schema, createIndex=create)
    finally:
        elastic.options(ignore_status=(400, 404)).indices.delete_data_stream(name=index)
        elastic.options(ignore_status=400).indices.delete_index_template(name=index)


def deep(levels: int) -> pa.DataType:
    return pa.struct([("a", deep(levels - 1))]) if levels else pa.int64()


@pytest.mark.parametrize(
    ("schema", "setting"),
    [
        (pa.schema([(f"c{n}", pa.int64()) for n in range(1101)]), "total_fields"),
        (pa.schema([("a", deep(20))]), "depth"),
    ],
    ids=["fields", "depth"],
)
def test_limit_that_a_new_index_exceeds_is_named_and_can_be_raised(
    into_index: Make, elastic: Elasticsearch, index: str, schema: pa.Schema, setting: str
) -> None:
    limit = f"index.mapping.{setting}.limit"
    with pytest.raises(OptionError, match=f"raise {limit} for it by an index template"):
        into_index(schema)
    raised = {"settings": {limit: 1200}}
    elastic.indices.put_index_template(name=index, index_patterns=[index], template=raised)
    try:
        into_index(schema)
    finally:
        elastic.indices.delete_index_template(name=index)


def test_index_that_takes_objects_apart_has_no_room_for_the_guard(
    into_index: Make, elastic: Elasticsearch, index: str
) -> None:
    elastic.indices.create(index=index, mappings={"subobjects": False})
    with pytest.raises(StoreRefused, match=r"subobjects=false.*use writeMode=upsert"):
        into_index(COUNTER, key="id", writeMode="increment")
    into_index(COUNTER, key="id").run(0, ones(range(5)))
    assert len(documents(elastic, index)) == 5
