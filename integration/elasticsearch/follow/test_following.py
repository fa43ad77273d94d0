"""`spark.readStream.format("elasticsearch")`: documents that changed, what goes unread, limits."""

from __future__ import annotations

import logging
import time
from collections import Counter
from collections.abc import Callable
from dataclasses import replace

import pyarrow as pa
import pytest
from elasticsearch import Elasticsearch
from integration.support.elasticsearch import (
    CONNECTOR,
    ONE,
    SHARDS,
    Index,
    changes,
    drain,
    feed,
    make_quiet,
    numbers,
    put,
)
from integration.support.marks import slow_cases

from sparkonce import options
from sparkonce.errors import OptionError, StoreRefused, StoreUnreachable, UnreadLost
from sparkonce.reading import Position

# -- changes


def test_what_lies_between_two_positions_comes_once_and_again_the_same(index: Index) -> None:
    index.make_quiet(SHARDS)
    made = index.feed()
    begin = made.begin()
    index.put(range(357))
    end, before = made.latest(), made.between(begin, made.latest())
    index.put(range(357, 400))
    found = changes(made, begin, end)
    assert sorted(row["n"] for row in found) == [*range(357)]
    assert len(before) == 6
    for split in before:
        its = sorted(row["_seq_no"] for row in drain(made, [split]))
        assert its == [*range(split.of.after + 1, split.of.end + 1)]
    assert numbers(made, end, made.latest()) == [*range(357, 400)]
    assert sorted(map(str, changes(made, begin, end))) == sorted(map(str, found))
    assert numbers(made, begin, made.latest()) == [*range(400)]


def test_a_document_comes_as_it_is_now_with_the_epoch_of_its_last_change(index: Index) -> None:
    index.make_quiet(ONE)
    made = index.feed()
    begin = made.begin()
    index.put(range(6))
    index.put([0], n=100)
    index.client.delete(index=index, id="1")
    first = made.latest()
    assert numbers(made, begin, first) == [2, 3, 4, 5, 100]
    index.put([2], n=200)
    index.client.delete(index=index, id="3")
    second = made.latest()
    assert numbers(made, begin, first) == [4, 5, 100]
    assert changes(made, first, second) == [{"_id": "2", "_seq_no": 8, "n": 200}]
    assert made.behind(first, second) == 2


def test_nothing_goes_back_where_a_node_tells_of_an_older_state(index: Index) -> None:
    index.make_quiet(SHARDS)
    made = index.feed(numPartitions="1")
    index.put(range(10))
    older = made.latest()
    index.put(range(10, 20))
    newer = made.latest()
    assert made.advance(newer, older, None) == newer
    for split in made.between(older, newer):
        beyond = replace(split, of=replace(split.of, end=split.of.end + 1))
        with pytest.raises(StoreUnreachable, match="older state"):
            drain(made, [beyond])


def test_a_change_that_may_be_undone_is_waited_for_as_it_hides_what_was_there(index: Index) -> None:
    """It is on no disk yet. A crash would bring back document 0 as it was, behind the reader."""

    def final() -> int:
        (shard,) = index.client.indices.stats(index=index, level="shards")["indices"][index][
            "shards"
        ]["0"]
        found: int = shard["seq_no"]["global_checkpoint"]
        return found

    late = {"translog.durability": "async", "translog.sync_interval": "1500ms"}
    index.make_quiet({**ONE, **late})
    made = index.feed()
    index.put([0])
    end = made.latest()
    assert end[index]["read"][0][1] == final() == 0
    splits = made.between({}, end)
    time.sleep(1.6)  # a write in an idle moment waits for the whole interval
    index.put([0], n=100)
    index.client.indices.refresh(index=index)
    assert drain(made, splits) == []
    assert final() == 1
    index.put([1])
    hasty = index.feed(timeout="0.1")
    with pytest.raises(StoreUnreachable, match=r"not final after 0\.1 s"):
        hasty.latest()
    assert numbers(made, end, made.latest()) == [1, 100]


