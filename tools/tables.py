"""Tables of Markdown, for pages that are made from records."""

from __future__ import annotations

from collections.abc import Iterable, Sequence


def table(head: Sequence[object], rows: Iterable[Sequence[object]]) -> str:
    """Its lines, each with a line break at its end; no pipe at the border of a line."""
    lines = [" | ".join(map(str, cells)).rstrip() for cells in (head, *rows)]
    return "\n".join((lines[0], "|".join(["---"] * len(head)), *lines[1:])) + "\n"
