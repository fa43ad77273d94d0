"""The targets of chaos runs: one class for each store, found by the name in STORE."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from importlib import import_module
from typing import TYPE_CHECKING, Any

from integration.support.proxy import Predicate, Proxy
from tools.chaos.topic import BUCKETS

if TYPE_CHECKING:
    from pathlib import Path

    from tools.chaos.world import ChaosWorld

SIDES = ("left", "right")
"""Every event counts on both sides, so they differ only if a reader sees a part of an epoch."""

ROWS, COUNTERS = "rows", "counters"
QUERIES = (ROWS, COUNTERS)
"""The two queries of a driver. `rows` writes each event to its own place, as a witness that shows
every second effect of a row; `counters` adds each event to its bucket."""

LOADING = 180.0
"""Seconds that a server may take to start and load its data."""

Counts = dict[tuple[str, int], tuple[int, int]]
"""For a side and a bucket: the number of events, and the sum of their amounts."""

BOTH = [(side, bucket) for side in SIDES for bucket in range(BUCKETS)]


@dataclass(frozen=True)
class Witness:
    """A row of the target: the place of its event in Kafka, and the number of its effects."""

    partition: int
    offset: int
    times: int
    amount: int


class Target(ABC):
    """A store in a chaos run.

    Attributes:
        name: its name in STORE.
        format: the format of its sinks.
        server: the process that faults kill; its settings make acknowledged writes durable.
        points: the kinds of requests at which faults strike, each with its predicate.
        in_driver: the kinds that the driver sends; tasks send the others.
        moves: whether its data can move between nodes.
        whole: whether readers see an epoch completely or not at all.
        columns: the columns of query `rows`, as SQL expressions over `part`, `place`, `amount` and
            `draw`, a random bigint that makes a replay compute other rows.
    """

    name: str
    format: str
    points: Mapping[str, Predicate]
    in_driver: Sequence[str]
    columns: Sequence[str]
    moves, whole = False, True

    def __init__(self, server: Any, disk: Path | None = None) -> None:
        self.server = server
        if disk:
            server.data = disk / "data"
        server.start_seconds = LOADING

    @property
    def url(self) -> str:
        """The URL of the server itself."""
        return str(self.server.url)

    def proxy(self) -> Proxy:
        """Make a proxy for the server."""
        return Proxy(self.url)

    def move(self) -> str:
        """Move a part of the data to another node; return a description."""
        raise NotImplementedError

    def prepare(self) -> None:  # noqa: B027
        """Make the targets of both queries."""

    @property
    @abstractmethod
    def version(self) -> str:
        """The version of the server."""

    @abstractmethod
    def options(self, query: str) -> dict[str, str]:
        """The sink's options for a query, without the URL."""

    @abstractmethod
    def rows(self) -> Iterator[Witness]:
        """The rows in the target of query `rows`."""

    @abstractmethod
    def counters(self) -> Counts:
        """The counters in the target of query `counters`."""

    @abstractmethod
    def watch(self) -> Callable[[], tuple[int, int]]:
        """Connect a reader; it returns two sums, which differ if it sees a part of an epoch."""

    @abstractmethod
    def residue(self) -> list[str]:
        """The records that the connector left in the store, except ledgers."""

    def last_checks(self) -> Mapping[str, Callable[[ChaosWorld], str]]:
        """Checks for the end of the run, because they destroy data; each returns its result."""
        return {}


Make = Callable[["Path | None"], Target]
"""Makes a target; the server keeps its data on the given small disk, if any."""


MAKERS = {
    "redis": "redis:RedisTarget",
    "redis-cluster": "redis_cluster:ClusterTarget",
    "mysql": "mysql:MySqlTarget",
    "mariadb": "mysql:MariaDbTarget",
    "elasticsearch": "elasticsearch:ElasticsearchTarget",
}
"""The stores, by their names in STORE."""

ALL = ("redis", "redis-cluster", "mysql", "elasticsearch")
"""The stores of STORE=all."""


def maker(store: str) -> Make:
    """The class of a store's target; imports the store's client on demand."""
    module, _, name = MAKERS[store].partition(":")
    make: Make = getattr(import_module(f"tools.chaos.{module}"), name)
    return make


def has(*parts: bytes) -> Predicate:
    """A predicate for requests that contain all of `parts`."""
    return lambda request: all(part in request for part in parts)
