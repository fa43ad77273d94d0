"""Python values as TLA+ has them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any


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
