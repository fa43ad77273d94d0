"""Every Spark type in a document, as it is found there and as a query finds it."""

from __future__ import annotations

import json
import re
import time
from collections.abc import Callable
from datetime import datetime, timezone
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from elasticsearch import Elasticsearch
from integration.support.elasticsearch import Index, apply_again, decide, keep_log
from integration.support.elasticsearch_round_trips import ROUND_TRIPS
from integration.support.epochs import COUNTER, ElasticsearchQuery

from sparkonce.errors import BadRow, StoreUnsafe

UTC = timezone.utc
Make = Callable[..., ElasticsearchQuery]


@pytest.fixture
def make(into_index: Make) -> Make:
    def make(kind: pa.DataType, **options: str) -> ElasticsearchQuery:
        schema = pa.schema([("id", pa.int64()), ("v", kind)])
        return into_index(schema, **{"key": "id", **options})

    return make


@pytest.mark.parametrize(
    ("kind", "values", "stored"), ROUND_TRIPS, ids=[str(kind) for kind, _, _ in ROUND_TRIPS]
)
@pytest.mark.variants
def test_values_come_back_as_the_docs_say(
    make: Make, index: Index, kind: pa.DataType, values: list[Any], stored: list[Any]
) -> None:
    query = make(kind)
    query.run(0, [{"id": at, "v": value} for at, value in enumerate([*values, None])])
    found = index.documents()
    assert [found[str(at)]["v"] for at in range(len(values) + 1)] == [*stored, None]


@pytest.mark.variants
def test_new_index_finds_each_type_as_what_it_is(index: Index) -> None:
    kinds = [
        ("s", pa.string(), "blue"),
        ("n", pa.int64(), 2**53 + 1),
        ("t", pa.timestamp("us", "UTC"), datetime(2020, 1, 2, tzinfo=UTC)),
        ("d", pa.decimal128(20, 2), Decimal("7.10")),
        ("g", pa.struct([("lat", pa.float64()), ("lon", pa.float64())]), {"lat": 1.0, "lon": 2.0}),
        ("m", pa.map_(pa.string(), pa.string()), [("k", "v")]),
        ("i", pa.struct([("j", pa.int32())]), {"j": 5}),
    ]
    schema = pa.schema([(name, kind) for name, kind, _ in kinds])
    query = index.query(schema, createIndex="true")
    query.sink.check()
    query.run(0, [{name: value for name, _, value in kinds}])
    index.client.indices.refresh(index=index)
    for asked in (
        {"term": {"s": "blue"}},
        {"term": {"n": 2**53 + 1}},
        {"range": {"t": {"gte": "2020-01-02", "lt": "2020-01-03"}}},
        {"term": {"d": "7.10"}},
        {"geo_distance": {"distance": "1km", "g": {"lat": 1.001, "lon": 2.0}}},
        {"term": {"m.k": "v"}},
        {"term": {"i.j": 5}},
    ):
        assert index.client.count(index=index, query=asked)["count"] == 1, asked
    mapping = index.client.indices.get_mapping(index=index)[index]["mappings"]
    assert mapping["dynamic"] == "strict"
    assert mapping["properties"]["s"] == {"type": "keyword", "ignore_above": 8191}


@pytest.mark.parametrize(
    ("kind", "value"),
    [
        (pa.string(), "\N{GOTHIC LETTER AHSA}" * 20_000),
        (pa.map_(pa.string(), pa.string()), [("k", "\N{GOTHIC LETTER AHSA}" * 20_000)]),
        (pa.map_(pa.string(), pa.string()), [("key" * 100, "\N{GOTHIC LETTER AHSA}" * 8_000)]),
    ],
    ids=["string", "map", "map with a long key"],
)
@pytest.mark.variants
def test_text_that_is_too_long_for_an_index_is_stored_all_the_same(
    make: Make, index: Index, kind: pa.DataType, value: Any
) -> None:
    make(kind).run(0, [{"id": 1, "v": value}])
    stored = index.documents()["1"]["v"]
    assert stored == (value if isinstance(value, str) else dict(value))


@pytest.mark.parametrize(
    ("kind", "value", "said"),
    [
        (pa.float64(), float("nan"), "column 'v': nan has no place"),
        (pa.float32(), float("-inf"), "column 'v': -inf has no place"),
        (pa.list_(pa.float64()), [1.0, float("inf")], "column 'v': inf has no place"),
        (
            pa.struct([("x", pa.map_(pa.string(), pa.float64()))]),
            {"x": [("k", float("nan"))]},
            "column 'v': nan has no place",
        ),
    ],
    ids=["nan", "infinity", "in a list", "in a map in a struct"],
)
@pytest.mark.variants
def test_what_json_has_no_number_for_is_refused_by_name(
    make: Make, kind: pa.DataType, value: Any, said: str
) -> None:
    query = make(kind)
    with pytest.raises(BadRow, match=said):
        query.stage(0, [{"id": 1, "v": value}])


