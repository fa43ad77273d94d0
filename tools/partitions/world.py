"""A running run: the network, the cluster, the driver, and what the queries named as lost."""

from __future__ import annotations

import json
import re
import time
from abc import abstractmethod
from collections import Counter
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
    r" (?:ends at epoch (\d+)|holds no epoch).*?onLostCommit=(continue@(\d+))",
    re.DOTALL,
)
"""The error of a query whose sink lacks epochs: its id, the last one of the sink, the advice."""

BACKLOG = 10_000
"""The most events that wait for the queries."""

PAUSE = 0.5
"""Seconds between two bursts."""

RESTARTS = frozenset({"DecisionLost", "StaleSkip", "SinkBehindCheckpoint"})
"""Errors that are true where a cluster loses acknowledged writes."""


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
    """

    network: Network
    target: Cluster
    notes: list[str]

    @property
    @abstractmethod
    def sinks_url(self) -> str:
        """The URL of the store that has the ledgers of the queries."""

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
        self.expected = EXPECTED | (RESTARTS if cluster.loses else frozenset())
        self.losses: list[Loss] = []
        self.notes: list[str] = []
        self._advice: dict[str, str] = {}

    @property
    def sinks_url(self) -> str:
        return self.target.url

    def feed(self) -> None:
        done = max(sum(ends.values()) for ends in self.committed().values())
        if self.topic.produced < done + BACKLOG:
            super().feed()

    def named(self, events: Iterable[Event]) -> Named:
        """The events of all lost epochs."""
        rows, buckets = set(), Counter[int]()
        for event in events:
            at = event.partition, event.offset
            hit = {loss.query for loss in self.losses if loss.has(*at)}
            if ROWS in hit:
                rows.add(at)
            buckets[event.bucket] += COUNTERS in hit
        return Named(frozenset(rows), buckets)

    def _note_end(self, driver: ChaosDriver) -> None:
        super()._note_end(driver)
        for query_id, last, advice, following in BEHIND.findall(driver.said):
            self._accept(query_id, int(last or -1), advice, int(following))

    def _accept(self, query_id: str, last: int, advice: str, following: int) -> None:
        query = next(name for name in self.names if self._id(name) == query_id)
        if not self.target.loses:
            raise Broken(f"{query} lacks epochs {last + 1} to {following - 1}: nothing may be lost")
        if self._advice.get(query) != advice:
            self._advice[query] = advice
            place = self.checkpoint(query)
            span = ends_of(place, last), ends_of(place, following - 1)
            loss = Loss(query, last + 1, following - 1, *span)
            self.losses.append(loss)
            self.notes.append(str(loss))

    def _id(self, query: str) -> str:
        return str(json.loads((self.checkpoint(query) / "metadata").read_text())["id"])

    def _query(self, name: str) -> Query:
        query = super()._query(name)
        more = {"onLostCommit": self._advice[name]} if name in self._advice else {}
        return replace(query, writes={**query.writes, **more})
