"""What a row becomes by each model, by one script for a small epoch and by a script a chunk."""

from __future__ import annotations

import json
from collections.abc import Callable
from datetime import datetime, timedelta, timezone
from typing import Any, NamedTuple

import pyarrow as pa
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from integration.support.epochs import COUNTER, Make
from integration.support.redis import Keys
from redis import Redis

from sparkonce.errors import BadRow, OptionError, RowRefused

pytestmark = pytest.mark.variants
SCHEMA = pa.schema([("id", pa.int64()), ("v", pa.string())])
SCORED = pa.schema([("id", pa.int64()), ("v", pa.string()), ("s", pa.float64())])
OPS = pa.schema([*SCORED, ("op", pa.string())])


@pytest.fixture
def strings(into: Make) -> Make:
    return lambda **options: into(SCHEMA, model="string", **options)


def rows(*values: str | None) -> list[dict[str, Any]]:
    return [{"id": at, "v": value} for at, value in enumerate(values)]


class TestStrings:
    def test_the_last_row_of_a_key_is_its_string(self, strings: Make, keys: Keys) -> None:
        strings().run(0, rows("a", "b"), [{"id": 1, "v": "né\0w"}])
        assert keys.client.mget(f"{keys}:0", f"{keys}:1") == ["a", "né\0w"]

    def test_several_columns_are_json(self, into: Make, keys: Keys) -> None:
        into(SCORED, model="string").run(0, [{"id": 1, "v": 'a"', "s": 0.1}, {"id": 2}])
        assert keys.client.get(f"{keys}:1") == '{"id":1,"v":"a\\"","s":0.1}'
        assert keys.client.get(f"{keys}:2") == '{"id":2,"v":null,"s":null}'

    def test_a_null_deletes_the_string_or_keeps_it_as_told(self, strings: Make, keys: Keys) -> None:
        strings().run(0, rows("a", "b"))
        strings(nulls="keep").run(0, rows(None, "c"))
        assert keys.client.mget(f"{keys}:0", f"{keys}:1") == ["a", "c"]
        strings().run(0, rows(None, "d"))
        assert keys.client.mget(f"{keys}:0", f"{keys}:1") == [None, "d"]

    def test_strings_are_deleted(self, strings: Make, keys: Keys) -> None:
        strings().run(0, rows("a", "", "c"))
        strings(writeMode="delete").run(0, rows("", "")[:2])
        assert keys.client.mget(*(f"{keys}:{at}" for at in range(3))) == [None, None, "c"]


def test_elements_are_appended_to_a_list(into: Make, keys: Keys) -> None:
    lists = into(SCHEMA, model="list", maxLength="3")
    lists.run(0, rows("a", "b"), [{"id": 0, "v": one} for one in "cde"])
    lists.run(1, [{"id": 0, "v": "f"}])
    assert keys.client.lrange(f"{keys}:0", 0, -1) == ["d", "e", "f"]
    assert keys.client.lrange(f"{keys}:1", 0, -1) == ["b"]


def test_members_come_and_go(into: Make, keys: Keys) -> None:
    key, sets = f"{keys}:0", into(SCHEMA, model="set")
    sets.run(0, [{"id": 0, "v": one} for one in "abca"])
    assert set(keys.client.smembers(key)) == set("abc")  # a list, by older clients
    into(SCHEMA, model="set", writeMode="delete").run(0, [{"id": 0, "v": one} for one in "bx"])
    assert set(keys.client.smembers(key)) == set("ac")
    changes = [{"id": 0, "v": v, "op": op} for v, op in [("a", "D"), ("d", "I"), ("c", "U")]]
    into(OPS.remove(2), model="set", opColumn="op").run(0, changes)
    assert set(keys.client.smembers(key)) == set("cd")


