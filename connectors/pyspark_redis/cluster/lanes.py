"""The lanes of a sink in a cluster: their progress, and the ledger slot's record of it.

A lane is one slot's share of a target. Its progress is the fence of the last decision that it has
seen, and a number of chunks of that decision. Later decisions have higher fences.
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
STEP = 100_000  # the largest random step of a fence

LATE = 3_600_000
"""The longest delay, in milliseconds, of a script that a driver sent to a forgotten sink."""

ANEW = (
    "write all rows again under a new name: with a new checkpoint, or another txnAppId; and another"
    " sinkId if one is set"
)
LESS = "waitReplicas and waitAof make it less likely"

S = TypeVar("S")
T = TypeVar("T")


@dataclass(frozen=True)
class LaneProgress:
    """The progress that lanes have, or must have, in the form that the ledger's slot stores."""

    # By slot, the fence of the last decision that its lane has seen; 0 for none.
    fences: array[float]
    counts: array[int]  # by slot, the chunks of that decision
    dropped: float = 0.0  # progress up to this fence belongs to a forgotten sink

    @classmethod
    def nothing(cls) -> LaneProgress:
        """The progress if no lane has seen a chunk."""
        return cls(array("d", bytes(8 * SLOTS)), array("I", bytes(4 * SLOTS)))

    @classmethod
    def anything(cls) -> LaneProgress:
        """A requirement that any progress meets."""
        return replace(cls.nothing(), dropped=inf)

    def learn(self, seen: NodeProgress) -> None:
        """Record the progress of lanes of a node."""
        for slot, fence, n in zip(*seen, strict=True):
            self.fences[slot], self.counts[slot] = fence, int(n)

    def required(self, slots: Sequence[int]) -> tuple[bytes, bytes]:
        """The progress that these lanes must have, as `cluster/lua/apply.lua` reads it."""
        fences = array("d", map(self.fences.__getitem__, slots))
        if self.dropped:
            fences = array("d", [one if one > self.dropped else -self.dropped for one in fences])
        return fences.tobytes(), array("I", map(self.counts.__getitem__, slots)).tobytes()

    def differing(self, nodes: Iterable[NodeProgress]) -> Iterator[int]:
        """For each lane with other progress: -1 if it lacks chunks, 1 if it has more."""
        for node in nodes:
            for slot, fence, n in zip(*node, strict=True):
                seen, must = (fence, n), (self.fences[slot], self.counts[slot])
                if seen != must and max(fence, must[0]) > self.dropped:
                    yield -1 if seen < must else 1

    @property
    def text(self) -> bytes:
        """The stored form."""
        return self.fences.tobytes() + self.counts.tobytes()

    @property
    def slots(self) -> list[int]:
        """The slots whose lanes have seen a chunk."""
        return list(compress(range(SLOTS), self.fences))


class NodeProgress(NamedTuple):
    """The progress of lanes on one node: their slots, and the fence and count of each."""

    slots: Sequence[int]
    fences: array[float]
    counts: array[float]


