"""How the texts of options are read."""

from __future__ import annotations

import difflib
import json
import re
import unicodedata
from collections.abc import Callable, Iterable
from typing import Any

Parser = Callable[[str], Any]


def integer(low: int, high: int) -> Parser:
    """A whole number between two bounds, both included."""

    def parse(text: str) -> int:
        if not re.fullmatch(r"[+-]?\d+", text) or not low <= int(text) <= high:
            raise ValueError(f"a whole number from {low:,} to {high:,}")
        return int(text)

    return parse


def seconds(low: float, high: float) -> Parser:
    """A duration: ``90``, ``90s``, ``15m``, ``12h``, ``7d`` or ``250ms``; in seconds."""
    units = {"ms": 0.001, "": 1, "s": 1, "m": 60, "h": 3600, "d": 86400}

    def parse(text: str) -> float:
        match = re.fullmatch(r"(\d+(?:\.\d+)?)\s*(ms|s|m|h|d|)", text)
        value = float(match[1]) * units[match[2]] if match else -1
        if not low <= value <= high:
            span = f"from {low:g} s to {high:,.15g} s"
            raise ValueError(f"a time such as 90s, 15m, 12h or 7d, {span}")
        return value

    return parse


def choice(*allowed: str) -> Parser:
    """One of a few words, in any case."""

    def parse(text: str) -> str:
        for word in allowed:
            if text.lower() == word.lower():
                return word
        raise ValueError(f"one of {', '.join(allowed)}")

    return parse


def boolean(text: str) -> bool:
    """True or false.

    Raises:
        ValueError: it is neither.
    """
    if text.lower() not in ("true", "false"):
        raise ValueError("true or false")
    return text.lower() == "true"


def columns(text: str) -> list[str]:
    """Column names between commas.

    Raises:
        ValueError: a name is empty or there twice.
    """
    names = [name.strip() for name in text.split(",")]
    if not all(names) or len({name.lower() for name in names}) < len(names):
        raise ValueError("column names with commas between, such as order_id,line_no")
    return names


def json_object(text: str) -> str:
    """JSON, or the path of a file that holds it, which is not read here.

    Raises:
        ValueError: it is other JSON, or torn.
    """
    if text.lstrip().startswith("{") and not is_object(text):
        raise ValueError("a JSON object, or the path of a file that holds one")
    return text


def is_object(text: str) -> bool:
    """Whether a text is a JSON object."""
    try:
        return isinstance(json.loads(text), dict)
    except ValueError:
        return False


def pattern(regex: str, meaning: str) -> Parser:
    """A text that matches a regular expression as a whole."""

    def parse(text: str) -> str:
        if not re.fullmatch(regex, text):
            raise ValueError(meaning)
        return text

    return parse


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
