"""What the lanes of a cluster have seen of a sink, and what the ledger's slot knows of that."""

from __future__ import annotations

import secrets
from array import array
from bisect import bisect_right
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from itertools import chain, compress
from math import inf
from typing import Any, NamedTuple, TypeVar

import redis

from pyspark_redis.journal import scripts
from pyspark_redis.server.nodes import Address, ClusterSession
from pyspark_redis.server.session import PROBE
from pyspark_redis.server.slots import SLOTS, tags
from sparkonce.codec import reading

SHORT = 2048
"""Lanes that one script reads: about 6 ms of a node's work."""

STEP = 100_000
"""Up to which fences grow, by chance."""

LATE = 3_600_000
"""Milliseconds by which a script may come late that was sent before its sink was forgotten."""

S = TypeVar("S")
T = TypeVar("T")


@dataclass(frozen=True)
class Known:
    """What the ledger's slot knows of lanes.

    Attributes:
        fences: for each slot that of the decision which its lane has seen last; 0 for none.
        counts: how many of its chunks.
        dropped: what lanes have seen up to this fence, was of a sink that was forgotten.
    """

    fences: array[float]
    counts: array[int]
    dropped: float = 0.0

    @classmethod
    def nothing(cls) -> Known:
        """No lane has seen any."""
        return cls(array("d", bytes(8 * SLOTS)), array("I", bytes(4 * SLOTS)))

    @classmethod
    def anything(cls) -> Known:
        """What lanes have seen does not matter."""
        return replace(cls.nothing(), dropped=inf)

    def learn(self, state: State) -> None:
        """Know what lanes of a node have seen."""
        for slot, fence, n in zip(*state, strict=True):
            self.fences[slot], self.counts[slot] = fence, int(n)

    def must(self, slots: Sequence[int]) -> tuple[bytes, bytes]:
        """What these lanes must have seen, as `lane_apply.lua` reads it."""
        fences = array("d", map(self.fences.__getitem__, slots))
        if self.dropped:
            fences = array("d", [one if one > self.dropped else -self.dropped for one in fences])
        return fences.tobytes(), array("I", map(self.counts.__getitem__, slots)).tobytes()

    def differing(self, states: Iterable[State]) -> Iterator[int]:
        """Of each lane that has seen something else, whether it lacks some (-1) or has more (1)."""
        for state in states:
            for slot, fence, n in zip(*state, strict=True):
                seen, must = (fence, n), (self.fences[slot], self.counts[slot])
                if seen != must and max(fence, must[0]) > self.dropped:
                    yield -1 if seen < must else 1

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
        found: Any = self.session.client.hmget(self.key, "known", "dropped")
        text = found[0] or bytes(12 * SLOTS)
        with reading(self.key):
            fences, counts = _doubles(text[: 8 * SLOTS]), array("I", text[8 * SLOTS :])
            if (len(fences), len(counts)) != (SLOTS, SLOTS):
                raise ValueError(f"{len(text)} bytes for {SLOTS} slots")
            return Known(fences, counts, float(found[1] or 0))

    @property
    def letters(self) -> str:
        """Where it keeps which rows of a decision are letters, see `journal/lettered.py`."""
        return self.session.key("lettered", self.sink)

    def draw(self, above: int) -> int:
        """Draw the fence of a decision, above those that lanes have seen."""
        step = 1 + secrets.randbelow(STEP)
        return int(self.session.run(scripts.fence(), [self.key], [above, step]))

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

    def drop(self, record: str, stamp: str) -> None:
        """Forget all, before the record of a sink is taken away that has this stamp.

        A query of the same name may begin meanwhile: what it writes has a higher fence, and stays.
        """
        own, known, seen = [record, self.key], self.known(), Known.nothing()
        if known.slots:  # there may be more than is known, of a decision that was lost
            for state in self.states(range(SLOTS)):
                seen.learn(state)
        fence = int(max(chain(known.fences, seen.fences)))
        if fence and not self.session.run(scripts.lane_bury(), own, [stamp, fence]):
            return

        def forget(client: redis.Redis, slots: Sequence[int]) -> None:
            given = [*self.named, _tags(slots), fence, LATE]
            self.session.run_on(client, scripts.lane_drop(), [self.of(slots[0])], given)

        for _ in self.each_node(seen.slots, forget):
            pass
        self.session.run(scripts.lane_forget(), [*own, self.letters], [stamp, 2 * LATE])

    def each_node(
        self, slots: Sequence[int], do: Callable[[redis.Redis, Sequence[int]], T]
    ) -> Iterator[T]:
        """Do something with the lanes of each node, at once, and with not too many in one step."""

        def on_node(address: Address, lanes: Sequence[int]) -> list[T]:
            client, own = self.session.nodes.connect(address), [slots[lane] for lane in lanes]
            return [do(client, own[at : at + SHORT]) for at in range(0, len(own), SHORT)]

        told = at_once(lambda own: on_node(*own), self.by_node(slots).items())
        return chain.from_iterable(told)

    def by_node(self, slots: Sequence[int]) -> dict[Address, array[int]]:
        """For each node, which of these slots, which are in order, it serves."""
        found: dict[Address, array[int]] = defaultdict(lambda: array("H"))
        at = 0
        while at < len(slots):
            owner = self.session.nodes.range_of(slots[at])
            end = bisect_right(slots, owner.last, at)
            found[owner.address].extend(range(at, end))
            at = end
        return found


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
