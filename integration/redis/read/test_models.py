"""`spark.read.format("redis")` by model: what an element, a member or an entry is as a row."""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime, timezone
from decimal import Decimal
from typing import Any

import pyarrow as pa
import pytest
from integration.support.epochs import DirectQuery
from integration.support.redis import Keys, read_rows, source
from redis import Redis

from sparkonce.errors import OptionError, ValueUnreadable

pytestmark = pytest.mark.variants
Row = dict[str, Any]


def fill(client: Redis, name: str) -> dict[str, Callable[[], object]]:
    return {
        "string": lambda: client.set(f"{name}:1", "a"),
        "counter": lambda: client.incrby(f"{name}:1", 5),
        "list": lambda: client.rpush(f"{name}:1", "a", "a", "b"),
        "set": lambda: client.sadd(f"{name}:1", "a", "b"),
        "zset": lambda: client.zadd(f"{name}:1", {"a": 0.1, "b": float("-inf")}),
        "entries": lambda: client.hset(f"{name}:1", mapping={f"f{at}": at for at in range(2500)}),
        "stream": lambda: [client.xadd(f"{name}:1", {"n": at, "x": "y"}) for at in range(2500)],
    }


MODELS: dict[str, list[Row]] = {
    "string": [{"id": 1, "value": "a"}],
    "counter": [{"id": 1, "value": 5}],
    "list": [{"id": 1, "value": "a"}, {"id": 1, "value": "a"}, {"id": 1, "value": "b"}],
    "set": [{"id": 1, "value": "a"}, {"id": 1, "value": "b"}],
    "zset": [
        {"id": 1, "value": "a", "score": 0.1},
        {"id": 1, "value": "b", "score": -float("inf")},
    ],
    "entries": [{"id": 1, "field": f"f{at}", "value": at} for at in range(2500)],
    "stream": [{"id": 1, "n": at, "x": "y"} for at in range(2500)],
}


@pytest.mark.parametrize("model", MODELS)
def test_each_model_is_read_as_a_plain_client_wrote_it(keys: Keys, model: str) -> None:
    """A row for each element; keys of another type are none."""
    fill(keys.client, keys)[model]()
    if model != "entries":
        keys.client.hset(f"{keys}:2", "n", 1)
    keys.client.setbit(f"{keys}:3", 7, 1) if model not in ("string", "counter") else None
    assert read_rows(source(keys.url, key=f"{keys}:{{id}}", model=model)) == sorted(
        MODELS[model], key=repr
    )


WRITTEN = pa.schema(
    [("id", pa.int64()), ("n", pa.decimal128(10, 2)), ("at", pa.timestamp("us", "UTC"))]
)


SCORED = pa.schema([("id", pa.int64()), ("m", pa.string()), ("s", pa.float64())])


NOON = datetime(2026, 1, 2, 12, tzinfo=timezone.utc)


@pytest.mark.parametrize("model", ["hash", "string", "list", "set", "stream"])
def test_each_model_is_read_as_our_sink_wrote_it(keys: Keys, model: str) -> None:
    """Of several columns a value is JSON."""
    written = [{"id": at, "n": Decimal(at).scaleb(-2), "at": NOON} for at in range(120)]
    raw = {"url": keys.url, "key": f"{keys}:{{id}}", "model": model}
    DirectQuery(WRITTEN, **raw).run(0, written[:50], written[50:])
    assert read_rows(source(schema=WRITTEN, **raw)) == sorted(written, key=repr)
    assert keys.client.exists(f"{keys}:0")


def test_members_are_read_with_their_scores(keys: Keys) -> None:
    written = [{"id": at % 3, "m": f"m{at}", "s": at / 7} for at in range(20)]
    raw = {"url": keys.url, "key": f"{keys}:{{id}}", "model": "zset", "scoreColumn": "s"}
    DirectQuery(SCORED, **raw).run(0, written)
    assert read_rows(source(schema=SCORED, **raw)) == sorted(written, key=repr)
    assert keys.client.zcard(f"{keys}:0")


@pytest.mark.parametrize(("option", "column"), [("score", "Score"), ("SCORE", "score")])
def test_a_score_is_read_however_its_column_is_written(
    keys: Keys, option: str, column: str
) -> None:
    """Or it would be a member of the value, and null."""
    keys.client.zadd(f"{keys}:1", {'{"n": 5}': 1.5})
    schema = pa.schema([("m", pa.string()), (column, pa.float64())])
    raw = {"key": f"{keys}:{{id}}", "model": "zset", "scoreColumn": option}
    with pytest.raises(ValueUnreadable, match="column 'm'"):
        read_rows(source(keys.url, schema, **raw))
    whole = pa.schema([("value", pa.string()), (column, pa.float64())])
    assert read_rows(source(keys.url, whole, **raw)) == [{"value": '{"n": 5}', column: 1.5}]


