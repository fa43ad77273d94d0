"""A replica takes over, by Sentinel; and epochs that wait until replicas or disks have them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator
from typing import Any

import pyarrow as pa
import pytest
import redis
from integration.support.epochs import DirectQuery
from integration.support.servers.finder import or_skip
from integration.support.servers.process import HOST, wait_until
from integration.support.servers.redis import SERVICE, RedisProcess, SentinelProcess, connect

from sparkonce.errors import SinkBehindCheckpoint, StoreRefused, StoreUnreachable

ROWS = pa.schema([("id", pa.int64()), ("n", pa.int64())])
Private = Callable[..., RedisProcess]


def query(url: str, **options: str) -> DirectQuery:
    given = {"url": url, "key": "t:{id}", "writeMode": "increment", "timeout": "4", **options}
    return DirectQuery(ROWS, **given)


def ones(*ids: int) -> list[dict[str, Any]]:
    return [{"id": one, "n": 1} for one in ids]


def counts(server: RedisProcess) -> Counter[int]:
    with connect(server.url) as client:
        return Counter({int(key[2:]): int(client.hget(key, "n")) for key in client.keys("t:*")})


def in_step(replica: RedisProcess) -> bool:
    with connect(replica.url) as client:
        return bool(client.info("replication")["master_link_status"] == "up")


def is_primary(server: RedisProcess) -> bool:
    """Sentinel ends the connections of clients while it makes a server the primary."""
    try:
        with connect(server.url) as client:
            return bool(client.info("replication")["role"] == "master")
    except redis.ConnectionError:
        return False


@pytest.fixture
def primary(private_redis: Private) -> RedisProcess:
    return private_redis("repl-diskless-sync-delay 0")


@pytest.fixture
def replica(private_redis: Private, primary: RedisProcess) -> RedisProcess:
    started = private_redis(f"replicaof 127.0.0.1 {primary.port}", "repl-diskless-sync-delay 0")
    wait_until(lambda: in_step(started), 20, "the replica is not in step")
    return started


@pytest.fixture
def sentinel(primary: RedisProcess, replica: RedisProcess) -> Iterator[SentinelProcess]:  # noqa: ARG001
    with or_skip(lambda: SentinelProcess(primary)) as started:
        with redis.Redis(port=started.port) as client:
            wait_until(lambda: client.sentinel_slaves(SERVICE), 20, "it knows no replica")
        yield started


def test_what_a_replica_has_goes_on_there_under_the_same_url(
    primary: RedisProcess, replica: RedisProcess, sentinel: SentinelProcess
) -> None:
    nowhere = "127.0.0.1:1"  # the first of the Sentinels may be away
    url = f"redis+sentinel://{nowhere},127.0.0.1:{sentinel.port}/{SERVICE}/0"
    counting = query(url, waitReplicas="1", maxRetries="8")
    counting.sink.check()
    counting.run(0, ones(1, 2))
    receipts = counting.stage(1, ones(2, 3))
    primary.kill()
    wait_until(lambda: is_primary(replica), 30, "no failover")
    with redis.Redis(port=sentinel.port, decode_responses=True) as client:
        told = (HOST, replica.port)
        wait_until(lambda: client.sentinel_get_master_addr_by_name(SERVICE) == told, 30, "untold")
    counting.restart(waitReplicas="0")  # it is alone now
    assert not counting.run_until_done(1, ones(2, 3))
    assert counts(replica) == Counter([1, 2, 2, 3])
    assert receipts[0].rows == (2,)
    with redis.Redis(port=sentinel.port) as client:
        client.execute_command("ACL", "SETUSER", "default", "resetpass", ">secret")
    with pytest.raises(
        StoreRefused, match=f"Sentinel 127.0.0.1:{sentinel.port} asks for a password"
    ):
        query(url, timeout="3").sink.check()


def test_a_primary_that_no_sentinel_knows_is_named(sentinel: SentinelProcess) -> None:
    with pytest.raises(StoreUnreachable, match="The address of primary 'other' is not known"):
        query(f"redis+sentinel://127.0.0.1:{sentinel.port}/other").sink.store.read("x")


@pytest.mark.parametrize("small", [48_000, 0], ids=["one script", "a script a chunk"])
def test_an_epoch_waits_until_replicas_have_it(
    primary: RedisProcess, replica: RedisProcess, small: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    counting = query(primary.url, waitReplicas="1", timeout="1", maxRetries="1")
    monkeypatch.setattr(counting.sink.store, "small_cost", small)
    counting.run(0, ones(1))
    replica.pause()
    with pytest.raises(StoreUnreachable, match="0 of 1 replicas have it"):
        counting.run(1, ones(1, 2))
    replica.resume()
    counting.restart(maxRetries="8")
    monkeypatch.setattr(counting.sink.store, "small_cost", small)
    assert not counting.run_until_done(1, ones(1, 2))
    assert counts(primary) == Counter([1, 1, 2])
    wait_until(lambda: counts(replica) == counts(primary), 10, "the replica lacks rows")


def test_a_failover_that_takes_an_acknowledged_epoch_back_stops_the_query(
    primary: RedisProcess, replica: RedisProcess
) -> None:
    """It was not asked to wait."""
    counting = query(primary.url)
    counting.run(0, ones(1))
    wait_until(lambda: counts(replica) == Counter([1]), 10, "the replica lacks rows")
    with connect(replica.url) as client:
        client.replicaof("NO", "ONE")
    counting.run(1, ones(1, 2))
    primary.kill()
    counting.restart(url=replica.url)
    with pytest.raises(SinkBehindCheckpoint):
        counting.run(2, ones(3))
    assert counts(replica) == Counter([1])


def test_an_epoch_waits_for_the_disk(private_redis: Private) -> None:
    server = private_redis("appendonly yes", "appendfsync everysec")
    with connect(server.url) as client:
        able = tuple(map(int, client.info()["redis_version"].split(".")[:2])) >= (7, 2)
    counting = query(server.url, waitAof="0")
    if not able:
        with pytest.raises(StoreRefused, match="WAITAOF"):
            counting.run(0, ones(1))
        return
    counting.run(0, ones(1))
    server.kill()
    server.start()
    assert counts(server) == Counter([1])
    assert counting.run(1, ones(2)).decision.epoch == 1


def test_a_server_without_an_append_only_file_has_no_disk_to_wait_for(
    private_redis: Private,
) -> None:
    with pytest.raises(StoreRefused, match="WAITAOF"):
        query(private_redis().url, waitAof="0").run(0, ones(1))
