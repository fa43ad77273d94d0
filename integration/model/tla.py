"""Python values as TLA+ has them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any


def tla(value: Any) -> str:
    """A value: booleans, numbers and texts, tuples, sets, records."""
    if isinstance(value, bool):
        return str(value).upper()
    if isinstance(value, int):
        return str(value)
    if isinstance(value, str):
        return f'"{value}"'
    if isinstance(value, Mapping):
        return "[" + ", ".join(f"{key} |-> {tla(one)}" for key, one in value.items()) + "]"
    if isinstance(value, set | frozenset):
        return "{" + ", ".join(sorted(map(tla, value))) + "}"
    return "<<" + ", ".join(map(tla, value)) + ">>"
