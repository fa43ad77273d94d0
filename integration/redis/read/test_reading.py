"""`spark.read.format("redis")`: keys, models, what changes meanwhile, clusters, Spark."""

from __future__ import annotations

import time
from datetime import date, datetime, timezone
from decimal import Decimal
from random import Random
from typing import Any

import pyarrow as pa
import pytest
from integration.support.epochs import DirectQuery
from integration.support.kit import pushing
from integration.support.redis import Everywhere, Keys, Private, read_rows, source
from integration.support.servers.redis import connect
from integration.support.servers.redis_cluster import RedisCluster, migrate
from pyspark.sql import SparkSession
from pyspark.sql import functions as f
from redis import Redis

from pyspark_redis.read.source import _Fetch
from pyspark_redis.server.nodes import slot_of
from sparkonce.errors import (
    OptionError,
    SparkonceError,
    StoreRefused,
    StoreUnreachable,
    ValueUnreadable,
)
from sparkonce.reading import Compare, OneOf
from sparkonce.store import Patience
from sparkonce.values import spark_types

pytestmark = pytest.mark.variants
Row = dict[str, Any]
MANY = 400


# -- keys


def test_a_template_gives_its_columns_back(keys: Keys) -> None:
    keys.client.hset(f"{keys}:7:x", mapping={"name": "a", "id": "something else"})
    keys.client.hset(f"{keys}:-8:y z", mapping={"name": "b"})
    keys.client.hset(f"{keys}:9", mapping={"name": "of another form"})
    keys.client.hset(f"{keys}", mapping={"name": "likewise"})
    made = source(keys.url, key=f"{keys}:{{id}}:{{kind}}")
    assert made.wanted.schema.names == ["id", "kind", "name"]
    assert read_rows(made) == [
        {"id": -8, "kind": "y z", "name": "b"},
        {"id": 7, "kind": "x", "name": "a"},
    ]


def test_keys_of_several_columns_are_unescaped(private_redis: Private) -> None:
    url = private_redis().url
    schema = pa.schema([("a", pa.string()), ("b", pa.binary()), ("n", pa.int64())])
    written = [{"a": "x:%", "b": b"\xff:\x00%41", "n": 1}, {"a": "xé", "b": b"", "n": 2}]
    DirectQuery(schema, url=url, key="a,b").run(0, written)
    assert read_rows(source(url, schema, key="a,b")) == sorted(written, key=repr)


def test_keys_may_have_any_bytes(keys: Keys) -> None:
    names = [keys.encode() + tail for tail in (b":\xff\x00", b":*?[a]", b":\n", b":")]
    for key in names:
        keys.client.hset(key, "n", 1)
    schema = pa.schema([("k", pa.binary()), ("_key", pa.binary()), ("n", pa.int64())])
    found = read_rows(source(keys.url, schema, key=f"{keys}:{{k}}"))
    assert sorted(row["_key"] for row in found) == sorted(names)
    assert sorted(row["k"] for row in found) == sorted(key[len(keys) + 1 :] for key in names)
    with pytest.raises(ValueUnreadable, match="column 'k'"):
        read_rows(source(keys.url, pa.schema([("k", pa.string())]), key=f"{keys}:{{k}}"))


UNCERTAIN = [
    (":a:b:c", ":{x}:{y}", pa.string(), "several ways"),
    (":a:b:c", ":{x}:b:{x}", pa.string(), "would have another key"),
    (":2026-01-02 00:00:00", ":{x}", pa.date32(), "would have another key"),
    (":07", ":{x}", pa.int64(), "column 'x'"),
    (":x", ":{x}", pa.int64(), "column 'x'"),
]


@pytest.mark.parametrize(("key", "template", "kind", "said"), UNCERTAIN, ids=str)
def test_a_key_that_says_nothing_certain_is_told(
    keys: Keys, key: str, template: str, kind: pa.DataType, said: str
) -> None:
    with connect(keys.url) as client:
        client.hset(f"{keys}{key}", "n", 1)
    schema = pa.schema([(name, kind) for name in ("x", "y") if name in template])
    with pytest.raises(ValueUnreadable, match=said):
        read_rows(source(keys.url, schema, key=f"{keys}{template}"))


