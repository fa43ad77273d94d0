"""Python values as TLA+ has them, and back."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

TOKEN = re.compile(r'<<|>>|\|->|:>|@@|[\[\](){},]|"[^"]*"|-?\d+|\w+')


def tla(value: Any) -> str:
    """A value: booleans, numbers and texts, tuples, sets, records."""
    match value:
        case bool():
            text = str(value).upper()
        case int():
            text = str(value)
        case str():
            text = f'"{value}"'
        case Mapping() if value:
            text = "[" + ", ".join(f"{key} |-> {tla(one)}" for key, one in value.items()) + "]"
        case set() | frozenset():
            text = "{" + ", ".join(sorted(map(tla, value))) + "}"
        case _:
            text = "<<" + ", ".join(map(tla, value)) + ">>"
    return text


class Function(dict[Any, Any]):
    """A record, or another function; may lie in a set."""

    def __hash__(self) -> int:  # type: ignore[override]
        return hash(frozenset(self.items()))


def parsed(text: str) -> Any:
    """What TLC has printed: a model value is its name."""
    return _value(iter(TOKEN.findall(text)))


def _value(tokens: Iterator[str], token: str | None = None) -> Any:
    token = token or next(tokens)
    if token in ENDS:
        flat = list(_all(tokens, ENDS[token]))
        return MADE[token](flat)
    if token in ("TRUE", "FALSE"):
        return token == "TRUE"
    if token[0] == '"':
        return token[1:-1]
    return int(token) if token.lstrip("-").isdigit() else token


def _all(tokens: Iterator[str], end: str) -> Iterator[Any]:
    for token in tokens:
        if token == end:
            return
        if token not in (",", "|->", ":>", "@@"):
            yield _value(tokens, token)


def _function(flat: Sequence[Any]) -> Function:
    return Function(zip(flat[::2], flat[1::2], strict=True))


ENDS = {"<<": ">>", "{": "}", "[": "]", "(": ")"}
MADE: Mapping[str, Callable[[Sequence[Any]], Any]] = {
    "<<": tuple,
    "{": frozenset,
    "[": _function,
    "(": _function,
}
