"""`spark.readStream.format("redis")`: entries of streams, what goes unread, limits."""

from __future__ import annotations

import logging
import re
import time
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from random import Random
from typing import Any

import pyarrow as pa
import pytest
import redis
from integration.support.redis_following import feed, numbers, rows
from integration.support.servers.redis import RedisProcess, connect, require_followable
from integration.support.servers.redis_cluster import RedisCluster
from pyspark.sql import SparkSession

from pyspark_elasticsearch.follow.feed import ElasticsearchFeed
from pyspark_redis.connector import RedisConnector
from pyspark_redis.follow.feed import EntryRange, RedisFeed
from pyspark_redis.server.nodes import slot_of
from sparkonce import options
from sparkonce.errors import (
    OptionError,
    StoreRefused,
    UnreadLost,
    UnsupportedQuery,
    ValueUnreadable,
)
from sparkonce.reading import BEGINNING, Follower, Position


@pytest.fixture(autouse=True)
def small(monkeypatch: pytest.MonkeyPatch) -> None:
    """Pages of few entries, and splits that are worth it."""
    monkeypatch.setattr("pyspark_redis.follow.feed.PAGE", 20)
    monkeypatch.setattr("pyspark_redis.follow.feed.BLOCK", 2000)
    monkeypatch.setattr("pyspark_redis.follow.feed.LARGE", 100)


@pytest.fixture
def client(redis_url: str, unique: str) -> Iterator[redis.Redis]:
    """A plain client; keys that begin as the test's own go in the end."""
    require_followable(redis_url)
    with connect(redis_url) as client:
        yield client
        for key in client.scan_iter(f"{unique}*", count=1000):
            client.unlink(key)


def add(client: redis.Redis, key: str, numbers: range) -> list[str]:
    """Entries with these numbers, by a plain client; their ids."""
    pipeline = client.pipeline(transaction=False)
    for n in numbers:
        pipeline.xadd(key, {"n": n})
    return [one.decode() for one in pipeline.execute()]


def delete(client: redis.Redis, key: str) -> None:
    """Entries that are added in the same millisecond would get the same ids."""
    client.delete(key)
    time.sleep(0.002)


def drain(made: RedisFeed, splits: Iterable[Any]) -> None:
    for split in splits:
        for _ in made.read(split):
            pass


def test_what_lies_between_two_positions_comes_in_its_order(
    client: redis.Redis, redis_url: str, unique: str
) -> None:
    made = feed(redis_url, unique, numPartitions="3")
    begin = made.begin()
    ids = add(client, unique, range(357))
    end = made.latest()
    add(client, unique, range(357, 400))
    found = rows(made, begin, end)
    assert found == [{"_id": one, "n": n} for n, one in enumerate(ids)]
    assert len(made.between(begin, end)) == 3
    assert numbers(made, end, made.latest()) == [*range(357, 400)]
    assert rows(made, begin, end) == found


def test_fields_are_columns_whatever_else_an_entry_has(
    client: redis.Redis, redis_url: str, unique: str
) -> None:
    schema = pa.schema([("_key", pa.string()), ("b", pa.string()), ("a", pa.int64())])
    for fields in ({"a": 1, "b": "x"}, {"b": "y", "a": 2}, {"c": 0}, {"a": 3, "b": "", "c": 1}):
        client.xadd(unique, fields)
    client.execute_command("XADD", unique, "*", "a", "8", "c", "9", "c", "9")
    made = feed(redis_url, unique, schema=schema)
    found = [(row["a"], row["b"]) for row in rows(made, made.begin(), made.latest())]
    assert found == [(1, "x"), (2, "y"), (None, None), (3, ""), (8, None)]


@pytest.mark.parametrize(
    ("fields", "said"),
    [
        (["n", "many"], "column 'n' under key .*, of entry {}, can't be read"),
        (["m", "1", "n", "8", "n", "9"], "Entry {} of stream .* has field 'n' twice"),
    ],
)
@pytest.mark.parametrize("place", [0, 25, 49])
def test_an_entry_that_cannot_be_read_is_named_and_passed_over(
    client: redis.Redis, redis_url: str, unique: str, fields: list[str], said: str, place: int
) -> None:
    add(client, unique, range(place))
    entry = client.execute_command("XADD", unique, "*", *fields).decode()
    add(client, unique, range(place, 49))
    made = feed(redis_url, unique)
    begin, end = made.begin(), made.latest()
    with pytest.raises(ValueUnreadable, match=said.format(entry)) as raised:
        rows(made, begin, end)
    (name, value), *_ = re.findall(r"(skipEntries)=(\S+?)\.?$", str(raised.value))
    passing = feed(redis_url, unique, **{name: value})
    assert numbers(passing, begin, end) == [*range(49)]
    ids = client.xrange(unique)
    other = feed(redis_url, unique, skipEntries=f"other:{ids[0][0].decode()}, {value}")
    assert numbers(other, begin, end) == [*range(49)]


