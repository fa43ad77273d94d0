"""A replica takes over, by Sentinel; and epochs that wait until replicas or disks have them."""

from __future__ import annotations

import os
import signal
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path

import pytest
import redis
from integration.support.epochs import COUNTER, DirectQuery, dies, ones
from integration.support.redis import Private, counts
from integration.support.servers.finder import or_skip
from integration.support.servers.process import HOST, wait_until
from integration.support.servers.redis import SERVICE, RedisProcess, SentinelProcess, connect
from integration.support.servers.redis_cluster import Node, RedisCluster
from redis import Redis

from pyspark_redis.cluster.delivery import ClusterDelivery
from pyspark_redis.server.nodes import slot_of
from sparkonce.errors import SinkBehindCheckpoint, StoreRefused, StoreUnreachable


def query(url: str, **options: str) -> DirectQuery:
    given = {"url": url, "key": "t:{id}", "writeMode": "increment", "timeout": "4", **options}
    return DirectQuery(COUNTER, **given)


def counts_at(server: RedisProcess) -> Counter[int]:
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
        with Redis(port=started.port) as client:
            wait_until(lambda: client.sentinel_slaves(SERVICE), 20, "it knows no replica")
        yield started


def test_what_a_replica_has_goes_on_there_under_the_same_url(
    primary: RedisProcess, replica: RedisProcess, sentinel: SentinelProcess
) -> None:
    nowhere = "127.0.0.1:1"  # the first of the Sentinels may be away
    url = f"redis+sentinel://{nowhere},127.0.0.1:{sentinel.port}/{SERVICE}/0"
    counting = query(url, waitReplicas="1", maxRetries="8")
    counting.sink.check()
    counting.run(0, ones([1, 2]))
    receipts = counting.stage(1, ones([2, 3]))
    primary.kill()
    wait_until(lambda: is_primary(replica), 30, "no failover")
    with Redis(port=sentinel.port, decode_responses=True) as client:
        told = (HOST, replica.port)
        wait_until(lambda: client.sentinel_get_master_addr_by_name(SERVICE) == told, 30, "untold")
    counting.restart(waitReplicas="0")  # it is alone now
    assert not counting.run_until_done(1, ones([2, 3]))
    assert counts_at(replica) == Counter([1, 2, 2, 3])
    assert receipts[0].rows == (2,)
    with Redis(port=sentinel.port) as client:
        client.execute_command("ACL", "SETUSER", "default", "resetpass", ">secret")
    with pytest.raises(StoreRefused, match=f"Sentinel 127.0.0.1:{sentinel.port} refuses the login"):
        query(url, timeout="3").sink.check()


def test_sentinels_have_their_own_login(
    primary: RedisProcess,
    replica: RedisProcess,  # noqa: ARG001
    sentinel: SentinelProcess,
    tmp_path: Path,
) -> None:
    url = f"redis+sentinel://app:of-servers@127.0.0.1:{sentinel.port}/{SERVICE}/0"
    with Redis(port=primary.port) as client:
        client.execute_command("ACL", "SETUSER", "app", "on", ">of-servers", "~*", "&*", "+@all")
    with Redis(port=sentinel.port) as client:
        allowed = ("~*", "&*", "+@all")
        client.execute_command("ACL", "SETUSER", "watcher", "on", ">of-sentinels", *allowed)
        client.execute_command("ACL", "SETUSER", "default", "resetpass", ">by-default")
    file = tmp_path / "password"
    file.write_text("stale\n")
    login = {"sentinelUser": "watcher", "sentinelPasswordFile": str(file), "timeout": "3"}
    with pytest.raises(StoreRefused, match=r"refuses the login: .*sentinelPassword"):
        query(url, **login).sink.check()
    file.write_text("of-sentinels\n")  # a secret that rotates, and no new query
    counting = query(url, **login)
    counting.run(0, ones([1]))
    query(url, sentinelPassword="by-default").sink.check()
    with pytest.raises(StoreRefused, match="refuses the login"):
        query(url, sentinelUser="watcher", sentinelPassword="wrong", timeout="3").sink.check()
    assert counts_at(primary) == Counter([1])


def test_a_primary_that_no_sentinel_knows_is_named(sentinel: SentinelProcess) -> None:
    with pytest.raises(StoreUnreachable, match="The address of primary 'other' is unknown"):
        query(f"redis+sentinel://127.0.0.1:{sentinel.port}/other").sink.store.read("x")