@pytest.mark.variants
def test_text_that_is_not_utf8_is_refused_by_name(make: Make) -> None:
    query = make(pa.string())
    bad = pa.Array.from_buffers(pa.string(), 1, pa.array([b"\xff"]).buffers())
    rows = pa.record_batch([pa.array([1]), bad], schema=query.schema)
    with pytest.raises(BadRow, match="column 'v': a string is not valid UTF-8"):
        query.stage_batches(0, [rows])


@pytest.mark.variants
def test_texts_are_stored_where_a_geo_point_or_a_number_is_mapped(index: Index) -> None:
    fields = {"p": {"type": "geo_point"}, "d": {"type": "double"}, "n": {"type": "date_nanos"}}
    index.client.indices.create(index=index, mappings={"dynamic": "strict", "properties": fields})
    schema = pa.schema(
        [("p", pa.string()), ("d", pa.decimal128(9, 1)), ("n", pa.timestamp("us", "UTC"))]
    )
    query = index.query(schema)
    query.sink.check()
    at = datetime(2020, 1, 1, 0, 0, 0, 1, UTC)
    query.run(0, [{"p": "40.5,-73.25", "d": Decimal("1.5"), "n": at}])
    index.client.indices.refresh(index=index)
    near = {"geo_distance": {"distance": "1km", "p": {"lat": 40.5, "lon": -73.25}}}
    for asked in (near, {"term": {"d": 1.5}}, {"term": {"n": "2020-01-01T00:00:00.000001Z"}}):
        assert index.client.count(index=index, query=asked)["count"] == 1


ROW = {"id": 1, "n": 1}
SCRIPTED = pytest.mark.parametrize("mode", ["update", "increment"])


@pytest.mark.parametrize(
    "about",
    [
        {"mappings": {"_source": {"excludes": ["sparkonce"]}}},
        {"mappings": {"_source": {"includes": ["id", "n"]}}},
        {"mappings": {"_source": {"enabled": False}}},
        {
            "mappings": {"_source": {"mode": "disabled"}},  # release 8
            "settings": {"index.mapping.source.mode": "disabled"},  # release 9
        },
    ],
    ids=str,
)
@SCRIPTED
def test_index_that_would_not_keep_the_guard_takes_no_update_or_increment(
    index: Index, about: dict[str, Any], mode: str
) -> None:
    if index.client.info()["version"]["number"] < "9":
        about = {"mappings": about["mappings"]}
    index.client.indices.create(index=index, **about)
    with pytest.raises(StoreUnsafe, match=r"keeps .* _source"):
        index.into(COUNTER, key="id", writeMode=mode, createIndex="false")
    index.into(COUNTER, key="id", createIndex="false").run(0, [ROW])


@pytest.mark.parametrize("option", ["default_pipeline", "final_pipeline"])
@SCRIPTED
def test_index_whose_own_pipeline_could_drop_rows_takes_no_update_or_increment(
    index: Index, option: str, mode: str
) -> None:
    index.client.ingest.put_pipeline(id=index, processors=[])
    index.client.indices.create(index=index, settings={f"index.{option}": index})
    given = {"key": "id", "writeMode": mode, "createIndex": "false"}
    with pytest.raises(StoreUnsafe, match=rf'has index.{option}=.*"index.{option}": "_none"'):
        index.into(COUNTER, **given)
    index.client.indices.put_settings(index=index, settings={f"index.{option}": "_none"})
    index.into(COUNTER, **given).run(0, [ROW])
    (found,) = index.documents().values()
    assert found["n"] == 1


DAY = 86_400 * 10**9