def test_scores_are_set_and_added(into: Make, keys: Keys) -> None:
    key, scored = f"{keys}:0", {"model": "zset", "scoreColumn": "s"}
    first = [{"id": 0, "v": v, "s": s} for v, s in [("a", 1.5), ("b", float("inf")), ("a", 2.5)]]
    into(SCORED, **scored).run(0, first)
    added = [{"id": 0, "v": v, "s": s} for v, s in [("a", 0.25), ("c", 1.0), ("c", None)]]
    into(SCORED, **scored, writeMode="increment").run(0, added)
    assert dict(keys.client.zrange(key, 0, -1, withscores=True)) == {
        "a": 2.75,
        "b": float("inf"),
        "c": 1.0,
    }
    gone = [{"id": 0, "v": "b", "op": "delete"}, {"id": 0, "v": "c", "s": 9.0, "op": "insert"}]
    into(OPS, **scored, opColumn="op").run(0, gone)
    into(SCHEMA, model="zset", writeMode="delete").run(0, [{"id": 0, "v": "a"}])
    assert keys.client.zrange(key, 0, -1, withscores=True) == [("c", 9.0)]


def test_rows_are_entries_of_a_stream_in_their_order(into: Make, keys: Keys) -> None:
    streams = into(SCHEMA, model="stream")
    streams.run(0, [{"id": 0, "v": str(at)} for at in range(500)], [{"id": 0}])
    streams.run(1, [{"id": 0, "v": "z"}])
    entries = [fields for _, fields in keys.client.xrange(f"{keys}:0")]
    assert entries == [{"id": "0", "v": str(at)} for at in range(500)] + [
        *({"id": "0"}, {"id": "0", "v": "z"})
    ]


@pytest.mark.parametrize(("kind", "text"), [(pa.int64(), "7"), (pa.float64(), "7.5")])
def test_numbers_are_added_to_a_counter(
    into: Make, keys: Keys, kind: pa.DataType, text: str
) -> None:
    counters = into(pa.schema([("id", pa.int64()), ("n", kind)]), model="counter")
    added = [3, 4, None] if kind == pa.int64() else [3.25, 4.25, None]
    counters.run(0, [{"id": 0, "n": one} for one in added], [{"id": 1, "n": None}])
    assert keys.client.mget(f"{keys}:0", f"{keys}:1") == [text, None]


# -- what a row can fail at


class Failing(NamedTuple):
    """Options and rows, and what keeps the middle row from being stored."""

    schema: pa.Schema
    options: dict[str, str]
    row: dict[str, Any]
    spoil: Callable[[Redis, str], Any]
    why: str = "another Redis type"


def wrong_type(client: Redis, key: str) -> None:
    client.xadd(key, {"mine": "x"})


def no_hash(client: Redis, key: str) -> None:
    client.set(key, "mine")


def full(client: Redis, key: str) -> None:
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
        TWO, ADDS, MUCH, lambda client, key: client.hset(key, "f", "much"), "not hold a number"
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
    "counter, type": Failing(COUNTER, {"model": "counter"}, {"n": 1}, wrong_type),
    "counter, range": Failing(
        COUNTER,
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
        "range of a double",
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
        "range of a double",
    ),
    "zset increment, double": Failing(
        SCORED,
        {"model": "zset", "scoreColumn": "s", **ADDS},
        {"v": "a", "s": 1e308},
        lambda client, key: client.zadd(key, {"a": 1.7e308}),
        "range of a double",
    ),
    "stream": Failing(SCHEMA, {"model": "stream"}, VALUE, no_hash),
    "stream, an id that is too low": Failing(
        SCHEMA.append(pa.field("at", pa.string())),
        {"model": "stream", "idColumn": "at"},
        {"v": "a", "at": "7-1"},
        lambda client, key: client.xadd(key, {"v": "x"}, "7-1"),
        "idColumn.*not higher than the stream's last id",
    ),
    "stream, a number that is too low": Failing(
        SCHEMA.append(pa.field("at", pa.int64())),
        {"model": "stream", "idColumn": "at"},
        {"v": "a", "at": 7},
        lambda client, key: client.xadd(key, {"v": "x"}, "8-0"),
        "idColumn.*not higher than the stream's last id",
    ),
}


