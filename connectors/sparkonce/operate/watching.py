"""Commands that poll a store: watch, metrics."""

from __future__ import annotations

import logging
import re
import time
from collections.abc import Callable, Iterator
from threading import Lock
from typing import TYPE_CHECKING, NamedTuple

import click
from rich.console import Console
from rich.live import Live
from rich.table import Table
from rich.text import Text

from sparkonce.errors import MissingExtra, SparkonceError, StoreError, in_one_line
from sparkonce.exactly_once.ledger import Ledger
from sparkonce.exactly_once.totals import Pace
from sparkonce.operate.admin import GRACE, Admin, SinkStatus, ago, counted
from sparkonce.operate.arguments import PAGE, exactly, over_store, say, seconds, urgency

if TYPE_CHECKING:
    from prometheus_client.metrics_core import Metric

log = logging.getLogger("sparkonce")

LABELS = ("sink", "target", "query")

Value = Callable[[SinkStatus], float | None]


class Figure(NamedTuple):
    """One metric of a sink.

    Attributes:
        value: None if the sink has none.
        counts: whether the metric is a counter, which only grows.
    """

    name: str
    about: str
    value: Value
    counts: bool = False


def _of_ledger(
    name: str, about: str, value: Callable[[Ledger], float | None], *, counts: bool = False
) -> Figure:
    """A metric of a sink that has decided an epoch."""

    def of(sink: SinkStatus) -> float | None:
        return value(sink.ledger) if sink.ledger and sink.ledger.totals.epochs else None

    return Figure(f"sparkonce_{name}", about, of, counts)


def _of_pace(name: str, about: str, value: Callable[[Pace], float]) -> Figure:
    """A metric of a sink whose ledger has the pace of the last epoch."""

    def of(sink: SinkStatus) -> float | None:
        return value(sink.ledger.pace) if sink.ledger and sink.ledger.pace else None

    return Figure(f"sparkonce_last_epoch_{name}", about, of)


def _age(ledger: Ledger) -> float | None:
    # A batch has no checkpoint, and nobody waits for the next batch.
    return max(0.0, time.time() - ledger.decision.decided_at) if ledger.owner.checkpoint else None


FIGURES = (
    _of_ledger("epoch", "Last decided epoch.", lambda one: one.decision.epoch),
    _of_ledger("epoch_age_seconds", "Time since the last decision, of a stream.", _age),
    _of_ledger(
        "epoch_unfinished",
        "1 while an epoch is decided and not finished, else 0.",
        lambda one: one.decision.manifest is not None,
    ),
    _of_ledger("epochs", "Decided epochs.", lambda one: one.totals.epochs, counts=True),
    _of_ledger("rows", "Decided rows.", lambda one: one.totals.rows, counts=True),
    _of_ledger(
        "dead_letters",
        "Rows among them that became dead letters.",
        lambda one: one.totals.aside,
        counts=True,
    ),
    _of_ledger(
        "unstored_rows",
        "Dead letters since the last stored row.",
        lambda one: one.totals.unstored,
    ),
    _of_pace("rows", "Its rows.", lambda one: one.rows),
    _of_pace("bytes", "Bytes of its chunks.", lambda one: one.bytes),
    _of_pace("chunks", "Its chunks.", lambda one: one.chunks),
    _of_pace("stage_seconds", "Duration of its longest task.", lambda one: one.stage),
    _of_pace(
        "decide_seconds", "Time from the call of commit to its decision.", lambda one: one.decide
    ),
    _of_pace(
        "apply_seconds",
        "Time from its decision until all rows had taken effect.",
        lambda one: one.apply,
    ),
    Figure(
        "sparkonce_record_damaged",
        "1 where a record of the sink can't be read, else 0.",
        lambda sink: sink.damage is not None,
    ),
    Figure("sparkonce_staged_attempts", "Attempts in the log.", lambda sink: len(sink.staged)),
    Figure("sparkonce_staged_bytes", "Bytes of their chunks.", lambda sink: sink.staged_bytes),
    Figure(
        "sparkonce_leftover_attempts",
        "Attempts that sparkonce gc would discard.",
        lambda sink: len(sink.leftovers(GRACE)),
    ),
)


class Ledgers:
    """A collector of Prometheus. It serves one scrape at a time, over one connection."""

    def __init__(self, admin: Admin) -> None:
        self.admin, self._one_at_a_time = admin, Lock()

    def describe(self) -> list[Metric]:
        """Nothing: the store may not run yet, so the first scrape asks it."""
        return []

    def collect(self) -> Iterator[Metric]:
        """All metrics; for an unreachable store only ``sparkonce_up``."""
        from prometheus_client.core import GaugeMetricFamily

        up, sinks = 1.0, list[SinkStatus]()
        try:
            with self._one_at_a_time:
                sinks = self.admin.sinks()
        except StoreError as error:
            up = 0.0
            log.warning("%s", error)
        about = "1 if the store replied, and its ledgers are readable, else 0."
        yield GaugeMetricFamily("sparkonce_up", about, up)
        for figure in FIGURES:
            yield _family(figure, sinks)


