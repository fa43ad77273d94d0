"""A sink of a cluster is forgotten with its lanes, but for what a new query of its name writes."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from itertools import count
from typing import Any

import pytest
from integration.support.epochs import COUNTER, DirectQuery, dies, one, ones
from integration.support.redis import Everywhere, counts, dies_of
from integration.support.servers.redis_cluster import RedisCluster
from redis.crc import key_slot

from pyspark_redis.cluster.delivery import ClusterDelivery
from pyspark_redis.server.session import RedisSession
from sparkonce.errors import SinkBehindCheckpoint
from sparkonce.operate.admin import Admin
from sparkonce.protocol import Record

pytestmark = pytest.mark.slow
IDS = range(50)
ROWS = ones(IDS)
run_on, end_all = RedisSession.run_on, ClusterDelivery._end_all
Named = Callable[[str], DirectQuery]


@pytest.fixture
def named(cluster: RedisCluster) -> Named:
    def make(name: str) -> DirectQuery:
        options = {"url": cluster.url, "keyPrefix": name, "key": f"{name}:{{id}}"}
        return DirectQuery(COUNTER, **options, sinkId="named", writeMode="increment")

    return make


def forgotten(query: DirectQuery) -> Admin:
    admin = Admin(query.sink.store)
    (name,) = (name for name in query.sink.store.names() if "/" not in name)
    admin.forget(name)
    return admin


def at_script(number: int, do: Callable[[], Any]) -> tuple[Callable[..., Any], list[int]]:
    """Do something before that script; what there are is told in the list."""
    numbers, seen = count(1), list[int]()

    def run(session: RedisSession, *given: Any) -> Any:
        at = next(numbers)
        seen.append(at)
        if at == number:
            do()
        return run_on(session, *given)

    return run, seen


def of_lanes(cluster: RedisCluster, name: str) -> list[bytes]:
    """What is there, and does not expire."""
    begins = f"{{{name}}}".encode(), f"{name}:{{".encode()
    return [key for client, key in Everywhere(cluster).keys(*begins) if client.ttl(key) < 0]


def test_a_sink_that_is_forgotten_leaves_nothing_wherever_its_operator_dies(
    cluster: RedisCluster, named: Named, unique: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    for number in count(1):
        query = named(f"{unique}-{number}")
        query.run(0, ROWS)
        slots = {key_slot(f"{unique}-{number}:{at}".encode()) for at in IDS}
        assert len(of_lanes(cluster, f"{unique}-{number}")) > len(slots)
        admin = forgotten(query)
        with monkeypatch.context() as dying:
            run, seen = at_script(number, dies)
            dying.setattr(RedisSession, "run_on", run)
            dies_of(lambda: admin.sweep(0, 0))  # noqa: B023
        admin.sweep(0, 0)
        assert of_lanes(cluster, f"{unique}-{number}") == []
        if number > len(seen):
            break
    assert number > 5


@pytest.mark.parametrize("dies_too", [True, False], ids=["and dies", "and ends"])
def test_what_a_query_writes_that_begins_meanwhile_stays(
    cluster: RedisCluster,
    named: Named,
    unique: str,
    monkeypatch: pytest.MonkeyPatch,
    dies_too: bool,
) -> None:
    """At each script of the forgetting it decides an epoch, and ends it or is run again."""
    for number in count(1):
        query, later = named(f"{unique}-{number}"), named(f"{unique}-{number}")
        query.run(0, ROWS)
        admin = forgotten(query)

        def begin(of: DirectQuery = later) -> None:
            receipts = of.stage(0, ROWS)
            with monkeypatch.context() as meanwhile:
                meanwhile.setattr(RedisSession, "run_on", run_on)
                if dies_too:
                    meanwhile.setattr(ClusterDelivery, "_end_all", lambda *_: dies())
                dies_of(lambda: of.commit(0, receipts))

        with monkeypatch.context() as beside:
            run, seen = at_script(number, begin)
            beside.setattr(RedisSession, "run_on", run)
            admin.sweep(0, 0)
        later.restart()
        later.run(0, ROWS)
        later.restart()
        later.run(1, ROWS)
        if number > len(seen):
            break
        assert counts(cluster, f"{unique}-{number}") == Counter(dict.fromkeys(IDS, 3)), number
    assert number > 5


def test_a_sink_whose_ledger_has_moved_is_not_forgotten(
    cluster: RedisCluster, named: Named, unique: str
) -> None:
    query = named(unique)
    query.run(0, ROWS)

    def held() -> dict[bytes, bytes]:
        return {key: Everywhere(cluster).of(key)[0].dump(key) for key in of_lanes(cluster, unique)}

    before = held()
    query.sink.store.swap(query.name, Record(), "an older stamp")
    assert held() == before


def test_what_a_lost_decision_wrote_is_forgotten_too(
    cluster: RedisCluster, named: Named, unique: str
) -> None:
    """The ledger's node went back; the operator begins anew, with an emptied target."""
    query, everywhere = named(unique), Everywhere(cluster)
    query.run(0, [one(1)])
    begins = f"{{{unique}}}".encode()
    state = {key: client.dump(key) for client, key in everywhere.keys(begins)}
    query.run(1, ROWS)
    for client, key in list(everywhere.keys(begins, f"{unique}:".encode())):
        if client.type(key) == b"hash" or key.startswith(begins):
            client.unlink(key)
    for key, value in state.items():
        everywhere.of(key)[0].restore(key, 0, value)
    query.restart()
    with pytest.raises(SinkBehindCheckpoint, match="another sinkId"):
        query.run(1, ROWS)
    assert forgotten(query).sweep(0, 0) == 1
    assert of_lanes(cluster, unique) == []
    later = named(unique)
    later.run(0, ROWS)
    later.restart()
    later.run(1, ROWS)
    assert counts(cluster, unique) == Counter(dict.fromkeys(IDS, 2))