@pytest.mark.parametrize("failing", FAILING.values(), ids=list(FAILING))
def test_a_row_that_redis_refuses_changes_no_byte_and_the_others_count_once(
    into: Make, keys: Keys, failing: Failing
) -> None:
    """It lies in the middle of a chunk; what is there before is what a restart goes on from."""
    names = [f"{keys}:{at}" for at in range(5)]
    query = into(failing.schema, **failing.options)
    failing.spoil(keys.client, names[2])
    with Redis.from_url(keys.url) as raw:
        before = raw.dump(names[2]), raw.pttl(names[2]) > 0
        with pytest.raises(RowRefused, match=failing.why):
            query.run(0, [{**failing.row, "id": at} for at in range(5)])
        assert (raw.dump(names[2]), raw.pttl(names[2]) > 0) == before
    keys.client.delete(names[2])
    query.restart()
    query.run(0)
    assert len({shown(keys.client, key) for key in names}) == 1, "one row each, the same in all"


def shown(client: Redis, key: str) -> str:
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
    with pytest.raises(BadRow, match="a null is not an element"):
        into(SCHEMA, model=model).stage(0, rows("a", None))


CHANGE = st.tuples(st.integers(0, 2), st.sampled_from("IUD"), st.integers(-3, 12))
EPOCHS = st.lists(st.lists(CHANGE, max_size=12), min_size=1, max_size=3)
ORDERED = pa.schema([("id", pa.int64()), ("seq", pa.int64()), ("op", pa.string())])


@settings(max_examples=40, deadline=None, suppress_health_check=list(HealthCheck))
@given(epochs=EPOCHS, shift=st.sampled_from([0, 2**62]))
def test_the_highest_row_of_a_key_stays_as_if_they_were_made_one_by_one(
    into: Make, keys: Keys, epochs: list[Any], shift: int
) -> None:
    keys.client.delete(*(f"{keys}:{at}" for at in range(3)))
    query, held = into(ORDERED, sequenceColumn="seq", opColumn="op"), dict[int, int]()
    for number, epoch in enumerate(epochs):
        query.run(number, [{"id": i, "seq": n + shift, "op": op} for i, op, n in epoch])
        for id_, op, seq in epoch:
            if seq >= held.get(id_, seq):
                held.pop(id_, None) if op == "D" else held.update({id_: seq})
        found = {at: keys.client.hget(f"{keys}:{at}", "seq") for at in range(3)}
        assert {at: int(seq) - shift for at, seq in found.items() if seq} == held


def test_dates_and_instants_have_an_order(into: Make, keys: Keys) -> None:
    for name, kind in (("day", pa.date32()), ("at", pa.timestamp("us", "UTC"))):
        schema = pa.schema([("id", pa.int64()), (name, kind)])
        days = [datetime(2020, 1, 1, tzinfo=timezone.utc) + timedelta(n) for n in (3, 40, 12)]
        given = [one.date() if name == "day" else one for one in days]
        into(schema, sequenceColumn=name).run(0, [{"id": 0, name: one} for one in given])
        assert keys.client.hget(f"{keys}:0", name).startswith("2020-02-10")


NOON = datetime(2024, 1, 1, 12)
DAY, AT, LOCAL = pa.date32(), pa.timestamp("us", "UTC"), pa.timestamp("us")
NEWER, OLDER, NONE = "the row is newer", "the row is older", "no order"