GREATEST = 2**64 - 1


@pytest.mark.parametrize("many", [19, 20, 21, 40])
def test_a_stream_may_go_up_to_the_greatest_id(
    client: redis.Redis, redis_url: str, unique: str, many: int
) -> None:
    """Behind which the server refuses to be asked."""
    for n in range(many):
        client.xadd(unique, {"n": n}, f"{GREATEST}-{GREATEST - many + 1 + n}")
    made = feed(redis_url, unique)
    for most in (None, 7, many):
        at, found = followed(made, made.begin(), most)
        assert found == [*range(many)]
        assert followed(made, at, most) == (at, [])


def test_a_name_that_stands_for_no_stream_is_told(
    client: redis.Redis, redis_url: str, unique: str, caplog: pytest.LogCaptureFixture
) -> None:
    client.xadd(f"{unique}:a", {"n": 1})
    made = feed(redis_url, f"{unique}:*")
    for ask in (made.begin, made.latest, lambda: RedisConnector().infer_feed(made.options)):
        with pytest.raises(OptionError, match="it is no pattern"):
            ask()
    client.xadd(f"{unique}:*", {"n": 1})
    assert followed(made, made.begin(), None)[1] == [1]
    feed(redis_url, f"{unique}:later").begin()
    assert f"Stream '{unique}:later' is not there yet" in caplog.text


def test_several_streams_are_followed_and_one_that_comes_later(
    client: redis.Redis, redis_url: str, unique: str
) -> None:
    schema = pa.schema([("_key", pa.string()), ("n", pa.int64())])
    one, other, later = f"{unique}:a", f"{unique}:b", f"{unique}:c"
    made = feed(redis_url, one, other, later, schema=schema)
    begin = made.begin()
    add(client, one, range(3))
    add(client, other, range(10, 12))
    end = made.latest()
    found = [(row["_key"], row["n"]) for row in rows(made, begin, end)]
    assert found == [(one, 0), (one, 1), (one, 2), (other, 10), (other, 11)]
    add(client, later, range(5))
    assert numbers(made, end, made.latest()) == [0, 1, 2, 3, 4]
    fewer = feed(redis_url, other, later)
    assert fewer.behind(end, fewer.latest()) == 5
    assert numbers(fewer, end, fewer.latest()) == [0, 1, 2, 3, 4]


def test_a_stream_that_is_left_out_for_a_time_goes_on_where_it_was(
    client: redis.Redis, redis_url: str, unique: str, caplog: pytest.LogCaptureFixture
) -> None:
    one, other = f"{unique}:a", f"{unique}:b"
    both, fewer = feed(redis_url, one, other), feed(redis_url, other)
    add(client, one, range(5))
    add(client, other, range(10, 15))
    at, found = followed(both, both.begin(), None)
    assert found == [*range(5), *range(10, 15)]
    for most in (None, 2):
        add(client, one, range(3))
        add(client, other, range(20, 26))
        at, found = followed(fewer, at, most)
        assert found == [*range(20, 26)]
        assert fewer.passed(at, fewer.latest()) == at
        at, found = followed(both, at, most)
        assert found == [0, 1, 2]
    assert not caplog.messages
    fewer.between(at, fewer.latest())  # as Spark before 4.2 has it
    assert f"Stream '{one}' is not followed any more" in caplog.text


def test_a_stream_that_is_named_later_has_its_place_before_it_is_read(
    client: redis.Redis, redis_url: str, unique: str
) -> None:
    """Or what is trimmed before its first epoch is read, or read again, would not be missed."""
    one, later = f"{unique}:a", f"{unique}:b"
    fewer, both = feed(redis_url, one), feed(redis_url, one, later)
    begin = fewer.begin()
    add(client, one, range(5))
    add(client, later, range(20, 30))
    client.xtrim(later, maxlen=8, approximate=False)
    at = both.advance(begin, both.latest(), None)
    assert rows(both, begin, at) == []
    assert followed(both, at, None)[1] == [*range(5), *range(22, 30)]
    client.xtrim(later, maxlen=5, approximate=False)
    with pytest.raises(UnreadLost, match=f"3 entries of stream '{later}'"):
        followed(both, at, None)


