"""Streams of what a sink shows by `visibleAlias`, and of other aliases, which hide documents."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from integration.support.elasticsearch import (
    CONNECTOR,
    ONE,
    SHARDS,
    Index,
    die_after,
    feed,
    make_quiet,
    numbers,
    put,
)
from integration.support.epochs import ElasticsearchQuery
from pyspark.sql import SparkSession
from pyspark.sql.streaming.query import StreamingQuery

from pyspark_elasticsearch.target import aliases
from sparkonce.errors import OptionError, StoreRefused, UnreadLost
from sparkonce.reading import Position

ROWS = pa.schema([("n", pa.int64())])
SIZE = 70
Into = Callable[..., ElasticsearchQuery]


@pytest.fixture
def index(index: Index) -> Index:
    """An index of three shards, whose documents say by which sink they are."""
    index.client.indices.create(index=index, settings=SHARDS)
    return index


@pytest.fixture
def into(index: Index) -> Into:
    """Make a sink, and what shows it."""

    def into(name: str, alias: str) -> ElasticsearchQuery:
        return index.into(ROWS, visibleAlias=f"{index}-{alias}", sinkId=name, chunkRows="10")

    return into


def rows(epoch: int) -> list[dict[str, int]]:
    return [{"n": SIZE * epoch + at} for at in range(SIZE)]


class Reader:
    """A stream that looks again and again."""

    def __init__(self, url: str, name: str, **raw: str) -> None:
        self.feed, self.found, self.ranges = feed(url, name, ROWS, **raw), list[int](), []
        self.at: Position = self.feed.begin()

    def look(self) -> None:
        end = self.feed.advance(self.at, self.feed.latest(), None)
        if end != self.at:
            self.ranges.append((self.at, end, numbers(self.feed, self.at, end)))
            self.found += self.ranges[-1][-1]
            self.at = end

    def require_same_again(self) -> None:
        for after, end, found in self.ranges:
            assert numbers(self.feed, after, end) == found


@pytest.mark.variants
def test_what_a_sink_shows_comes_whole_and_once_whenever_one_looks(
    into: Into, index: Index, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Before and after the alias moves, with another sink beside."""
    query, other = into("orders", "visible"), into("others", "other")
    reader = Reader(index.url, f"{index}-visible")
    late = Reader(index.url, f"{index}-visible", startingPosition="latest")
    show = aliases.show

    def showing(*given: Any) -> None:
        reader.look()
        show(*given)
        reader.look()

    monkeypatch.setattr(aliases, "show", showing)
    for epoch in range(4):
        other.run(epoch, [{"n": -1}] * 20)
        query.run(epoch, rows(epoch))
        assert sorted(reader.found) == [*range(SIZE * (epoch + 1))]
    late.look()
    assert sorted(late.found) == [*range(SIZE * 4)]
    reader.require_same_again()
    assert len(reader.ranges) >= 4


def test_a_part_of_an_epoch_is_passed_by_nobody(into: Into, index: Index) -> None:
    """As the driver dies while it applies one; then its alias goes back to an older epoch."""
    query = into("orders", "visible")
    reader = Reader(index.url, f"{index}-visible")
    query.run(0, rows(0))
    reader.look()
    receipts = query.stage(1, rows(1))
    before = index.client.indices.get_alias(name=f"{index}-visible")[index]["aliases"]
    die_after(query, 3, 1, receipts)
    reader.look()
    assert sorted(reader.found) == [*range(SIZE)]
    query.restart()
    query.run(1, [])
    reader.look()
    assert sorted(reader.found) == [*range(2 * SIZE)]
    index.client.indices.put_alias(
        index=index, name=f"{index}-visible", **before[f"{index}-visible"]
    )
    reader.look()
    reader.require_same_again()
    query.run(2, rows(2))
    reader.look()
    assert sorted(reader.found) == [*range(3 * SIZE)]