HELD: list[tuple[pa.DataType, object, str, str]] = [
    (pa.int64(), 12, "007", NEWER),
    (pa.int64(), -7, "-0012", NEWER),
    (pa.int64(), 0, "-0", NEWER),
    (pa.int64(), 0, "0" * 99, NEWER),
    (pa.int64(), 6, "0007", OLDER),
    (pa.int64(), 12, "1" * 30, OLDER),
    *((pa.int64(), 12, text, NONE) for text in ("+7", "7.0", "7 ", "", "-", "0x7")),
    (DAY, NOON.date(), "2024-01-01", NEWER),
    (DAY, NOON.date(), "2024-01-02", OLDER),
    *(
        (DAY, NOON.date(), text, NONE)
        for text in ("2023-12-31T00:00:00Z", "2023-1-1", "2023-13-01")
    ),
    (AT, NOON, "2024-01-01T12:00:00Z", NEWER),
    (AT, NOON, "2024-01-01 12:00:00.000Z", NEWER),
    (AT, NOON, "2024-01-01T11:59:59.9999999Z", NEWER),
    (AT, NOON, "2024-01-01T12:00:00.0000001Z", OLDER),
    (AT, NOON, "2024-01-01T12:00:00.1Z", OLDER),
    *(
        (AT, NOON, text, NONE)
        for text in (
            "2024-01-01 23:00:00.0",
            "2024-01-01T20:00:00+09:00",
            "2024-01-01T11:00:00.Z",
            "2024-01-01T1:00:00Z",
            "2024-01-01T11:61:00Z",
            "2024-01-01T11:00:00.000000z",
            "2024-01-01",
            "x2024-01-01T11:00:00.000000Z",
        )
    ),
    (LOCAL, NOON, "2024-01-01 23:00:00.0", OLDER),
    (LOCAL, NOON, "2024-01-01 12:00:00.0", NEWER),
    (LOCAL, NOON, "2024-01-01T11:59:59.999999999", NEWER),
    *((LOCAL, NOON, text, NONE) for text in ("2024-01-01T11:00:00.000000Z", "2024-01-01")),
]


@pytest.mark.parametrize("kind", [pa.int64(), DAY, AT, LOCAL], ids=str)
def test_a_row_is_compared_with_what_a_stored_text_is_worth(keys: Keys, kind: pa.DataType) -> None:
    """Others write the same moment in many ways; what has no certain place is a bad row."""
    cases = [one for one in HELD if one[0] == kind]
    for at, (_, _, text, _) in enumerate(cases):
        keys.client.hset(f"{keys}:{at}", "s", text)
    schema = pa.schema([("id", pa.int64()), ("s", kind), ("v", pa.string())])
    given = {"onBadRow": "deadLetter", "deadLetter": keys, "maxBadRows": "100%"}
    query = keys.query(schema, sequenceColumn="s", **given)
    query.run(0, [{"id": at, "s": value, "v": "a"} for at, (_, value, *_) in enumerate(cases)])
    (box,) = query.sink.store.letterboxes()
    bad = {int(json.loads(one.row)["id"]) for one in box.read(None, 99) if NONE in one.reason}
    new = {at for at in range(len(cases)) if keys.client.hget(f"{keys}:{at}", "v")}
    found = [NONE if at in bad else NEWER if at in new else OLDER for at in range(len(cases))]
    assert dict(zip([one[2] for one in cases], found, strict=True)) == {
        text: said for _, _, text, said in cases
    }


def test_a_row_without_a_place_in_the_order_is_bad(into: Make) -> None:
    with pytest.raises(BadRow, match="no place in the order"):
        into(ORDERED, sequenceColumn="seq").stage(0, [{"id": 0, "op": "I"}])


HALF_AN_HOUR = timedelta(minutes=30)


EXPIRY: dict[str, tuple[pa.DataType, Callable[[], object]]] = {
    "seconds": (pa.int32(), lambda: 1800),
    "interval": (pa.duration("us"), lambda: HALF_AN_HOUR),
    "instant": (pa.timestamp("us", "UTC"), lambda: datetime.now(timezone.utc) + HALF_AN_HOUR),
}