def test_a_capped_stream_that_is_made_anew_is_noticed_where_counts_coincide(
    client: redis.Redis, redis_url: str, unique: str
) -> None:
    made, lenient = feed(redis_url, unique), feed(redis_url, unique, failOnDataLoss="false")
    add(client, unique, range(10))
    at, _ = followed(made, made.begin(), None)
    delete(client, unique)
    add(client, unique, range(15))
    client.xtrim(unique, maxlen=5, approximate=False)
    with pytest.raises(UnreadLost, match=r"does not have entry .* any more"):
        followed(made, at, None)
    assert followed(lenient, at, None)[1] == [*range(10, 15)]


def test_a_checkpoint_of_another_store_is_refused(redis_url: str, unique: str) -> None:
    query = Follower(feed(redis_url, unique))
    at = {unique: {"read": [["VWc8wwMg", 12]], "over": False}}
    with pytest.raises(UnsupportedQuery, match=r"of indices of Elasticsearch, and .* of Redis"):
        query.end({"version": 1, "of": ElasticsearchFeed.of, "at": at}, None)
    assert query.end(query.end(BEGINNING, None), None)["of"] == RedisFeed.of


def test_a_query_may_begin_with_what_is_there_or_with_what_comes(
    client: redis.Redis, redis_url: str, unique: str
) -> None:
    ids = add(client, unique, range(20))
    client.xtrim(unique, maxlen=15, approximate=False)
    client.xdel(unique, ids[10])
    earliest, latest = feed(redis_url, unique), feed(redis_url, unique, startingPosition="latest")
    begins = earliest.begin(), latest.begin()
    add(client, unique, range(20, 22))
    end = earliest.latest()
    assert numbers(earliest, begins[0], end) == [*range(5, 10), *range(11, 22)]
    assert numbers(latest, begins[1], end) == [20, 21]


def trim(client: redis.Redis, key: str, _: list[str]) -> None:
    client.xtrim(key, maxlen=7, approximate=False)


def trim_all(client: redis.Redis, key: str, _: list[str]) -> None:
    client.xtrim(key, maxlen=0)


def delete_one(client: redis.Redis, key: str, ids: list[str]) -> None:
    client.xdel(key, ids[-5])


def delete_last(client: redis.Redis, key: str, ids: list[str]) -> None:
    client.xdel(key, ids[-1])


LOSSES = {trim: 3, trim_all: 10, delete_one: 1, delete_last: 1}
"""What someone does to a stream of which ten entries are not read, and how many of these go."""


@pytest.mark.parametrize("lose", LOSSES, ids=lambda one: one.__name__)
@pytest.mark.parametrize("planned", [True, False], ids=["planned", "not planned"])
def test_entries_that_go_before_they_are_read_are_noticed(
    client: redis.Redis,
    redis_url: str,
    unique: str,
    lose: Callable[[redis.Redis, str, list[str]], None],
    planned: bool,
    caplog: pytest.LogCaptureFixture,
) -> None:
    made, lenient = feed(redis_url, unique), feed(redis_url, unique, failOnDataLoss="false")
    add(client, unique, range(10))
    after = made.latest()
    ids = add(client, unique, range(10, 20))
    end, splits = made.latest(), made.between(after, made.latest())
    lose(client, unique, ids)
    with pytest.raises(UnreadLost, match=f"{LOSSES[lose]} entries of stream '{unique}'"):
        drain(made, splits if planned else made.between(after, end))
    there = [n for n, one in enumerate(ids, 10) if client.xrange(unique, one, one)]
    with caplog.at_level(logging.WARNING):
        assert numbers(lenient, after, end) == there
    assert f"{LOSSES[lose]} entries" in caplog.text
    add(client, unique, range(20, 25))
    after = lenient if lose is trim_all else made  # it looks like one that was made anew
    assert numbers(after, end, made.latest()) == [*range(20, 25)]


def test_entries_that_go_once_they_are_read_are_no_loss(
    client: redis.Redis, redis_url: str, unique: str
) -> None:
    made = feed(redis_url, unique)
    ids = add(client, unique, range(10))
    after = made.latest()
    client.xdel(unique, *ids[2:5])
    add(client, unique, range(10, 20))
    client.xtrim(unique, maxlen=11, approximate=False)
    assert numbers(made, after, made.latest()) == [*range(10, 20)]
    after = made.latest()
    client.xdel(unique, *(entry for entry, _ in client.xrange(unique)))
    add(client, unique, range(20, 25))
    assert numbers(made, after, made.latest()) == [*range(20, 25)]


