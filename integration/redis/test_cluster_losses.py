"""One node of a cluster goes back to an earlier moment, as where a replica takes over that lags.

At each script of an epoch in turn: what is lost is written again, or the query stops and says so.
"""

from __future__ import annotations

import json
from collections import Counter
from itertools import count
from typing import Any

import pytest
from integration.support.counters import one
from integration.support.redis_deaths import dies, dies_of
from integration.support.redis_losses import BAD, IDS, Dump, World
from integration.support.servers.redis_cluster import RedisCluster

from pyspark_redis.cluster.delivery import ClusterDelivery
from pyspark_redis.server.session import RedisSession
from sparkonce.errors import SinkBehindCheckpoint, StoreRefused

pytestmark = pytest.mark.slow

run_on = RedisSession.run_on


@pytest.mark.parametrize("dies", [True, False], ids=["the driver dies", "the epoch is done"])
@pytest.mark.parametrize("place", ["rows", "ledger"])
def test_what_a_node_loses_is_written_again_or_told(
    cluster: RedisCluster, unique: str, monkeypatch: pytest.MonkeyPatch, place: str, dies: bool
) -> None:
    rows = [one(at) for at in IDS]
    told = again = 0
    for number in count(1):
        world, numbers, states = World(cluster, f"{unique}-{number}"), count(1), list[Dump]()
        world.query.run(0, rows)
        receipts = world.query.stage(1, rows)

        def noting(session: RedisSession, *given: Any) -> Any:
            at = next(numbers)  # noqa: B023
            if at == number:  # noqa: B023
                states.append(world.dump(place))  # noqa: B023
            if dies and at == number + 4:  # noqa: B023
                raise KeyboardInterrupt
            return run_on(session, *given)

        with monkeypatch.context() as noted:
            noted.setattr(RedisSession, "run_on", noting)
            dies_of(lambda: world.query.commit(1, receipts))  # noqa: B023
        if not states:
            break
        world.restore(place, states[0])
        world.query.restart()
        try:
            world.query.run(1, rows)
            world.query.run(2, rows)
        except SinkBehindCheckpoint:
            told += 1
        else:
            again += 1
            assert world.counts() == Counter({at: 3 for at in IDS if at != BAD}), number
            assert world.letters() == 3, number
    assert number > 8
    assert again > 0


def test_letters_stay_letters_where_a_node_goes_back_to_a_chunk_that_has_some(
    cluster: RedisCluster, unique: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The row of a letter could be stored now, and one that was stored is refused."""
    world, rows, states = World(cluster, unique), [one(at) for at in IDS], list[Dump]()
    world.query.run(0, rows)
    receipts = world.query.stage(1, rows)
    applied = ClusterDelivery.apply_chunk

    def noting(delivery: ClusterDelivery, ordinal: int) -> bool:
        if ordinal == 2:
            raise KeyboardInterrupt
        states.append(world.dump("rows"))
        return applied(delivery, ordinal)

    with monkeypatch.context() as noted:
        noted.setattr(ClusterDelivery, "apply_chunk", noting)
        dies_of(lambda: world.query.commit(1, receipts))
    assert world.letters() == 2
    world.restore("rows", states[0])
    stored, refused = (world.everywhere.of(f"{unique}-{{x}}{at}") for at in (BAD, BAD + 1))
    stored[0].delete(stored[1])
    refused[0].set(refused[1], "mine, too")
    world.query.restart()
    ledger = world.query.run(1, rows)
    assert ledger.totals.aside == world.letters() == 3
    assert world.counts() == Counter({at: 2 for at in IDS if at not in (BAD, BAD + 1)})


def test_a_ledger_that_goes_back_to_a_decision_before_the_last_says_so(
    cluster: RedisCluster, unique: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    world, rows, states = World(cluster, unique), [one(at) for at in IDS], list[Dump]()
    world.query.run(0, rows)
    applied = ClusterDelivery.apply

    def noting(delivery: ClusterDelivery, *given: Any) -> Any:
        states.append(world.dump("ledger"))
        return applied(delivery, *given)

    with monkeypatch.context() as noted:
        noted.setattr(ClusterDelivery, "apply", noting)
        world.query.run(1, rows)
    world.query.run(2, rows)
    world.restore("ledger", states[0])
    for _ in range(2):
        world.query.restart()
        with pytest.raises(SinkBehindCheckpoint, match="its ledger does not know"):
            world.query.run(2, rows)
    world.query.restart(onLostCommit="continue@1")
    world.query.run(1, rows)
    world.query.restart()
    world.query.run(2, rows)
    assert world.counts() == Counter({at: 5 for at in IDS if at != BAD})


def test_what_a_lost_decision_wrote_is_seen_wherever_clocks_stand(
    cluster: RedisCluster, unique: str
) -> None:
    """Its fence was drawn by a node whose clock is an hour ahead."""
    world, rows = World(cluster, unique), [one(at) for at in IDS]
    empty = world.dump("ledger")
    world.query.run(0, rows)
    world.restore("ledger", empty)
    (lane,) = (key for key in world.dump("rows") if key.startswith(f"{unique}:{{".encode()))
    client = world.everywhere.of(lane)[0]
    fence, _, seen = client.get(lane).partition(b":")
    client.set(lane, b"%d:%s" % (int(fence) + 3_600_000_000, seen))
    for _ in range(2):
        world.query.restart()
        with pytest.raises(SinkBehindCheckpoint, match="its ledger does not know"):
            world.query.run(0, rows)
    world.query.restart(onLostCommit="continue@0")
    world.query.run(0, rows)
    world.query.restart()
    world.query.run(1, rows)
    assert world.counts() == Counter({at: 3 for at in IDS if at != BAD})


def test_a_decision_of_a_single_server_is_not_applied_in_a_cluster(
    cluster: RedisCluster, unique: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    world, rows = World(cluster, unique), [one(at) for at in IDS]
    with monkeypatch.context() as dying:
        dying.setattr(ClusterDelivery, "apply", dies)
        dies_of(lambda: world.query.run(0, rows))
    key = f"{{{unique}}}:record:{world.query.name}"
    client = world.everywhere.of(key)[0]
    body = json.loads(client.hget(key, "body"))
    body["decision"]["manifest"]["notes"] = {}
    client.hset(key, "body", json.dumps(body))
    for _ in range(2):
        world.query.restart()
        with pytest.raises(StoreRefused, match="decided on a single server"):
            world.query.run(0, rows)
    assert world.counts() == Counter()
