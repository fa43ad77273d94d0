"""What a row becomes by each model, by one script for a small epoch and by a script a chunk."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import pyarrow as pa
import pytest
import redis
from integration.support.epochs import Make

from sparkonce.errors import BadRow, RowRefused

pytestmark = pytest.mark.variants

SCHEMA = pa.schema([("id", pa.int64()), ("v", pa.string())])
NUMBERS = pa.schema([("id", pa.int64()), ("n", pa.int64())])
SCORED = pa.schema([("id", pa.int64()), ("v", pa.string()), ("s", pa.float64())])
OPS = pa.schema([*SCORED, ("op", pa.string())])


@pytest.fixture
def strings(into: Make) -> Make:
    return lambda **options: into(SCHEMA, model="string", **options)


def rows(*values: str | None) -> list[dict[str, Any]]:
    return [{"id": at, "v": value} for at, value in enumerate(values)]


class TestStrings:
    def test_the_last_row_of_a_key_is_its_string(
        self, strings: Make, client: redis.Redis, unique: str
    ) -> None:
        strings().run(0, rows("a", "b"), [{"id": 1, "v": "né\0w"}])
        assert client.mget(f"{unique}:0", f"{unique}:1") == ["a", "né\0w"]

    def test_several_columns_are_json(self, into: Make, client: redis.Redis, unique: str) -> None:
        into(SCORED, model="string").run(0, [{"id": 1, "v": 'a"', "s": 0.1}, {"id": 2}])
        assert client.get(f"{unique}:1") == '{"id":1,"v":"a\\"","s":0.1}'
        assert client.get(f"{unique}:2") == '{"id":2,"v":null,"s":null}'

    def test_a_null_deletes_the_string_or_keeps_it_as_told(
        self, strings: Make, client: redis.Redis, unique: str
    ) -> None:
        strings().run(0, rows("a", "b"))
        strings(nulls="keep").run(0, rows(None, "c"))
        assert client.mget(f"{unique}:0", f"{unique}:1") == ["a", "c"]
        strings().run(0, rows(None, "d"))
        assert client.mget(f"{unique}:0", f"{unique}:1") == [None, "d"]

    def test_a_string_expires_so_long_after_its_last_write(
        self, strings: Make, client: redis.Redis, unique: str
    ) -> None:
        strings(ttl="1h").run(0, rows("a"))
        assert 3_590 < client.ttl(f"{unique}:0") <= 3_600
        strings().run(0, rows("a"))
        assert client.ttl(f"{unique}:0") == -1

    def test_strings_are_deleted(self, strings: Make, client: redis.Redis, unique: str) -> None:
        strings().run(0, rows("a", "", "c"))
        strings(writeMode="delete").run(0, rows("", "")[:2])
        assert client.mget(*(f"{unique}:{at}" for at in range(3))) == [None, None, "c"]


def test_elements_are_appended_to_a_list(into: Make, client: redis.Redis, unique: str) -> None:
    lists = into(SCHEMA, model="list", maxLength="3")
    lists.run(0, rows("a", "b"), [{"id": 0, "v": one} for one in "cde"])
    lists.run(1, [{"id": 0, "v": "f"}])
    assert client.lrange(f"{unique}:0", 0, -1) == ["d", "e", "f"]
    assert client.lrange(f"{unique}:1", 0, -1) == ["b"]


def test_members_come_and_go(into: Make, client: redis.Redis, unique: str) -> None:
    key, sets = f"{unique}:0", into(SCHEMA, model="set")
    sets.run(0, [{"id": 0, "v": one} for one in "abca"])
    assert set(client.smembers(key)) == set("abc")  # a list, by older clients
    into(SCHEMA, model="set", writeMode="delete").run(0, [{"id": 0, "v": one} for one in "bx"])
    assert set(client.smembers(key)) == set("ac")
    changes = [{"id": 0, "v": v, "op": op} for v, op in [("a", "D"), ("d", "I"), ("c", "U")]]
    into(OPS.remove(2), model="set", opColumn="op").run(0, changes)
    assert set(client.smembers(key)) == set("cd")


def test_scores_are_set_and_added(into: Make, client: redis.Redis, unique: str) -> None:
    key, scored = f"{unique}:0", {"model": "zset", "scoreColumn": "s"}
    first = [{"id": 0, "v": v, "s": s} for v, s in [("a", 1.5), ("b", float("inf")), ("a", 2.5)]]
    into(SCORED, **scored).run(0, first)
    added = [{"id": 0, "v": v, "s": s} for v, s in [("a", 0.25), ("c", 1.0), ("c", None)]]
    into(SCORED, **scored, writeMode="increment").run(0, added)
    assert dict(client.zrange(key, 0, -1, withscores=True)) == {
        "a": 2.75,
        "b": float("inf"),
        "c": 1.0,
    }
    gone = [{"id": 0, "v": "b", "op": "delete"}, {"id": 0, "v": "c", "s": 9.0, "op": "insert"}]
    into(OPS, **scored, opColumn="op").run(0, gone)
    into(SCHEMA, model="zset", writeMode="delete").run(0, [{"id": 0, "v": "a"}])
    assert client.zrange(key, 0, -1, withscores=True) == [("c", 9.0)]


def test_rows_are_entries_of_a_stream_in_their_order(
    into: Make, client: redis.Redis, unique: str
) -> None:
    streams = into(SCHEMA, model="stream")
    streams.run(0, [{"id": 0, "v": str(at)} for at in range(500)], [{"id": 0}])
    streams.run(1, [{"id": 0, "v": "z"}])
    entries = [fields for _, fields in client.xrange(f"{unique}:0")]
    assert entries == [{"id": "0", "v": str(at)} for at in range(500)] + [
        *({"id": "0"}, {"id": "0", "v": "z"})
    ]


def test_a_stream_keeps_about_so_many_entries(into: Make, client: redis.Redis, unique: str) -> None:
    streams = into(SCHEMA, model="stream", maxLength="50")
    streams.run(0, [{"id": 0, "v": str(at)} for at in range(1000)])
    assert 50 <= client.xlen(f"{unique}:0") < 200


@pytest.mark.parametrize(("kind", "text"), [(pa.int64(), "7"), (pa.float64(), "7.5")])
def test_numbers_are_added_to_a_counter(
    into: Make, client: redis.Redis, unique: str, kind: pa.DataType, text: str
) -> None:
    counters = into(pa.schema([("id", pa.int64()), ("n", kind)]), model="counter")
    added = [3, 4, None] if kind == pa.int64() else [3.25, 4.25, None]
    counters.run(0, [{"id": 0, "n": one} for one in added], [{"id": 1, "n": None}])
    assert client.mget(f"{unique}:0", f"{unique}:1") == [text, None]


# -- what a row can fail at


class Failing(NamedTuple):
    """Options and rows, and what keeps the middle row from being stored."""

    schema: pa.Schema
    options: dict[str, str]
    row: dict[str, Any]
    spoil: Callable[[redis.Redis, str], Any]
    why: str = "another Redis type"


def wrong_type(client: redis.Redis, key: str) -> None:
    client.xadd(key, {"mine": "x"})


def no_hash(client: redis.Redis, key: str) -> None:
    client.set(key, "mine")


def full(client: redis.Redis, key: str) -> None:
    client.hset(key, mapping={"n": 2**63 - 1, "other": "mine"})


FLOATS = pa.schema([("id", pa.int64()), ("n", pa.float64())])
TWO = pa.schema([("id", pa.int64()), ("m", pa.int64()), ("n", pa.int64()), ("f", pa.float64())])
MUCH = {"id": 0, "m": 1, "n": 1, "f": 0.5}
ADDS = {"writeMode": "increment"}
VALUE = {"v": "a"}
FAILING = {
    "hash upsert": Failing(SCHEMA, {}, VALUE, no_hash),
    "hash delete": Failing(SCHEMA, {"writeMode": "delete"}, VALUE, no_hash),
    "hash increment, type": Failing(TWO, ADDS, MUCH, no_hash),
    "hash increment, range": Failing(TWO, ADDS, MUCH, full, "64-bit range"),
    "hash increment, text": Failing(
        TWO, ADDS, MUCH, lambda client, key: client.hset(key, "f", "much"), "than a number"
    ),
    "hash order": Failing(
        SCORED.set(2, pa.field("s", pa.int64())),
        {"sequenceColumn": "s"},
        {"v": "a", "s": 5},
        lambda client, key: client.hset(key, mapping={"s": "much", "v": "mine"}),
        "which has no order",
    ),
    "string upsert": Failing(SCHEMA, {"model": "string"}, VALUE, wrong_type),
    "string delete": Failing(SCHEMA, {"model": "string", "writeMode": "delete"}, VALUE, wrong_type),
    "counter, type": Failing(NUMBERS, {"model": "counter"}, {"n": 1}, wrong_type),
    "counter, range": Failing(
        NUMBERS,
        {"model": "counter"},
        {"n": 1},
        lambda client, key: client.set(key, 2**63 - 1),
        "64-bit range",
    ),
    "counter, float": Failing(
        FLOATS,
        {"model": "counter"},
        {"n": 1e308},
        lambda client, key: client.set(key, "1.7e308", ex=1000),
        "that of a double",
    ),
    "list": Failing(SCHEMA, {"model": "list", "maxLength": "9"}, VALUE, wrong_type),
    "set upsert": Failing(SCHEMA, {"model": "set"}, VALUE, wrong_type),
    "set delete": Failing(SCHEMA, {"model": "set", "writeMode": "delete"}, VALUE, wrong_type),
    "zset upsert": Failing(
        SCORED, {"model": "zset", "scoreColumn": "s"}, {"v": "a", "s": 1.0}, wrong_type
    ),
    "zset delete": Failing(SCHEMA, {"model": "zset", "writeMode": "delete"}, VALUE, wrong_type),
    "zset increment, type": Failing(
        SCORED, {"model": "zset", "scoreColumn": "s", **ADDS}, {"v": "a", "s": 1.0}, wrong_type
    ),
    "zset increment, range": Failing(
        SCORED.set(2, pa.field("s", pa.int64())),
        {"model": "zset", "scoreColumn": "s", **ADDS},
        {"v": "a", "s": 1},
        lambda client, key: client.zadd(key, {"a": 2**53, "b": 7}),
        "that of a double",
    ),
    "zset increment, double": Failing(
        SCORED,
        {"model": "zset", "scoreColumn": "s", **ADDS},
        {"v": "a", "s": 1e308},
        lambda client, key: client.zadd(key, {"a": 1.7e308}),
        "that of a double",
    ),
    "stream": Failing(SCHEMA, {"model": "stream"}, VALUE, no_hash),
}


@pytest.mark.parametrize("failing", FAILING.values(), ids=list(FAILING))
def test_a_row_that_redis_refuses_changes_no_byte_and_the_others_count_once(
    into: Make, client: redis.Redis, redis_url: str, unique: str, failing: Failing
) -> None:
    """It lies in the middle of a chunk; what is there before is what a restart goes on from."""
    keys = [f"{unique}:{at}" for at in range(5)]
    query = into(failing.schema, **failing.options)
    failing.spoil(client, keys[2])
    with redis.Redis.from_url(redis_url) as raw:
        before = raw.dump(keys[2]), raw.pttl(keys[2]) > 0
        with pytest.raises(RowRefused, match=failing.why):
            query.run(0, [{**failing.row, "id": at} for at in range(5)])
        assert (raw.dump(keys[2]), raw.pttl(keys[2]) > 0) == before
    client.delete(keys[2])
    query.restart()
    query.run(0)
    assert len({shown(client, key) for key in keys}) == 1, "one row each, the same in all"


def shown(client: redis.Redis, key: str) -> str:
    """What a key holds, but for its own number and for ids that the server gives."""
    kind = client.type(key)
    read: dict[str, Callable[[], Any]] = {
        "none": lambda: None,
        "hash": lambda: {n: v for n, v in client.hgetall(key).items() if n != "id"},
        "string": lambda: client.get(key),
        "list": lambda: client.lrange(key, 0, -1),
        "set": lambda: sorted(client.smembers(key)),
        "zset": lambda: client.zrange(key, 0, -1, withscores=True),
        "stream": lambda: [fields.get("v") for _, fields in client.xrange(key)],
    }
    return f"{kind} {read[kind]()}"


BAD_SCORES = [(pa.int64(), 2**53 + 1), (pa.float64(), float("nan")), (pa.float64(), None)]


@pytest.mark.parametrize(("kind", "score"), BAD_SCORES)
def test_a_score_that_the_server_would_change_is_a_bad_row(
    into: Make, kind: pa.DataType, score: Any
) -> None:
    query = into(SCORED.set(2, pa.field("s", kind)), model="zset", scoreColumn="s")
    with pytest.raises(BadRow, match="Column 's'"):
        query.stage(0, [{"id": 0, "v": "a", "s": score}])


@pytest.mark.parametrize("model", ["list", "set"])
def test_a_null_is_no_element(into: Make, model: str) -> None:
    with pytest.raises(BadRow, match="a null is no element"):
        into(SCHEMA, model=model).stage(0, rows("a", None))