@pytest.mark.parametrize("small", [48_000, 0], ids=["one script", "a script a chunk"])
def test_an_epoch_waits_until_replicas_have_it(
    primary: RedisProcess, replica: RedisProcess, small: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    counting = query(primary.url, waitReplicas="1", timeout="1", maxRetries="1")
    monkeypatch.setattr(counting.sink.store, "small_cost", small)
    counting.run(0, ones([1]))
    replica.pause()
    with pytest.raises(StoreUnreachable, match="0 of 1 replicas have it"):
        counting.run(1, ones([1, 2]))
    replica.resume()
    counting.restart(maxRetries="8")
    monkeypatch.setattr(counting.sink.store, "small_cost", small)
    assert not counting.run_until_done(1, ones([1, 2]))
    assert counts_at(primary) == Counter([1, 1, 2])
    wait_until(lambda: counts_at(replica) == counts_at(primary), 10, "the replica lacks rows")


def test_a_failover_that_takes_an_acknowledged_epoch_back_stops_the_query(
    primary: RedisProcess, replica: RedisProcess
) -> None:
    """It was not asked to wait."""
    counting = query(primary.url)
    counting.run(0, ones([1]))
    wait_until(lambda: counts_at(replica) == Counter([1]), 10, "the replica lacks rows")
    with connect(replica.url) as client:
        client.replicaof("NO", "ONE")
    counting.run(1, ones([1, 2]))
    primary.kill()
    counting.restart(url=replica.url)
    with pytest.raises(SinkBehindCheckpoint):
        counting.run(2, ones([3]))
    assert counts_at(replica) == Counter([1])


def test_an_epoch_waits_for_the_disk(private_redis: Private) -> None:
    server = private_redis("appendonly yes", "appendfsync everysec")
    with connect(server.url) as client:
        able = tuple(map(int, client.info()["redis_version"].split(".")[:2])) >= (7, 2)
    counting = query(server.url, waitAof="0")
    if not able:
        with pytest.raises(StoreRefused, match="WAITAOF"):
            counting.run(0, ones([1]))
        return
    counting.run(0, ones([1]))
    server.kill()
    server.start()
    assert counts_at(server) == Counter([1])
    assert counting.run(1, ones([2])).decision.epoch == 1


def test_a_server_without_an_append_only_file_has_no_disk_to_wait_for(
    private_redis: Private,
) -> None:
    with pytest.raises(StoreRefused, match="WAITAOF"):
        query(private_redis().url, waitAof="0").run(0, ones([1]))


IDS = range(200)


def clustered(cluster: RedisCluster, **options: str) -> DirectQuery:
    own = {"url": cluster.url, "key": "c:{id}", "writeMode": "increment", "timeout": "4"}
    return DirectQuery(COUNTER, **{**own, "chunkRows": "50", "maxRetries": "8", **options})


def owners(cluster: RedisCluster) -> tuple[Node, Node]:
    """The primary of the ledger, and another."""
    ledger = cluster.owner(slot_of(b"{sparkonce}"))
    return ledger, next(node for node in cluster.heads() if node is not ledger)


@contextmanager
def asleep(node: Node) -> Iterator[None]:
    """It gets nothing of what is written meanwhile."""
    os.kill(node.pid, signal.SIGSTOP)
    try:
        yield
    finally:
        os.kill(node.pid, signal.SIGCONT)


@contextmanager
def lossy(cluster: RedisCluster, primary: Node) -> Iterator[None]:
    """What is written meanwhile is acknowledged, and lost."""
    (replica,) = cluster.replicas_of(primary)
    with asleep(replica):
        primary.ask("CLIENT", "KILL", "TYPE", "replica")  # or it would read later what was sent
        yield
        primary.kill()
    wait_until(lambda: replica.is_primary, 30, "no replica took over")
    cluster.wait_until_whole()


def recover(cluster: RedisCluster) -> None:
    wait_until(lambda: len(cluster.heads()) == cluster.primaries, 30, "no replica took over")
    cluster.wait_until_whole()


def all_in_step(cluster: RedisCluster) -> bool:
    return all(
        replica.ask("INFO", "replication")["slave_repl_offset"]
        >= primary.ask("INFO", "replication")["master_repl_offset"]
        for primary in cluster.heads()
        for replica in cluster.replicas_of(primary)
    )


def require_told_until_it_may_go_on(counting: DirectQuery, told: str) -> None:
    """Epoch 2 stops at each start until it may go on; the next one needs no option."""
    for _ in range(2):
        counting.restart()
        with pytest.raises(SinkBehindCheckpoint, match=told):
            counting.run(2, ones(IDS))
    counting.restart(onLostCommit="continue@2")
    counting.run(2, ones(IDS))
    counting.restart()
    counting.run(3, ones(IDS))


@pytest.mark.variants
def test_an_epoch_goes_on_where_a_replica_takes_over(
    replicated: RedisCluster, monkeypatch: pytest.MonkeyPatch
) -> None:
    """First another primary dies between two chunks, then that of the ledger."""
    counting, applied = clustered(replicated, waitReplicas="1"), ClusterDelivery.apply_chunk
    counting.run(0, ones(IDS))
    victims = list(owners(replicated))

    def beside_a_death(delivery: ClusterDelivery, ordinal: int) -> bool:
        if ordinal == 2 and victims:
            victims.pop().kill()
        return applied(delivery, ordinal)

    monkeypatch.setattr(ClusterDelivery, "apply_chunk", beside_a_death)
    for epoch in (1, 2):
        counting.restart(waitReplicas="0")
        wait_until(lambda: all_in_step(replicated), 20, "a replica lags behind")
        rows, whole = ones(IDS), partial(recover, replicated)
        failures = counting.run_until_done(epoch, rows, between=whole)
        assert all(isinstance(error, StoreUnreachable) for error in failures)
    assert counts(replicated, "c") == Counter(dict.fromkeys(IDS, 3))


@pytest.mark.variants
def test_what_a_node_loses_of_an_epoch_is_applied_again(
    replicated: RedisCluster, monkeypatch: pytest.MonkeyPatch
) -> None:
    counting, applied = clustered(replicated), ClusterDelivery.apply_chunk
    counting.run(0, ones(IDS))
    wait_until(lambda: all_in_step(replicated), 20, "a replica lags behind")
    _, victim = owners(replicated)
    due = [1]

    def lost(delivery: ClusterDelivery, ordinal: int) -> bool:
        if ordinal == 1 and due:
            due.clear()
            with lossy(replicated, victim):
                return applied(delivery, ordinal)
        return applied(delivery, ordinal)

    monkeypatch.setattr(ClusterDelivery, "apply_chunk", lost)
    counting.run_until_done(1, ones(IDS), between=partial(recover, replicated))
    assert counts(replicated, "c") == Counter(dict.fromkeys(IDS, 2))


@pytest.mark.variants
def test_a_node_that_lost_acknowledged_rows_stops_the_query(replicated: RedisCluster) -> None:
    counting = clustered(replicated)
    counting.run(0, ones(IDS))
    wait_until(lambda: all_in_step(replicated), 20, "a replica lags behind")
    _, victim = owners(replicated)
    with lossy(replicated, victim):
        counting.run(1, ones(IDS))
    require_told_until_it_may_go_on(counting, "lacks rows of sink")
    assert set(counts(replicated, "c").values()) == {3, 4}


@pytest.mark.variants
def test_a_decided_epoch_goes_on_over_a_loss_once_it_may(
    replicated: RedisCluster, monkeypatch: pytest.MonkeyPatch
) -> None:
    counting = clustered(replicated)
    counting.run(0, ones(IDS))
    wait_until(lambda: all_in_step(replicated), 20, "a replica lags behind")
    _, victim = owners(replicated)
    with lossy(replicated, victim):
        counting.run(1, ones(IDS))
        with monkeypatch.context() as dying:
            dying.setattr(ClusterDelivery, "_end_all", dies)
            with pytest.raises(KeyboardInterrupt):
                counting.run(2, ones(IDS))
    require_told_until_it_may_go_on(counting, "onLostCommit=continue@2")
    assert set(counts(replicated, "c").values()) == {3, 4}


@pytest.mark.variants
def test_a_ledger_that_lost_a_decision_stops_the_query(
    replicated: RedisCluster, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its rows are on other nodes: written again, they would count twice."""
    counting, done = clustered(replicated), ClusterDelivery._end_all
    counting.run(0, ones(IDS))
    wait_until(lambda: all_in_step(replicated), 20, "a replica lags behind")
    ledger, _ = owners(replicated)

    with lossy(replicated, ledger):
        monkeypatch.setattr(ClusterDelivery, "_end_all", dies)
        with pytest.raises(KeyboardInterrupt):
            counting.run(1, ones(IDS))
        monkeypatch.setattr(ClusterDelivery, "_end_all", done)
    for _ in range(2):
        counting.restart()
        with pytest.raises(SinkBehindCheckpoint, match="its ledger does not know"):
            counting.run(1, ones(IDS))
    counting.restart(onLostCommit="continue@1")
    counting.run(1, ones(IDS))
    assert set(counts(replicated, "c").values()) == {2, 3}
