"""Which nodes of a cluster are asked, and what is believed of their answers."""

from __future__ import annotations

from typing import Any

import pytest
import redis

from pyspark_redis.cluster.lanes import Lanes
from pyspark_redis.server.nodes import Address, ClusterSession, Nodes, SlotRange
from pyspark_redis.server.session import Durability

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
