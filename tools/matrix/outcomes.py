"""What became of a cell, in a word and in a line."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

PASSED, FAILED, NOT_RUN = "passed", "failed", "not run"
GOOD = ("held", "not given")
Record = dict[str, Any]


def outcome(made: Record) -> str:
    """Of what the program of a cell has told, or the chain."""
    if "steps" in made:
        good = all(step["exact"] for step in made["steps"])
    elif "refused" in made:
        good = "Python data sources" in made["refused"]
    else:
        good = bool(made.get("findings")) and not broken(made["findings"])
    return PASSED if good else FAILED


def broken(findings: Sequence[Record]) -> list[str]:
    return [f"{one['store']} {one['rule']}" for one in findings if one["outcome"] not in GOOD]


def told(record: Record) -> str:
    """A record in a line."""
    why = record.get("why") or record.get("error", "").strip().rpartition("\n")[2]
    why = why or ", ".join(broken(record.get("findings", [])))
    return f"{record['outcome']}: {why}" if why else str(record["outcome"])
