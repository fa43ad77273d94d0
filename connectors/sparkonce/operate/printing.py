"""What the command prints: a sink, and the page of a connector's options."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

import click

from sparkonce.errors import in_one_line
from sparkonce.exactly_once.ledger import Ledger
from sparkonce.operate.admin import SinkStatus, ago
from sparkonce.options import Option

FEW = 5
"""So many sinks are described in full; more are a line each."""

PAGE = 40
"""Lines of a page."""


def listed(sinks: Sequence[SinkStatus], *, every: bool = False) -> str:
    """What is known of several sinks, on one page.

    Args:
        sinks: as they were found.
        every: whether all of them are shown, where they need more than a page.
    """
    if len(sinks) <= FEW:
        return "\n".join(map(described, sinks))
    first = sorted(sinks, key=urgency)
    shown = first if every else first[:PAGE]
    head = ("SINK", "EPOCH", "WRITTEN", "ROWS", "LETTERS", "STAGED", "STATE", "TARGET")
    lines = [head, *map(_line, shown)]
    widths = [max(map(len, column)) for column in zip(*lines, strict=True)]
    text = "".join(f"{_padded(line, widths)}\n" for line in lines)
    if left := len(first) - len(shown):
        text += f"and {left:,} more, which wait for nothing or were written earlier: --all\n"
    return text


def counted(number: int, what: str) -> str:
    """So many of something, as in "1 sink"."""
    return f"{number:,} {what}{'' if number == 1 else 's'}"


def urgency(sink: SinkStatus) -> tuple[bool, bool, float]:
    """Sinks that wait for something come first, then those that were written last."""
    updated = sink.ledger.updated if sink.ledger else 0.0
    return not sink.is_unfinished, not sink.staged, -updated


def _line(sink: SinkStatus) -> tuple[str, ...]:
    ledger, chunks = sink.ledger, sink.staged_chunks
    if ledger is None:
        return in_one_line(sink.name), "", "", "", "", str(chunks or ""), _state(sink), ""
    written = str(ledger.decision.epoch) if ledger.decision.epoch >= 0 else "", ago(ledger.updated)
    counts = (
        f"{ledger.totals.rows:,}",
        f"{ledger.totals.aside:,}" if ledger.totals.aside else "",
        str(chunks or ""),
    )
    return in_one_line(sink.name), *written, *counts, _state(sink), in_one_line(ledger.target)


def _state(sink: SinkStatus) -> str:
    """What the sink waits for, in few words; whether its query runs nobody here can know."""
    if sink.damage is not None:
        return "damaged"
    return "nothing waits" if sink.state == "finished" else sink.state


def _padded(line: Sequence[str], widths: Sequence[int]) -> str:
    return "  ".join(f"{cell:<{width}}" for cell, width in zip(line, widths, strict=True)).rstrip()


def described(sink: SinkStatus) -> str:
    """What is known of a sink, line by line."""
    ledger, chunks = sink.ledger, sink.staged_chunks
    lines = {"state": str(sink.damage or _state(sink))}
    if ledger is not None:
        lines |= {
            "target": ledger.target,
            "query": f"{ledger.owner.query_id} (generation {ledger.owner.generation})",
            "checkpoint": ledger.owner.checkpoint or "not known",
            "epoch": f"{ledger.decision.epoch}, written {ago(ledger.updated)}",
            "rows": f"{ledger.totals.rows:,} in {ledger.totals.epochs:,} epochs",
        }
        if ledger.totals.aside:
            lines["dead letters"] = _aside(ledger)
    lines["staged"] = f"{chunks} chunks of {len(sink.staged)} attempts" if chunks else "nothing"
    body = "\n".join(f"  {name:<13}{in_one_line(value)}" for name, value in lines.items())
    return f"{click.style(in_one_line(sink.name), bold=True)}\n{body}\n"


def _aside(ledger: Ledger) -> str:
    said = f"{ledger.totals.aside:,} rows"
    return (
        f"{said}, none stored since {ledger.totals.unstored:,} of them"
        if ledger.totals.unstored
        else said
    )


def page_of_options(
    name: str, table: Iterable[Option], sources: Mapping[str, Iterable[Option]] | None = None
) -> str:
    """The page of a connector's options, in Markdown.

    Args:
        name: of the format.
        table: of writes.
        sources: of ``spark.read`` and ``spark.readStream``, where it has them.
    """
    rows = [
        f'# Options of format("{name}")',
        "",
        "Names are case-insensitive, and an unknown name is an error. This page is the output of",
        f"`sparkonce options {name}`.",
        "",
        *_rows(table),
    ]
    for source, one in (sources or {}).items():
        rows += ["", f"## Options of {source}", "", *_rows(one)]
    return "\n".join(rows) + "\n"


def _rows(table: Iterable[Option]) -> Iterator[str]:
    yield "option | default | meaning"
    yield "---|---|---"
    for option in table:
        default = "required" if option.required else _shown(option.default)
        yield f"`{option.name}` | {default} | {option.meaning}"


def _shown(default: Any) -> str:
    shown = json.dumps(default) if isinstance(default, (bool, dict)) else default
    return "" if default is None else f"`{shown}`"