class History:
    """A stream to which everything happens, and what a query has read of it."""

    def __init__(self, client: redis.Redis, key: str, seed: int) -> None:
        self.client, self.key, self.drawn = client, key, Random(seed)
        self.added = self.now = self.lives = 0
        self.unread, self.backup = set[int](), (b"", 0)

    def add(self) -> None:
        cap = self.drawn.choice([None, None, 3, 8])
        for _ in range(self.drawn.randint(1, 12)):
            self.now, self.added = self.now + 1, self.added + 1
            entry: Any = {"n": self.added}
            id_ = f"{self.now}-{self.lives}"
            self.client.xadd(self.key, entry, id_, maxlen=cap, approximate=False)
            self.unread.add(self.added)

    def trim(self) -> None:
        self.client.xtrim(self.key, maxlen=self.drawn.randint(0, 12), approximate=False)

    def delete(self) -> None:
        there: Any = self.client.xrange(self.key)
        ids = [one for one, _ in there]
        self.client.xdel(self.key, *self.drawn.sample(ids, min(2, len(ids))), "0-1")

    def make_anew(self) -> None:
        self.client.delete(self.key)
        self.lives += 1

    def copy(self) -> None:
        """By entries: the counts are those of what is there."""
        there: Any = self.client.xrange(self.key)
        self.client.delete(self.key)
        for entry, fields in there:
            self.client.xadd(self.key, fields, entry)

    def keep(self) -> None:
        """What a replica has, or a backup."""
        self.backup = self.client.dump(self.key) or b"", self.added

    def fall_back(self) -> None:
        """What came since is lost by the store, and nobody can tell whether there was any."""
        self.lives += 1
        there, added = self.backup
        if there:
            self.client.restore(self.key, 0, there, replace=True)
            self.unread -= {*range(added + 1, self.added + 1)}
            if self.drawn.random() < 0.3:  # its clock is behind
                about: Any = self.client.xinfo_stream(self.key)
                self.now = int(about["last-generated-id"].split(b"-")[0])

    def go_on(self) -> None:
        kinds = [self.add] * 4 + [self.trim, self.delete, self.make_anew, self.copy]
        for _ in range(self.drawn.randint(1, 4)):
            self.drawn.choice([*kinds, self.keep, self.fall_back, self.fall_back])()


def followed(made: RedisFeed, at: Position, most: int | None) -> tuple[Position, list[int]]:
    """What a query reads until there is nothing new, each epoch twice."""
    found, goal = list[int](), made.latest()
    while goal != at and (to := made.advance(at, goal, most)) != at:
        epoch = numbers(made, at, to)
        assert numbers(made, at, to) == epoch
        at, found = to, found + epoch
    return at, found


@pytest.mark.parametrize("seed", range(20))
def test_whatever_happens_to_a_stream_nothing_is_lost_unnoticed_or_doubled(
    client: redis.Redis, redis_url: str, unique: str, seed: int
) -> None:
    """Where a loss is tolerated, what comes is all that lies behind the last id.

    Of a stream of which nothing was seen nobody can tell whether it is another one.
    """
    history = History(client, unique, seed)
    made, lenient = feed(redis_url, unique), feed(redis_url, unique, failOnDataLoss="false")
    at, read = made.begin(), list[int]()
    for _ in range(12):
        history.go_on()
        most = history.drawn.choice([None, 3])
        try:
            to, found = followed(made, at, most)
            assert {*found} >= history.unread or not at[unique]["added"]
        except UnreadLost:
            there: Any = client.xrange(unique, f"({at[unique]['id']}")
            to, found = followed(lenient, at, most)
            assert found == [int(fields[b"n"]) for _, fields in there]
        history.unread.clear()
        at, read = to, read + found
    assert len(read) == len({*read})


@pytest.mark.parametrize("many", [9, 10, 15])
def test_another_stream_is_noticed_whose_ids_are_the_same(
    client: redis.Redis, redis_url: str, unique: str, many: int
) -> None:
    """By what the last entry holds that was read."""
    made = feed(redis_url, unique)
    for n in range(10):
        client.xadd(unique, {"n": n}, f"{n + 1}-0")
    at, found = followed(made, made.begin(), 3)
    assert found == [*range(10)]
    client.delete(unique)
    for n in range(many):
        client.xadd(unique, {"n": 50 + n}, f"{n + 1}-0")
    with pytest.raises(UnreadLost, match="is not the one that was read"):
        followed(made, at, None)