@pytest.mark.parametrize("model", ["hash", "string", "list", "set", "stream"])
@pytest.mark.parametrize("said", EXPIRY)
def test_each_row_says_when_its_key_expires(into: Make, keys: Keys, model: str, said: str) -> None:
    kind, value = EXPIRY[said]
    until = value()
    schema = pa.schema([*SCHEMA, ("until", kind)])
    query = into(schema, model=model, ttlColumn="until", ttl="2h")
    query.run(0, [{"id": 0, "v": "a", "until": until}, {"id": 1, "v": "b"}])
    assert 1500 < keys.client.ttl(f"{keys}:0") <= 1800
    assert 7000 < keys.client.ttl(f"{keys}:1") <= 7200
    if model == "hash":
        assert set(keys.client.hgetall(f"{keys}:0")) == {"id", "v"}


@pytest.mark.parametrize("seconds", [0, -5, 2**62])
def test_a_time_that_is_none_is_a_bad_row(into: Make, seconds: int) -> None:
    schema = pa.schema([*SCHEMA, ("until", pa.int64())])
    with pytest.raises(BadRow, match="a millisecond or more, and 31,000 years"):
        into(schema, ttlColumn="until").stage(0, [{"id": 0, "v": "a", "until": seconds}])


REPLACED = pa.schema([*SCORED, ("op", pa.string()), ("at", pa.int64())])


class TestReplacedHashes:
    def test_a_hash_has_the_fields_of_its_last_row_alone(self, into: Make, keys: Keys) -> None:
        keys.client.hset(f"{keys}:1", mapping={"other": "x", "v": "old", "s": "1"})
        query = into(SCORED, writeMode="replace", ttl="1h")
        query.run(0, [{"id": 1, "v": "a", "s": None}, {"id": 2, "v": "b", "s": 2.5}])
        assert keys.client.hgetall(f"{keys}:1") == {"id": "1", "v": "a"}
        assert keys.client.hgetall(f"{keys}:2") == {"id": "2", "v": "b", "s": "2.5"}
        assert keys.client.ttl(f"{keys}:1") > 3000
        query.run(1, [{"id": 2, "v": None, "s": None}])
        assert keys.client.hgetall(f"{keys}:2") == {"id": "2"}

    def test_rows_delete_and_lower_ones_are_skipped(self, into: Make, keys: Keys) -> None:
        query = into(REPLACED, writeMode="replace", opColumn="op", sequenceColumn="at")
        keys.client.hset(f"{keys}:1", mapping={"other": "x", "at": "5"})
        keys.client.hset(f"{keys}:2", mapping={"other": "x", "at": "5"})
        row = {"v": "a", "s": None}
        query.run(
            0,
            [
                {"id": 1, "op": "u", "at": 4, **row},
                {"id": 2, "op": "u", "at": 6, **row},
                {"id": 3, "op": "c", "at": 1, **row},
                {"id": 3, "op": "d", "at": 2, **row},
            ],
        )
        assert keys.client.hgetall(f"{keys}:1") == {"other": "x", "at": "5"}
        assert keys.client.hgetall(f"{keys}:2") == {"id": "2", "v": "a", "at": "6"}
        assert not keys.client.exists(f"{keys}:3")

    def test_a_key_of_another_type_is_a_bad_row_and_stays(self, into: Make, keys: Keys) -> None:
        keys.client.set(f"{keys}:1", "a string")
        with pytest.raises(RowRefused, match="WRONGTYPE"):
            into(SCORED, writeMode="replace").run(0, [{"id": 1, "v": "a", "s": 1.0}])
        assert keys.client.get(f"{keys}:1") == "a string"

    @pytest.mark.parametrize(
        ("options", "said"),
        [
            ({"nulls": "keep"}, "writeMode=replace and nulls=keep contradict"),
            ({"model": "string"}, "model=string can't do writeMode=replace"),
            ({"model": "set"}, "model=set can't do writeMode=replace"),
        ],
    )
    def test_other_options_are_refused(
        self, into: Make, options: dict[str, str], said: str
    ) -> None:
        with pytest.raises(OptionError, match=said):
            into(SCHEMA, **{"writeMode": "replace", **options})