def test_documents_are_those_of_the_query_and_never_parts_of_some(index: Index) -> None:
    nested = {"c": {"type": "nested", "properties": {"a": {"type": "long"}}}}
    index.make_quiet(ONE, mappings={"properties": nested})
    for n in range(10):
        index.client.index(index=index, document={"n": n, "c": [{"a": 1}, {"a": 2}]})
    made = index.feed()
    assert numbers(made, {}, made.latest()) == [*range(10)]
    some = index.feed(query='{"range": {"n": {"gte": 7}}}')
    assert numbers(some, {}, some.latest()) == [7, 8, 9]


def test_numbers_are_a_column_where_one_asks_for_them(index: Index) -> None:
    index.make_quiet(ONE, mappings={"properties": {"n": {"type": "long"}}})
    for asked, names in ({}, ["n"]), ({"columns": "n,_SEQ_NO"}, ["_seq_no", "n"]):
        raw = {"url": index.url, "index": index, "startingPosition": "latest", **asked}
        parsed = options.parse(CONNECTOR.follows, raw)
        assert CONNECTOR.infer_feed(parsed).names == names


# -- which indices


def test_indices_that_join_are_read_from_their_beginning(index: Index) -> None:
    made = feed(index.url, f"{index}-*,-{index}-no", startingPosition="latest")
    make_quiet(index.client, f"{index}-1", ONE)
    make_quiet(index.client, f"{index}-no", ONE)
    put(index.client, f"{index}-1", range(5))
    at = made.begin()
    put(index.client, f"{index}-1", range(5, 10))
    put(index.client, f"{index}-no", range(100))
    make_quiet(index.client, f"{index}-2", SHARDS)
    put(index.client, f"{index}-2", range(10, 20))
    assert numbers(made, at, made.latest()) == [*range(5, 20)]


@pytest.mark.parametrize("ended", [False, True], ids=["takes writes", "takes no writes"])
def test_an_index_that_is_left_out_for_a_time_goes_on_where_it_was(
    index: Index, ended: bool
) -> None:
    one, other = f"{index}-1", f"{index}-2"
    for each in (one, other):
        make_quiet(index.client, each, ONE)
        put(index.client, each, range(5))
    if ended:
        index.client.indices.add_block(index=other, block="write")
    both, fewer = feed(index.url, f"{index}-*"), feed(index.url, one)
    tolerant = feed(index.url, one, failOnDataLoss="false")
    first = both.latest()
    put(index.client, one, range(5, 10))
    at = fewer.advance(first, fewer.latest(), None)
    if ended:
        assert numbers(fewer, first, at) == [*range(5, 10)]
    else:
        with pytest.raises(UnreadLost, match=f"{other} was removed.*matches again"):
            fewer.between(first, at)
        assert numbers(tolerant, first, at) == [*range(5, 10)]
        put(index.client, other, range(20, 25))
    put(index.client, one, range(10, 15))
    again = fewer.advance(at, fewer.latest(), None)
    assert numbers(fewer, at, again) == [*range(10, 15)]
    assert fewer.passed(again, fewer.latest()) == again
    end = both.advance(again, both.latest(), None)
    assert numbers(both, again, end) == ([] if ended else [*range(20, 25)])
    assert end == both.latest()
    index.client.indices.delete(index=other)
    assert [*fewer.advance(again, fewer.latest(), None)] == [one]
    make_quiet(index.client, other, ONE)
    put(index.client, other, range(30, 33))
    if not ended:  # what it had behind that place is gone
        with pytest.raises(UnreadLost, match=f"{other} is not the one that was read"):
            both.between(again, both.latest())
        both = feed(index.url, f"{index}-*", failOnDataLoss="false")
    assert numbers(both, again, both.latest()) == [30, 31, 32]


