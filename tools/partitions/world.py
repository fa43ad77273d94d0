"""A running run: the network, the cluster, the driver, and what the queries named as lost."""

from __future__ import annotations

import json
import re
import time
from abc import abstractmethod
from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import Any

from tools.chaos.drivers import EXPECTED, Broken, ChaosDriver, DriverKeeper
from tools.chaos.oracle import Named
from tools.chaos.query import Query
from tools.chaos.target import COUNTERS, ROWS
from tools.chaos.topic import Ends, Event
from tools.chaos.world import World, ends_of
from tools.partitions.cluster import Cluster
from tools.partitions.network import Network

BEHIND = re.compile(
    r"SinkBehindCheckpoint: Epoch \d+ is next for query (\S+), but sink \S+"
    r" (?:ends at epoch \d+|holds no epoch).*?onLostCommit=(continue@(\d+)-(\d+))",
    re.DOTALL,
)
"""The error of a query whose sink lacks epochs: its id, the advice, the first and the last one."""

MOST = {ROWS: 2000, COUNTERS: 1000}
"""Events in an epoch: few, so that faults find many of them."""

BACKLOG = 20_000
"""The most events that wait for the queries."""

PAUSE = 0.5
"""Seconds between two bursts."""

RESTARTS = frozenset({"DecisionLost", "StaleSkip", "SinkBehindCheckpoint"})
"""Errors that are true where a cluster loses acknowledged writes."""

ALONE = EXPECTED - {"ConcurrentDriver"}
"""The errors of a run with one driver at a time."""


@dataclass(frozen=True)
class Loss:
    """Epochs that a query has committed and the store then lost, as the error names them."""

    query: str
    first: int
    last: int
    begin: Ends
    end: Ends

    def __str__(self) -> str:
        return f"epochs {self.first} to {self.last} of {self.query}"

    def has(self, partition: int, offset: int) -> bool:
        """Whether an event of Kafka belongs to these epochs."""
        return self.begin.get(partition, 0) <= offset < self.end.get(partition, 0)


class Struck(DriverKeeper):
    """A keeper whose queries use a cluster that faults strike.

    Attributes:
        notes: what the queries named as lost, in words.
        calm: whether no fault is under way, and the cluster is whole.
    """

    network: Network
    target: Cluster
    notes: list[str]
    calm = True

    @property
    @abstractmethod
    def sinks_url(self) -> str:
        """The URL of the store that has the ledgers of the queries."""

    def _note_end(self, driver: ChaosDriver) -> None:
        if self.calm:  # else drivers may end often with nothing committed
            super()._note_end(driver)

    def hold(self, seconds: float) -> None:
        """Let the queries run for a time, while driver and cluster are looked after."""
        end = time.monotonic() + seconds
        while time.monotonic() < end:
            self.supervise()
            self.target.operate()
            self.feed()
            time.sleep(PAUSE)


class PartitionWorld(World, Struck):
    """The parts of a run; a query whose store lost epochs continues as its error advises.

    Attributes:
        losses: what the queries named as lost.
    """

    target: Cluster

    def __init__(self, network: Network, cluster: Cluster, *rest: Any, **how: Any) -> None:
        super().__init__(cluster, cluster.sink_url, *rest, **how)
        self.network = network
        self.expected = ALONE | (RESTARTS if cluster.loses else frozenset())
        self.losses: list[Loss] = []
        self.notes: list[str] = []
        self._advice: dict[str, str] = {}

    @property
    def sinks_url(self) -> str:
        return self.target.url

    def feed(self) -> None:
        done = min(sum(ends.values()) for ends in self.committed().values())
        if self.topic.produced < done + BACKLOG:
            super().feed()

    def named(self, events: Iterable[Event]) -> Named:
        """The events of all lost epochs."""
        found: dict[str, set[tuple[int, int]]] = {name: set() for name in self.names}
        for event in events:
            at = event.partition, event.offset
            for query in {loss.query for loss in self.losses if loss.has(*at)}:
                found[query].add(at)
        return Named(frozenset(found[ROWS]), frozenset(found[COUNTERS]))

    def _note_end(self, driver: ChaosDriver) -> None:
        super()._note_end(driver)
        for query_id, advice, first, last in BEHIND.findall(driver.said):
            self._accept(query_id, advice, int(first), int(last))

    def _accept(self, query_id: str, advice: str, first: int, last: int) -> None:
        query = next(name for name in self.names if self._id(name) == query_id)
        if not self.target.loses:
            raise Broken(f"{query} lacks epochs {first} to {last}: nothing may be lost")
        if self._advice.get(query) != advice:
            self._advice[query] = advice
            place = self.checkpoint(query)
            loss = Loss(query, first, last, ends_of(place, first - 1), ends_of(place, last))
            self.losses.append(loss)
            self.notes.append(str(loss))

    def _id(self, query: str) -> str:
        return str(json.loads((self.checkpoint(query) / "metadata").read_text())["id"])

    def _query(self, name: str) -> Query:
        query = super()._query(name)
        more = {"onLostCommit": self._advice[name]} if name in self._advice else {}
        reads = {**query.reads, "maxOffsetsPerTrigger": str(MOST[name])}
        return replace(query, reads=reads, writes={**query.writes, **more})