@SCRIPTED
def test_guards_of_sinks_that_wrote_long_ago_make_way_for_one_number_that_refuses_them(
    index: Index, monkeypatch: pytest.MonkeyPatch, mode: str
) -> None:
    """Each new checkpoint without a sinkId is a sink of its own."""
    now = time.time_ns()

    def new_checkpoint(days_ago: int, n: int) -> Any:
        query = index.into(COUNTER, key="id", writeMode=mode)
        keep_log(query)
        with monkeypatch.context() as patch:
            then = now - days_ago * DAY
            patch.setattr("pyspark_elasticsearch.journal.records.time.time_ns", lambda: then)
            late = decide(query, 0, [{"id": 1, "n": n}])
        query.restart()
        query.run(0, [])
        return query, late

    def guards() -> dict[str, Any]:
        found: dict[str, Any] = index.client.get(index=index, id="1")["_source"]["sparkonce"]
        return found

    old = [new_checkpoint(days, 1) for days in (80, 70, 45)]
    recent, _ = new_checkpoint(20, 1)
    assert set(guards()) == {old[2][0].name, recent.name, "past"}
    newest, again = new_checkpoint(0, 5)
    assert set(guards()) == {recent.name, newest.name, "past"}
    apply_again(newest, again)
    for query, late in old:
        apply_again(query, late)  # is refused, and finds that others went on
    recent.restart()
    recent.run(1, [{"id": 1, "n": 7}])
    (found,) = index.documents().values()
    assert found["n"] == (4 + 5 + 7 if mode == "increment" else 7)


def test_sink_whose_clock_is_far_ahead_makes_no_guard_of_an_epoch_in_progress_give_way(
    index: Index, monkeypatch: pytest.MonkeyPatch
) -> None:
    given = {"key": "id", "writeMode": "increment"}
    query, now = index.into(COUNTER, **given), time.time_ns()
    keep_log(query)
    begun = decide(query, 0, [{"id": 1, "n": 1}])
    apply_again(query, begun)  # it dies before it has noted that this is done
    with monkeypatch.context() as patch:
        patch.setattr("pyspark_elasticsearch.journal.records.time.time_ns", lambda: now + 60 * DAY)
        ahead = index.into(COUNTER, indexPrefix=index, **given)
        ahead.run(0, [{"id": 1, "n": 2}])
    query.restart()
    query.run(0, [])
    found = index.client.get(index=index, id="1")["_source"]
    assert (found["n"], set(found["sparkonce"])) == (3, {query.name, ahead.name})


def remedied(elastic: Elasticsearch, index: str, query: ElasticsearchQuery, refused: str) -> None:
    """What docs/elasticsearch.md says of this refusal."""
    fence = re.search(r"than fence (\d+)", refused)
    assert REMEDY
    assert fence
    params = {"sink": query.name, "fence": int(fence[1])}
    script = {**json.loads(REMEDY[1])["script"], "params": params}
    elastic.indices.refresh(index=index)
    elastic.update_by_query(index=index, script=script, refresh=True)


def test_epoch_that_is_finished_after_its_guards_made_way_has_a_way_out(
    index: Index, monkeypatch: pytest.MonkeyPatch
) -> None:
    given, now = {"key": "id", "writeMode": "increment"}, time.time_ns()
    query = index.into(COUNTER, **given)
    with monkeypatch.context() as patch:
        patch.setattr("pyspark_elasticsearch.journal.records.time.time_ns", lambda: now - 40 * DAY)
        query.run(0, [ROW])
        decide(query, 1, [ROW])
        patch.setattr("pyspark_elasticsearch.journal.records.time.time_ns", lambda: now - 35 * DAY)
        index.into(COUNTER, **given).run(0, [ROW])
    index.into(COUNTER, **given).run(0, [ROW])
    query.restart()
    with pytest.raises(StoreUnsafe, match="later changes than fence") as refused:
        query.run(1, [])
    remedied(index.client, index, query, str(refused.value))
    query.restart()
    query.run(1, [])
    assert index.client.get(index=index, id="1")["_source"]["n"] == 4


REMEDY = re.search(
    r"_update_by_query.*\n(\{.*\})", Path("docs/elasticsearch.md").read_text("utf-8")
)


@SCRIPTED
def test_lost_ledger_and_a_clock_that_is_behind_are_an_error_and_not_silence(
    index: Index, monkeypatch: pytest.MonkeyPatch, mode: str
) -> None:
    given = {"key": "id", "writeMode": mode, "sinkId": index, "indexPrefix": index}
    now = time.time_ns()
    with monkeypatch.context() as patch:
        patch.setattr(
            "pyspark_elasticsearch.journal.records.time.time_ns", lambda: now + 3600 * 10**9
        )
        index.into(COUNTER, **given).run(0, [ROW])
    index.client.indices.delete(index=f"{index}-ledger")
    query = index.into(COUNTER, **given)
    with pytest.raises(StoreUnsafe, match="later changes than fence") as refused:
        query.run(0, [{"id": 1, "n": 5}], [{"id": 2, "n": 5}])
    remedied(index.client, index, query, str(refused.value))
    query.restart()
    query.run(0, [])
    found = {row["id"]: row["n"] for row in index.documents().values()}
    assert found == {1: 6 if mode == "increment" else 5, 2: 5}