@pytest.mark.parametrize("kind", ["alias", *slow_cases("data stream")])
def test_a_name_that_rolls_over_and_forgets_is_followed(index: Index, kind: str) -> None:
    if kind == "alias":
        make_quiet(index.client, f"{index}-1", ONE, aliases={index: {"is_write_index": True}})
    else:
        settings = {"template": {"settings": ONE}, "data_stream": {}}
        index.client.indices.put_index_template(name=index, index_patterns=[index], **settings)
    made, at, found, names = index.feed(), Position(), [], []
    for epoch in range(4):
        for n in range(10 * epoch, 10 * epoch + 10):
            document = {"@timestamp": 0, "n": n}
            told = index.client.index(index=index, document=document, op_type="create")
        names.append(told["_index"])
        end = made.latest()
        found.append(numbers(made, at, end))
        at = end
        index.client.indices.rollover(alias=index)
        index.client.indices.add_block(index=names[epoch], block="write")
        if epoch > 1:
            index.client.indices.delete(index=names[epoch - 2])
    assert found == [[*range(10 * one, 10 * one + 10)] for one in range(4)]
    assert len({*names}) == 4
    at = made.latest()
    index.client.indices.delete(index=names[2])
    assert changes(made, at, made.latest()) == []


def test_shards_that_were_merged_have_numbers_twice_and_come_whole(index: Index) -> None:
    index.make_quiet({**SHARDS, "blocks.write": False})
    index.put(range(100))
    index.client.indices.add_block(index=index, block="write")
    kept = {"index.number_of_shards": 1, "index.blocks.write": None}
    index.client.indices.shrink(index=index, target=f"{index}-small", settings=kept)
    made = feed(index.url, f"{index}-small", numPartitions="1")
    at = made.latest()
    found = changes(made, {}, at)
    assert sorted(row["n"] for row in found) == [*range(100)]
    assert max(Counter(row["_seq_no"] for row in found).values()) > 1
    put(index.client, f"{index}-small", range(100, 103))
    assert numbers(made, at, made.latest()) == [100, 101, 102]


@pytest.mark.parametrize("begin", ["begin", "latest"])
def test_indices_that_cannot_be_followed_are_refused_by_name(index: Index, begin: str) -> None:
    make_quiet(index.client, f"{index}-1", ONE)
    put(index.client, f"{index}-1", range(3))
    index.client.indices.close(index=f"{index}-1")
    made = feed(index.url, f"{index}-*")
    with pytest.raises(StoreRefused, match=f"Index {index}-1 is closed"):
        getattr(made, begin)()
    index.client.indices.open(index=f"{index}-1")
    if tuple(map(int, index.client.info()["version"]["number"].split(".")[:2])) >= (9, 4):
        make_quiet(index.client, f"{index}-2", {**ONE, "disable_sequence_numbers": True})
        with pytest.raises(StoreRefused, match=f"Index {index}-2 .* not keep numbers"):
            getattr(made, begin)()
        index.client.indices.delete(index=f"{index}-2")
    assert numbers(made, {}, made.latest()) == [0, 1, 2]


def test_time_series_are_followed_where_they_keep_numbers(index: Index) -> None:
    span = {"start_time": "2000-01-01T00:00:00Z", "end_time": "2100-01-01T00:00:00Z"}
    settings = {**ONE, "mode": "time_series", "routing_path": ["h"], "time_series": span}
    host = {"type": "keyword", "time_series_dimension": True}
    fields = {"@timestamp": {"type": "date"}, "h": host, "n": {"type": "long"}}
    index.make_quiet(settings, mappings={"properties": fields})
    for n in range(5):
        index.client.index(index=index, document={"@timestamp": 10**12 + n, "h": "a", "n": n})
    made = index.feed(pa.schema([("n", pa.int64())]))
    assert numbers(made, {}, made.latest()) == [0, 1, 2, 3, 4]


def test_a_name_that_stands_for_nothing_is_told_at_start_and_is_nothing_later(index: Index) -> None:
    with pytest.raises(StoreRefused, match="no such index"):
        index.feed().begin()
    made = feed(index.url, f"{index}-*")
    assert made.begin() == made.latest() == {}
    with pytest.raises(OptionError, match="in this cluster"):
        feed(index.url, f"other:{index}")


