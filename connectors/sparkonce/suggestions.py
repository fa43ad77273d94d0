"""What was meant by a name that is not known."""

from __future__ import annotations

import difflib
import unicodedata
from collections.abc import Iterable


def suggestion(given: str, names: Iterable[str]) -> str:
    """What was meant by a name that is not known; empty if nothing is near.

    A name that looks like the given one is not merely shown: nobody would see what to mend.
    """
    known = {_seen(name): name for name in names}
    near = difflib.get_close_matches(_seen(given), known, n=1)
    found = known[near[0]] if near else None
    if found is None:
        return ""
    if _seen(given) == _seen(found):
        return f"write it as {found!a}; what was given is {given!a}"
    return f"did you mean {found!r}?"


def _seen(name: str) -> str:
    """What a reader sees of a name, whatever its case."""
    shown = unicodedata.normalize("NFKC", name)
    return "".join(char for char in shown if char.isprintable()).strip().casefold()