def test_a_pattern_gives_whole_keys_and_never_the_connectors_own(private_redis: Private) -> None:
    server = private_redis()
    schema = pa.schema([("id", pa.int64()), ("n", pa.int64())])
    DirectQuery(schema, url=server.url, key="user:{id}").run(0, [{"id": 1, "n": 2}])
    with connect(server.url) as client:
        assert len([*client.scan_iter("*sparkonce*")]) > 0
    assert read_rows(source(server.url, keyPattern="*")) == [{"_key": "user:1", "id": 1, "n": 2}]


def test_keys_of_the_connector_are_none_that_conditions_name(keys: Keys) -> None:
    with connect(keys.url) as client:
        client.hset("{sparkonce}:" + keys, "n", 1)
        schema = pa.schema([("k", pa.string()), ("n", pa.int64())])
        named = [Compare("k", "=", "{sparkonce}:" + keys)]
        assert read_rows(source(keys.url, schema, named, key="{k}")) == []
        client.unlink("{sparkonce}:" + keys)


def test_what_can_be_no_column_is_left_out_of_a_sample(
    keys: Keys, caplog: pytest.LogCaptureFixture
) -> None:
    """A float in a key is read as its text: several texts are one float."""
    keys.client.hset(f"{keys}:1.5", mapping={b"\xac\xed": "x", "_key": "y", "n": "1.10"})
    keys.client.hset(f"{keys}:1.5", mapping={"a\x01": "x", "P": "y", "a\x00b": "z"})
    made = source(keys.url, key=f"{keys}:{{p}}")
    assert read_rows(made) == [{"p": "1.5", "n": "1.10"}]
    for name in ("_key", "a\x01", "P", "a\x00b"):
        assert f"Field {name!r} does not become a column" in caplog.text
    whole = source(keys.url, key=f"{keys}:{{p}}", columns="_key,p")
    assert whole.wanted.schema.names == ["p", "_key", "n"]


def test_a_sample_takes_a_part_of_what_is_large(private_redis: Private) -> None:
    server = private_redis()
    with connect(server.url) as client:
        members = {f"member {at}": at for at in range(100_000)}
        client.hset("hash:1", mapping=members)  # type: ignore[arg-type]
        assert len(source(server.url, key="hash:{id}").wanted.schema.names) == 1001
        client.rpush("list:1", *members)
        client.sadd("set:1", *members)
        client.zadd("zset:1", members)
        before: Any = client.info("stats")
        for model in ("list", "set", "zset"):
            schema = source(server.url, key=f"{model}:{{id}}", model=model).wanted.schema
            assert schema.field("value").type == pa.string()
        after: Any = client.info("stats")
    assert after["total_net_output_bytes"] - before["total_net_output_bytes"] < 100_000


@pytest.mark.parametrize(
    ("raw", "said"),
    [
        ({}, "one of them selects the keys"),
        ({"key": "a:{id}", "keyPattern": "a:*"}, "one of them selects the keys"),
        ({"key": "a:{}"}, "not a template"),
        ({"keyPattern": "nowhere:*"}, "No key of model hash matches"),
    ],
)
def test_options_that_do_not_fit_are_refused(redis_url: str, raw: Row, said: str) -> None:
    with pytest.raises(SparkonceError, match=said):
        source(redis_url, **raw)


def test_a_key_column_of_a_type_without_one_text_is_refused(keys: Keys) -> None:
    with pytest.raises(OptionError, match="can't be read from a key"):
        source(keys.url, pa.schema([("x", pa.float64())]), key=f"{keys}:{{x}}")


# -- what changes meanwhile


def test_keys_that_go_away_or_become_another_type_give_no_row(
    keys: Keys, caplog: pytest.LogCaptureFixture
) -> None:
    """Each key that stays is there once, whenever the others go."""
    for at in range(MANY):
        keys.client.hset(f"{keys}:{at}", "n", at)
    made = source(keys.url, key=f"{keys}:{{id}}", numPartitions="1")
    (split,) = made.splits()
    batches = made.read(split)
    found = next(batches).to_pylist()
    came = {row["id"] for row in found}
    left = [at for at in range(MANY) if at not in came]
    for at in left[::3]:
        keys.client.delete(f"{keys}:{at}")
    for at in left[1::3]:
        keys.client.delete(f"{keys}:{at}")
        keys.client.set(f"{keys}:{at}", "text")
    found += [row for batch in batches for row in batch.to_pylist()]
    ids = [row["id"] for row in found]
    assert len(ids) == len(set(ids))
    assert {*came, *left[2::3]} <= set(ids)
    assert all(row["n"] == row["id"] for row in found)
    assert "hold another type than a hash" in caplog.text