# -- losses


def delete(elastic: Elasticsearch, index: str) -> list[int]:
    elastic.indices.delete(index=index)
    return []


def make_anew(elastic: Elasticsearch, index: Index) -> list[int]:
    elastic.indices.delete(index=index)
    index.make_quiet(SHARDS)
    index.put(range(1000, 1100))
    return [*range(1000, 1100)]


def make_smaller(elastic: Elasticsearch, index: Index) -> list[int]:
    elastic.indices.delete(index=index)
    index.make_quiet(ONE)
    index.put([1000])
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
    index: Index,
    lose: Callable[[Elasticsearch, str], list[int]],
    planned: bool,
    caplog: pytest.LogCaptureFixture,
) -> None:
    index.make_quiet(SHARDS)
    made = index.feed()
    lenient = index.feed(failOnDataLoss="false")
    index.put(range(100))
    after = made.latest()
    index.put(range(100, 200))
    end, splits = made.latest(), made.between(after, made.latest())
    there = lose(index.client, index)
    with pytest.raises(UnreadLost, match=f"Changes .* of index {index} (were lost|differ)"):
        drain(made, splits if planned else made.between(after, end))
    with caplog.at_level(logging.WARNING):
        assert drain(lenient, splits if planned else lenient.between(after, end)) == []
    assert f"of index {index} " in caplog.text
    with pytest.raises(
        UnreadLost, match=f"Index {index} (was removed|is not the one that was read)"
    ):
        made.between(end, made.latest())
    now = lenient.latest()
    assert numbers(lenient, end, now) == there
    assert changes(made, now, made.latest()) == []


@pytest.mark.parametrize("lose", LOSSES[:2], ids=lambda one: one.__name__)
def test_an_index_may_go_once_it_takes_no_writes_and_all_of_it_was_read(
    index: Index, lose: Callable[[Elasticsearch, str], list[int]]
) -> None:
    index.make_quiet(SHARDS)
    made = feed(index.url, f"{index}*")
    index.put(range(100))
    index.client.indices.add_block(index=index, block="write")
    end = made.latest()
    half = made.advance({}, end, 50)
    assert made.advance({}, end, 100) == end
    there = lose(index.client, index)
    assert numbers(made, end, made.latest()) == there
    with pytest.raises(UnreadLost, match=f"Index {index} (is|was)"):
        made.between(half, made.latest())


def test_an_index_that_goes_while_it_is_read_fails_the_task(index: Index) -> None:
    index.make_quiet(ONE)
    index.put(range(19))
    made = index.feed()
    (split,) = made.between({}, made.latest())
    reading = made.read(split)
    assert next(reading).num_rows == 10
    index.client.indices.delete(index=index)
    with pytest.raises(StoreUnreachable, match="point in time"):
        next(reading)
    with pytest.raises(UnreadLost, match="were lost before"):
        drain(made, [split])


def test_nothing_stays_open_in_the_cluster(index: Index) -> None:
    def opened() -> int:
        told = index.client.indices.stats(index=index, metric="search")["_all"]["total"]
        found: int = told["search"]["open_contexts"]
        return found

    index.make_quiet(SHARDS)
    index.put(range(100))
    made = index.feed()
    splits = made.between({}, made.latest())
    drain(made, splits)
    reading = made.read(splits[0])
    next(reading)
    assert opened() == 1
    reading.close()
    assert opened() == 0


# -- limits


def test_limits_are_shared_by_what_shards_have_and_all_comes(index: Index) -> None:
    one, other = f"{index}-1", f"{index}-2"
    make_quiet(index.client, one, SHARDS)
    make_quiet(index.client, other, ONE)
    made = feed(index.url, f"{index}*")
    at, found = made.begin(), list[list[int]]()
    put(index.client, one, range(300))
    put(index.client, other, range(1000, 1100))
    goal = made.latest()
    put(index.client, one, range(300, 310))
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