@pytest.mark.slow
def test_a_pipeline_from_sink_to_source_has_each_row_once(
    spark: SparkSession, index: Index, tmp_path: Path
) -> None:
    """Through Spark, while the sink writes."""
    for epoch in range(6):
        pq.write_table(pa.Table.from_pylist(rows(epoch), ROWS), tmp_path / f"{epoch}.parquet")
    at = {"url": index.url}
    written = (
        spark.readStream.schema("n long")
        .option("maxFilesPerTrigger", 1)
        .parquet(str(tmp_path / "*.parquet"))
        .writeStream.format(CONNECTOR.name)
        .options(**at, index=index, sinkId="orders", visibleAlias=f"{index}-visible")
        .option("checkpointLocation", str(tmp_path / "written"))
        .trigger(availableNow=True)
    )
    index.client.indices.put_alias(index=index, name=f"{index}-visible", filter={"match_none": {}})

    def following(**trigger: Any) -> StreamingQuery:
        stream = spark.readStream.format(CONNECTOR.name).schema("n long")
        stream = stream.options(**at, index=f"{index}-visible", startingPosition="earliest")
        out = stream.load().writeStream.format("parquet").trigger(**trigger)
        checkpoint = str(tmp_path / "followed")
        return out.option("checkpointLocation", checkpoint).start(str(tmp_path / "rows"))

    beside = following(processingTime="100 milliseconds")
    written.start().awaitTermination()
    beside.stop()
    following(availableNow=True).awaitTermination()
    found = [row.n for row in spark.read.parquet(str(tmp_path / "rows")).collect()]
    assert sorted(found) == [*range(6 * SIZE)]


def test_an_alias_that_becomes_another_sinks_or_shows_all_is_told(into: Into, index: Index) -> None:
    """What the others wrote was passed."""
    into("orders", "visible").run(0, rows(0))
    into("others", "other").run(0, rows(1))
    name = f"{index}-visible"
    reader, lenient = (
        Reader(index.url, name, **more) for more in ({}, {"failOnDataLoss": "false"})
    )
    reader.look()
    lenient.look()
    other = index.client.indices.get_alias(name=f"{index}-other")[index]["aliases"][
        f"{index}-other"
    ]
    for at, shows in enumerate([other, {}]):
        index.client.indices.put_alias(index=index, name=name, **shows)
        index.put([1000 + at])
        with pytest.raises(UnreadLost, match=f"Index {index} shows other documents"):
            reader.look()
    lenient.look()
    assert sorted(lenient.found) == [*range(SIZE), 1000, 1001]


FILTERED: list[dict[str, Any]] = [
    {"filter": {"range": {"n": {"lt": 20}}}},
    {"filter": {"bool": {"filter": [{"term": {"sparkonce.sink": "x"}}, {"term": {"n": 1}}]}}},
    *(
        {"filter": {"bool": {"filter": [{"term": {"sparkonce.sink": "x"}}, {"range": bounds}]}}}
        for bounds in (
            {"sparkonce.fence": {"gte": 3, "lte": 5}},
            {"sparkonce.fence": {"lte": "x"}},
            {"n": {"lte": 5}},
        )
    ),
    {"search_routing": "a"},
]


@pytest.mark.variants
@pytest.mark.parametrize("hides", FILTERED, ids=str)
def test_an_alias_that_hides_documents_is_refused_by_name(
    index: Index, hides: dict[str, Any]
) -> None:
    index.put(range(30))
    index.client.indices.put_alias(index=index, name=f"{index}-some", **hides)
    made = feed(index.url, f"{index}-some")
    for look in made.begin, made.latest:
        with pytest.raises(StoreRefused, match=f"{index} can't be followed by alias {index}-some"):
            look()
    both = feed(index.url, f"{index}-some,{index}")  # which a search shows whole
    assert numbers(both, {}, both.latest()) == [*range(30)]


