"""`spark.readStream.format("elasticsearch")`: documents that changed, what goes unread, limits."""

from __future__ import annotations

import logging
import time
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import Any

import pyarrow as pa
import pytest
from elasticsearch import Elasticsearch
from integration.support.elasticsearch_following import (
    ONE,
    SHARDS,
    drain,
    feed,
    make,
    numbers,
    put,
    rows,
)
from integration.support.marks import slow_cases
from pyspark.sql import SparkSession

from pyspark_elasticsearch.connector import ElasticsearchConnector
from sparkonce import options
from sparkonce.errors import OptionError, StoreRefused, StoreUnreachable, UnreadLost
from sparkonce.reading import Position


@pytest.fixture(autouse=True)
def small(monkeypatch: pytest.MonkeyPatch) -> None:
    """Splits and pages of few documents."""
    monkeypatch.setattr("pyspark_elasticsearch.follow.feed.LARGE", 20)
    monkeypatch.setattr("pyspark_elasticsearch.read.pages.FIRST", 10)


@pytest.fixture(autouse=True)
def gone(elastic: Elasticsearch, unique: str) -> Iterator[None]:
    """Indices, streams and templates that begin as the test's own go in the end."""
    yield
    client = elastic.options(ignore_status=(400, 404, 405))
    client.indices.delete_data_stream(name=f"{unique}*")
    found = client.indices.get(index=f"{unique}*", expand_wildcards="all", features="settings")
    for name in found.body:
        client.indices.delete(index=name)
    client.indices.delete_index_template(name=unique)


# -- changes


def test_what_lies_between_two_positions_comes_once_and_again_the_same(
    elastic: Elasticsearch, elasticsearch_url: str, unique: str
) -> None:
    make(elastic, unique, SHARDS)
    made = feed(elasticsearch_url, unique)
    begin = made.begin()
    put(elastic, unique, range(357))
    end, before = made.latest(), made.between(begin, made.latest())
    put(elastic, unique, range(357, 400))
    found = rows(made, begin, end)
    assert sorted(row["n"] for row in found) == [*range(357)]
    assert len(before) == 6
    for split in before:
        its = sorted(row["_seq_no"] for row in drain(made, [split]))
        assert its == [*range(split.of.after + 1, split.of.end + 1)]
    assert numbers(made, end, made.latest()) == [*range(357, 400)]
    assert sorted(map(str, rows(made, begin, end))) == sorted(map(str, found))
    assert numbers(made, begin, made.latest()) == [*range(400)]


def test_a_document_comes_as_it_is_now_with_the_epoch_of_its_last_change(
    elastic: Elasticsearch, elasticsearch_url: str, unique: str
) -> None:
    make(elastic, unique, ONE)
    made = feed(elasticsearch_url, unique)
    begin = made.begin()
    put(elastic, unique, range(6))
    put(elastic, unique, [0], n=100)
    elastic.delete(index=unique, id="1")
    first = made.latest()
    assert numbers(made, begin, first) == [2, 3, 4, 5, 100]
    put(elastic, unique, [2], n=200)
    elastic.delete(index=unique, id="3")
    second = made.latest()
    assert numbers(made, begin, first) == [4, 5, 100]
    assert rows(made, first, second) == [{"_id": "2", "_seq_no": 8, "n": 200}]
    assert made.behind(first, second) == 2


def test_nothing_goes_back_where_a_node_tells_of_an_older_state(
    elastic: Elasticsearch, elasticsearch_url: str, unique: str
) -> None:
    make(elastic, unique, SHARDS)
    made = feed(elasticsearch_url, unique, numPartitions="1")
    put(elastic, unique, range(10))
    older = made.latest()
    put(elastic, unique, range(10, 20))
    newer = made.latest()
    assert made.advance(newer, older, None) == newer
    for split in made.between(older, newer):
        beyond = replace(split, of=replace(split.of, end=split.of.end + 1))
        with pytest.raises(StoreUnreachable, match="older state"):
            drain(made, [beyond])


def test_a_query_may_begin_with_what_is_there_or_with_what_comes(
    elastic: Elasticsearch, elasticsearch_url: str, unique: str
) -> None:
    make(elastic, unique, SHARDS)
    put(elastic, unique, range(10))
    earliest = feed(elasticsearch_url, unique)
    latest = feed(elasticsearch_url, unique, startingPosition="latest")
    begins = earliest.begin(), latest.begin()
    put(elastic, unique, range(10, 15))
    end = earliest.latest()
    assert numbers(earliest, begins[0], end) == [*range(15)]
    assert numbers(latest, begins[1], end) == [*range(10, 15)]


