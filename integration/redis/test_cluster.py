"""A Redis Cluster: rows in all slots, slots that move, and drivers that die in between."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable
from itertools import count
from typing import Any

import pyarrow as pa
import pytest
from integration.support.epochs import COUNTER, REDIS, DirectQuery, one, ones
from integration.support.marks import slow_cases
from integration.support.redis import BAD, IDS, Everywhere, Keys, World, counts, dies_of
from integration.support.servers.redis import connect
from integration.support.servers.redis_cluster import Node, RedisCluster, migrate
from redis import Redis

from pyspark_redis.cluster.delivery import ClusterDelivery
from pyspark_redis.server.nodes import slot_of
from pyspark_redis.server.session import RedisSession
from pyspark_redis.target.keys import is_own
from sparkonce.errors import (
    OptionError,
    RowRefused,
    SinkBehindCheckpoint,
    SparkonceError,
    StoreRefused,
    StoreUnreachable,
)
from sparkonce.protocol import Follows
from sparkonce.spark.writer import BatchWriter

pytestmark = pytest.mark.variants
ROWS = pa.schema(
    [
        ("id", pa.int64()),
        ("n", pa.int64()),
        ("x", pa.float64()),
        ("v", pa.string()),
        ("op", pa.string()),
        ("t", pa.int32()),
    ]
)
Row = dict[str, Any]


@pytest.fixture
def counting(cluster: RedisCluster, unique: str) -> Callable[..., DirectQuery]:
    def make(schema: pa.Schema = COUNTER, **options: str) -> DirectQuery:
        own = {"url": cluster.url, "key": f"{unique}:{{id}}", "writeMode": "increment"}
        return DirectQuery(schema, **{**own, "maxRetries": "8", **options})

    return make


def odd(id_: int, epoch: int) -> Row:
    """A row with nulls, deletes, texts and numbers of each kind, by chance of its numbers."""
    seed = id_ * 7 + epoch * 3
    return {
        "id": id_ % 40,
        "n": None if seed % 11 == 0 else seed % 5,
        "x": None if seed % 13 == 0 else seed / 8,
        "v": None if seed % 5 == 0 else f"ü{seed}",
        "op": "D" if seed % 9 == 0 else "U",
        "t": None if seed % 4 == 0 else 5000 + seed,
    }


WAYS = {
    "hash": {"opColumn": "op", "ttlColumn": "t", "nulls": "keep"},
    "ordered hash": {"sequenceColumn": "n", "opColumn": "op", "onBadRow": "deadLetter"},
    "increment": {"writeMode": "increment", "ttl": "1h"},
    "delete": {"writeMode": "delete"},
    "string": {"model": "string", "opColumn": "op"},
    "counter": {"model": "counter"},
    "list": {"model": "list", "maxLength": "3"},
    "set": {"model": "set", "opColumn": "op"},
    "zset": {"model": "zset", "scoreColumn": "x", "opColumn": "op", "onBadRow": "deadLetter"},
    "zset increment": {"model": "zset", "scoreColumn": "x", "writeMode": "increment"},
    "stream": {"model": "stream"},
}
WITHOUT = {"increment": {"v", "op", "t"}, "counter": {"x", "v", "op", "t"}}
QUICK = ["hash", "increment", "list", "zset"]


@pytest.mark.parametrize("way", [*QUICK, *slow_cases(*(way for way in WAYS if way not in QUICK))])
def test_a_cluster_holds_what_one_server_holds(cluster: RedisCluster, keys: Keys, way: str) -> None:
    schema = pa.schema([one for one in ROWS if one.name not in WITHOUT.get(way, ())])
    options = {"key": f"{keys}:{{id}}", "chunkRows": "50", **WAYS[way]}
    if "onBadRow" in options:
        options |= {"deadLetter": keys, "maxBadRows": "100%"}
    queries = [DirectQuery(schema, url=url, **options) for url in (keys.url, cluster.url)]
    for epoch in range(3):
        rows = [odd(at, epoch) for at in range(200)]
        fit = [{name: row[name] for name in schema.names} for row in rows]
        done = [query.run(epoch, fit[:120], fit[120:]) for query in queries]
        assert done[0].totals.aside == done[1].totals.aside
    found = []
    with Redis.from_url(keys.url) as client:
        found.append({key: shown(client, key) for key in client.scan_iter(f"{keys}:*")})
    everywhere = Everywhere(cluster).keys(f"{keys}:".encode())
    found.append({key: shown(client, key) for client, key in everywhere})
    values, lefts = (
        [{key: one[at] for key, one in each.items()} for each in found] for at in (0, 1)
    )
    assert values[0] == values[1]
    assert values[0] or way == "delete"
    assert all(abs(left - lefts[1][key]) < A_WHILE for key, left in lefts[0].items())
    letters = [Counter(one.row for one in box(query)) for query in queries]
    assert letters[0] == letters[1]


def box(query: DirectQuery) -> list[Any]:
    boxes = query.sink.store.letterboxes() if "deadLetter" in query.options else []
    return [letter for one in boxes for letter in one.read(None, 10_000)]


A_WHILE = 100
"""Seconds that lie between two looks at most."""


def shown(client: Redis, key: bytes) -> tuple[Any, int]:
    """What a key holds, and how long."""
    kind = client.type(key).decode()
    read: dict[str, Callable[[], Any]] = {
        "hash": lambda: client.hgetall(key),
        "string": lambda: client.get(key),
        "list": lambda: client.lrange(key, 0, -1),
        "set": lambda: sorted(client.smembers(key)),
        "zset": lambda: client.zrange(key, 0, -1, withscores=True),
        "stream": lambda: [fields for _, fields in client.xrange(key)],
    }
    return (kind, read[kind]()), client.ttl(key)


@pytest.mark.parametrize("arrives", [True, False], ids=["reply lost", "request lost"])
def test_each_row_counts_once_whichever_answer_is_lost(
    cluster: RedisCluster,
    counting: Callable[..., DirectQuery],
    unique: str,
    monkeypatch: pytest.MonkeyPatch,
    arrives: bool,
) -> None:
    """The driver dies at each of its scripts in turn, until an epoch needs no more of them."""
    everywhere, run = Everywhere(cluster), RedisSession.run_on
    query = counting(chunkRows="40", onBadRow="deadLetter", deadLetter=unique, maxBadRows="100%")
    numbers = count(1)

    def dies(session: RedisSession, *given: Any) -> Any:
        if next(numbers) != number:
            return run(session, *given)
        if arrives:
            run(session, *given)
        raise KeyboardInterrupt

    for epoch in count():
        number, numbers = epoch + 1, count(1)
        ids = range(1000 * epoch, 1000 * epoch + 100)
        for bad in ids[7::50]:
            client, key = everywhere.of(f"{unique}:{bad}")
            client.set(key, "mine")
        receipts = query.stage(epoch, ones(ids[:60]), ones(ids[60:]))
        with monkeypatch.context() as dying:
            dying.setattr(RedisSession, "run_on", dies)
            undisturbed = not dies_of(lambda: query.commit(epoch, receipts))  # noqa: B023
        query.restart()
        query.run(epoch, ones(ids[:60]), ones(ids[60:]))
        assert Counter(int(letter.key[7:-1]) for letter in box(query)) == Counter(
            1000 * at + bad for at in range(epoch + 1) for bad in (7, 57)
        )
        if undisturbed:
            break
    assert epoch > 5
    every = (1000 * at + row for at in range(epoch + 1) for row in range(100))
    assert counts(cluster, unique) == Counter(at for at in every if at % 1000 not in (7, 57))


@pytest.mark.parametrize("tag", ["", "{{one}}"], ids=["all slots", "one slot"])
def test_too_many_bad_rows_stop_and_none_is_lost(
    cluster: RedisCluster, counting: Callable[..., DirectQuery], unique: str, tag: str
) -> None:
    everywhere = Everywhere(cluster)
    for at in range(20, 60):
        client, key = everywhere.of(f"{unique}:{tag[1:-1]}{at}")
        client.set(key, "mine")
    aside = {"onBadRow": "deadLetter", "deadLetter": unique, "maxBadRows": "25"}
    query = counting(chunkRows="30", key=f"{unique}:{tag}{{id}}", **aside)
    with pytest.raises(RowRefused, match="maxBadRows=25 allows 25"):
        query.run(0, ones(range(100)))
    assert len(box(query)) <= 25
    query.restart(maxBadRows="100%")
    query.run(0, [])
    assert Counter(int(letter.key[7:-1]) for letter in box(query)) == Counter(range(20, 60))
    assert counts(cluster, unique) == Counter(at for at in range(100) if not 20 <= at < 60)


# -- slots that move


def of_slot(cluster: RedisCluster, unique: str) -> tuple[int, Node, Node]:
    """A slot in which row 5 lies, its node, and another."""
    slot = slot_of(f"{unique}:5".encode())
    owner = cluster.owner(slot)
    return slot, owner, next(node for node in cluster.heads() if node is not owner)


def test_slots_that_move_between_chunks_take_their_progress_with_them(
    cluster: RedisCluster,
    counting: Callable[..., DirectQuery],
    unique: str,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Row 5 is in each chunk, and its slot moves before each."""
    query, applied = counting(chunkRows="20"), ClusterDelivery.apply_chunk

    def after_a_move(delivery: ClusterDelivery, ordinal: int) -> bool:
        slot, _, other = of_slot(cluster, unique)
        if moves:
            moves.pop()
            cluster.move(slot, other)
        return applied(delivery, ordinal)

    monkeypatch.setattr(ClusterDelivery, "apply_chunk", after_a_move)
    for epoch in range(2):
        moves = [1, 2, 3]
        ids = [at if at % 10 else 5 for at in range(100)]
        failures = query.run_until_done(epoch, ones(ids))
        assert all(isinstance(error, StoreUnreachable) for error in failures)
    expected = Counter(at if at % 10 else 5 for at in range(100))
    assert counts(cluster, unique) == expected + expected
    cluster.wait_until_whole()


