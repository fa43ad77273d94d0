"""What the demo shows: bars in a terminal, else a line now and then; and tables at the end."""

from __future__ import annotations

import math
import time
from collections import deque
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager

from rich.box import SIMPLE_HEAD
from rich.console import Console, Group
from rich.live import Live
from rich.padding import Padding
from rich.progress import BarColumn, Progress, TextColumn
from rich.spinner import Spinner
from rich.table import Table
from rich.text import Text

from demo.check import Figures, Verdict
from demo.ledgers import STREAMS, Caught, Stream

SECONDS_BETWEEN_LINES = 5.0
SECONDS_WITHOUT_NEWS = 60.0
"""After which a line repeats its counts: it tells what the demo waits for."""

WINDOW = 10.0
"""Seconds over which the rate is taken: longer than an epoch, whose rows all come at its end."""

Streams = Mapping[str, Stream]


class Board:
    """The progress of both streams, and what happens to their driver."""

    def __init__(
        self, console: Console, total: int, clock: Callable[[], float] = time.monotonic
    ) -> None:
        self.console, self.total, self._clock = console, total, clock
        self._began, self._said, self._shown = clock(), -math.inf, ""
        self._seen: deque[tuple[float, int]] = deque()
        self._bars = Progress(
            TextColumn("  {task.description}"),
            BarColumn(bar_width=28),
            TextColumn(
                "{task.completed:>7,.0f} of {task.total:,.0f} rows, {task.fields[epochs]} epochs"
            ),
        )
        for stream in STREAMS:
            self._bars.add_task(stream, total=total, epochs=0)
        self._spinner = Spinner("dots")
        below = Padding(self._spinner, (0, 0, 0, 2))
        self._live = Live(Group(self._bars, below), console=console, transient=True)

    def __enter__(self) -> Board:
        if self.console.is_terminal:
            self._live.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._live.stop()

    def event(self, text: str) -> None:
        """Say what has happened, with the time. The rate counts from there."""
        self._seen.clear()
        self._print(f"[bold]{text}[/]")

    def killed(self, caught: Mapping[str, Caught]) -> None:
        """Take note of what SIGKILL did to each stream."""

    def update(self, streams: Streams, state: str) -> None:
        """Show how far the streams are, and how fast, if rows have come of late."""
        rate = self._rate(sum(one.rows for one in streams.values()))
        told = f"{state}, {rate:,.0f} rows/s" if rate >= 1 else state
        if not self.console.is_terminal:
            self._say(streams, told)
            return
        for task, stream in zip(self._bars.task_ids, STREAMS, strict=True):
            one = streams[stream]
            self._bars.update(task, completed=one.rows, epochs=one.epochs)
        self._spinner.update(text=Text(told))

    def _say(self, streams: Streams, told: str) -> None:
        now = self._clock()
        shown = ", ".join(f"{name} {streams[name].rows:,} rows" for name in STREAMS)
        news = shown != self._shown
        if now - self._said < (SECONDS_BETWEEN_LINES if news else SECONDS_WITHOUT_NEWS):
            return
        self._said, self._shown = now, shown
        self._print(f"{shown}; {told}")

    def _print(self, text: str) -> None:
        self.console.print(f"{self._clock() - self._began:6.1f} s  {text}", soft_wrap=True)

    def _rate(self, rows: int) -> float:
        now = self._clock()
        self._seen.append((now, rows))
        while self._seen[0][0] < now - WINDOW:
            self._seen.popleft()
        then, before = self._seen[0]
        return (rows - before) / (now - then) if now > then else 0.0


def streams_table(streams: Streams, caught: Mapping[str, Caught]) -> Table:
    """What each stream has written, and how SIGKILL caught it."""
    table = _table("What the streams wrote, by their ledgers")
    for name in ("rows", "epochs", "killed at", "replayed"):
        table.add_column(name, justify="right")
    table.add_column("Redis had of it")
    for stream, one in streams.items():
        last = caught[stream]
        epoch = "nothing" if last.epoch is None else f"epoch {last.epoch}"
        table.add_row(stream, f"{one.rows:,}", str(one.epochs), f"{last.rows:,}", epoch, last.found)
    return table


def airports_table(verdict: Verdict) -> Table:
    """The counters in Redis, below what the file says."""
    table = _table("What was counted of each airport")
    table.add_column("by")
    for name in ("flights", "miles", "delay, minutes"):
        table.add_column(name, justify="right")
    for airport in sorted(verdict.expected.keys() | verdict.counted.keys()):
        expected, counted = verdict.expected.get(airport), verdict.counted.get(airport)
        table.add_row(airport, "file", *_cells(expected))
        style = "green" if expected == counted else "bold red"
        table.add_row("", "Redis", *_cells(counted), style=style, end_section=True)
    return table


def _table(title: str) -> Table:
    table = Table(title=title, title_justify="left", title_style="bold", box=SIMPLE_HEAD)
    table.add_column("")
    return table


def _cells(figures: Figures | None) -> list[str]:
    return [f"{figure:,}" for figure in figures or ()]


@contextmanager
def comparison(console: Console, total: int) -> Iterator[Callable[[int], object]]:
    """A bar for the comparison; it yields what to tell of each step."""
    bar = Progress(
        TextColumn("  comparing"),
        BarColumn(bar_width=28),
        TextColumn("{task.completed:>7,.0f} of {task.total:,.0f} rows"),
        console=console,
        transient=True,
        disable=not console.is_terminal,
    )
    with bar:
        task = bar.add_task("", total=total)
        yield lambda rows: bar.advance(task, rows)
