"""The lanes of a sink in a cluster: what they have seen, and what the ledger's slot knows of that.

A lane is one slot's share of a target. It has seen so many chunks of the last decision, whose fence
it holds; fences of later decisions are higher.
"""

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
from pyspark_redis.server.nodes import SLOTS, Address, ClusterSession, tags
from pyspark_redis.server.session import PROBE
from sparkonce.codec import reading
from sparkonce.errors import SinkBehindCheckpoint

SHORT = 2048  # lanes that one script reads: about 6 ms of a node's work
STEP = 100_000  # up to which fences grow, by chance

LATE = 3_600_000
"""Milliseconds by which a script may come late that was sent before its sink was forgotten."""

ANEW = (
    "write all rows again under a new name: with a new checkpoint, or another txnAppId; and another"
    " sinkId if one is set"
)
LESS = "waitReplicas and waitAof make it less likely"

S = TypeVar("S")
T = TypeVar("T")


@dataclass(frozen=True)
class LaneProgress:
    """What lanes have seen, or must have seen, as the ledger's slot keeps it."""

    # For each slot that of the decision which its lane has seen last; 0 for none.
    fences: array[float]
    counts: array[int]  # how many of its chunks
    dropped: float = 0.0  # what lanes have seen up to this fence, was of a sink that was forgotten

    @classmethod
    def nothing(cls) -> LaneProgress:
        """No lane has seen any."""
        return cls(array("d", bytes(8 * SLOTS)), array("I", bytes(4 * SLOTS)))

    @classmethod
    def anything(cls) -> LaneProgress:
        """What lanes have seen does not matter."""
        return replace(cls.nothing(), dropped=inf)

    def learn(self, seen: NodeProgress) -> None:
        """Keep what lanes of a node have seen."""
        for slot, fence, n in zip(*seen, strict=True):
            self.fences[slot], self.counts[slot] = fence, int(n)

    def required(self, slots: Sequence[int]) -> tuple[bytes, bytes]:
        """What these lanes must have seen, as `cluster/lua/apply.lua` reads it."""
        fences = array("d", map(self.fences.__getitem__, slots))
        if self.dropped:
            fences = array("d", [one if one > self.dropped else -self.dropped for one in fences])
        return fences.tobytes(), array("I", map(self.counts.__getitem__, slots)).tobytes()

    def differing(self, nodes: Iterable[NodeProgress]) -> Iterator[int]:
        """Of each lane that has seen something else, whether it lacks some (-1) or has more (1)."""
        for node in nodes:
            for slot, fence, n in zip(*node, strict=True):
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


