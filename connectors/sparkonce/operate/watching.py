"""Commands that look at a store again and again: watch, metrics."""

from __future__ import annotations

import time

import click
from rich.console import Console
from rich.live import Live
from rich.table import Table
from rich.text import Text

from sparkonce.errors import MissingExtra, SparkonceError, StoreError, in_one_line
from sparkonce.exactly_once.ledger import Ledger
from sparkonce.operate.admin import Admin, SinkStatus, ago
from sparkonce.operate.arguments import over_store, seconds
from sparkonce.operate.printing import PAGE, counted, urgency
from sparkonce.operate.terminal import exactly, say

HEAD = ("sink", "epoch", "decided", "rows/s", "rows", "letters", "took", "staged", "waits for")
WINDOW = 60.0
"""Seconds over which a rate is told."""


@click.command()
@over_store
@click.option("--every", default="2s", show_default=True, metavar="TIME", help="Between two looks.")
@click.option("--looks", type=int, help="End after so many looks; else at Ctrl-C.")
def watch(admin: Admin, every: str, looks: int | None) -> None:
    """Show all sinks, live: rows a second, the age of the last epoch, what waits."""
    pause, shown = seconds(every, "--every"), 0
    with Live(console=Console(), auto_refresh=False) as live:
        while looks is None or shown < looks:
            if shown:
                time.sleep(pause)
            live.update(_looked(admin), refresh=True)
            shown += 1


def _looked(admin: Admin) -> Table | Text:
    try:
        sinks = sorted(admin.sinks(), key=urgency)
    except StoreError as error:  # a store that is restarted is looked at again
        return Text(f"{time.strftime('%H:%M:%S')}  {error}")
    return board(sinks)


def board(sinks: list[SinkStatus]) -> Table:
    """What is known of sinks, as a table of one page."""
    table = Table(box=None, title=f"{counted(len(sinks), 'sink')} at {time.strftime('%H:%M:%S')}")
    rows = [_cells(sink) for sink in sinks[:PAGE]]
    # A terminal of 80 columns has room for a sink's name, and for what there is to tell.
    told = [at for at in range(len(HEAD)) if at == 0 or any(row[at] for row in rows)]
    for at in told:
        is_text = HEAD[at] in ("sink", "waits for")
        table.add_column(HEAD[at], justify="left" if is_text else "right", overflow="fold")
    for row in rows:
        table.add_row(*(Text(row[at]) for at in told))
    return table


def _cells(sink: SinkStatus) -> tuple[str, ...]:
    ledger, name = sink.ledger, in_one_line(sink.name)
    if sink.damage is not None:
        return name, "", "", "", "", "", "", "", "a restore"
    staged = f"{sink.staged_bytes / 1e6:,.1f} MB" if sink.staged else ""
    if ledger is None or not ledger.epochs:
        return name, "", "", "", "", "", "", staged, "its first epoch"
    pace = ledger.pace
    took = f"{pace.stage + pace.decide + pace.apply:.2f} s" if pace else ""
    done = f"{ledger.epoch:,}", ago(ledger.decided_at), f"{rate(ledger, time.time()):,.0f}"
    waits = "recover" if sink.is_unfinished else ""
    letters = f"{ledger.aside:,}" if ledger.aside else ""
    return name, *done, f"{ledger.rows:,}", letters, took, staged, waits


def rate(ledger: Ledger, now: float) -> float:
    """Rows a second: of the last minute, or of the last two epochs if they are further apart.

    Args:
        ledger: of the sink.
        now: Unix time in seconds.
    """
    paces = ledger.paces
    recent = [pace for pace in paces if now - pace.decided <= WINDOW]
    recent = recent if len(recent) > 1 else paces[-2:]
    if len(recent) < 2:
        return 0.0
    first, last = recent[0].decided, recent[-1].decided
    # A query that stands still loses its rate slowly, as its next epoch may only be late.
    passed = max(last - first, now - last, 1e-3)
    return sum(pace.rows for pace in recent[1:]) / passed


@click.command()
@over_store
@click.option(
    "--port",
    type=click.IntRange(0, 65535),
    help="Serve them at this port; else they are printed once.",
)
@click.option("--host", default="127.0.0.1", show_default=True, help="The address to serve at.")
def metrics(admin: Admin, port: int | None, host: str) -> None:
    """Print metrics for Prometheus, or serve them: docs/monitoring.md lists them."""
    try:
        from prometheus_client import CollectorRegistry, start_http_server
        from prometheus_client.exposition import generate_latest

        from sparkonce.operate.metrics import Ledgers
    except ModuleNotFoundError:
        raise MissingExtra(
            "sparkonce metrics needs the Python package 'prometheus_client'",
            why="sparkonce installs it only where its extra is asked for",
            todo="pip install 'sparkonce[metrics]'",
        ) from None
    registry = CollectorRegistry()
    registry.register(Ledgers(admin))
    if port is None:
        exactly(generate_latest(registry).decode())
        return
    try:
        server, thread = start_http_server(port, host, registry)
    except OSError as error:
        raise SparkonceError(
            f"Metrics can't be served at {host}:{port}: {error.strerror}",
            why="something else may listen there",
            todo="choose another --port or --host",
        ) from None
    say(f"http://{host}:{server.server_port}/metrics")
    thread.join()