def test_a_change_that_may_be_undone_is_waited_for_as_it_hides_what_was_there(
    elastic: Elasticsearch, elasticsearch_url: str, unique: str
) -> None:
    """It is on no disk yet. A crash would bring back document 0 as it was, behind the reader."""

    def final() -> int:
        (shard,) = elastic.indices.stats(index=unique, level="shards")["indices"][unique]["shards"][
            "0"
        ]
        found: int = shard["seq_no"]["global_checkpoint"]
        return found

    late = {"translog.durability": "async", "translog.sync_interval": "1500ms"}
    make(elastic, unique, {**ONE, **late})
    made = feed(elasticsearch_url, unique)
    put(elastic, unique, [0])
    end = made.latest()
    assert end[unique]["read"][0][1] == final() == 0
    splits = made.between({}, end)
    time.sleep(1.6)  # a write in an idle moment waits for the whole interval
    put(elastic, unique, [0], n=100)
    elastic.indices.refresh(index=unique)
    assert drain(made, splits) == []
    assert final() == 1
    put(elastic, unique, [1])
    hasty = feed(elasticsearch_url, unique, timeout="0.1")
    with pytest.raises(StoreUnreachable, match=r"not final after 0\.1 s"):
        hasty.latest()
    assert numbers(made, end, made.latest()) == [1, 100]


def test_documents_are_those_of_the_query_and_never_parts_of_some(
    elastic: Elasticsearch, elasticsearch_url: str, unique: str
) -> None:
    nested = {"c": {"type": "nested", "properties": {"a": {"type": "long"}}}}
    make(elastic, unique, ONE, mappings={"properties": nested})
    for n in range(10):
        elastic.index(index=unique, document={"n": n, "c": [{"a": 1}, {"a": 2}]})
    made = feed(elasticsearch_url, unique)
    assert numbers(made, {}, made.latest()) == [*range(10)]
    some = feed(elasticsearch_url, unique, query='{"range": {"n": {"gte": 7}}}')
    assert numbers(some, {}, some.latest()) == [7, 8, 9]


def test_numbers_are_a_column_where_one_asks_for_them(
    elastic: Elasticsearch, elasticsearch_url: str, unique: str
) -> None:
    make(elastic, unique, ONE, mappings={"properties": {"n": {"type": "long"}}})
    for asked, names in ({}, ["n"]), ({"columns": "n,_SEQ_NO"}, ["_seq_no", "n"]):
        raw = {"url": elasticsearch_url, "index": unique, "startingPosition": "latest", **asked}
        parsed = options.parse(ElasticsearchConnector.follows, raw)
        assert ElasticsearchConnector().infer_feed(parsed).names == names


# -- which indices


def test_indices_that_join_are_read_from_their_beginning(
    elastic: Elasticsearch, elasticsearch_url: str, unique: str
) -> None:
    made = feed(elasticsearch_url, f"{unique}-*,-{unique}-no", startingPosition="latest")
    make(elastic, f"{unique}-1", ONE)
    make(elastic, f"{unique}-no", ONE)
    put(elastic, f"{unique}-1", range(5))
    at = made.begin()
    put(elastic, f"{unique}-1", range(5, 10))
    put(elastic, f"{unique}-no", range(100))
    make(elastic, f"{unique}-2", SHARDS)
    put(elastic, f"{unique}-2", range(10, 20))
    assert numbers(made, at, made.latest()) == [*range(5, 20)]


