"""`spark.readStream.format("redis")`: entries of streams, what goes unread, limits."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from integration.support.redis import Keys, Private, add, changes, feed, followed, numbers
from integration.support.servers.redis import connect, require_followable
from integration.support.servers.redis_cluster import RedisCluster
from pyspark.sql import SparkSession

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
from sparkonce.reading import BEGINNING, Follower


def test_what_lies_between_two_positions_comes_in_its_order(keys: Keys) -> None:
    made = keys.feed(numPartitions="3")
    begin = made.begin()
    ids = add(keys.client, keys, range(357))
    end = made.latest()
    add(keys.client, keys, range(357, 400))
    found = changes(made, begin, end)
    assert found == [{"_id": one, "n": n} for n, one in enumerate(ids)]
    assert len(made.between(begin, end)) == 3
    assert numbers(made, end, made.latest()) == [*range(357, 400)]
    assert changes(made, begin, end) == found


def test_fields_are_columns_whatever_else_an_entry_has(keys: Keys) -> None:
    schema = pa.schema([("_key", pa.string()), ("b", pa.string()), ("a", pa.int64())])
    for fields in ({"a": 1, "b": "x"}, {"b": "y", "a": 2}, {"c": 0}, {"a": 3, "b": "", "c": 1}):
        keys.client.xadd(keys, fields)
    keys.client.execute_command("XADD", keys, "*", "a", "8", "c", "9", "c", "9")
    made = keys.feed(schema=schema)
    found = [(row["a"], row["b"]) for row in changes(made, made.begin(), made.latest())]
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
    keys: Keys, fields: list[str], said: str, place: int
) -> None:
    add(keys.client, keys, range(place))
    entry = keys.client.execute_command("XADD", keys, "*", *fields).decode()
    add(keys.client, keys, range(place, 49))
    made = keys.feed()
    begin, end = made.begin(), made.latest()
    with pytest.raises(ValueUnreadable, match=said.format(entry)) as raised:
        changes(made, begin, end)
    (name, value), *_ = re.findall(r"(skipEntries)=(\S+?)\.?$", str(raised.value))
    passing = keys.feed(**{name: value})
    assert numbers(passing, begin, end) == [*range(49)]
    ids = keys.client.xrange(keys)
    other = keys.feed(skipEntries=f"other:{ids[0][0].decode()}, {value}")
    assert numbers(other, begin, end) == [*range(49)]


GREATEST = 2**64 - 1


@pytest.mark.parametrize("many", [19, 20, 21, 40])
def test_a_stream_may_go_up_to_the_greatest_id(keys: Keys, many: int) -> None:
    """Behind which the server refuses to be asked."""
    for n in range(many):
        keys.client.xadd(keys, {"n": n}, f"{GREATEST}-{GREATEST - many + 1 + n}")
    made = keys.feed()
    for most in (None, 7, many):
        at, found = followed(made, made.begin(), most)
        assert found == [*range(many)]
        assert followed(made, at, most) == (at, [])


def test_a_name_that_stands_for_no_stream_is_told(
    keys: Keys, caplog: pytest.LogCaptureFixture
) -> None:
    keys.client.xadd(f"{keys}:a", {"n": 1})
    made = feed(keys.url, f"{keys}:*")
    for ask in (made.begin, made.latest, lambda: RedisConnector().infer_feed(made.options)):
        with pytest.raises(OptionError, match="not a pattern"):
            ask()
    keys.client.xadd(f"{keys}:*", {"n": 1})
    assert followed(made, made.begin(), None)[1] == [1]
    feed(keys.url, f"{keys}:later").begin()
    assert f"Stream '{keys}:later' does not exist yet" in caplog.text


def test_several_streams_are_followed_and_one_that_comes_later(keys: Keys) -> None:
    schema = pa.schema([("_key", pa.string()), ("n", pa.int64())])
    one, other, later = f"{keys}:a", f"{keys}:b", f"{keys}:c"
    made = feed(keys.url, one, other, later, schema=schema)
    begin = made.begin()
    add(keys.client, one, range(3))
    add(keys.client, other, range(10, 12))
    end = made.latest()
    found = [(row["_key"], row["n"]) for row in changes(made, begin, end)]
    assert found == [(one, 0), (one, 1), (one, 2), (other, 10), (other, 11)]
    add(keys.client, later, range(5))
    assert numbers(made, end, made.latest()) == [0, 1, 2, 3, 4]
    fewer = feed(keys.url, other, later)
    assert fewer.behind(end, fewer.latest()) == 5
    assert numbers(fewer, end, fewer.latest()) == [0, 1, 2, 3, 4]


def test_a_stream_that_is_named_later_has_its_place_before_it_is_read(keys: Keys) -> None:
    """Or what is trimmed before its first epoch is read, or read again, would not be missed."""
    one, later = f"{keys}:a", f"{keys}:b"
    fewer, both = feed(keys.url, one), feed(keys.url, one, later)
    begin = fewer.begin()
    add(keys.client, one, range(5))
    add(keys.client, later, range(20, 30))
    keys.client.xtrim(later, maxlen=8, approximate=False)
    at = both.advance(begin, both.latest(), None)
    assert changes(both, begin, at) == []
    assert followed(both, at, None)[1] == [*range(5), *range(22, 30)]
    keys.client.xtrim(later, maxlen=5, approximate=False)
    with pytest.raises(UnreadLost, match=f"3 entries of stream '{later}'"):
        followed(both, at, None)


def test_a_checkpoint_of_another_store_is_refused(keys: Keys) -> None:
    query = Follower(keys.feed())
    at = {keys: {"read": [["VWc8wwMg", 12]], "over": False}}
    with pytest.raises(UnsupportedQuery, match=r"of indices of Elasticsearch, and .* of Redis"):
        query.end({"version": 1, "of": "indices of Elasticsearch", "at": at}, None)
    assert query.end(query.end(BEGINNING, None), None)["of"] == RedisFeed.of


def test_limits_are_shared_by_what_streams_have_and_all_comes(keys: Keys) -> None:
    one, other = f"{keys}:a", f"{keys}:b"
    made = feed(keys.url, one, other)
    at, found = made.begin(), list[list[int]]()
    add(keys.client, one, range(300))
    add(keys.client, other, range(1000, 1100))
    goal = made.latest()
    add(keys.client, one, range(300, 310))
    while at != goal:
        to = made.advance(at, goal, 100)
        found.append(numbers(made, at, to))
        at = to
    assert [len(epoch) for epoch in found] == [100, 100, 100, 100]
    assert sorted(n for epoch in found for n in epoch) == [*range(300), *range(1000, 1100)]
    assert sum(n >= 1000 for n in found[0]) == 25


def test_a_limit_goes_on_behind_entries_that_are_gone(keys: Keys) -> None:
    made, lenient = keys.feed(), keys.feed(failOnDataLoss="false")
    begin = made.begin()
    ids = add(keys.client, keys, range(100))
    keys.client.xdel(keys, *ids[10:20])
    keys.client.xtrim(keys, maxlen=60, approximate=False)
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


def test_a_long_walk_gives_way_to_others(private_redis: Private) -> None:
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
    private_redis: Private, unique: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SPARKONCE_TEST_REDIS", "embedded")  # 6.2
    server = private_redis()
    with connect(server.url) as client:
        client.xadd(unique, {"n": 1})
    with pytest.raises(StoreRefused, match="how many entries a stream ever had"):
        feed(server.url, unique).latest()


def test_a_key_of_another_type_is_refused(keys: Keys) -> None:
    keys.client.set(keys, "a")
    made = keys.feed()
    parts = EntryRange(keys, "0-0", "1-0", 1)
    for ask in (
        made.latest,
        lambda: [*made.read(parts)],
        lambda: RedisConnector().infer_feed(made.options),
    ):
        with pytest.raises(StoreRefused, match=f"Key '{keys}' is not a stream.*option streams"):
            ask()


# -- through Spark


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
