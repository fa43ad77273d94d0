"""A primary of a cluster dies: what its replica has goes on; what it lacks is noticed."""

from __future__ import annotations

import os
import signal
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial

import pyarrow as pa
import pytest
from integration.support.counters import one
from integration.support.epochs import DirectQuery
from integration.support.redis_deaths import dies
from integration.support.redis_everywhere import counts
from integration.support.servers.process import wait_until
from integration.support.servers.redis_cluster import Node, RedisCluster

from pyspark_redis.cluster.delivery import ClusterDelivery
from pyspark_redis.server.nodes import slot_of
from sparkonce.errors import SinkBehindCheckpoint, StoreUnreachable

pytestmark = pytest.mark.variants

ROWS = pa.schema([("id", pa.int64()), ("n", pa.int64())])
IDS = range(200)


def query(cluster: RedisCluster, **options: str) -> DirectQuery:
    own = {"url": cluster.url, "key": "c:{id}", "writeMode": "increment", "timeout": "4"}
    return DirectQuery(ROWS, **{**own, "chunkRows": "50", "maxRetries": "8", **options})


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


def in_step(cluster: RedisCluster) -> bool:
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
            counting.run(2, [one(at) for at in IDS])
    counting.restart(onLostCommit="continue@2")
    counting.run(2, [one(at) for at in IDS])
    counting.restart()
    counting.run(3, [one(at) for at in IDS])


def test_an_epoch_goes_on_where_a_replica_takes_over(
    replicated: RedisCluster, monkeypatch: pytest.MonkeyPatch
) -> None:
    """First another primary dies between two chunks, then that of the ledger."""
    counting, applied = query(replicated, waitReplicas="1"), ClusterDelivery.apply_chunk
    counting.run(0, [one(at) for at in IDS])
    victims = list(owners(replicated))

    def beside_a_death(delivery: ClusterDelivery, ordinal: int) -> bool:
        if ordinal == 2 and victims:
            victims.pop().kill()
        return applied(delivery, ordinal)

    monkeypatch.setattr(ClusterDelivery, "apply_chunk", beside_a_death)
    for epoch in (1, 2):
        counting.restart(waitReplicas="0")
        wait_until(lambda: in_step(replicated), 20, "a replica lags behind")
        rows, whole = [one(at) for at in IDS], partial(recover, replicated)
        failures = counting.run_until_done(epoch, rows, between=whole)
        assert all(isinstance(error, StoreUnreachable) for error in failures)
    assert counts(replicated, "c") == Counter(dict.fromkeys(IDS, 3))


def test_what_a_node_loses_of_an_epoch_is_applied_again(
    replicated: RedisCluster, monkeypatch: pytest.MonkeyPatch
) -> None:
    counting, applied = query(replicated), ClusterDelivery.apply_chunk
    counting.run(0, [one(at) for at in IDS])
    wait_until(lambda: in_step(replicated), 20, "a replica lags behind")
    _, victim = owners(replicated)
    due = [1]

    def lost(delivery: ClusterDelivery, ordinal: int) -> bool:
        if ordinal == 1 and due:
            due.clear()
            with lossy(replicated, victim):
                return applied(delivery, ordinal)
        return applied(delivery, ordinal)

    monkeypatch.setattr(ClusterDelivery, "apply_chunk", lost)
    counting.run_until_done(1, [one(at) for at in IDS], between=partial(recover, replicated))
    assert counts(replicated, "c") == Counter(dict.fromkeys(IDS, 2))


def test_a_node_that_lost_acknowledged_rows_stops_the_query(replicated: RedisCluster) -> None:
    counting = query(replicated)
    counting.run(0, [one(at) for at in IDS])
    wait_until(lambda: in_step(replicated), 20, "a replica lags behind")
    _, victim = owners(replicated)
    with lossy(replicated, victim):
        counting.run(1, [one(at) for at in IDS])
    require_told_until_it_may_go_on(counting, "lacks rows of sink")
    assert set(counts(replicated, "c").values()) == {3, 4}


def test_a_decided_epoch_goes_on_over_a_loss_once_it_may(
    replicated: RedisCluster, monkeypatch: pytest.MonkeyPatch
) -> None:
    counting = query(replicated)
    counting.run(0, [one(at) for at in IDS])
    wait_until(lambda: in_step(replicated), 20, "a replica lags behind")
    _, victim = owners(replicated)
    with lossy(replicated, victim):
        counting.run(1, [one(at) for at in IDS])
        with monkeypatch.context() as dying:
            dying.setattr(ClusterDelivery, "_end_all", dies)
            with pytest.raises(KeyboardInterrupt):
                counting.run(2, [one(at) for at in IDS])
    require_told_until_it_may_go_on(counting, "onLostCommit=continue@2")
    assert set(counts(replicated, "c").values()) == {3, 4}


def test_a_ledger_that_lost_a_decision_stops_the_query(
    replicated: RedisCluster, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its rows are on other nodes: written again, they would count twice."""
    counting, done = query(replicated), ClusterDelivery._end_all
    counting.run(0, [one(at) for at in IDS])
    wait_until(lambda: in_step(replicated), 20, "a replica lags behind")
    ledger, _ = owners(replicated)

    with lossy(replicated, ledger):
        monkeypatch.setattr(ClusterDelivery, "_end_all", dies)
        with pytest.raises(KeyboardInterrupt):
            counting.run(1, [one(at) for at in IDS])
        monkeypatch.setattr(ClusterDelivery, "_end_all", done)
    for _ in range(2):
        counting.restart()
        with pytest.raises(SinkBehindCheckpoint, match="its ledger does not know"):
            counting.run(1, [one(at) for at in IDS])
    counting.restart(onLostCommit="continue@1")
    counting.run(1, [one(at) for at in IDS])
    assert set(counts(replicated, "c").values()) == {2, 3}