@pytest.mark.parametrize("ended", [False, True], ids=["takes writes", "takes no writes"])
def test_an_index_that_is_left_out_for_a_time_goes_on_where_it_was(
    elastic: Elasticsearch, elasticsearch_url: str, unique: str, ended: bool
) -> None:
    one, other = f"{unique}-1", f"{unique}-2"
    for index in (one, other):
        make(elastic, index, ONE)
        put(elastic, index, range(5))
    if ended:
        elastic.indices.add_block(index=other, block="write")
    both, fewer = feed(elasticsearch_url, f"{unique}-*"), feed(elasticsearch_url, one)
    tolerant = feed(elasticsearch_url, one, failOnDataLoss="false")
    first = both.latest()
    put(elastic, one, range(5, 10))
    at = fewer.advance(first, fewer.latest(), None)
    if ended:
        assert numbers(fewer, first, at) == [*range(5, 10)]
    else:
        with pytest.raises(UnreadLost, match=f"{other} is gone.*named again"):
            fewer.between(first, at)
        assert numbers(tolerant, first, at) == [*range(5, 10)]
        put(elastic, other, range(20, 25))
    put(elastic, one, range(10, 15))
    again = fewer.advance(at, fewer.latest(), None)
    assert numbers(fewer, at, again) == [*range(10, 15)]
    assert fewer.passed(again, fewer.latest()) == again
    end = both.advance(again, both.latest(), None)
    assert numbers(both, again, end) == ([] if ended else [*range(20, 25)])
    assert end == both.latest()
    elastic.indices.delete(index=other)
    assert [*fewer.advance(again, fewer.latest(), None)] == [one]
    make(elastic, other, ONE)
    put(elastic, other, range(30, 33))
    if not ended:  # what it had behind that place is gone
        with pytest.raises(UnreadLost, match=f"{other} is not the one that was read"):
            both.between(again, both.latest())
        both = feed(elasticsearch_url, f"{unique}-*", failOnDataLoss="false")
    assert numbers(both, again, both.latest()) == [30, 31, 32]


@pytest.mark.parametrize("kind", ["alias", *slow_cases("data stream")])
def test_a_name_that_rolls_over_and_forgets_is_followed(
    elastic: Elasticsearch, elasticsearch_url: str, unique: str, kind: str
) -> None:
    if kind == "alias":
        make(elastic, f"{unique}-1", ONE, aliases={unique: {"is_write_index": True}})
    else:
        settings = {"template": {"settings": ONE}, "data_stream": {}}
        elastic.indices.put_index_template(name=unique, index_patterns=[unique], **settings)
    made, at, found, names = feed(elasticsearch_url, unique), Position(), [], []
    for epoch in range(4):
        for n in range(10 * epoch, 10 * epoch + 10):
            document = {"@timestamp": 0, "n": n}
            told = elastic.index(index=unique, document=document, op_type="create")
        names.append(told["_index"])
        end = made.latest()
        found.append(numbers(made, at, end))
        at = end
        elastic.indices.rollover(alias=unique)
        elastic.indices.add_block(index=names[epoch], block="write")
        if epoch > 1:
            elastic.indices.delete(index=names[epoch - 2])
    assert found == [[*range(10 * one, 10 * one + 10)] for one in range(4)]
    assert len({*names}) == 4
    at = made.latest()
    elastic.indices.delete(index=names[2])
    assert rows(made, at, made.latest()) == []


def test_shards_that_were_merged_have_numbers_twice_and_come_whole(
    elastic: Elasticsearch, elasticsearch_url: str, unique: str
) -> None:
    make(elastic, unique, {**SHARDS, "blocks.write": False})
    put(elastic, unique, range(100))
    elastic.indices.add_block(index=unique, block="write")
    kept = {"index.number_of_shards": 1, "index.blocks.write": None}
    elastic.indices.shrink(index=unique, target=f"{unique}-small", settings=kept)
    made = feed(elasticsearch_url, f"{unique}-small", numPartitions="1")
    at = made.latest()
    found = rows(made, {}, at)
    assert sorted(row["n"] for row in found) == [*range(100)]
    assert max(Counter(row["_seq_no"] for row in found).values()) > 1
    put(elastic, f"{unique}-small", range(100, 103))
    assert numbers(made, at, made.latest()) == [100, 101, 102]


@pytest.mark.parametrize("begin", ["begin", "latest"])
def test_indices_that_cannot_be_followed_are_refused_by_name(
    elastic: Elasticsearch, elasticsearch_url: str, unique: str, begin: str
) -> None:
    make(elastic, f"{unique}-1", ONE)
    put(elastic, f"{unique}-1", range(3))
    elastic.indices.close(index=f"{unique}-1")
    made = feed(elasticsearch_url, f"{unique}-*")
    with pytest.raises(StoreRefused, match=f"Index {unique}-1 is closed"):
        getattr(made, begin)()
    elastic.indices.open(index=f"{unique}-1")
    if tuple(map(int, elastic.info()["version"]["number"].split(".")[:2])) >= (9, 4):
        make(elastic, f"{unique}-2", {**ONE, "disable_sequence_numbers": True})
        with pytest.raises(StoreRefused, match=f"Index {unique}-2 .* not keep the numbers"):
            getattr(made, begin)()
        elastic.indices.delete(index=f"{unique}-2")
    assert numbers(made, {}, made.latest()) == [0, 1, 2]


