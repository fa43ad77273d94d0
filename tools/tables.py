"""Tables of Markdown, for pages made from records."""

from __future__ import annotations

from collections.abc import Iterable, Sequence


def table(head: Sequence[object], rows: Iterable[Sequence[object]]) -> str:
    """The lines of a table, each with a line break at its end, without pipes at the border."""
    lines = [" | ".join(map(str, cells)).rstrip() for cells in (head, *rows)]
    return "\n".join((lines[0], "|".join(["---"] * len(head)), *lines[1:])) + "\n"
