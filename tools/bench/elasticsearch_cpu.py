"""What a row costs the server and its client, in CPU time, by how it is sent.

    python -m tools.bench.elasticsearch_cpu [--rows 200000] [--turns 7]

Where server and client share a machine, the two together bound the speed of any client: rows/s are
at most cores / (server + client). The median of all turns but the first two, in which the server's
code is compiled; each into a new index, as in `elasticsearch_speed`.
"""

from __future__ import annotations

import argparse
import statistics
import time
from collections import defaultdict
from collections.abc import Callable
from typing import Any

import psutil
from integration.support.servers.elasticsearch import ElasticsearchProcess
from rich.console import Console
from rich.progress import track
from rich.table import Table
from tools.bench.elasticsearch_speed import (
    fresh,
    make_rows,
    measured,
    query,
    raw_bulk,
    ready_made,
)

COMPILED = 2


def server_seconds(node: ElasticsearchProcess) -> float:
    """What the server has used: it is a child of what was started."""
    times = [child.cpu_times() for child in psutil.Process(node.pid).children(recursive=True)]
    return sum(each.user + each.system for each in times)


class Meter:
    """Collects what each step cost, in microseconds a row."""

    def __init__(self, node: ElasticsearchProcess, rows: int) -> None:
        self.node, self.rows = node, rows
        self.found: dict[str, list[tuple[float, float]]] = defaultdict(list)

    def measure(self, name: str, step: Callable[[], object]) -> None:
        server, client = server_seconds(self.node), time.process_time()
        step()
        spent = server_seconds(self.node) - server, time.process_time() - client
        self.found[name].append((spent[0] / self.rows * 1e6, spent[1] / self.rows * 1e6))

    def medians(self) -> dict[str, tuple[float, ...]]:
        return {
            name: tuple(map(statistics.median, zip(*costs[COMPILED:], strict=True)))
            for name, costs in self.found.items()
        }


def turn(meter: Meter, url: str, batch: Any) -> None:
    batches = [batch.slice(at, 10_000) for at in range(0, batch.num_rows, 10_000)]
    bodies = ready_made(batch)
    fresh(url, "raw")
    meter.measure("raw _bulk, ready-made by a plain client", lambda: raw_bulk(url, bodies))
    fresh(url, "alone")
    sink, receipts = query(url, "alone"), []
    meter.measure("stage", lambda: receipts.extend(sink.stage_batches(0, batches)))
    meter.measure("commit", lambda: sink.commit(0, receipts))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rows", type=int, default=200_000)
    parser.add_argument("--turns", type=int, default=7, choices=range(3, 100))
    args = parser.parse_args()
    batch = make_rows(0, args.rows)
    with measured() as node:
        meter = Meter(node, args.rows)
        for _ in track(range(args.turns), "turns"):
            turn(meter, node.url, batch)
    table = Table(title=f"CPU time of {args.rows:,} rows, microseconds a row")
    for column in ("what", "server", "client"):
        table.add_column(column)
    for name, (server, client) in meter.medians().items():
        table.add_row(name, f"{server:.1f}", f"{client:.1f}")
    Console().print(table)


if __name__ == "__main__":
    main()