def test_time_series_are_followed_where_they_keep_numbers(
    elastic: Elasticsearch, elasticsearch_url: str, unique: str
) -> None:
    span = {"start_time": "2000-01-01T00:00:00Z", "end_time": "2100-01-01T00:00:00Z"}
    settings = {**ONE, "mode": "time_series", "routing_path": ["h"], "time_series": span}
    host = {"type": "keyword", "time_series_dimension": True}
    fields = {"@timestamp": {"type": "date"}, "h": host, "n": {"type": "long"}}
    make(elastic, unique, settings, mappings={"properties": fields})
    for n in range(5):
        elastic.index(index=unique, document={"@timestamp": 10**12 + n, "h": "a", "n": n})
    made = feed(elasticsearch_url, unique, pa.schema([("n", pa.int64())]))
    assert numbers(made, {}, made.latest()) == [0, 1, 2, 3, 4]


def test_a_name_that_stands_for_nothing_is_told_at_start_and_is_nothing_later(
    elasticsearch_url: str, unique: str
) -> None:
    with pytest.raises(StoreRefused, match="no such index"):
        feed(elasticsearch_url, unique).begin()
    made = feed(elasticsearch_url, f"{unique}-*")
    assert made.begin() == made.latest() == {}
    with pytest.raises(OptionError, match="in this cluster"):
        feed(elasticsearch_url, f"other:{unique}")


# -- losses


def delete(elastic: Elasticsearch, index: str) -> list[int]:
    elastic.indices.delete(index=index)
    return []


def make_anew(elastic: Elasticsearch, index: str) -> list[int]:
    elastic.indices.delete(index=index)
    make(elastic, index, SHARDS)
    put(elastic, index, range(1000, 1100))
    return [*range(1000, 1100)]


def make_smaller(elastic: Elasticsearch, index: str) -> list[int]:
    elastic.indices.delete(index=index)
    make(elastic, index, ONE)
    put(elastic, index, [1000])
    return [1000]


def restore(elastic: Elasticsearch, index: str) -> list[int]:
    """As from a snapshot of now: the same documents and numbers, and another history."""
    for source, target in (index, f"{index}-copy"), (f"{index}-copy", index):
        elastic.indices.add_block(index=source, block="write")
        elastic.indices.clone(index=source, target=target)
        elastic.indices.delete(index=source)
    return [*range(200)]


LOSSES = [delete, make_anew, make_smaller, restore]


@pytest.mark.parametrize("planned", [True, *slow_cases(False)], ids=["planned", "not planned"])
@pytest.mark.parametrize("lose", LOSSES, ids=lambda one: one.__name__)
def test_changes_that_go_before_they_are_read_are_noticed(
    elastic: Elasticsearch,
    elasticsearch_url: str,
    unique: str,
    lose: Callable[[Elasticsearch, str], list[int]],
    planned: bool,
    caplog: pytest.LogCaptureFixture,
) -> None:
    make(elastic, unique, SHARDS)
    made = feed(elasticsearch_url, unique)
    lenient = feed(elasticsearch_url, unique, failOnDataLoss="false")
    put(elastic, unique, range(100))
    after = made.latest()
    put(elastic, unique, range(100, 200))
    end, splits = made.latest(), made.between(after, made.latest())
    there = lose(elastic, unique)
    with pytest.raises(UnreadLost, match=f"Changes .* of index {unique} are"):
        drain(made, splits if planned else made.between(after, end))
    with caplog.at_level(logging.WARNING):
        assert drain(lenient, splits if planned else lenient.between(after, end)) == []
    assert f"of index {unique} are" in caplog.text
    with pytest.raises(UnreadLost, match=f"Index {unique} is (gone|not the one that was read)"):
        made.between(end, made.latest())
    now = lenient.latest()
    assert numbers(lenient, end, now) == there
    assert rows(made, now, made.latest()) == []