MOVING = [
    {"range": {"at": {"gte": "now-1d/d"}}},
    {"bool": {"must_not": [{"nested": {"path": "a", "query": {"term": {"a.at": "now"}}}}]}},
    {"terms": {"n": {"index": "other", "id": "1", "path": "n"}}},
    {"script": {"script": "true"}},
    {"match": {"k": {"query": "a", "fuzziness": "AUTO"}}},
    {"prefix": {"k": {"value": "a", "rewrite": "top_terms_10"}}},
    {"query_string": {"query": "at:<now"}},
    {"has_child": {"type": "x", "query": {"match_all": {}}}},
    {"term": {"_tier": "data_hot"}},
    {"bool": {"must": "x"}},
    {"bool": {"filter": [5, None]}},
]


@pytest.mark.parametrize("query", MOVING, ids=str)
def test_a_query_that_documents_come_to_match_unwritten_is_refused(
    elasticsearch_url: str, unique: str, query: dict[str, Any]
) -> None:
    with pytest.raises(OptionError, match="may miss documents"):
        feed(elasticsearch_url, unique, query=json.dumps(query))


UNSETTLED: list[dict[str, Any]] = [
    {"runtime": {"f": {"type": "long", "script": {"source": "emit(new Date().getTime())"}}}},
    {"properties": {"m": {"type": "long"}, "f": {"type": "alias", "path": "m"}}},
]


@pytest.mark.parametrize("mappings", UNSETTLED, ids=str)
def test_a_field_that_changes_while_nobody_writes_is_not_searched_by_streams(
    index: Index, mappings: dict[str, Any]
) -> None:
    index.client.indices.put_mapping(index=index, **mappings)
    index.put(range(3))
    for query in {"range": {"f": {"gt": 5}}}, {"bool": {"must_not": [{"exists": {"field": "f*"}}]}}:
        made = index.feed(query=json.dumps(query))
        with pytest.raises(StoreRefused, match="field 'f'"):
            made.between({}, made.latest())
    plain = index.feed(query='{"range": {"n": {"gt": 1}}}')
    assert numbers(plain, {}, plain.latest()) == [2]


# -- what is left out, and what is over


@pytest.mark.variants
@pytest.mark.parametrize("brought", ["{0}-all", "{0}-a*", "{0}-1,{0}-copy-1"])
@pytest.mark.parametrize("left", ["{0}-copy-*", "{0}-copy-1", "{0}-copies"])
def test_what_a_minus_leaves_out_does_not_come_by_another_name(
    index: Index, brought: str, left: str
) -> None:
    names = [f"{index}-1", f"{index}-copy-1"]
    for name in names:
        make_quiet(index.client, name, ONE, aliases={f"{index}-all": {}})
        put(index.client, name, range(3))
    index.client.indices.put_alias(index=names[1], name=f"{index}-copies")
    made = feed(index.url, f"{brought},-{left}".format(index))
    begin = made.begin()
    assert numbers(made, begin, made.latest()) == [0, 1, 2]


def test_a_name_behind_what_is_left_out_is_refused(elasticsearch_url: str, unique: str) -> None:
    for wrong in f"-{unique}", f"-{unique}-1,{unique}*", f"a*,-{unique},b":
        with pytest.raises(OptionError, match="exclusions"):
            feed(elasticsearch_url, wrong)


def test_an_index_that_rolled_over_takes_writes_by_its_name(index: Index) -> None:
    alias, first = f"{index}-all", f"{index}-000001"
    make_quiet(index.client, first, ONE, aliases={alias: {"is_write_index": True}})
    put(index.client, alias, [1])
    index.client.indices.rollover(alias=alias)
    made = feed(index.url, alias)
    at = made.latest()
    put(index.client, first, [2])
    index.client.indices.delete(index=first)
    with pytest.raises(UnreadLost, match=f"Index {first} was removed"):
        made.between(at, made.latest())
