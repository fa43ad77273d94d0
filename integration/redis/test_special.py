"""Columns that say something of a row: its operation, its place in an order, when it expires."""

from __future__ import annotations

import json
from collections.abc import Callable
from datetime import datetime, timedelta, timezone
from typing import Any

import pyarrow as pa
import pytest
import redis
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from integration.support.epochs import DirectQuery, Make

from sparkonce.errors import BadRow

pytestmark = pytest.mark.variants

SCHEMA = pa.schema([("id", pa.int64()), ("v", pa.string())])
CHANGE = st.tuples(st.integers(0, 2), st.sampled_from("IUD"), st.integers(-3, 12))
EPOCHS = st.lists(st.lists(CHANGE, max_size=12), min_size=1, max_size=3)
ORDERED = pa.schema([("id", pa.int64()), ("seq", pa.int64()), ("op", pa.string())])


@settings(max_examples=40, deadline=None, suppress_health_check=list(HealthCheck))
@given(epochs=EPOCHS, shift=st.sampled_from([0, 2**62]))
def test_the_highest_row_of_a_key_stays_as_if_they_were_made_one_by_one(
    into: Make, client: redis.Redis, unique: str, epochs: list[Any], shift: int
) -> None:
    client.delete(*(f"{unique}:{at}" for at in range(3)))
    query, held = into(ORDERED, sequenceColumn="seq", opColumn="op"), dict[int, int]()
    for number, epoch in enumerate(epochs):
        query.run(number, [{"id": i, "seq": n + shift, "op": op} for i, op, n in epoch])
        for id_, op, seq in epoch:
            if seq >= held.get(id_, seq):
                held.pop(id_, None) if op == "D" else held.update({id_: seq})
        found = {at: client.hget(f"{unique}:{at}", "seq") for at in range(3)}
        assert {at: int(seq) - shift for at, seq in found.items() if seq} == held


def test_dates_and_instants_have_an_order(into: Make, client: redis.Redis, unique: str) -> None:
    for name, kind in (("day", pa.date32()), ("at", pa.timestamp("us", "UTC"))):
        schema = pa.schema([("id", pa.int64()), (name, kind)])
        days = [datetime(2020, 1, 1, tzinfo=timezone.utc) + timedelta(n) for n in (3, 40, 12)]
        given = [one.date() if name == "day" else one for one in days]
        into(schema, sequenceColumn=name).run(0, [{"id": 0, name: one} for one in given])
        assert client.hget(f"{unique}:0", name).startswith("2020-02-10")


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
def test_a_row_is_compared_with_what_a_stored_text_is_worth(
    redis_url: str, client: redis.Redis, unique: str, kind: pa.DataType
) -> None:
    """Others write the same moment in many ways; what has no certain place is a bad row."""
    cases = [one for one in HELD if one[0] == kind]
    for at, (_, _, text, _) in enumerate(cases):
        client.hset(f"{unique}:{at}", "s", text)
    schema = pa.schema([("id", pa.int64()), ("s", kind), ("v", pa.string())])
    given = {"onBadRow": "deadLetter", "deadLetter": unique, "maxBadRows": "100%"}
    query = DirectQuery(schema, url=redis_url, key=f"{unique}:{{id}}", sequenceColumn="s", **given)
    query.run(0, [{"id": at, "s": value, "v": "a"} for at, (_, value, *_) in enumerate(cases)])
    (box,) = query.sink.store.letterboxes()
    bad = {int(json.loads(one.row)["id"]) for one in box.read(None, 99) if NONE in one.reason}
    new = {at for at in range(len(cases)) if client.hget(f"{unique}:{at}", "v")}
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
def test_each_row_says_when_its_key_expires(
    into: Make, client: redis.Redis, unique: str, model: str, said: str
) -> None:
    kind, value = EXPIRY[said]
    until = value()
    schema = pa.schema([*SCHEMA, ("until", kind)])
    query = into(schema, model=model, ttlColumn="until", ttl="2h")
    query.run(0, [{"id": 0, "v": "a", "until": until}, {"id": 1, "v": "b"}])
    assert 1500 < client.ttl(f"{unique}:0") <= 1800
    assert 7000 < client.ttl(f"{unique}:1") <= 7200
    if model == "hash":
        assert set(client.hgetall(f"{unique}:0")) == {"id", "v"}


@pytest.mark.parametrize("seconds", [0, -5, 2**62])
def test_a_time_that_is_none_is_a_bad_row(into: Make, seconds: int) -> None:
    schema = pa.schema([*SCHEMA, ("until", pa.int64())])
    with pytest.raises(BadRow, match="a millisecond or more, and 31,000 years"):
        into(schema, ttlColumn="until").stage(0, [{"id": 0, "v": "a", "until": seconds}])
