"""Records of sparkonce's own that can't be read: something else wrote them, or damaged them."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from math import isfinite
from struct import error as StructError
from types import UnionType
from typing import Any, Union, get_args, get_origin
from zlib import error as NotPacked

from sparkonce.errors import RecordDamaged

RESTORE = "restore it from a backup of the store"
DELETE = f"{RESTORE}, or delete it there: it is written anew"
FORGET = f"{RESTORE}, or give the sink up: sparkonce forget URL {{name!r}}"

UNREADABLE = (
    *(AttributeError, IndexError, KeyError, TypeError, ValueError),
    *(OverflowError, RecursionError, StructError, NotPacked),
)
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
        return isinstance(value, list) and _are(value, inner[0])
    if origin is not None:
        return isinstance(value, dict) and _are(value.values(), inner[1])
    if kind in (int, float):
        is_one = isinstance(value, (int, kind)) and not isinstance(value, bool)
        return is_one and isfinite(value)
    plain = kind in (str, bool, type(None))
    return isinstance(value, kind) if plain else isinstance(value, dict)


def _are(values: Iterable[Any], kind: Any) -> bool:
    """Whether all are of a kind; what is no number and no text is looked at where it is read."""
    return kind not in (int, str) or {*map(type, values)} <= {kind}
