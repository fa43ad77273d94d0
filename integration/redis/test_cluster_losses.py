"""One node of a cluster goes back to an earlier moment, as where a replica takes over that lags.

At each script of an epoch in turn: what is lost is written again, or the query stops and says so.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable
from itertools import count
from typing import Any

import pytest
import redis
from integration.support.epochs import COUNTER, DirectQuery, dies, ones
from integration.support.redis import BAD, IDS, Dump, World, counts, dies_of
from integration.support.servers.redis_cluster import RedisCluster

from pyspark_redis.cluster.delivery import ClusterDelivery, LaneWriter
from pyspark_redis.cluster.lanes import Lanes
from pyspark_redis.cluster.store import ClusterStore
from pyspark_redis.journal import scripts
from pyspark_redis.server.session import RedisSession
from sparkonce.errors import ConcurrentDriver, SinkBehindCheckpoint, StoreRefused
from sparkonce.exactly_once.ledger import from_record
from sparkonce.operate.admin import Admin
from sparkonce.protocol import Follows, Manifest

run_on = RedisSession.run_on


@pytest.mark.slow
@pytest.mark.parametrize("dies", [True, False], ids=["the driver dies", "the epoch is done"])
@pytest.mark.parametrize("place", ["rows", "ledger"])
def test_what_a_node_loses_is_written_again_or_told(
    cluster: RedisCluster, unique: str, monkeypatch: pytest.MonkeyPatch, place: str, dies: bool
) -> None:
    rows = ones(IDS)
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


@pytest.mark.slow
def test_letters_stay_letters_where_a_node_goes_back_to_a_chunk_that_has_some(
    cluster: RedisCluster, unique: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The row of a letter could be stored now, and one that was stored is refused."""
    world, rows, states = World(cluster, unique), ones(IDS), list[Dump]()
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


