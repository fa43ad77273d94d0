"""The output of the demo: bars in a terminal, else a line now and then; and tables at the end."""

from __future__ import annotations

import math
import time
from collections.abc import Mapping

from rich.box import SIMPLE_HEAD
from rich.console import Console
from rich.progress import BarColumn, Progress, TextColumn
from rich.table import Table

from demo.check import Verdict
from demo.ledgers import STREAMS, Caught, Streams

SECONDS_BETWEEN_LINES = 5.0
SECONDS_WITHOUT_NEWS = 60.0
"""Seconds after which a line repeats its counts."""


class Board:
    """The progress of both streams, and the events of their driver."""

    def __init__(self, console: Console, total: int) -> None:
        self.console, self.total = console, total
        self.state, self.events = "Spark starts", list[tuple[float, str]]()
        self.caught: Mapping[str, Caught] = {}
        self._began, self._said, self._shown = time.monotonic(), -math.inf, ""
        self._bars = bars(console, "{task.fields[epochs]} epochs, {task.fields[state]}")
        for stream in STREAMS:
            self._bars.add_task(stream, total=total, epochs=0, state="")

    def __enter__(self) -> Board:
        self._bars.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._bars.stop()

    def event(self, text: str, caught: Mapping[str, Caught] | None = None) -> None:
        """Show an event with the time; also the effect of SIGKILL on each stream."""
        self.events.append((self._seconds(), text))
        self.caught = caught or self.caught
        self._print(f"[bold]{text}[/]")

    def update(self, streams: Streams, state: str) -> None:
        """Show the progress of the streams."""
        self.state = state
        for task, stream in zip(self._bars.task_ids, STREAMS, strict=True):
            one = streams[stream]
            self._bars.update(task, completed=one.rows, epochs=one.epochs, state=state)
        shown = ", ".join(f"{name} {streams[name].rows:,} rows" for name in STREAMS)
        pause = SECONDS_WITHOUT_NEWS if shown == self._shown else SECONDS_BETWEEN_LINES
        if not self.console.is_terminal and self._seconds() - self._said >= pause:
            self._said, self._shown = self._seconds(), shown
            self._print(f"{shown}; {state}")

    def _seconds(self) -> float:
        return time.monotonic() - self._began

    def _print(self, text: str) -> None:
        self.console.print(f"{self._seconds():6.1f} s  {text}", soft_wrap=True)


def bars(console: Console, more: str = "") -> Progress:
    """Bars of rows, which disappear at the end; none without a terminal."""
    rows = TextColumn("{task.completed:>7,.0f} of {task.total:,.0f} rows " + more)
    columns = TextColumn("  {task.description}"), BarColumn(bar_width=28), rows
    return Progress(*columns, console=console, transient=True, disable=not console.is_terminal)


def streams_table(streams: Streams, caught: Mapping[str, Caught]) -> Table:
    """The rows of each stream, and the effect of SIGKILL."""
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
    """The counters in Redis, each below the figures of the file."""
    table = _table("The counters of each airport")
    table.add_column("by")
    for name in ("flights", "miles", "delay, minutes"):
        table.add_column(name, justify="right")
    for airport in sorted(verdict.expected.keys() | verdict.counted.keys()):
        file, store = verdict.expected.get(airport, ()), verdict.counted.get(airport, ())
        table.add_row(airport, "file", *(f"{figure:,}" for figure in file))
        style = "green" if file == store else "bold red"
        cells = (f"{figure:,}" for figure in store)
        table.add_row("", "Redis", *cells, style=style, end_section=True)
    return table


def _table(title: str) -> Table:
    table = Table(title=title, title_justify="left", title_style="bold", box=SIMPLE_HEAD)
    table.add_column("")
    return table
