"""What becomes of errors of Redis, and which nodes of a cluster are asked."""

from __future__ import annotations

from typing import Any

import pytest
import redis
from redis import exceptions

from pyspark_redis.cluster.lanes import Lanes
from pyspark_redis.server.address import Sentinels
from pyspark_redis.server.failures import Demoted, OtherType, translate
from pyspark_redis.server.nodes import Address, ClusterSession, Nodes, SlotRange
from pyspark_redis.server.session import Durability
from sparkonce.errors import StoreError, StoreRefused, StoreUnreachable

LOCAL = (
    "Script attempted to access a non local key in a cluster node script: f9, on @user_script:1."
)
NEWER = "ERR Attempted to access a non local key in a cluster node"
DOWN = (
    "Script attempted to execute a command while the cluster is down script: f9, on @user_script:1."
)


@pytest.mark.parametrize(
    ("error", "kind"),
    [
        # As redis-py raises them, which cuts the code of some.
        (exceptions.ClusterDownError("The cluster is down"), StoreUnreachable),
        (exceptions.MasterDownError("Link with MASTER is down"), StoreUnreachable),
        (exceptions.TryAgainError("Multiple keys request during rehashing"), StoreUnreachable),
        (exceptions.MovedError("4576 127.0.0.1:1"), StoreUnreachable),
        (exceptions.AskError("4576 127.0.0.1:1"), StoreUnreachable),
        (redis.ResponseError("MOVED 9330 127.0.0.1:1"), StoreUnreachable),
        (exceptions.BusyLoadingError("Redis is loading"), StoreUnreachable),
        (redis.ResponseError("BUSY Redis is busy running a script"), StoreUnreachable),
        (redis.ResponseError(LOCAL), StoreUnreachable),
        (redis.ResponseError(NEWER), StoreUnreachable),
        (redis.ResponseError(DOWN), StoreUnreachable),
        (exceptions.ReadOnlyError("You can't write"), Demoted),
        (redis.ResponseError("WRONGTYPE Operation against a key"), OtherType),
    ],
)
def test_what_passes_is_told_from_what_is_refused(
    error: redis.RedisError, kind: type[StoreError]
) -> None:
    assert type(translate(error, "asking")) is kind


def test_a_sentinel_that_refuses_the_login_is_named_once_no_other_tells(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    class Asked:
        def __init__(self, host: str, *_: object, **__: object) -> None:
            self.host = host

        def __enter__(self) -> Asked:
            return self

        def __exit__(self, *_: object) -> None: ...

        def sentinel_get_master_addr_by_name(self, _: str) -> object:
            if self.host == "locked":
                raise exceptions.AuthenticationError("Authentication required.")
            if self.host == "away":
                raise redis.ConnectionError("refused")
            return "primary", 6379

    monkeypatch.setattr(redis, "Redis", Asked)
    locked, away, open_ = (("locked", 1), ("away", 2), ("open", 3))
    assert Sentinels((locked, open_), "m").primary() == ("primary", 6379)
    with pytest.raises(redis.ResponseError) as refused:
        Sentinels((locked, away), "m").primary()
    error = translate(refused.value, "asking")
    assert type(error) is StoreRefused
    assert "Sentinel locked:1 refuses the login" in str(error)
    assert "sentinelPassword" in error.todo


# -- which nodes of a cluster are asked, and what is believed of their answers


A, B, C = ("a", 1), ("b", 2), ("c", 3)
Told = dict[Address, Any]


class Node:
    def __init__(self, told: Any) -> None:
        self.told = told

    def execute_command(self, *_: str) -> Any:
        if isinstance(self.told, Exception):
            raise self.told
        return self.told


def nodes(told: Told, *seeds: Address) -> Nodes:
    return Nodes(seeds, lambda address: Node(told[address]))  # type: ignore[arg-type, return-value]


def slots(*ranges: tuple[int, int, bytes, int]) -> list[list[Any]]:
    return [[first, last, [host, port, b"id", []]] for first, last, host, port in ranges]


ALL = slots((0, 99, b"b", 2), (100, 16_383, b"c", 3))


@pytest.mark.parametrize(
    "error",
    [
        redis.ConnectionError("refused"),
        redis.ResponseError("ERR This instance has cluster support disabled"),
        redis.AuthenticationError("WRONGPASS"),
    ],
    ids=str,
)
def test_a_node_that_does_not_tell_is_passed_over(error: Exception) -> None:
    asked = nodes({A: error, B: ALL, C: ALL}, A, B)
    assert asked.ranges() == [SlotRange(0, 99, B), SlotRange(100, 16_383, C)]
    with pytest.raises(type(error)):
        nodes({A: error}, A).ranges()


@pytest.mark.parametrize("name", [b"", b"?", None])
def test_a_node_that_knows_no_name_is_at_the_one_that_leads_to_it(name: Any) -> None:
    assert nodes({A: slots((0, 16_383, name, 7))}, A).range_of(5).address == ("a", 7)


def test_nodes_that_have_left_are_not_asked_for_ever() -> None:
    told: Told = {A: ALL, B: ALL, C: ALL}
    asked = nodes(told, A)
    for port in range(10, 20):
        told.update({B: slots((0, 16_383, b"d", port)), ("d", port): ALL})
        told[A] = told[C] = told[B]
        asked.forget()
        assert asked.range_of(1).address == ("d", port)
        told[B] = told[A] = ALL
        asked.forget()
        asked.ranges()
    assert len(asked.seeds) <= len({A, B, C}) + 1


def test_a_node_is_asked_once_however_its_slots_are_scattered() -> None:
    owners = [(b"b", 2), (b"c", 3)]
    scattered = slots(*((at, at, *owners[at % 2]) for at in range(16_384)))
    session = ClusterSession(nodes({A: scattered}, A), "sparkonce", Durability())
    found = Lanes(session, "sink").by_node(range(1000, 2000))
    assert {address: len(own) for address, own in found.items()} == {B: 500, C: 500}
    assert [*found[B]] == [*range(0, 1000, 2)]


def test_each_node_is_asked_in_turn() -> None:
    """The one that answered last may be on the wrong side of a split."""
    told: Told = {A: ALL, B: ALL, C: ALL}
    asked, first = nodes(told, A, B, C), list[Address]()
    for _ in range(6):
        first.append(asked.seeds[0])
        asked.ranges()
        asked.forget()
    assert first == [A, B, C, A, B, C]
