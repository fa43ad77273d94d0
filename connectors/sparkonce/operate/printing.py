"""What the command prints: a sink, and the page of a connector's options."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import click

from sparkonce.errors import in_one_line
from sparkonce.exactly_once.ledger import Ledger
from sparkonce.operate.admin import SinkStatus, ago
from sparkonce.options import Option, known


def described(sink: SinkStatus) -> str:
    """What is known of a sink, line by line."""
    ledger, chunks = sink.ledger, sum(staged.chunks for staged in sink.staged)
    lines = {"state": sink.state}
    if ledger is not None:
        lines |= {
            "target": ledger.target,
            "query": f"{ledger.query_id} (generation {ledger.generation})",
            "checkpoint": ledger.checkpoint or "not known",
            "epoch": f"{ledger.epoch}, written {ago(ledger.updated)}",
            "rows": f"{ledger.rows:,} in {ledger.epochs:,} epochs",
        }
        if ledger.aside:
            lines["dead letters"] = _aside(ledger)
    lines["staged"] = f"{chunks} chunks of {len(sink.staged)} attempts" if chunks else "nothing"
    body = "\n".join(f"  {name:<13}{in_one_line(value)}" for name, value in lines.items())
    return f"{click.style(sink.name, bold=True)}\n{body}\n"


def _aside(ledger: Ledger) -> str:
    said = f"{ledger.aside:,} rows"
    return f"{said}, none stored since {ledger.unstored:,} of them" if ledger.unstored else said


def page_of_options(name: str, table: Iterable[Option]) -> str:
    """The page of a connector's options, in Markdown."""
    rows = [
        f'# Options of format("{name}")',
        "",
        "Names are case-insensitive, and an unknown name is an error. This page is the output of",
        f"`sparkonce options {name}`.",
        "",
        "| option | default | meaning |",
        "|---|---|---|",
    ]
    for option in known(table):
        default = "required" if option.required else _shown(option.default)
        rows.append(f"| `{option.name}` | {default} | {option.meaning} |")
    return "\n".join(rows) + "\n"


def _shown(default: Any) -> str:
    return "" if default is None else f"`{default}`"
