"""Indices that take no rows, or would lose them: found at start, or in the middle of a query."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from typing import Any

import pyarrow as pa
import pytest
from elasticsearch import Elasticsearch
from integration.support.elasticsearch import Index, decide, documents, has_script_processor
from integration.support.epochs import COUNTER, ElasticsearchQuery, ones

from pyspark_elasticsearch.server.client import Cluster
from sparkonce.errors import OptionError, SparkonceError, StoreRefused, StoreUnsafe
from sparkonce.exactly_once.ledger import from_record

Make = Callable[..., ElasticsearchQuery]


@pytest.mark.parametrize("block", ["write", "read_only"])
def test_read_only_index_is_refused_until_it_is_not(counter_index: Index, block: str) -> None:
    query = counter_index.counting()
    query.sink.check()
    receipts = query.stage(0, ones(range(5)))
    counter_index.block(block, True)
    with pytest.raises(StoreRefused, match=r"accepts no writes.*remove the block"):
        query.commit(0, receipts)
    with pytest.raises(StoreRefused, match=f"has index.blocks.{block}"):
        counter_index.counting(sinkId="other").sink.check()
    counter_index.block(block, None)
    query.restart()
    query.run(0, ones(range(5)))
    assert counter_index.counts() == Counter(range(5))


def test_index_whose_documents_can_not_be_looked_up_is_refused_before_the_decision(
    counter_index: Index,
) -> None:
    query = counter_index.counting()
    counter_index.block("read", True)
    with pytest.raises(StoreRefused, match=r"has index\.blocks\.read"):
        query.run(0, ones(range(5)))
    counter_index.block("read", None)
    query.run(0, [])
    assert counter_index.counts() == Counter()


def test_closed_index_is_named_and_goes_on_once_it_is_open(counter_index: Index) -> None:
    query = counter_index.counting()
    query.sink.check()
    receipts = query.stage(0, ones(range(5)))
    query.sink.store.prepare = lambda manifest: _prepared(
        query, manifest, counter_index.client, counter_index
    )
    with pytest.raises(StoreRefused, match=r"closed.*_open"):
        query.commit(0, receipts)
    del query.sink.store.prepare
    with pytest.raises(StoreRefused, match="is closed"):
        counter_index.counting(sinkId="other").sink.check()
    counter_index.client.indices.open(index=counter_index)
    query.restart()
    query.run(0, [])
    assert counter_index.counts() == Counter(range(5))


def _prepared(query: ElasticsearchQuery, manifest: Any, client: Elasticsearch, index: str) -> Any:
    """Prepare, and then close the index."""
    made = type(query.sink.store).prepare(query.sink.store, manifest)
    client.indices.close(index=index)
    return made


def test_index_that_is_deleted_in_mid_query_is_not_made_anew(counter_index: Index) -> None:
    query = counter_index.counting()
    query.sink.check()
    query.run(0, ones(range(5)))
    counter_index.client.indices.delete(index=counter_index)
    with pytest.raises(StoreRefused, match=r"Index .* no longer exists"):
        query.run(1, ones(range(5)))
    assert not counter_index.client.indices.exists(index=counter_index)


def test_pipeline_that_is_deleted_in_mid_query_makes_no_row_a_bad_one(
    index: Index, bad_index: str
) -> None:
    index.client.ingest.put_pipeline(id=index, processors=[])
    aside = {"onBadRow": "deadLetter", "deadLetter": bad_index}
    query = index.into(COUNTER, key="id", pipeline=index, **aside)
    index.client.ingest.delete_pipeline(id=index)
    with pytest.raises(OptionError, match=r"ingest pipeline '.*' does not exist"):
        query.run(0, ones(range(5)))
    index.client.ingest.put_pipeline(id=index, processors=[])
    query.restart()
    query.run(0, ones(range(5)))
    assert len(index.documents()) == 5
    assert documents(index.client, bad_index) == {}


def test_index_that_is_deleted_under_a_decided_epoch_is_not_made_anew(index: Index) -> None:
    index.client.indices.create(index=f"{index}-1", aliases={index: {}})
    index.client.indices.create(index=f"{index}-2")
    query = index.into(COUNTER, key="id", createIndex="false")
    decide(query, 0, ones(range(5)))
    move = {"add": {"index": f"{index}-2", "alias": index}}
    index.client.indices.update_aliases(actions=[move, {"remove_index": {"index": f"{index}-1"}}])
    query.restart()
    with pytest.raises(StoreRefused, match=f"Index {index}-1 no longer exists"):
        query.run(0, [])
    assert not index.client.indices.exists(index=f"{index}-1")
    index.client.indices.create(index=f"{index}-1")
    query.run(0, [])
    assert len(documents(index.client, f"{index}-1")) == 5


@pytest.mark.parametrize("which", ["target", "ledger", "bad"])
def test_index_that_may_lose_what_it_acknowledged_is_refused(
    counter_index: Index, which: str
) -> None:
    own = f"{counter_index}-own"
    given = {"indexPrefix": own, "onBadRow": "deadLetter", "deadLetter": f"{own}-bad"}
    counter_index.counting(**given).sink.check()
    index = counter_index if which == "target" else f"{own}-{which}"
    counter_index.client.indices.put_settings(
        index=index, settings={"index.translog.durability": "async"}
    )
    other = counter_index.counting(**given, sinkId="b")
    with pytest.raises(StoreUnsafe, match=r"durability=async.*request"):
        other.sink.check()


def test_column_that_a_strict_mapping_lacks_is_named_at_start(counter_index: Index) -> None:
    schema = pa.schema([("id", pa.int64()), ("nn", pa.int64())])
    query = counter_index.query(schema, key="id")
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
    index: Index, mode: str, about: dict[str, Any], said: str
) -> None:
    index.client.indices.create(index=index, **about)
    query = index.counting(writeMode=mode)
    with pytest.raises(SparkonceError, match=said):
        query.sink.check()
    if "_routing" in about["mappings"]:
        schema = pa.schema([*COUNTER, ("land", pa.string())])
        given = {**query.options, "routing": "land"}
        fine = ElasticsearchQuery(schema, **given)
        fine.sink.check()
        fine.run(0, [{"id": 1, "n": 1, "land": "a"}])
        assert len(index.documents()) == (mode != "delete")


def test_index_that_is_not_there_is_named_at_start(index: Index) -> None:
    with pytest.raises(OptionError, match=rf"index {index} does not exist.*createIndex"):
        index.counting().sink.check()


DATED = pa.schema([("@timestamp", pa.int64()), ("n", pa.int64())])


@pytest.mark.parametrize("create", ["true", "false"])
def test_data_stream_that_is_not_there_is_named_at_start(index: Index, create: str) -> None:
    index.client.indices.put_index_template(name=index, index_patterns=[index], data_stream={})
    with pytest.raises(
        OptionError, match=f"data stream {index} does not exist.*name an index that"
    ):
        index.into(COUNTER, key="id", createIndex=create)
    if create == "false":
        with pytest.raises(OptionError, match=r"data stream .* does not exist.*createIndex=true"):
            index.into(DATED, createIndex="false")
    query = index.into(DATED, createIndex="true")
    query.run(0, [{"@timestamp": 0, "n": 1}, {"@timestamp": 1, "n": 2}])
    twin = index.into(DATED, createIndex="true")
    twin.query_id = query.query_id
    twin.run_until_done(0, [{"@timestamp": 5, "n": 9}])
    (stream,) = index.client.indices.resolve_index(name=index)["data_streams"]
    assert len(stream["backing_indices"]) == 1
    assert sorted(row["n"] for row in index.documents().values()) == [1, 2]


def test_data_stream_that_the_cluster_does_not_create_is_named(index: Index) -> None:
    indices = index.client.indices
    indices.put_index_template(
        name=index, index_patterns=[index], data_stream={}, allow_auto_create=False
    )
    with pytest.raises(OptionError, match=rf"could not create .*PUT _data_stream/{index}"):
        index.into(DATED, createIndex="true")
    indices.put_index_template(name=index, index_patterns=[index], data_stream={})
    with pytest.raises(OptionError, match="no column '@timestamp'"):
        index.into(pa.schema([("n", pa.int64())]), createIndex="true")


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
    index: Index, schema: pa.Schema, setting: str
) -> None:
    limit = f"index.mapping.{setting}.limit"
    with pytest.raises(OptionError, match=f"raise {limit} for the index by an index template"):
        index.into(schema)
    raised = {"settings": {limit: 1200}}
    index.client.indices.put_index_template(name=index, index_patterns=[index], template=raised)
    index.into(schema)


def test_index_that_takes_objects_apart_has_no_room_for_the_guard(index: Index) -> None:
    index.client.indices.create(index=index, mappings={"subobjects": False})
    with pytest.raises(StoreRefused, match=r"subobjects=false.*use writeMode=upsert"):
        index.into(COUNTER, key="id", writeMode="increment")
    index.into(COUNTER, key="id").run(0, ones(range(5)))
    assert len(index.documents()) == 5


COUNTS = pa.schema([("id", pa.int64()), ("n", pa.int64())])
ONE = [{"id": 1, "n": 1}]


def decided(query: ElasticsearchQuery) -> int:
    ledger = from_record(query.sink.store.read(query.name), query.name)
    assert ledger is not None
    return ledger.decision.epoch


LOSES = {"translog": {"durability": "async"}}


@pytest.mark.parametrize("which", ["index", "index template", "closed index"])
def test_template_of_names_is_refused_where_a_name_may_lose_rows(index: Index, which: str) -> None:
    if which == "index template":
        index.client.indices.put_index_template(
            name=f"{index}-template",
            index_patterns=[f"{index}-a*"],
            template={"settings": LOSES},
            priority=500,
        )
    else:
        index.client.indices.create(index=f"{index}-a", settings={**LOSES, "number_of_replicas": 0})
    given = {"index": f"{index}-{{id}}", "createIndex": "false"}
    if which == "closed index":
        index.client.indices.close(index=f"{index}-a")
        index.into(COUNTS, **given).run(0, ONE)
        return
    with pytest.raises(StoreUnsafe, match=r"(?i)index.*-(a|template) has .*durability=async"):
        index.into(COUNTS, **given)


@pytest.mark.filterwarnings("ignore:index template")  # it shadows older ones, as the server says
def test_template_of_names_goes_by_the_templates_that_apply(index: Index) -> None:
    """Of older templates the highest order counts; beside an index template none does."""
    put, given = index.client.indices.put_template, {"index": f"{index}-{{id}}"}
    given["createIndex"] = "false"
    put(name=f"{index}-old", index_patterns=[f"{index}-*"], settings=LOSES, order=1)
    with pytest.raises(StoreUnsafe, match=rf"Template {index}-old has .*durability=async"):
        index.into(COUNTS, **given)
    safe = {"translog": {"durability": "request"}}
    put(name=f"{index}-over", index_patterns=[f"{index}*"], settings=safe, order=2)
    index.into(COUNTS, **given).run(0, ONE)
    index.client.indices.delete_template(name=f"{index}-over")
    index.client.indices.put_index_template(
        name=f"{index}-new", index_patterns=[f"{index}-*"], template={}, priority=500
    )
    index.into(COUNTS, **given).run(0, ONE)


@pytest.mark.parametrize("source", [{"excludes": ["n"]}, {"enabled": False}])
def test_rows_are_not_compared_with_documents_that_are_not_kept(
    index: Index, source: dict[str, Any]
) -> None:
    """Of two rows with the same version the first stays, also if the second one is late."""
    index.client.indices.create(index=index, mappings={"_source": source})
    index.into(COUNTS, key="id", createIndex="false")
    with pytest.raises(StoreUnsafe, match=r"keeps .*_source.*versionColumn"):
        index.into(COUNTS, key="id", versionColumn="n", createIndex="false")
    ids = {"writeMode": "delete", "key": "id", "versionColumn": "n"}
    index.into(COUNTS, **ids, createIndex="false").run(0, ONE)


def remade(client: Elasticsearch, index: str, **body: Any) -> None:
    client.indices.delete(index=index)
    client.indices.create(index=index, **body)


def require_refused_undecided(
    query: ElasticsearchQuery, error: type[SparkonceError], words: str
) -> None:
    with pytest.raises(error, match=words):
        query.run(1, ONE)
    assert decided(query) == 0


@pytest.mark.parametrize(
    ("options", "settings", "words"),
    [
        ({}, {"index.translog.durability": "async"}, "durability=async"),
        ({}, {"index.blocks.write": True}, "has index.blocks.write"),
        ({}, {"index.blocks.read_only": True}, "has index.blocks.read_only"),
        (
            {"writeMode": "increment", "key": "id"},
            {"index.final_pipeline": "any"},
            "has index.final_pipeline=any",
        ),
    ],
    ids=["async", "write", "read only", "pipeline"],
)
def test_setting_that_came_since_the_last_epoch_stops_the_next_before_its_decision(
    index: Index, options: dict[str, str], settings: dict[str, Any], words: str
) -> None:
    query = index.into(COUNTS, **options)
    query.run(0, ONE)
    index.client.indices.put_settings(index=index, settings=settings)
    require_refused_undecided(query, SparkonceError, words)
    index.client.indices.put_settings(index=index, settings=dict.fromkeys(settings))
    query.run(1, ONE)
    assert sum(row["n"] for row in index.rows()) == 2


def test_index_made_anew_that_keeps_no_guard_stops_the_next_epoch_before_its_decision(
    index: Index,
) -> None:
    """There a repeated row would be added twice."""
    query = index.into(COUNTS, key="id", writeMode="increment")
    query.run(0, ONE)
    remade(index.client, index, mappings={"_source": {"excludes": ["sparkonce"]}})
    require_refused_undecided(query, StoreUnsafe, "keeps a part of each _source")


def test_index_made_anew_gets_the_mapping_of_the_guard_once_more(index: Index) -> None:
    query = index.into(COUNTS, key="id", writeMode="increment")
    query.run(0, ONE)
    remade(index.client, index)
    query.run(1, ONE)
    (about,) = index.client.indices.get_mapping(index=index).values()
    assert about["mappings"]["properties"]["sparkonce"]["enabled"] is False


def test_index_made_anew_shows_whole_epochs_as_the_first_did(index: Index) -> None:
    alias = f"{index}-visible"
    query = index.into(COUNTS, visibleAlias=alias, sinkId=index)
    query.run(0, ONE)
    remade(index.client, index, mappings={"dynamic": False})
    query.run(1, [{"id": id_, "n": 1} for id_ in range(50)])
    assert index.client.count(index=alias)["count"] == 50


def test_pipeline_with_another_body_stops_the_next_epoch_before_its_decision(index: Index) -> None:
    if not has_script_processor(index.client):
        pytest.skip("the server lacks the processors")
    called, moves = f"{index}-called", {"set": {"field": "_id", "value": "one"}}
    index.client.ingest.put_pipeline(id=called, processors=[])
    index.client.ingest.put_pipeline(id=index, processors=[{"pipeline": {"name": called}}])
    query = index.into(COUNTS, pipeline=index)
    query.run(0, ONE)
    index.client.ingest.put_pipeline(id=called, processors=[moves])
    require_refused_undecided(query, StoreRefused, f"{called}.*has 'set'")
    index.client.ingest.delete_pipeline(id=index)
    require_refused_undecided(query, SparkonceError, f"ingest pipeline '{index}' does not exist")
    index.client.ingest.put_pipeline(id=index, processors=[])
    query.run(1, ONE)
    assert len(index.documents()) == 2


def test_one_request_an_epoch_asks_what_the_target_is(
    index: Index, monkeypatch: pytest.MonkeyPatch
) -> None:
    query = index.into(COUNTS, key="id", writeMode="increment")
    query.run(0, ONE)
    query.run(1, ONE)
    asked, ask = [], Cluster.ask

    def noted(self: Cluster, doing: str, method: str, target: str, **more: Any) -> Any:
        asked.append((method, target))
        return ask(self, doing, method, target, **more)

    monkeypatch.setattr(Cluster, "ask", noted)
    query.run(2, ONE)
    about = [one for one in asked if one[1].startswith(f"/{index}") or "_ingest" in one[1]]
    assert about == [("GET", f"/{index}"), ("POST", f"/{index}/_bulk")]
