"""What the lanes of a cluster have seen of a sink, and what the ledger's slot knows of that."""

from __future__ import annotations

from array import array
from bisect import bisect_right
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from itertools import compress
from typing import Any, NamedTuple, TypeVar

import redis

from pyspark_redis.journal import scripts
from pyspark_redis.server.nodes import Address, ClusterSession
from pyspark_redis.server.session import PROBE
from pyspark_redis.server.slots import SLOTS, tags

S = TypeVar("S")
T = TypeVar("T")


@dataclass(frozen=True)
class Known:
    """What the ledger's slot knows of lanes.

    Attributes:
        fences: for each slot that of the decision which its lane has seen last; 0 for none.
        counts: how many of its chunks.
    """

    fences: array[float]
    counts: array[int]

    def learn(self, state: State) -> None:
        """Know what lanes of a node have seen."""
        for slot, fence, n in zip(*state, strict=True):
            self.fences[slot], self.counts[slot] = fence, int(n)

    @property
    def text(self) -> bytes:
        """As it is stored."""
        return self.fences.tobytes() + self.counts.tobytes()

    @property
    def slots(self) -> list[int]:
        """Those whose lanes have seen any."""
        return list(compress(range(SLOTS), self.fences))


class State(NamedTuple):
    """What lanes of one node have seen.

    Attributes:
        slots: of the lanes.
        fences: of the last decision that each has seen; 0 for none.
        counts: how many of its chunks.
    """

    slots: Sequence[int]
    fences: array[float]
    counts: array[float]


@dataclass(frozen=True)
class Lanes:
    """Those of one sink."""

    session: ClusterSession
    sink: str

    @property
    def key(self) -> str:
        """Where the ledger's slot keeps what it knows of them."""
        return self.session.key("lanes", self.sink)

    def known(self) -> Known:
        """What the ledger's slot knows of them."""
        found: Any = self.session.client.hget(self.key, "known") or bytes(12 * SLOTS)
        return Known(_doubles(found[: 8 * SLOTS]), array("I", found[8 * SLOTS :]))

    def draw(self, above: int) -> int:
        """Draw the fence of a decision, above those that lanes have seen."""
        return int(self.session.run(scripts.fence(), [self.key], [above]))

    def of(self, slot: int) -> str:
        """The key of a lane."""
        return f"{self.session.prefix}:{{{tags()[slot]}}}:{self.sink}"

    @property
    def named(self) -> list[str]:
        """By what scripts make such keys of tags."""
        return [f"{self.session.prefix}:", self.sink]

    def states(self, slots: Sequence[int]) -> Iterator[State]:
        """What these lanes have seen, node by node."""

        def read(client: redis.Redis, own: Sequence[int]) -> State:
            given = [*self.named, _tags(own)]
            found = self.session.run_on(client, scripts.lane_states(), [self.of(own[0])], given)
            return State(own, *map(_doubles, found))

        return self.each_node(slots, read)

    def make_safe(self, slots: Sequence[int]) -> None:
        """See that what was written to the nodes of these lanes is as safe as was asked."""
        if self.session.durability.commands():

            def probe(client: redis.Redis, own: Sequence[int]) -> None:
                self.session.run_durably_on(client, PROBE, [f"{self.of(own[0])}:probe"], [])

            for _ in self.each_node(slots, probe):
                pass

    def drop(self) -> None:
        """Forget all."""

        def forget(client: redis.Redis, own: Sequence[int]) -> None:
            given = [*self.named, _tags(own)]
            self.session.run_on(client, scripts.lane_drop(), [self.of(own[0])], given)

        for _ in self.each_node(self.known().slots, forget):
            pass
        self.session.client.unlink(self.key)

    def each_node(
        self, slots: Sequence[int], do: Callable[[redis.Redis, Sequence[int]], T]
    ) -> Iterator[T]:
        """Do something with the lanes of each node, at once."""
        by_node: dict[Address, list[int]] = defaultdict(list)
        for address, first, end in self.owners(slots):
            by_node[address] += slots[first:end]
        connect = self.session.nodes.connect
        return at_once(lambda own: do(connect(own[0]), own[1]), by_node.items())

    def owners(self, slots: Sequence[int]) -> Iterator[tuple[Address, int, int]]:
        """Nodes, and the part of these slots, which are in order, that each serves."""
        at = 0
        while at < len(slots):
            owner = self.session.nodes.range_of(slots[at])
            end = bisect_right(slots, owner.last, at)
            yield owner.address, at, end
            at = end


def at_once(do: Callable[[S], T], each: Iterable[S]) -> Iterator[T]:
    """Do something with each, at the same time; all are done when the first result comes."""
    items = list(each)
    if len(items) < 2:
        return iter([do(one) for one in items])
    with ThreadPoolExecutor(len(items)) as pool:
        return iter(list(pool.map(do, items)))


def _tags(slots: Sequence[int]) -> str:
    return " ".join(map(tags().__getitem__, slots))


def _doubles(text: bytes) -> array[float]:
    return array("d", text)
