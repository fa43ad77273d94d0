"""Parsers for the texts of options."""

from __future__ import annotations

import difflib
import json
import re
import unicodedata
from collections.abc import Callable, Iterable
from typing import Any

Parser = Callable[[str], Any]


def integer(low: int, high: int) -> Parser:
    """A parser for a whole number between two bounds, both included."""

    def parse(text: str) -> int:
        if not re.fullmatch(r"[+-]?\d+", text) or not low <= int(text) <= high:
            raise ValueError(f"a whole number from {low:,} to {high:,}")
        return int(text)

    return parse


def seconds(low: float, high: float) -> Parser:
    """A parser for a duration: ``90``, ``90s``, ``15m``, ``12h``, ``7d``, ``250ms``; in seconds."""
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
    """A parser for one of a few words, in any case."""

    def parse(text: str) -> str:
        for word in allowed:
            if text.lower() == word.lower():
                return word
        raise ValueError(f"one of {', '.join(allowed)}")

    return parse


def boolean(text: str) -> bool:
    """True or false.

    Raises:
        ValueError: the text is neither.
    """
    if text.lower() not in ("true", "false"):
        raise ValueError("true or false")
    return text.lower() == "true"


def columns(text: str) -> list[str]:
    """Column names, separated by commas.

    Raises:
        ValueError: a name is empty or occurs twice.
    """
    names = [name.strip() for name in text.split(",")]
    if not all(names) or len({name.lower() for name in names}) < len(names):
        raise ValueError("column names separated by commas, such as order_id,line_no")
    return names


def json_object(text: str) -> str:
    """A JSON object, or the path of a file with one; this function does not read the file.

    Raises:
        ValueError: the text is other JSON, or incomplete.
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
    """A parser for a text that matches a regular expression as a whole."""

    def parse(text: str) -> str:
        if not re.fullmatch(regex, text):
            raise ValueError(meaning)
        return text

    return parse


def suggestion(given: str, names: Iterable[str]) -> str:
    """The known name nearest to an unknown one, as advice; empty if nothing is near.

    If both names look alike, the advice shows both escaped, to make the difference visible.
    """
    known = {_seen(name): name for name in names}
    near = difflib.get_close_matches(_seen(given), known, n=1)
    found = known[near[0]] if near else None
    if found is None:
        return ""
    if _seen(given) == _seen(found):
        return f"write it as {found!a}; the given name is {given!a}"
    return f"did you mean {found!r}?"


def _seen(name: str) -> str:
    """The visible characters of a name, regardless of case."""
    shown = unicodedata.normalize("NFKC", name)
    return "".join(char for char in shown if char.isprintable()).strip().casefold()