def test_a_last_entry_that_is_deleted_once_it_was_read_is_nothing_new(
    client: redis.Redis, redis_url: str, unique: str
) -> None:
    made = feed(redis_url, unique)
    ids = add(client, unique, range(3))
    at, _ = followed(made, made.begin(), None)
    client.xdel(unique, ids[-1])
    assert made.advance(at, made.latest(), None) == at
    assert followed(made, at, 2) == (at, [])
    add(client, unique, range(3, 5))
    assert followed(made, at, None)[1] == [3, 4]


@pytest.mark.parametrize("added", [[], ["3-1", "4-1"]])
def test_a_range_ends_with_the_entry_with_which_it_was_planned(
    client: redis.Redis, redis_url: str, unique: str, added: list[str]
) -> None:
    """A replica took over that lacked its entries, and whose clock is behind."""
    made = feed(redis_url, unique)
    client.xadd(unique, {"n": 1}, "1-0")
    after, replica = made.latest(), client.dump(unique)
    for n, id_ in enumerate(["3-0", "5-0"]):
        client.xadd(unique, {"n": n}, id_)
    end = made.latest()
    client.restore(unique, 0, replica, replace=True)
    for id_ in added:
        client.xadd(unique, {"n": 9}, id_)
    with pytest.raises(UnreadLost):
        numbers(made, after, end)


@pytest.mark.parametrize("many", [1, 10, 30])
def test_another_stream_under_the_same_name_is_noticed(
    client: redis.Redis, redis_url: str, unique: str, many: int
) -> None:
    made, lenient = feed(redis_url, unique), feed(redis_url, unique, failOnDataLoss="false")
    add(client, unique, range(10))
    after = made.latest()
    delete(client, unique)
    with pytest.raises(UnreadLost, match="is not the one that was read"):
        made.between(after, made.latest())
    add(client, unique, range(many))
    end = made.latest()
    with pytest.raises(UnreadLost, match="is not the one that was read"):
        drain(made, made.between(after, end))
    assert numbers(lenient, after, end) == [*range(many)]


def test_a_stream_that_is_made_anew_between_plan_and_read_is_noticed(
    client: redis.Redis, redis_url: str, unique: str
) -> None:
    made = feed(redis_url, unique)
    begin = made.begin()
    add(client, unique, range(10))
    (split,) = made.between(begin, made.latest())
    delete(client, unique)
    add(client, unique, range(10))
    with pytest.raises(UnreadLost, match="10 entries"):
        drain(made, [split])


def test_limits_are_shared_by_what_streams_have_and_all_comes(
    client: redis.Redis, redis_url: str, unique: str
) -> None:
    one, other = f"{unique}:a", f"{unique}:b"
    made = feed(redis_url, one, other)
    at, found = made.begin(), list[list[int]]()
    add(client, one, range(300))
    add(client, other, range(1000, 1100))
    goal = made.latest()
    add(client, one, range(300, 310))
    while at != goal:
        to = made.advance(at, goal, 100)
        found.append(numbers(made, at, to))
        at = to
    assert [len(epoch) for epoch in found] == [100, 100, 100, 100]
    assert sorted(n for epoch in found for n in epoch) == [*range(300), *range(1000, 1100)]
    assert sum(n >= 1000 for n in found[0]) == 25


def test_a_limit_goes_on_behind_entries_that_are_gone(
    client: redis.Redis, redis_url: str, unique: str
) -> None:
    made, lenient = feed(redis_url, unique), feed(redis_url, unique, failOnDataLoss="false")
    begin = made.begin()
    ids = add(client, unique, range(100))
    client.xdel(unique, *ids[10:20])
    client.xtrim(unique, maxlen=60, approximate=False)
    goal = made.latest()
    with pytest.raises(UnreadLost, match="40 entries"):
        made.advance(begin, goal, 25)
    at, found = begin, list[list[int]]()
    while at != goal:
        to = lenient.advance(at, goal, 25)
        found.append(numbers(lenient, at, to))
        at = to
    assert [n for epoch in found for n in epoch] == [*range(40, 100)]
    assert max(map(len, found)) <= 25