@pytest.mark.parametrize("lose", LOSSES[:2], ids=lambda one: one.__name__)
def test_an_index_may_go_once_it_takes_no_writes_and_all_of_it_was_read(
    elastic: Elasticsearch,
    elasticsearch_url: str,
    unique: str,
    lose: Callable[[Elasticsearch, str], list[int]],
) -> None:
    make(elastic, unique, SHARDS)
    made = feed(elasticsearch_url, f"{unique}*")
    put(elastic, unique, range(100))
    elastic.indices.add_block(index=unique, block="write")
    end = made.latest()
    half = made.advance({}, end, 50)
    assert made.advance({}, end, 100) == end
    there = lose(elastic, unique)
    assert numbers(made, end, made.latest()) == there
    with pytest.raises(UnreadLost, match=f"Index {unique} is"):
        made.between(half, made.latest())


def test_an_index_that_goes_while_it_is_read_fails_the_task(
    elastic: Elasticsearch, elasticsearch_url: str, unique: str
) -> None:
    make(elastic, unique, ONE)
    put(elastic, unique, range(19))
    made = feed(elasticsearch_url, unique)
    (split,) = made.between({}, made.latest())
    reading = made.read(split)
    assert next(reading).num_rows == 10
    elastic.indices.delete(index=unique)
    with pytest.raises(StoreUnreachable, match="point in time"):
        next(reading)
    with pytest.raises(UnreadLost, match="are gone"):
        drain(made, [split])


def test_nothing_stays_open_in_the_cluster(
    elastic: Elasticsearch, elasticsearch_url: str, unique: str
) -> None:
    def opened() -> int:
        told = elastic.indices.stats(index=unique, metric="search")["_all"]["total"]
        found: int = told["search"]["open_contexts"]
        return found

    make(elastic, unique, SHARDS)
    put(elastic, unique, range(100))
    made = feed(elasticsearch_url, unique)
    splits = made.between({}, made.latest())
    drain(made, splits)
    reading = made.read(splits[0])
    next(reading)
    assert opened() == 1
    reading.close()
    assert opened() == 0


# -- limits


def test_limits_are_shared_by_what_shards_have_and_all_comes(
    elastic: Elasticsearch, elasticsearch_url: str, unique: str
) -> None:
    one, other = f"{unique}-1", f"{unique}-2"
    make(elastic, one, SHARDS)
    make(elastic, other, ONE)
    made = feed(elasticsearch_url, f"{unique}*")
    at, found = made.begin(), list[list[int]]()
    put(elastic, one, range(300))
    put(elastic, other, range(1000, 1100))
    goal = made.latest()
    put(elastic, one, range(300, 310))
    assert made.behind(at, goal) == 400
    while at != goal:
        to = made.advance(at, goal, 100)
        found.append(numbers(made, at, to))
        at = to
    assert sorted(n for epoch in found for n in epoch) == [*range(300), *range(1000, 1100)]
    assert len(found) == 4
    assert max(map(len, found)) <= 104
    assert sum(n >= 1000 for n in found[0]) == 25
    assert made.behind(at, made.latest()) == 10


# -- through Spark


def test_a_stream_through_spark_goes_on_where_it_stopped(
    spark: SparkSession, elastic: Elasticsearch, elasticsearch_url: str, unique: str, tmp_path: Any
) -> None:
    make(elastic, unique, ONE, mappings={"properties": {"n": {"type": "long"}}})

    def run() -> list[dict[str, Any]]:
        stream = spark.readStream.format("elasticsearch").options(
            url=elasticsearch_url,
            index=unique,
            startingPosition="earliest",
            maxRowsPerBatch="40",
            columns="_id,n",
        )
        query = (
            stream.load()
            .writeStream.format("parquet")
            .option("checkpointLocation", str(tmp_path / "checkpoint"))
            .trigger(availableNow=True)
            .start(str(tmp_path / "rows"))
        )
        query.awaitTermination()
        return [one for one in query.recentProgress if one["numInputRows"]]

    put(elastic, unique, range(100))
    first = run()
    put(elastic, unique, range(100, 150))
    put(elastic, unique, [0], n=1000)
    second = run()
    found = spark.read.parquet(str(tmp_path / "rows"))
    assert found.columns == ["_id", "n"]
    assert sorted(row.n for row in found.collect()) == [*range(150), 1000]
    assert [one["numInputRows"] for one in first + second] == [40, 40, 20, 40, 11]
    assert '"changesBehind": 60' in first[0]["sources"][0]["latestOffset"]