@pytest.mark.slow
def test_a_ledger_that_goes_back_to_a_decision_before_the_last_says_so(
    cluster: RedisCluster, unique: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    world, rows, states = World(cluster, unique), ones(IDS), list[Dump]()
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


@pytest.mark.slow
def test_what_a_lost_decision_wrote_is_seen_wherever_clocks_stand(
    cluster: RedisCluster, unique: str
) -> None:
    """Its fence was drawn by a node whose clock is an hour ahead."""
    world, rows = World(cluster, unique), ones(IDS)
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


@pytest.mark.slow
def test_a_decision_of_a_single_server_is_not_applied_in_a_cluster(
    cluster: RedisCluster, unique: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    world, rows = World(cluster, unique), ones(IDS)
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


ROWS = ones(IDS)
apply_chunk = ClusterDelivery.apply_chunk
Patch = pytest.MonkeyPatch


def at_chunk(number: int, do: Callable[[], object]) -> Callable[..., bool]:
    """Do something before that chunk, once."""
    due = [do]

    def applied(delivery: ClusterDelivery, ordinal: int) -> bool:
        if ordinal == number and due:
            due.pop()()
        return apply_chunk(delivery, ordinal)

    return applied


def dies_at_chunk(patch: Patch, number: int, doing: Callable[[], object]) -> None:
    with patch.context() as dying:
        dying.setattr(ClusterDelivery, "apply_chunk", at_chunk(number, dies))
        dies_of(doing)


def decided(query: DirectQuery) -> Manifest:
    ledger = from_record(query.sink.store.read(query.name), query.name)
    assert ledger is not None
    assert ledger.decision.manifest is not None
    return ledger.decision.manifest


@pytest.mark.parametrize("ends", ["a batch without a name", "a sink that is forgotten"])
def test_a_request_that_comes_after_all_changes_nothing(
    cluster: RedisCluster, unique: str, monkeypatch: Patch, ends: str
) -> None:
    """Its client had no answer, and asked again."""
    options = {"url": cluster.url, "keyPrefix": unique, "key": f"{unique}:{{id}}"}
    named = {} if ends.startswith("a batch") else {"sinkId": "named"}
    query = DirectQuery(COUNTER, **options, **named, writeMode="increment")
    query.follows = Follows.NEXT if named else Follows.ONCE
    late, run_on = list[Any](), RedisSession.run_on
    library = scripts.apply_to_lanes("hash")

    def run(session: RedisSession, client: Any, text: str, *given: Any) -> Any:
        if text == library and not late:
            late.append((session, client, text, *given))
            raise redis.TimeoutError
        return run_on(session, client, text, *given)

    with monkeypatch.context() as slow:
        slow.setattr(RedisSession, "run_on", run)
        query.run(0, ROWS)
    if named:
        admin = Admin(query.sink.store)
        admin.forget(query.name)
        assert admin.sweep(0, 0) == 1
    assert query.name not in query.sink.store.names()
    run_on(*late[0])
    assert counts(cluster, unique) == Counter(IDS)


def test_a_letter_that_the_ledger_loses_on_a_second_walk_is_written_again(
    cluster: RedisCluster, unique: str, monkeypatch: Patch
) -> None:
    world, states = World(cluster, unique), dict[str, Any]()
    bad, worse = (world.everywhere.of(f"{unique}-{{x}}{at}") for at in (13, 0))
    world.everywhere.of(f"{unique}-{{x}}{BAD}")[0].delete(f"{unique}-{{x}}{BAD}")
    bad[0].set(bad[1], "mine")
    states["rows"] = world.dump("rows")
    receipts = world.query.stage(0, ROWS)
    dies_at_chunk(monkeypatch, 2, lambda: world.query.commit(0, receipts))
    assert world.letters() == 1
    world.restore("rows", states["rows"])
    worse[0].set(worse[1], "mine")
    states["ledger"] = world.dump("ledger")
    back = at_chunk(2, lambda: world.restore("ledger", states["ledger"]))
    monkeypatch.setattr(ClusterDelivery, "apply_chunk", back)
    world.query.restart()
    assert world.query.run(0, ROWS).totals.aside == world.letters() == 2
    assert world.counts() == Counter(at for at in IDS if at not in (0, 13))


def test_what_a_lost_decision_left_half_written_is_written_again(
    cluster: RedisCluster, unique: str, monkeypatch: Patch
) -> None:
    """The other driver of the same epoch drew a higher fence, and its decision is lost."""
    world = World(cluster, unique)
    world.query.run(0, ROWS)
    receipts, decide = world.query.stage(1, ROWS), ClusterStore.decide
    other = DirectQuery(COUNTER, **world.query.options)
    other.query_id = world.query.query_id

    def late(store: ClusterStore, decision: Any) -> Any:
        monkeypatch.setattr(ClusterStore, "decide", decide)
        before, staged = world.dump("ledger"), other.stage(1, ROWS)
        dies_at_chunk(monkeypatch, 1, lambda: other.commit(1, staged))
        world.restore("ledger", before)
        return decide(store, decision)

    monkeypatch.setattr(ClusterStore, "decide", late)
    with pytest.raises(SinkBehindCheckpoint, match="its ledger does not know"):
        world.query.commit(1, receipts)
    world.query.restart(onLostCommit="continue@1")
    world.query.run(1, ROWS)
    assert world.counts() == Counter({at: 3 if at < 10 else 2 for at in IDS if at != BAD})


def test_a_row_that_is_stored_beside_its_letter_is_told(
    cluster: RedisCluster, unique: str, monkeypatch: Patch
) -> None:
    """One driver has read a chunk without letters, and sends it after another has written some."""
    world, write = World(cluster, unique), LaneWriter.write
    world.query.run(0, ROWS)
    receipts, bad = world.query.stage(1, ROWS), world.everywhere.of(f"{unique}-{{x}}{BAD}")

    def late(writer: LaneWriter, *given: Any) -> Any:
        monkeypatch.setattr(LaneWriter, "write", write)
        state, other = world.dump("rows"), DirectQuery(COUNTER, **world.query.options)
        manifest = decided(world.query)
        dies_at_chunk(monkeypatch, 1, lambda: other.sink.store.apply(manifest))
        world.restore("rows", state)
        bad[0].delete(bad[1])
        return write(writer, *given)

    monkeypatch.setattr(LaneWriter, "write", late)
    with pytest.raises(SinkBehindCheckpoint, match="are dead letters, and are stored, too"):
        world.query.commit(1, receipts)
    world.query.restart(onLostCommit="continue@1")
    world.query.run(1, ROWS)
    assert world.letters() == 2


def test_letters_that_another_driver_wrote_are_counted(
    cluster: RedisCluster, unique: str, monkeypatch: Patch
) -> None:
    """It applied the rest of the epoch, and died before it moved the ledger."""
    world = World(cluster, unique)
    for at in (13, 23):
        client, key = world.everywhere.of(f"{unique}-{{x}}{at}")
        client.set(key, "mine")
    receipts, other = world.query.stage(0, ROWS), DirectQuery(COUNTER, **world.query.options)

    def all_of_it() -> None:
        other.sink.store.apply(decided(world.query))

    monkeypatch.setattr(ClusterDelivery, "apply_chunk", at_chunk(1, all_of_it))
    assert world.query.commit(0, receipts).totals.aside == world.letters() == 3


def test_a_driver_that_is_overtaken_while_it_looks_raises_no_alarm(
    cluster: RedisCluster, unique: str, monkeypatch: Patch
) -> None:
    world, known = World(cluster, unique), Lanes.known
    world.query.run(0, ROWS)
    other = DirectQuery(COUNTER, **world.query.options)
    other.query_id, other.run_id = world.query.query_id, world.query.run_id
    epochs = [2, 1]

    def overtaken(lanes: Lanes) -> Any:
        found = known(lanes)
        monkeypatch.setattr(Lanes, "known", known)
        if epochs:
            other.run(epochs.pop(), ROWS)
            monkeypatch.setattr(Lanes, "known", overtaken)
        return found

    monkeypatch.setattr(Lanes, "known", overtaken)
    world.query.restart()
    with pytest.raises(ConcurrentDriver):
        world.query.run(1, ROWS)
    assert world.counts() == Counter({at: 3 for at in IDS if at != BAD})


def test_a_fence_that_is_lost_is_not_drawn_again(cluster: RedisCluster, unique: str) -> None:
    """The clock of the node that drew the last one was ahead."""
    world = World(cluster, unique)
    world.query.run(0, ROWS)
    lanes = Lanes(world.query.sink.store.session, world.query.name)
    world.everywhere.of(lanes.key)[0].hset(lanes.key, "drawn", 2**52)
    state, drawn = world.dump("ledger"), set[int]()
    for _ in range(3):
        drawn.add(lanes.draw(0))
        world.restore("ledger", state)
    assert len(drawn) > 1
    assert min(drawn) > 2**52