@pytest.mark.parametrize("carried", ["nothing", "progress", "rows"])
def test_a_slot_on_its_way_is_waited_for(
    cluster: RedisCluster, counting: Callable[..., DirectQuery], unique: str, carried: str
) -> None:
    """Neither of its nodes takes what the other has."""
    query, rows = counting(), [one(5), one(5)]
    query.run(0, rows)
    slot, origin, other = of_slot(cluster, unique)
    cluster.begin_move(slot, origin, other)
    ours = {"rows": f"{unique}:5", "progress": query.name, "nothing": "-"}[carried].encode()
    keys = origin.ask("CLUSTER", "GETKEYSINSLOT", slot, 100)
    if carry := [key for key in keys if ours in key]:
        migrate(origin, other, carry)
    query.restart(maxRetries="1")
    if carried == "nothing":
        query.run(1, rows)
    else:
        with pytest.raises(StoreUnreachable, match="A slot of the cluster moves"):
            query.run(1, rows)
    cluster.end_move(slot, origin, other)
    query.restart(maxRetries="8")
    query.run(1, rows)
    assert counts(cluster, unique) == Counter([5] * 4)


# -- what is refused, and what is left


def test_a_url_says_whether_it_is_a_cluster(cluster: RedisCluster, redis_url: str) -> None:
    node = cluster.nodes[0].url
    with pytest.raises(StoreRefused, match=r"redis\+cluster://"):
        DirectQuery(COUNTER, url=node, key="id").sink.check()
    one_server = redis_url.rpartition("/")[0].replace("redis://", "redis+cluster://")
    with pytest.raises(SparkonceError, match="redis://"):
        DirectQuery(COUNTER, url=one_server, key="id").sink.check()
    with pytest.raises(OptionError, match="has one database"):
        _ = DirectQuery(COUNTER, url="redis+cluster://a:1,b:2/3", key="id").sink