def test_a_key_that_a_scan_gives_twice_is_one_row(private_redis: Private) -> None:
    """As it does where the table of all keys shrinks."""
    server = private_redis("hz 100")
    with connect(server.url) as client:
        pipe = client.pipeline(transaction=False)
        for at in range(40_000):
            pipe.set(f"other:{at}", "")
            pipe.hset(f"user:{at}", "n", at) if at < 2000 else None
        pipe.execute()
        made = source(server.url, key="user:{id}", numPartitions="1")
        (split,) = made.splits()
        batches = made.read(split)
        found = [next(batches) for _ in range(20)]
        for at in range(0, 40_000, 1000):
            client.delete(*(f"other:{number}" for number in range(at, at + 1000)))
        time.sleep(0.5)  # the server makes the table smaller in the background
        ids = [id_ for batch in (*found, *batches) for id_ in batch.column("id").to_pylist()]
        assert sorted(ids) == [*range(2000)]


def test_a_hash_without_the_fields_is_a_row_as_long_as_it_is_there(keys: Keys) -> None:
    keys.client.hset(f"{keys}:1", "other", "x")
    schema = pa.schema([("id", pa.int64()), ("n", pa.int64())])
    assert read_rows(source(keys.url, schema, key=f"{keys}:{{id}}")) == [{"id": 1, "n": None}]
    alone = pa.schema([("id", pa.int64())])
    keys.client.set(f"{keys}:2", "no hash")
    assert read_rows(source(keys.url, alone, key=f"{keys}:{{id}}")) == [{"id": 1}]
    named = [OneOf("id", (1, 2, 3))]
    assert read_rows(source(keys.url, schema, named, key=f"{keys}:{{id}}")) == [
        {"id": 1, "n": None}
    ]


# -- what a read costs the server


def test_a_read_that_is_given_up_leaves_little_to_do(private_redis: Private) -> None:
    """A server finishes what it was asked for, also where nobody waits any more."""
    server = private_redis()
    with connect(server.url) as client:
        for at in range(30):
            client.rpush(f"l:{at}", *range(25_000 if at % 2 else 3))
            client.set(f"l:no list {at}", "")
        made = source(server.url, key="l:{id}", model="list", numPartitions="1")
        (split,) = made.splits()
        client.config_resetstat()
        batches = made.read(split)
        came = next(batches).num_rows
        batches.close()  # type: ignore[attr-defined]
        told: Any = client.info("stats")
        assert told["total_net_output_bytes"] < 500_000
        assert came + sum(one.num_rows for one in made.read(split)) == came + 15 * 25_003


