"""The rows that a query delivered, epoch by epoch: files that outlive its driver."""

from __future__ import annotations

import json
import time
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

from sparkonce.tck.spark.faults import put


@dataclass(frozen=True)
class Delivery:
    """The rows of one run of an epoch."""

    epoch: int
    ids: Sequence[str]


class Records:
    """Deliveries, in a directory."""

    def __init__(self, home: Path) -> None:
        self.home = home

    def add(self, delivery: Delivery) -> None:
        """Store a delivery."""
        self.home.mkdir(parents=True, exist_ok=True)
        put(self.home / f"{time.time_ns():020d}.json", asdict(delivery))

    def deliveries(self) -> list[Delivery]:
        """All deliveries, in their order."""
        found = sorted(self.home.glob("[0-9]*.json"))
        return [Delivery(**json.loads(path.read_text())) for path in found]

    def of(self, epoch: int) -> list[Delivery]:
        """The runs of an epoch."""
        return [one for one in self.deliveries() if one.epoch == epoch]

    def ids(self) -> set[str]:
        """All delivered rows, with duplicates."""
        return {row for one in self.deliveries() for row in one.ids}


def views(deliveries: Sequence[Delivery]) -> tuple[Counter[str], Counter[str]]:
    """How often each row takes effect in either of two sinks, both of which a source must suit.

    The first keeps the first run of an epoch and skips its replays, as most exactly-once sinks do;
    the second overwrites it with the rows of the replay.
    """
    first = {one.epoch: one for one in reversed(deliveries)}
    last = {one.epoch: one for one in deliveries}
    return _rows(first.values()), _rows(last.values())


def _rows(deliveries: Iterable[Delivery]) -> Counter[str]:
    return Counter(row for one in deliveries for row in one.ids)