def test_an_error_tells_of_the_value_that_it_names(keys: Keys) -> None:
    for at in range(5):
        keys.client.hset(f"{keys}:{at}", mapping={"n": f"no number {at}"})
    made = source(keys.url, pa.schema([("n", pa.int64())]), key=f"{keys}:{{id}}")
    with pytest.raises(ValueUnreadable, match=r"key b'\w+:(\d)'.*'no number \1'"):
        read_rows(made)


def test_entries_have_their_ids(keys: Keys) -> None:
    ids = [
        keys.client.xadd(f"{keys}:s", {"n": 1}).decode(),
        keys.client.xadd(f"{keys}:s", {"m": 1}).decode(),
    ]
    schema = pa.schema([("n", pa.int64()), ("_id", pa.string())])
    found = read_rows(source(keys.url, schema, key=f"{keys}:{{k}}", model="stream"))
    assert sorted(found, key=lambda row: row["_id"]) == [
        {"n": 1, "_id": ids[0]},
        {"n": None, "_id": ids[1]},
    ]


TWO = pa.schema([("id", pa.int64()), ("name", pa.string()), ("n", pa.int64())])


JSON = '{"name": "a", "n": 1}'


ALONE: list[tuple[Any, pa.DataType, bool]] = [
    (JSON, pa.string(), False),
    (" \n{}", pa.string(), False),
    (JSON, pa.struct([("n", pa.int64())]), False),
    (JSON, pa.map_(pa.string(), pa.string()), False),
    (JSON, pa.int64(), False),
    ('{"a":' * 100_000, pa.string(), False),
    ("{no JSON}", pa.string(), True),
    ('["a"]', pa.string(), True),
    (b"{\xff}", pa.binary(), True),
    ("7", pa.int64(), True),
]


@pytest.mark.parametrize(("text", "kind", "is_read"), ALONE, ids=lambda one: str(one)[:40])
@pytest.mark.parametrize("model", ["string", "list", "set", "zset"])
def test_one_column_is_the_whole_value_unless_it_may_be_a_member(
    keys: Keys, model: str, text: Any, kind: pa.DataType, is_read: bool
) -> None:
    """Our sink writes JSON of several columns, and one column as it is."""
    writes: dict[str, Callable[[], object]] = {
        "string": lambda: keys.client.set(f"{keys}:1", text),
        "list": lambda: keys.client.rpush(f"{keys}:1", text),
        "set": lambda: keys.client.sadd(f"{keys}:1", text),
        "zset": lambda: keys.client.zadd(f"{keys}:1", {text: 1}),
    }
    writes[model]()
    raw = {"key": f"{keys}:{{id}}", "model": model}
    name = pa.schema([("name", kind)])
    if is_read:
        assert len(read_rows(source(keys.url, name, **raw))) == 1
    else:
        with pytest.raises(ValueUnreadable, match=r"call the column value.*name another member"):
            read_rows(source(keys.url, name, **raw))
    whole = pa.schema([("value", pa.binary())])
    stored = text if isinstance(text, bytes) else text.encode()
    assert read_rows(source(keys.url, whole, **raw)) == [{"value": stored}]
    if text == JSON:
        assert read_rows(source(keys.url, TWO, **raw)) == [{"id": 1, "name": "a", "n": 1}]


@pytest.mark.parametrize(
    ("text", "kind", "said"),
    [
        ('{"n": 1, "m": 2, "n": 1}', pa.struct([("n", pa.int64())]), "'n' occurs twice"),
        ('{"a": {"n": 1, "n": 2}}', pa.map_(pa.string(), pa.struct([])), "'n' occurs twice"),
        ('{"n": 1, "n": 2}', pa.map_(pa.string(), pa.int64()), "'n' occurs twice"),
        ('[{"n": 1, "n": 2}]', pa.list_(pa.struct([("n", pa.int64())])), "'n' occurs twice"),
        ('{"1": 1, "1.0": 2}', pa.map_(pa.int64(), pa.int64()), "keys are the same value"),
    ],
)
def test_json_with_a_member_twice_is_refused(
    keys: Keys, text: str, kind: pa.DataType, said: str
) -> None:
    keys.client.hset(f"{keys}:1", mapping={"v": text})
    keys.client.hset(f"{keys}:2", mapping={"v": "null"})
    with pytest.raises(ValueUnreadable, match=rf"under key b'{keys}:1'.*{said}"):
        read_rows(source(keys.url, pa.schema([("v", kind)]), key=f"{keys}:{{id}}"))


