"""A running chaos run: the servers, the driver, and the operations of faults."""

from __future__ import annotations

import json
import shutil
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from integration.support.proxy import Proxy
from tools.chaos.drivers import Broken, ChaosSpark, DriverKeeper
from tools.chaos.query import Query
from tools.chaos.target import COUNTERS, QUERIES, ROWS, SIDES, Target
from tools.chaos.topic import NAME, Ends, Topic

MOST = {ROWS: 8000, COUNTERS: 3000}
"""Events in an epoch. One of the counters is small enough for Redis to publish atomically."""

SAID = "split(cast(value as string), ',')"
EVENTS = {
    ROWS: ("partition as part", "offset as place", f"cast({SAID}[1] as bigint) as amount"),
    COUNTERS: (
        f"explode(array{SIDES}) as side",
        f"cast({SAID}[0] as int) as bucket",
        "1L as n",
        f"cast({SAID}[1] as bigint) as amount",
    ),
}
"""Each event once; for the counters twice, once for each side."""

TIMEOUT, PATIENT = 5, 90


class World(DriverKeeper):
    """A driver with both queries; produces `burst` events at a time, until the `deadline`."""

    def __init__(
        self,
        target: Target,
        url: str,
        topic: Topic,
        spark: ChaosSpark,
        home: Path,
        *,
        burst: int,
        deadline: float,
    ) -> None:
        super().__init__(home, spark, QUERIES)
        self.target, self.url, self.topic = target, url, topic
        self.burst, self.deadline = burst, deadline

    def committed(self) -> dict[str, Ends]:
        """The offsets up to which each query has committed."""
        epochs = self.epochs()
        return {name: ends_of(self.checkpoint(name), epochs[name]) for name in QUERIES}

    def feed(self) -> None:
        self.topic.produce(self.burst)

    def hungry(self) -> bool:
        done = [sum(ends.values()) for ends in self.committed().values()]
        return max(done) >= self.topic.produced

    def drain(self) -> None:
        """Wait until both queries have committed all events of the topic."""
        ends = self.topic.ends()

        def drained() -> bool:
            self.supervise()
            return all(done == ends for done in self.committed().values())

        while not drained():
            if time.monotonic() > self.deadline:
                raise Broken(f"the queries did not reach the end: {self.epochs()}")
            time.sleep(0.2)

    # -- set-up

    def _queries(self) -> Mapping[str, Query]:
        return {name: self._query(name) for name in QUERIES}

    def _query(self, name: str) -> Query:
        reads = {
            "kafka.bootstrap.servers": self.topic.address,
            "subscribe": NAME,
            "startingOffsets": "earliest",
            "maxOffsetsPerTrigger": str(MOST[name]),
        }
        writes = {
            **self.target.options(name),
            "url": self.url,
            "timeout": str(PATIENT if self.mode.patient else TIMEOUT),
            "chunkRows": "500",
            "checkpointLocation": str(self.checkpoint(name)),
        }
        columns = self.target.columns if name == ROWS else ("side", "bucket", "n", "amount")
        return Query(("kafka", self.target.format), reads, writes, columns, EVENTS[name])


class ChaosWorld(World):
    """The parts of a chaos run; a proxy lies between the driver and the store."""

    def __init__(self, target: Target, proxy: Proxy, *rest: Any, **how: Any) -> None:
        super().__init__(target, proxy.url, *rest, **how)
        self.proxy = proxy

    def must_fail(self, error: str) -> str:
        """Wait until the driver has ended with this error; return the error."""
        driver, limit = self.driver, time.monotonic() + 120.0
        if driver is None:
            raise Broken("no driver exists")
        while driver.alive and time.monotonic() < limit:
            self.topic.produce(self.burst)
            time.sleep(1.0)
        name, text = driver.end()
        if driver.alive or name != error:
            raise Broken(f"the driver did not end with {error}, but with {name}: {text}")
        return f"{name}: {text}"


def fresh(home: Path) -> Path:
    """An empty directory."""
    shutil.rmtree(home, ignore_errors=True)
    home.mkdir(parents=True)
    return home


def ends_of(home: Path, epoch: int) -> Ends:
    """The offsets of an epoch in a checkpoint; of epoch -1 none."""
    if epoch < 0:
        return {}
    *_, last = (home / "offsets" / str(epoch)).read_text().splitlines()
    return {int(one): end for one, end in json.loads(last)[NAME].items()}
