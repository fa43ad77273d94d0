"""Records of sparkonce's own that can't be read: something else wrote them, or damaged them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from types import UnionType
from typing import Any, Union, get_args, get_origin

from sparkonce.errors import RecordDamaged

RESTORE = "restore it from a backup of the store"
FORGET = f"{RESTORE}, or give the sink up: `sparkonce forget URL {{name}}`"

UNREADABLE = (AttributeError, IndexError, KeyError, TypeError, ValueError)
"""What code raises that reads values which are not as this package writes them."""


@contextmanager
def reading(name: str, todo: str = RESTORE) -> Iterator[None]:
    """Around code that takes a record apart.

    Args:
        name: of the record.
        todo: what an operator can do.

    Raises:
        RecordDamaged: it is not as sparkonce writes it.
    """
    try:
        yield
    except UNREADABLE as error:
        raise RecordDamaged(
            f"The record {name!r} of sparkonce can't be read: {type(error).__name__}: {error}",
            why="something else has written it, or damaged it",
            todo=todo.format(name=name),
        ) from error


def require_kinds(values: Mapping[str, Any], kinds: Mapping[str, Any]) -> None:
    """See that values read from JSON are of the types of the attributes that they are for.

    Raises:
        TypeError: one is not.
    """
    for name, value in values.items():
        if not _fits(value, kinds[name]):
            raise TypeError(f"{name} is {str(value)[:40]!r}")


def _fits(value: Any, kind: Any) -> bool:
    origin, inner = get_origin(kind), get_args(kind)
    if origin in (Union, UnionType):
        return any(_fits(value, one) for one in inner)
    if origin is tuple:
        return isinstance(value, list) and all(_fits(one, inner[0]) for one in value)
    if origin is not None:
        return isinstance(value, dict) and all(_fits(one, inner[1]) for one in value.values())
    if kind in (int, float):
        return isinstance(value, (int, kind)) and not isinstance(value, bool)
    plain = kind in (str, bool, type(None))
    return isinstance(value, kind) if plain else isinstance(value, dict)