class NodeProgress(NamedTuple):
    """What lanes of one node have seen: their slots, and of each the fence and count as above."""

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

    @property
    def letters(self) -> str:
        """Where it keeps which rows of a decision are letters, see `cluster/delivery.py`."""
        return self.session.key("lettered", self.sink)

    def known(self) -> LaneProgress:
        """What the ledger's slot knows of them."""
        found: Any = self.session.client.hmget(self.key, "known", "dropped")
        text = found[0] or bytes(12 * SLOTS)
        with reading(self.key):
            fences, counts = array("d", text[: 8 * SLOTS]), array("I", text[8 * SLOTS :])
            if (len(fences), len(counts)) != (SLOTS, SLOTS):
                raise ValueError(f"{len(text)} bytes for {SLOTS} slots")
            return LaneProgress(fences, counts, float(found[1] or 0))

    def draw(self, above: int) -> int:
        """Draw the fence of a decision, above those that lanes have seen."""
        step = 1 + secrets.randbelow(STEP)
        return int(self.session.run(scripts.fence(), [self.key], [above, step]))

    def of(self, slot: int) -> str:
        """The key of a lane."""
        return f"{self.session.prefix}:{{{tags()[slot]}}}:{self.sink}"

    @property
    def key_parts(self) -> list[str]:
        """By what scripts make such keys of tags."""
        return [f"{self.session.prefix}:", self.sink]

    def states(self, slots: Sequence[int]) -> list[NodeProgress]:
        """What these lanes have seen, node by node."""
        found = self._run(scripts.lane_states(), slots)
        return [NodeProgress(own, *(array("d", text) for text in seen)) for own, seen in found]

    def _run(self, script: str, slots: Sequence[int], *given: Any) -> list[tuple[Any, Any]]:
        """Run a script of `lane.lua` on the nodes of lanes; the answer for each some of these."""

        def run(client: redis.Redis, own: Sequence[int]) -> tuple[Sequence[int], Any]:
            args = [*self.key_parts, " ".join(map(tags().__getitem__, own)), *given]
            return own, self.session.run_on(client, script, [self.of(own[0])], args)

        return self._each_node(slots, run)

    def make_safe(self, slots: Sequence[int]) -> None:
        """See that what was written to the nodes of these lanes is as safe as was asked."""
        if self.session.durability.commands():

            def probe(client: redis.Redis, own: Sequence[int]) -> None:
                self.session.run_durably_on(client, PROBE, [f"{self.of(own[0])}:probe"], [])

            self._each_node(slots, probe)

    def drop(self, record: str, stamp: str) -> None:
        """Forget all, before the record of a sink is taken away that has this stamp.

        A query of the same name may begin meanwhile: what it writes has a higher fence, and stays.
        """
        own, known, seen = [record, self.key], self.known(), LaneProgress.nothing()
        if known.slots:  # there may be more than is known, of a decision that was lost
            for state in self.states(range(SLOTS)):
                seen.learn(state)
        fence = int(max(chain(known.fences, seen.fences)))
        if fence and not self.session.run(scripts.bury(), own, [stamp, fence]):
            return
        self._run(scripts.expire_lanes(), seen.slots, fence, LATE)
        self.session.run(scripts.forget(), [*own, self.letters], [stamp, 2 * LATE])

    def _each_node(
        self, slots: Sequence[int], do: Callable[[redis.Redis, Sequence[int]], T]
    ) -> list[T]:
        """Do something with the lanes of each node, at once, and with not too many in one step."""

        def on_node(node: tuple[Address, array[int]]) -> list[T]:
            client, own = self.session.nodes.connect(node[0]), [slots[lane] for lane in node[1]]
            return [do(client, own[at : at + SHORT]) for at in range(0, len(own), SHORT)]

        return [*chain.from_iterable(at_once(on_node, self.by_node(slots).items()))]

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


def at_once(do: Callable[[S], T], each: Iterable[S]) -> list[T]:
    """Do something with each, at the same time."""
    items = list(each)
    if len(items) < 2:
        return [do(one) for one in items]
    with ThreadPoolExecutor(len(items)) as pool:
        return list(pool.map(do, items))


def lane_behind(sink: str, epoch: int) -> SinkBehindCheckpoint:
    """A node lacks what it has acknowledged."""
    return SinkBehindCheckpoint(
        f"A node of the cluster lacks rows of sink {sink!r} that it had acknowledged",
        why="replication is asynchronous: a replica that took over, or a node that was restarted,"
        " had not got what came last",
        todo=f"bring those rows back from a backup, or {ANEW}; or, to go on without them, set"
        f" option onLostCommit=continue@{epoch}. {LESS}",
    )


def ledger_behind(sink: str, epoch: int) -> SinkBehindCheckpoint:
    """The node of the ledger lacks a decision that others have seen."""
    return SinkBehindCheckpoint(
        f"The cluster holds rows of an epoch of sink {sink!r} that its ledger does not know",
        why="the node of the ledger lost what it had acknowledged (a failover): to write the epoch"
        " again could double those rows",
        todo=f"{ANEW}, into an emptied target if rows add up; or, to go on and write that epoch and"
        f" those after it again, set option onLostCommit=continue@{epoch}. {LESS}",
    )