@dataclass(frozen=True)
class Lanes:
    """The lanes of one sink."""

    session: ClusterSession
    sink: str

    @property
    def key(self) -> str:
        """The key, in the ledger's slot, of the recorded progress."""
        return self.session.key("lanes", self.sink)

    @property
    def letters(self) -> str:
        """The key, in the ledger's slot, of rows that are letters, see `cluster/delivery.py`."""
        return self.session.key("lettered", self.sink)

    def known(self) -> LaneProgress:
        """The progress that the ledger's slot has recorded."""
        found: Any = self.session.client.hmget(self.key, "known", "dropped")
        text = found[0] or bytes(12 * SLOTS)
        with reading(self.key):
            fences, counts = array("d", text[: 8 * SLOTS]), array("I", text[8 * SLOTS :])
            if (len(fences), len(counts)) != (SLOTS, SLOTS):
                raise ValueError(f"{len(text)} bytes for {SLOTS} slots")
            return LaneProgress(fences, counts, float(found[1] or 0))

    def draw(self, above: int) -> int:
        """Draw the fence of a decision, above `above` and all fences drawn before."""
        step = 1 + secrets.randbelow(STEP)
        return int(self.session.run(scripts.fence(), [self.key], [above, step]))

    def of(self, slot: int) -> str:
        """The key of a lane."""
        return f"{self.session.prefix}:{{{tags()[slot]}}}:{self.sink}"

    @property
    def key_parts(self) -> list[str]:
        """The parts from which scripts build the keys of lanes, with the tag of a slot."""
        return [f"{self.session.prefix}:", self.sink]

    def states(self, slots: Sequence[int]) -> list[NodeProgress]:
        """The progress of these lanes, node by node."""
        found = self._run(scripts.lane_states(), slots)
        return [NodeProgress(own, *(array("d", text) for text in seen)) for own, seen in found]

    def _run(self, script: str, slots: Sequence[int], *given: Any) -> list[tuple[Any, Any]]:
        """Run a script with `lane.lua` on the nodes of lanes; the reply for each group of lanes."""

        def run(client: redis.Redis, own: Sequence[int]) -> tuple[Sequence[int], Any]:
            args = [*self.key_parts, " ".join(map(tags().__getitem__, own)), *given]
            return own, self.session.run_on(client, script, [self.of(own[0])], args)

        return self._each_node(slots, run)

    def make_safe(self, slots: Sequence[int]) -> None:
        """Confirm that writes to the nodes of these lanes are as durable as required."""
        if self.session.durability.commands():

            def probe(client: redis.Redis, own: Sequence[int]) -> None:
                self.session.run_durably_on(client, PROBE, [f"{self.of(own[0])}:probe"], [])

            self._each_node(slots, probe)

    def drop(self, record: str, stamp: str) -> None:
        """Forget all progress, before the sink's record with this stamp is removed.

        A query of the same name may begin meanwhile: its writes have a higher fence, and stay.
        """
        own, known, seen = [record, self.key], self.known(), LaneProgress.nothing()
        if known.slots:  # lanes may have more than is recorded, from a lost decision
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
        """Call `do` for groups of at most `SHORT` lanes, on all nodes in parallel."""

        def on_node(node: tuple[Address, array[int]]) -> list[T]:
            client, own = self.session.nodes.connect(node[0]), [slots[lane] for lane in node[1]]
            return [do(client, own[at : at + SHORT]) for at in range(0, len(own), SHORT)]

        return [*chain.from_iterable(at_once(on_node, self.by_node(slots).items()))]

    def by_node(self, slots: Sequence[int]) -> dict[Address, array[int]]:
        """For each node, the indexes in `slots`, which are sorted, of the slots that it serves."""
        found: dict[Address, array[int]] = defaultdict(lambda: array("H"))
        at = 0
        while at < len(slots):
            owner = self.session.nodes.range_of(slots[at])
            end = bisect_right(slots, owner.last, at)
            found[owner.address].extend(range(at, end))
            at = end
        return found


def at_once(do: Callable[[S], T], each: Iterable[S]) -> list[T]:
    """Call `do` for each item in parallel."""
    items = list(each)
    if len(items) < 2:
        return [do(one) for one in items]
    with ThreadPoolExecutor(len(items)) as pool:
        return list(pool.map(do, items))


def lane_behind(sink: str, epoch: int) -> SinkBehindCheckpoint:
    """The error if a node lacks rows that it has acknowledged."""
    return SinkBehindCheckpoint(
        f"A node of the cluster lacks rows of sink {sink!r} that it had acknowledged",
        why="replication is asynchronous: a replica that took over, or a node that restarted,"
        " lacked the last writes",
        todo=f"restore those rows from a backup, or {ANEW}; or, to continue without them, set"
        f" option onLostCommit=continue@{epoch}. {LESS}",
    )


def ledger_behind(sink: str, epoch: int) -> SinkBehindCheckpoint:
    """The error if the node of the ledger lacks a decision that lanes have seen."""
    return SinkBehindCheckpoint(
        f"The cluster holds rows of an epoch of sink {sink!r} that its ledger does not know",
        why="the node of the ledger lost acknowledged writes (a failover): a second write of the"
        " epoch could duplicate those rows",
        todo=f"{ANEW}, into an empty target if rows add up; or, to continue and write that epoch"
        f" and later ones again, set option onLostCommit=continue@{epoch}. {LESS}",
    )
