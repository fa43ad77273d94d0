"""A network that fails at each request in turn, and servers that can't be trusted."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable

import pyarrow as pa
import pytest
import redis
from integration.support.counters import ones, until_committed
from integration.support.epochs import DirectQuery
from integration.support.proxy import CUTS, Proxy
from integration.support.servers.redis import RedisProcess

from sparkonce.errors import (
    ConcurrentDriver,
    SinkBehindCheckpoint,
    SparkonceError,
    StoreRefused,
    StoreUnreachable,
    StoreUnsafe,
)

pytestmark = pytest.mark.variants

COUNTER = pa.schema([("id", pa.int64()), ("n", pa.int64())])
EVALSHA, MULTI, HMGET = (b"\r\n%s\r\n" % word for word in (b"EVALSHA", b"MULTI", b"HMGET"))


def counting(url: str, unique: str, **options: str) -> DirectQuery:
    return DirectQuery(COUNTER, url=url, key=f"{unique}:{{id}}", writeMode="increment", **options)


def counts(client: redis.Redis, unique: str) -> Counter[int]:
    """How often each row took effect: a multiset."""
    keys = list(client.scan_iter(f"{unique}:*", count=10_000))
    return Counter({int(key.split(":")[1]): int(client.hget(key, "n")) for key in keys})


ONE_SCRIPT = (10, [(EVALSHA, 1), (MULTI, 1), (MULTI, 2), (HMGET, 1), (HMGET, 2)])
A_SCRIPT_A_CHUNK = (20_000, [(EVALSHA, nth) for nth in range(1, 9)])


@pytest.mark.parametrize(
    ("rows", "requests"), [ONE_SCRIPT, A_SCRIPT_A_CHUNK], ids=["one script", "a script a chunk"]
)
@pytest.mark.parametrize("fault", CUTS)
def test_rows_count_once_whichever_request_the_network_cuts(
    redis_proxy: Proxy,
    client: redis.Redis,
    unique: str,
    fault: str,
    rows: int,
    requests: list[tuple[bytes, int]],
) -> None:
    query = counting(redis_proxy.url, unique, chunkRows="4000")
    until_committed(query, 0, range(rows))
    expected = Counter(list(range(rows)))
    for epoch, (request, nth) in enumerate(requests, start=1):
        cuts = redis_proxy.cuts
        getattr(redis_proxy, fault)(request, nth=nth)
        until_committed(query, epoch, range(rows))
        assert redis_proxy.cuts == cuts + 1, "the fault must really happen"
        expected.update(list(range(rows)))
    assert counts(client, unique) == expected
    last = len(requests) + 1
    assert query.run(last).totals.rows == rows * last
    assert query.sink.store.staged(query.name) == []


def test_late_decide_of_a_driver_that_was_given_up_changes_nothing(
    redis_proxy: Proxy, redis_url: str, client: redis.Redis, unique: str
) -> None:
    """The request is stalled on its way; its driver dies; it arrives after the replay."""
    zombie = counting(redis_proxy.url, unique, timeout="300ms", maxRetries="0")
    receipts = zombie.stage(0, ones(range(10)))
    redis_proxy.stall(EVALSHA)
    redis_proxy.refuse()
    with pytest.raises(StoreUnreachable):
        zombie.commit(0, receipts)
    assert redis_proxy.cuts == 1

    heir = counting(redis_url, unique)
    heir.query_id = zombie.query_id
    heir.run(0, ones(range(10)))
    redis_proxy.restore()
    heir.run(1, ones(range(10, 20)))
    assert counts(client, unique) == Counter(range(20))


def test_second_driver_takes_over_and_the_first_is_refused(
    redis_url: str, client: redis.Redis, unique: str
) -> None:
    first = counting(redis_url, unique)
    first.run(0, ones(range(10)))
    second = counting(redis_url, unique)
    second.query_id = first.query_id
    waiting = first.stage(1, ones(range(10, 20)))
    second.run(1, ones(range(10, 20)))
    with pytest.raises(ConcurrentDriver):
        first.commit(1, waiting)
    assert counts(client, unique) == Counter(range(20))


def test_server_that_restarts_with_its_data_is_waited_for(
    private_redis: Callable[..., RedisProcess], unique: str
) -> None:
    server = private_redis("appendonly yes", "appendfsync always")
    query = counting(server.url, unique)
    query.run(0, ones(range(10)))
    receipts = query.stage(1, ones(range(10, 20)))
    server.kill()
    server.start()
    query.commit(1, receipts)
    with redis.Redis.from_url(server.url, decode_responses=True) as client:
        assert counts(client, unique) == Counter(range(20))


def test_server_that_comes_back_empty_is_refused(
    private_redis: Callable[..., RedisProcess], unique: str
) -> None:
    server = private_redis()
    query = counting(server.url, unique)
    query.run(0, ones(range(10)))
    query.run(1, ones(range(10, 20)))
    with redis.Redis.from_url(server.url) as client:
        client.flushall()
    with pytest.raises(SinkBehindCheckpoint, match="onLostCommit=continue@2"):
        query.run(2, ones(range(20, 30)))


def test_unreachable_server_is_named_with_what_to_do(unique: str) -> None:
    query = counting("redis://127.0.0.1:1/0", unique)
    with pytest.raises(StoreUnreachable, match="check option url and the server"):
        query.sink.check()


@pytest.mark.parametrize("policy", ["allkeys-lru", "allkeys-lfu", "allkeys-random"])
def test_policy_that_may_evict_the_ledger_is_refused(
    private_redis: Callable[..., RedisProcess], unique: str, policy: str
) -> None:
    server = private_redis(f"maxmemory-policy {policy}", "maxmemory 50mb")
    with pytest.raises(StoreUnsafe, match=f"maxmemory-policy is {policy}"):
        counting(server.url, unique).sink.check()


def test_wrong_password_is_refused_and_not_shown(
    private_redis: Callable[..., RedisProcess], unique: str
) -> None:
    server = private_redis("requirepass right")
    with pytest.raises(StoreRefused, match="check options user, password") as refused:
        counting(server.url, unique, password="not-this-one").sink.check()
    assert "not-this-one" not in str(refused.value)
    with pytest.raises(StoreRefused, match="check options user, password"):
        counting(server.url, unique).sink.check()
    counting(server.url, unique, password="right").run(0, ones(range(3)))


def test_replica_is_refused(private_redis: Callable[..., RedisProcess], unique: str) -> None:
    primary = private_redis()
    port = primary.url.rpartition(":")[2].partition("/")[0]
    replica = private_redis(f"replicaof 127.0.0.1 {port}")
    with pytest.raises(StoreUnreachable, match="is a replica"):
        counting(replica.url, unique).sink.check()


def test_full_server_refuses_before_or_after_the_decision_and_goes_on_once_it_has_room(
    private_redis: Callable[..., RedisProcess], unique: str
) -> None:
    server = private_redis("maxmemory-policy noeviction")
    query = counting(server.url, unique)
    query.run(0, ones(range(10)))
    receipts = query.stage(1, ones(range(20_000)))
    with redis.Redis.from_url(server.url, decode_responses=True) as client:
        client.config_set("maxmemory", "1")
        with pytest.raises(StoreRefused, match="maxmemory is reached"):
            query.commit(1, receipts)
        client.config_set("maxmemory", "0")
        query.commit(1, receipts)
        assert counts(client, unique) == Counter([*range(10), *range(20_000)])


def test_right_that_is_missing_in_mid_row_stops_there_and_goes_on_once_granted(
    private_redis: Callable[..., RedisProcess], unique: str
) -> None:
    server = private_redis()
    with redis.Redis.from_url(server.url, decode_responses=True) as client:
        client.execute_command("ACL", "SETUSER", "app", "on", ">pw", "~*", "+@all", "-pexpire")
        query = counting(server.url, unique, user="app", password="pw", ttl="1h")
        with pytest.raises(SparkonceError, match="ACL does not allow it"):
            query.run(0, ones(range(10)))
        assert counts(client, unique) == Counter()
        client.execute_command("ACL", "SETUSER", "app", "+pexpire")
        query.restart()
        query.run(0)
        assert counts(client, unique) == Counter(range(10))
        assert all(client.pttl(f"{unique}:{i}") > 0 for i in range(10))
