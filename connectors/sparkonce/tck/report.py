"""Findings as a table for people, and as JSON for programs."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from sparkonce.tck.findings import BROKEN, HELD, LEFT_OUT, NOT_GIVEN, NOT_REACHED, Finding

if TYPE_CHECKING:
    from rich.table import Table
    from rich.text import Text

_STYLES = {
    HELD: "green",
    BROKEN: "bold red",
    LEFT_OUT: "yellow",
    NOT_GIVEN: "yellow",
    NOT_REACHED: "magenta",
}
_WORDS = {outcome: outcome for outcome in _STYLES} | {BROKEN: "BROKEN", NOT_REACHED: "no fault"}
WIDTH = 100


def as_json(sink: str, findings: Sequence[Finding]) -> str:
    """One JSON object: the sink's name, and its findings."""
    content = {"sink": sink, "findings": [finding.as_json() for finding in findings]}
    return json.dumps(content, indent=2, ensure_ascii=False) + "\n"


def as_table(sink: str, findings: Sequence[Finding]) -> Table:
    """A table for `rich` to print."""
    from rich.box import SIMPLE_HEAD
    from rich.table import Table

    table = Table(
        title=summary(sink, findings), title_justify="left", title_style="bold", box=SIMPLE_HEAD
    )
    table.add_column("rule")
    table.add_column("the rule, and what the check did", ratio=1)
    table.add_column("result", min_width=8)
    for name in ("sent", "lost", "doubled", "seconds"):
        table.add_column(name, justify="right")
    for finding in findings:
        table.add_row(finding.rule.number, _story(finding), _verdict(finding), *_figures(finding))
    return table


def as_text(sink: str, findings: Sequence[Finding], width: int = WIDTH) -> str:
    """The table without colours, for files and documents."""
    from rich.console import Console

    console = Console(width=width, color_system=None)
    with console.capture() as capture:
        console.print(as_table(sink, findings))
    return "".join(f"{line.rstrip()}\n" for line in capture.get().splitlines())


def summary(sink: str, findings: Sequence[Finding]) -> str:
    """The sink's name, and the number of rules by outcome."""
    outcomes = [finding.outcome for finding in findings]
    counted = [(outcomes.count(outcome), word.lower()) for outcome, word in _WORDS.items()]
    return f"{sink}: " + ", ".join(f"{count} {word}" for count, word in counted if count)


def write(directory: Path, name: str, sink: str, findings: Sequence[Finding]) -> None:
    """Write ``<name>.json`` and ``<name>.txt``."""
    directory.mkdir(parents=True, exist_ok=True)
    (directory / f"{name}.json").write_text(as_json(sink, findings))
    (directory / f"{name}.txt").write_text(as_text(sink, findings))


def _story(finding: Finding) -> Text:
    from rich.text import Text

    text = Text(finding.rule.text)
    alien = f"{finding.alien} rows that were never sent; " if finding.alien else ""
    if finding.seen:
        text.append(f"\n{alien}{finding.seen}", style="dim")
    return text


def _verdict(finding: Finding) -> Text:
    from rich.text import Text

    return Text(_WORDS[finding.outcome], style=_STYLES[finding.outcome])


def _figures(finding: Finding) -> list[str]:
    if finding.held is None:
        return ["", "", "", ""]
    counts = (finding.sent, finding.lost, finding.doubled)
    return [*(f"{count:,}" for count in counts), f"{finding.seconds:.0f}"]