def test_a_long_walk_gives_way_to_others(private_redis: Callable[..., RedisProcess]) -> None:
    """The script counts a few entries, and is sent again."""
    server = private_redis()
    require_followable(server.url)
    made = feed(server.url, "s")
    begin = made.begin()
    with connect(server.url) as client:
        add(client, "s", range(20_000))
        client.config_resetstat()
        to = made.advance(begin, made.latest(), 18_500)
        told: Any = client.info("commandstats")
    assert to["s"]["added"] == 18_500
    assert told["cmdstat_eval"]["calls"] == 19


def test_streams_of_a_cluster_are_read_where_they_lie(cluster: RedisCluster, unique: str) -> None:
    require_followable(cluster.nodes[0].url)
    streams = [f"{unique}:{at}" for at in range(6)]
    made = feed(cluster.url, *streams)
    begin = made.begin()
    for at, key in enumerate(streams):
        for n in range(3):
            cluster.owner(slot_of(key.encode())).ask("XADD", key, "*", "n", 10 * at + n)
    end = made.latest()
    assert numbers(made, begin, end) == [10 * at + n for at in range(6) for n in range(3)]
    some = made.advance(begin, end, 6)
    assert numbers(made, begin, some) == [10 * at for at in range(6)]


def test_a_server_that_does_not_tell_what_is_gone_is_refused(
    private_redis: Callable[..., RedisProcess], unique: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SPARKONCE_TEST_REDIS", "embedded")  # 6.2
    server = private_redis()
    with connect(server.url) as client:
        client.xadd(unique, {"n": 1})
    with pytest.raises(StoreRefused, match="how many entries a stream ever had"):
        feed(server.url, unique).latest()


def test_a_key_of_another_type_is_refused(client: redis.Redis, redis_url: str, unique: str) -> None:
    client.set(unique, "a")
    made = feed(redis_url, unique)
    parts = EntryRange(unique, "0-0", "1-0", 1)
    for ask in (
        made.latest,
        lambda: [*made.read(parts)],
        lambda: RedisConnector().infer_feed(made.options),
    ):
        with pytest.raises(StoreRefused, match=f"Key '{unique}' is no stream.*option streams"):
            ask()


# -- through Spark


def test_a_stream_through_spark_goes_on_where_it_stopped(
    spark: SparkSession, client: redis.Redis, redis_url: str, unique: str, tmp_path: Any
) -> None:
    given = {"url": redis_url, "streams": unique, "maxRowsPerBatch": "40"}

    def run() -> list[dict[str, Any]]:
        stream = spark.readStream.format("redis").options(startingPosition="earliest", **given)
        query = (
            stream.load()
            .writeStream.format("parquet")
            .option("checkpointLocation", str(tmp_path / "checkpoint"))
            .trigger(availableNow=True)
            .start(str(tmp_path / "rows"))
        )
        query.awaitTermination()
        return [one for one in query.recentProgress if one["numInputRows"]]

    add(client, unique, range(100))
    first = run()
    add(client, unique, range(100, 150))
    second = run()
    found = spark.read.parquet(str(tmp_path / "rows"))
    assert found.columns == ["_key", "_id", "n"]
    assert sorted(row.n for row in found.collect()) == [*range(150)]
    assert [one["numInputRows"] for one in first + second] == [40, 40, 20, 40, 10]
    assert '"rowsBehind": 60' in first[0]["sources"][0]["latestOffset"]


def test_a_stream_without_a_position_is_told_what_to_say(
    spark: SparkSession, tmp_path: Path
) -> None:
    made = spark.readStream.format("redis").schema("n bigint").options(url="redis://127.0.0.1:1")
    query = (
        made.option("streams", "a")
        .load()
        .writeStream.format("noop")
        .option("checkpointLocation", str(tmp_path))
        .start()
    )
    with pytest.raises(Exception, match="Option startingPosition is missing"):
        query.awaitTermination()


@pytest.mark.parametrize(
    ("given", "words"),
    [
        ({"startingPosition": "latest"}, "Option streams is missing"),
        ({"streams": "a", "startingPosition": "now"}, "one of earliest, latest"),
        ({"streams": "a,,b", "startingPosition": "latest"}, "names of streams"),
        ({"streams": "a", "startingPosition": "latest", "skipEntries": "1-0"}, "orders:1526"),
        ({"streams": "a", "startingPosition": "latest", "key": "a"}, "Option 'key' is unknown"),
    ],
)
def test_options_that_say_too_little_are_told(given: dict[str, str], words: str) -> None:
    with pytest.raises(OptionError, match=words):
        options.parse(RedisConnector.follows, {"url": "redis://127.0.0.1:1", **given})