def test_a_key_of_many_elements_that_takes_too_long_is_asked_for_once(
    private_redis: Private, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The server reads it to the end each time that it is asked."""
    server = private_redis()
    with connect(server.url) as client:
        client.rpush("l:1", *range(25_000))
        made = source(server.url, key="l:{id}", model="list", timeout="0.5", numPartitions="1")
        block = _Fetch._block

        def late(fetch: _Fetch, keys: Any) -> Any:
            client.client_pause(1000)
            return block(fetch, keys)

        monkeypatch.setattr(_Fetch, "_block", late)
        client.config_resetstat()
        (split,) = made.splits()
        with pytest.raises(StoreRefused, match=r"b'l:1' has 25000 elements.*raise option timeout"):
            Patience(3, first=0).run(lambda: list(made.read(split)))
        client.client_unpause()
        assert calls(client, "lrange") <= 1


def test_an_answer_that_takes_too_long_names_the_option(private_redis: Private) -> None:
    server = private_redis()
    with connect(server.url) as client:
        client.hset("user:1", "n", 1)
        made = source(server.url, key="user:{id}", timeout="0.3")
        (split, *_) = made.splits()
        client.client_pause(1000)
        with pytest.raises(StoreUnreachable, match=r"within option timeout.*raise option timeout"):
            list(made.read(split))
        client.client_unpause()
    assert read_rows(made) == [{"id": 1, "n": 1}]


# -- conditions


def calls(client: Redis, name: str) -> int:
    told: Any = client.info("commandstats")
    return int(told.get(f"cmdstat_{name}", {}).get("calls", 0))


def test_conditions_that_name_keys_spare_the_scan(private_redis: Private) -> None:
    server = private_redis()
    with connect(server.url) as client:
        for at in range(30):
            client.hset(f"o:{at}:{at % 2}", "n", at)
        schema = pa.schema([("a", pa.int64()), ("b", pa.int64()), ("n", pa.int64())])
        raw = {"url": server.url, "key": "o:{a}:{b}"}
        both = [OneOf("a", (4, 5, 99)), Compare("b", "=", 1)]
        before = calls(client, "scan")
        assert read_rows(source(schema=schema, filters=both, **raw)) == [{"a": 5, "b": 1, "n": 5}]
        assert calls(client, "scan") == before
        assert len(read_rows(source(schema=schema, filters=both[:1], **raw))) == 30
        assert (
            len(read_rows(source(schema=schema, filters=[Compare("a", ">", 1), both[1]], **raw)))
            == 30
        )


NAIVE = [datetime(1, 1, 1), datetime(2024, 3, 10, 2, 30), datetime(2026, 1, 2, 3, 4, 5, 1)]
EDGES: list[tuple[pa.DataType, list[Any]]] = [
    (pa.bool_(), [True, False]),
    (pa.int8(), [-128, -1, 0, 7, 127]),
    (pa.int64(), [-(2**63), -1, 0, 1, 99, 2**63 - 1]),
    (pa.decimal128(10, 2), [Decimal(n).scaleb(-2) for n in (0, -10, 150, 9_999_999_999)]),
    (pa.decimal128(38, 0), [Decimal(10) ** 37, Decimal(0)]),
    (
        pa.string(),
        ["", "a", "A", "a ", "é", "e\u0301", "😀", "07", "%", "*", "a:b", "x\ny", "\x01"],
    ),
    (pa.binary(), [b"", b"a", b"\xff\x00", b"{"]),
    (pa.date32(), [date(1, 1, 1), date(1582, 10, 4), date(2024, 2, 29), date(9999, 12, 31)]),
    (pa.timestamp("us", "UTC"), [one.replace(tzinfo=timezone.utc) for one in NAIVE]),
    (pa.timestamp("us"), NAIVE),
]
"""Values of each type that may be in a key, its edges among them."""


@pytest.mark.parametrize(("kind", "values"), EDGES, ids=str)
def test_conditions_on_a_key_take_away_no_row_that_matches(
    keys: Keys, kind: pa.DataType, values: list[Any]
) -> None:
    """Drawn values, some of which no row has, or can have."""
    schema = pa.schema([("k", kind), ("n", pa.int64())])
    raw = {"url": keys.url, "key": f"{keys}:{{k}}"}
    written = [{"k": value, "n": at} for at, value in enumerate(values)]
    DirectQuery(schema, **raw).run(0, written)
    everything = read_rows(source(schema=schema, **raw))
    assert [row["n"] for row in sorted(everything, key=lambda row: row["n"])] == [
        *range(len(values))
    ]
    drawn = Random(str(kind))
    others = [*values, Decimal("1e40"), 2**70, "a\0", Decimal("0.001"), 0.5]
    for _ in range(30):
        some = tuple(drawn.sample(others if drawn.random() < 0.2 else values, 2))
        one = drawn.choice([Compare("k", "=", some[0]), OneOf("k", some)])
        asked = some[:1] if isinstance(one, Compare) else some
        came = read_rows(source(schema=schema, filters=[one], **raw))
        assert [row for row in everything if row["k"] in asked] == [
            row for row in came if row["k"] in asked
        ], one


def test_a_condition_by_a_collation_names_no_keys(keys: Keys) -> None:
    """By that several keys are equal."""
    for name in ("a", "A"):
        keys.client.hset(f"{keys}:{name}", "n", 1)
    schema = pa.schema([spark_types.typed("k", pa.string(), "string collate UTF8_LCASE")])
    named = [Compare("k", "=", "a")]
    assert read_rows(source(keys.url, schema, named, key=f"{keys}:{{k}}")) == [
        {"k": "A"},
        {"k": "a"},
    ]


# -- a cluster


def test_a_slot_that_moves_in_mid_read_is_told(cluster: RedisCluster, unique: str) -> None:
    """Its keys might be missed, or read twice."""
    everywhere = Everywhere(cluster)
    keys = [f"{unique}:{at}" for at in range(MANY)]
    for at, key in enumerate(keys):
        everywhere.of(key)[0].hset(key, "n", at)
    made = source(cluster.url, key=f"{unique}:{{id}}")
    assert len(read_rows(made)) == MANY
    slot = slot_of(keys[0].encode())
    origin = cluster.owner(slot)
    to = next(node for node in cluster.heads() if node.id != origin.id)
    splits = made.splits()
    (split,) = [one for one in splits if any(low <= slot <= high for low, high in one.ranges)]
    batches = made.read(split)
    next(batches)
    cluster.begin_move(slot, origin, to)
    with pytest.raises(StoreUnreachable, match="slot"):
        list(batches)
    with pytest.raises(StoreUnreachable, match="is moving"):
        list(made.read(split))
    here = [key.encode() for key in keys if slot_of(key.encode()) == slot]
    migrate(origin, to, here)
    cluster.end_move(slot, origin, to)
    assert len(read_rows(source(cluster.url, key=f"{unique}:{{id}}"))) == MANY
    assert sum(batch.num_rows for one in splits for batch in made.read(one)) == MANY


def test_a_node_is_not_read_as_the_one_server(cluster: RedisCluster, unique: str) -> None:
    """It has a part of the keys."""
    url = cluster.heads()[0].url
    with pytest.raises(StoreRefused, match="a node of a Redis Cluster"):
        source(url, key=f"{unique}:{{id}}")
    with pytest.raises(StoreRefused, match="a node of a Redis Cluster"):
        read_rows(source(url, pa.schema([("id", pa.int64())]), key=f"{unique}:{{id}}"))


def test_named_keys_are_asked_of_their_nodes(cluster: RedisCluster, unique: str) -> None:
    everywhere = Everywhere(cluster)
    for at in range(20):
        everywhere.of(f"{unique}:{at}")[0].hset(f"{unique}:{at}", "n", at)
    schema = pa.schema([("id", pa.int64()), ("n", pa.int64())])
    named = [OneOf("id", (*range(5, 15), 999))]
    found = read_rows(source(cluster.url, schema, named, key=f"{unique}:{{id}}"))
    assert sorted(row["n"] for row in found) == [*range(5, 15)]


# -- through Spark


def test_hashes_are_read_by_guessed_types_by_given_ones_and_by_some_columns(
    spark: SparkSession, keys: Keys
) -> None:
    for at in range(MANY):
        keys.client.hset(f"{keys}:{at}", mapping={"n": at * 10, "name": f"x{at}", "p": at / 8})
    where = {"url": keys.url, "key": f"{keys}:{{id}}"}
    frame = spark.read.format("redis").options(**where).load()
    assert frame.select("id", "n", "name", "p").schema.simpleString() == (
        "struct<id:bigint,n:bigint,name:string,p:double>"
    )
    assert frame.agg(f.count("*"), f.sum("n"), f.max("p")).first() == (
        MANY,
        10 * sum(range(MANY)),
        (MANY - 1) / 8,
    )
    given = spark.read.format("redis").options(**where).schema("id int, p decimal(10,3)").load()
    assert given.where("id = 1").collect() == [(1, Decimal("0.125"))]
    some = spark.read.format("redis").options(**where, columns="name").load()
    assert some.columns == ["name"]


def test_a_condition_of_one_query_narrows_no_other(spark: SparkSession, keys: Keys) -> None:
    """Spark up to 4.3 gives it to whatever else is read of the same DataFrame."""
    for at in range(5):
        keys.client.hset(f"{keys}:{at}", "n", at)
    with pushing(spark):
        reader = spark.read.format("redis").option("url", keys.url).option("pushFilters", "true")
        frame = reader.schema("id int, n int").load(key=f"{keys}:{{id}}")
        one, other = frame.where("id = 1"), frame.where("id = 2")
        assert one.count() == 1
        assert frame.count() == 5
        found = [row.id for row in one.union(other).union(frame).collect()]
        assert sorted(found) == [0, 1, 1, 2, 2, 3, 4]
        assert one.crossJoin(frame).count() == 5