def test_members_of_a_value_are_there_once(keys: Keys) -> None:
    keys.client.set(f"{keys}:1", '{"name": "a", "n": 1, "name": "b"}')
    with pytest.raises(ValueUnreadable, match="'name' occurs twice"):
        read_rows(source(keys.url, TWO, key=f"{keys}:{{id}}", model="string"))


HIDING = [
    ("string", "{value}", {}, "which is the name of the value"),
    ("list", "{VALUE}", {}, "which is the name of the value"),
    ("zset", "{id}", {"scoreColumn": "value"}, "which is the name of the value"),
    ("zset", "{score}", {}, "scoreColumn names the score"),
    ("zset", "{Points}", {"scoreColumn": "points"}, "scoreColumn names the score"),
    ("stream", "{_id}", {}, "has another meaning"),
    ("hash", "{_key}", {}, "_key is the whole key"),
]


@pytest.mark.parametrize(("model", "template", "more", "said"), HIDING)
def test_no_column_of_the_key_hides_what_lies_under_it(
    keys: Keys, model: str, template: str, more: dict[str, str], said: str
) -> None:
    (fill(keys.client, keys).get(model) or (lambda: keys.client.hset(f"{keys}:1", "n", 1)))()
    with pytest.raises(OptionError, match=said):
        source(keys.url, key=f"{keys}:{template}", model=model, **more)
    schema = pa.schema([("value", pa.int64()), ("v", pa.string())])
    if template == "{value}":
        made = source(keys.url, schema, key=f"{keys}:{template}", model=model)
        assert read_rows(made) == [{"value": 1, "v": "a"}]


@pytest.mark.parametrize(
    ("value", "kind"),
    [
        ("x", pa.int64()),
        ("1.5", pa.int64()),
        ("2", pa.bool_()),
        ("1.555", pa.decimal128(10, 2)),
        ("2026-13-01", pa.date32()),
        ("1e400", pa.float64()),
        ("[1", pa.list_(pa.int64())),
        (b"\xff", pa.string()),
    ],
    ids=str,
)
def test_a_value_that_is_none_of_its_type_is_told_with_its_key(
    keys: Keys, value: Any, kind: pa.DataType
) -> None:
    for at in range(5):
        keys.client.hset(f"{keys}:{at}", "v", value if at == 3 else "")
        keys.client.hdel(f"{keys}:{at}", *([] if at == 3 else ["v"]), "w")
        keys.client.hset(f"{keys}:{at}", "w", "x")
    schema = pa.schema([("v", kind), ("w", pa.string())])
    with pytest.raises(ValueUnreadable, match=f"'v' under key b'{keys}:3' can't be read"):
        read_rows(source(keys.url, schema, key=f"{keys}:{{id}}"))


class TestEntries:
    """A row is a field of a hash."""

    def test_names_are_texts_and_values_have_the_types_of_a_schema(self, keys: Keys) -> None:
        keys.client.hset(f"{keys}:1", mapping={"01": "1.5", "2": "2.5"})
        keys.client.hset(f"{keys}:2", mapping={"2": "0.5"})
        found = read_rows(source(keys.url, key=f"{keys}:{{id}}", model="entries"))
        assert found == [
            {"id": 1, "field": "01", "value": 1.5},
            {"id": 1, "field": "2", "value": 2.5},
            {"id": 2, "field": "2", "value": 0.5},
        ]
        schema = pa.schema([("field", pa.binary()), ("value", pa.decimal128(9, 1))])
        made = source(keys.url, schema, keyPattern=f"{keys}:*", model="entries")
        assert sorted(row["field"] for row in read_rows(made)) == [b"01", b"2", b"2"]

    def test_values_are_json_where_the_schema_names_members(self, keys: Keys) -> None:
        keys.client.hset(f"{keys}:1", mapping={"x": '{"a":1,"b":"y"}'})
        schema = pa.schema([("field", pa.string()), ("a", pa.int64()), ("b", pa.string())])
        made = source(keys.url, schema, key=f"{keys}:{{id}}", model="entries")
        assert read_rows(made) == [{"field": "x", "a": 1, "b": "y"}]

    def test_a_key_column_named_field_is_refused(self, keys: Keys) -> None:
        keys.client.hset(f"{keys}:1", mapping={"x": "1"})
        with pytest.raises(OptionError, match="which is the name of fields"):
            source(keys.url, key=f"{keys}:{{field}}", model="entries")
