"""What a run needs of a store: one small class for each, found here by the name of STORE."""

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
"""Every event counts on both, so they differ only where a reader sees a part of an epoch."""

ROWS, COUNTERS = "rows", "counters"
QUERIES = (ROWS, COUNTERS)
"""The two queries of a driver. `rows` writes each event to a place of its own, as a witness that
a row which took effect twice can't hide from; `counters` adds each event to its bucket."""

LOADING = 180.0
"""Seconds that a server may take to start with all that it holds."""

Counts = dict[tuple[str, int], tuple[int, int]]
"""For a side and a bucket: how many events, and the sum of their amounts."""

BOTH = [(side, bucket) for side in SIDES for bucket in range(BUCKETS)]


@dataclass(frozen=True)
class Witness:
    """A row that the target holds: where its event lies in Kafka, and how often it took effect."""

    partition: int
    offset: int
    times: int
    amount: int


class Target(ABC):
    """A store under fire.

    Attributes:
        name: as STORE calls it.
        format: of its sinks.
        server: the process that is killed; its settings make an acknowledged write last.
        points: the requests by which a moment is named, and how they are recognised.
        in_driver: those of them that the driver sends; tasks send the others.
        moves: whether what it holds can be moved between nodes.
        whole: whether a reader that has seen an epoch's begin has seen all of it.
        columns: of query `rows`, as SQL expressions over `part`, `place`, `amount` and
            `draw`, a random bigint, by which a replay computes other rows.
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
        """Of the server itself."""
        return str(self.server.url)

    def proxy(self) -> Proxy:
        """Make a proxy before it."""
        return Proxy(self.url)

    def move(self) -> str:
        """Move some of what it holds to another node; what was moved, in words."""
        raise NotImplementedError

    def prepare(self) -> None:  # noqa: B027
        """Make the targets of both queries."""

    @property
    @abstractmethod
    def version(self) -> str:
        """Of the server."""

    @abstractmethod
    def options(self, query: str) -> dict[str, str]:
        """The sink's options for a query, but for the URL."""

    @abstractmethod
    def rows(self) -> Iterator[Witness]:
        """What the target of query `rows` holds."""

    @abstractmethod
    def counters(self) -> Counts:
        """What the target of query `counters` holds."""

    @abstractmethod
    def watch(self) -> Callable[[], tuple[int, int]]:
        """Connect a reader: it tells two sums, which differ where it sees a part of an epoch."""

    @abstractmethod
    def residue(self) -> list[str]:
        """What the connector has left in the store, but for its ledgers."""

    def last_checks(self) -> Mapping[str, Callable[[ChaosWorld], str]]:
        """What can only be done at the end, as it destroys data: what was seen, by name."""
        return {}


Make = Callable[["Path | None"], Target]
"""Makes a target; its server keeps its data on the small disk that is given, if any."""


MAKERS = {
    "redis": "redis:RedisTarget",
    "redis-cluster": "redis_cluster:ClusterTarget",
    "mysql": "mysql:MySqlTarget",
    "mariadb": "mysql:MariaDbTarget",
    "elasticsearch": "elasticsearch:ElasticsearchTarget",
}
"""The stores that there are, by the names of STORE."""

ALL = ("redis", "redis-cluster", "mysql", "elasticsearch")
"""What STORE=all means."""


def maker(store: str) -> Make:
    """How the target of a store is made; its client is imported only now."""
    module, _, name = MAKERS[store].partition(":")
    make: Make = getattr(import_module(f"tools.chaos.{module}"), name)
    return make


def has(*parts: bytes) -> Predicate:
    """Recognise a request by what is in it."""
    return lambda request: all(part in request for part in parts)