def test_a_cluster_is_not_emptied(counting: Callable[..., DirectQuery]) -> None:
    query = counting()
    query.overwrite = True
    with pytest.raises(OptionError, match=r"overwrite.*redis\+cluster"):
        _ = query.sink


def test_keys_of_lanes_are_not_for_rows(
    cluster: RedisCluster, counting: Callable[..., DirectQuery], unique: str
) -> None:
    query = DirectQuery(COUNTER, url=cluster.url, key="sparkonce:{{{id}}}:x")
    with pytest.raises(SparkonceError, match="one of sparkonce's own"):
        query.run(0, [one(1)])
    query = counting(keyPrefix=f"{unique}-p")
    query.run(0, ones(range(9)))
    query.stage(1, [one(1)])
    found = {key for _, key in Everywhere(cluster).keys(b"") if f"{unique}-p".encode() in key}
    assert len(found) > 9
    assert all(map(is_own, found))


def test_a_batch_goes_on_over_a_loss_as_its_error_says(cluster: RedisCluster, unique: str) -> None:
    """One of `foreachBatch`, or with a version; a stream does in test_cluster_failover.py."""
    world, rows = World(cluster, unique), ones(IDS)
    world.query.follows = Follows.GROWS
    empty = world.dump("rows")
    world.query.run(0, rows)
    world.restore("rows", empty)
    world.query.restart()
    with pytest.raises(SinkBehindCheckpoint, match="lacks rows of sink") as told:
        world.query.run(7, rows)
    ((name, value),) = re.findall(r"option (\w+)=([\w@]+)", told.value.todo)
    world.query.restart(**{name: value})
    BatchWriter(REDIS, world.query.options, COUNTER, overwrite=False)
    world.query.run(7, rows)
    world.query.restart()
    world.query.run(8, rows)
    assert world.counts() == Counter({at: 2 for at in IDS if at != BAD})


def test_each_primary_is_looked_at(
    cluster: RedisCluster, counting: Callable[..., DirectQuery]
) -> None:
    with connect(cluster.nodes[2].url) as client:
        client.config_set("maxmemory", "1gb")
        client.config_set("maxmemory-policy", "allkeys-lru")
        try:
            with pytest.raises(SparkonceError, match="allkeys-lru"):
                counting().sink.check()
        finally:
            client.config_set("maxmemory-policy", "noeviction")
            client.config_set("maxmemory", "0")


def test_the_doctor_looks_at_each_primary(
    cluster: RedisCluster, counting: Callable[..., DirectQuery]
) -> None:
    found = [str(one) for one in counting().sink.store.examine()]
    for node in cluster.heads():
        assert any(f":{node.port}: " in one and "append-only" in one for one in found)
    assert not list(Everywhere(cluster).keys(b"sparkonce:probe"))