def _family(figure: Figure, sinks: list[SinkStatus]) -> Metric:
    from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily

    kind = CounterMetricFamily if figure.counts else GaugeMetricFamily
    family = kind(figure.name, figure.about, labels=LABELS)
    for sink in sinks:
        value = figure.value(sink)
        if value is not None:
            ledger = sink.ledger
            of = (ledger.target, ledger.owner.query_id) if ledger else ("", "")
            family.add_metric([in_one_line(one) for one in (sink.name, *of)], float(value))
    return family


HEAD = (
    *("sink", "target", "epoch", "decided", "rows/s"),
    *("rows", "letters", "took", "staged", "waits for"),
)
DRAWN = re.compile(r"[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}")
WINDOW = 60.0
"""Seconds over which a rate is averaged."""


@click.command()
@over_store
@click.option("--every", default="2s", show_default=True, metavar="TIME", help="Refresh interval.")
@click.option(
    "--refreshes", type=int, help="End after this number of refreshes; otherwise at Ctrl-C."
)
def watch(admin: Admin, every: str, refreshes: int | None) -> None:
    """Show all sinks, live: rows a second, age of the last epoch, pending work."""
    pause, shown = seconds(every, "--every"), 0
    with Live(console=Console(), auto_refresh=False) as live:
        while refreshes is None or shown < refreshes:
            if shown:
                time.sleep(pause)
            live.update(_looked(admin), refresh=True)
            shown += 1


def _looked(admin: Admin) -> Table | Text:
    try:
        sinks = sorted(admin.sinks(), key=urgency)
    except StoreError as error:  # the next refresh tries again, as the store may restart
        return Text(f"{time.strftime('%H:%M:%S')}  {error}")
    return board(sinks)


def board(sinks: list[SinkStatus]) -> Table:
    """The sinks as a table of one page."""
    table = Table(box=None, title=f"{counted(len(sinks), 'sink')} at {time.strftime('%H:%M:%S')}")
    rows = [_cells(sink) for sink in sinks[:PAGE]]
    # A terminal of 80 columns has room for the name of a sink and the columns that are not empty.
    columns = [at for at in range(len(HEAD)) if at == 0 or any(row[at] for row in rows)]
    for at in columns:
        is_text = HEAD[at] in ("sink", "target", "waits for")
        table.add_column(HEAD[at], justify="left" if is_text else "right", overflow="fold")
    for row in rows:
        table.add_row(*(Text(row[at]) for at in columns))
    return table


def _cells(sink: SinkStatus) -> tuple[str, ...]:
    ledger, name = sink.ledger, in_one_line(_short(sink.name))
    if sink.damage is not None:
        return name, "", "", "", "", "", "", "", "", "a restore"
    target = in_one_line(ledger.target) if ledger else ""
    staged = f"{sink.staged_bytes / 1e6:,.1f} MB" if sink.staged else ""
    if ledger is None or not ledger.totals.epochs:
        return name, target, "", "", "", "", "", "", staged, "its first epoch"
    pace = ledger.pace
    took = f"{pace.stage + pace.decide + pace.apply:.2f} s" if pace else ""
    speed = f"{rate(ledger, time.time()):,.0f}"
    done = f"{ledger.decision.epoch:,}", ago(ledger.decision.decided_at), speed
    waits = "recover" if sink.is_unfinished else ""
    letters = f"{ledger.totals.aside:,}" if ledger.totals.aside else ""
    return name, target, *done, f"{ledger.totals.rows:,}", letters, took, staged, waits


def _short(name: str) -> str:
    """The id in the name of a sink; of an id that Spark drew its beginning."""
    own = name.rpartition("@")[0] or name
    return own[:8] if DRAWN.fullmatch(own) else own


def rate(ledger: Ledger, now: float) -> float:
    """Rows a second over the last minute, or over the last two epochs if they are further apart."""
    paces = ledger.totals.paces
    recent = [pace for pace in paces if now - pace.decided <= WINDOW]
    recent = recent if len(recent) > 1 else paces[-2:]
    if len(recent) < 2:
        return 0.0
    first, last = recent[0].decided, recent[-1].decided
    # The rate of a stopped query falls slowly, as the next epoch may just be late.
    passed = max(last - first, now - last, 1e-3)
    return sum(pace.rows for pace in recent[1:]) / passed


@click.command()
@over_store
@click.option(
    "--port",
    type=click.IntRange(0, 65535),
    help="Serve the metrics on this port; otherwise print them once.",
)
@click.option("--host", default="127.0.0.1", show_default=True, help="Address to listen on.")
def metrics(admin: Admin, port: int | None, host: str) -> None:
    """Print metrics for Prometheus, or serve them: docs/monitoring.md lists them."""
    try:
        from prometheus_client import CollectorRegistry, start_http_server
        from prometheus_client.exposition import generate_latest
    except ModuleNotFoundError:
        raise MissingExtra(
            "sparkonce metrics needs the Python package 'prometheus_client'",
            why="only an extra of sparkonce installs it",
            todo="install the wheel of sparkonce with extra [metrics] (docs/monitoring.md)",
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
            why="another process may listen there",
            todo="choose another --port or --host",
        ) from None
    say(f"http://{host}:{server.server_port}/metrics")
    thread.join()
