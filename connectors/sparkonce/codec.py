"""The encoding of sparkonce's records in the store: frozen dataclasses as JSON values, and back.

Records are not trusted: a field that is unknown, missing or of another type is an error.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import MISSING, Field, fields, is_dataclass
from functools import cache, partial
from math import isfinite
from struct import error as StructError
from types import UnionType
from typing import Any, Literal, TypeVar, Union, cast, get_args, get_origin, get_type_hints
from zlib import error as NotPacked

from sparkonce.errors import RecordDamaged

T = TypeVar("T")
Loader = Callable[[Any], Any]

RESTORE = "restore it from a backup of the store"
DELETE = f"{RESTORE}, or delete it there: sparkonce writes it again"
FORGET = f"{RESTORE}, or give the sink up: sparkonce forget URL {{name!r}}"

UNREADABLE = (
    *(AttributeError, IndexError, KeyError, TypeError, ValueError),
    *(OverflowError, RecursionError, StructError, NotPacked),
)
"""Errors of code that reads values of an unexpected form."""


class UnknownField(ValueError):
    """A record has a field that this release does not know."""


VARIANT = "is"


class Variant:
    """The base of dataclasses for fields with several types: JSON names the class under ``is``."""


class Whole:
    """The base of dataclasses that JSON holds whole: a default never replaces a lost field."""


@contextmanager
def reading(name: str, todo: str = RESTORE) -> Iterator[None]:
    """Convert errors of code that parses a record.

    `todo` says what an operator can do.

    Raises:
        RecordDamaged: the record does not have sparkonce's format.
    """
    try:
        yield
    except UNREADABLE as error:
        why, todo = "another program wrote or damaged it", todo.format(name=name)
        if isinstance(error, UnknownField):  # else a user would give up a newer release's record
            why = f"a newer release of sparkonce wrote it, or {why}"
            todo = f"upgrade sparkonce here; or, if no newer release writes there, {todo}"
        raise RecordDamaged(
            f"The record {name!r} of sparkonce can't be read: {type(error).__name__}: {error}",
            why=why,
            todo=todo,
        ) from error


def dump(value: Any) -> Any:
    """A frozen dataclass as JSON values, without fields that have their default."""
    if is_dataclass(value):
        held = ((one, getattr(value, one.name)) for one in fields(value))
        changed = {one.name: dump(now) for one, now in held if now != _default(one)}
        is_variant = isinstance(value, Variant)
        return {VARIANT: type(value).__name__.lower(), **changed} if is_variant else changed
    if isinstance(value, Mapping):
        return {name: dump(one) for name, one in value.items()}
    return [dump(one) for one in value] if isinstance(value, tuple | list) else value


def _default(one: Field[Any]) -> Any:
    return one.default if one.default_factory is MISSING else one.default_factory()


def load(kind: type[T], value: Any) -> T:
    """The inverse of `dump`.

    Raises:
        TypeError: a value is of another type, or a field is missing.
        UnknownField: the values have an unknown field.
    """
    return cast("T", _load(kind, value))


def require_kinds(values: Mapping[str, Any], kinds: Mapping[str, Any]) -> None:
    """Check that values from JSON have the types of their names.

    Raises:
        TypeError: a value has another type.
    """
    _load_each(kinds, values)


def _load(kind: Any, value: Any) -> Any:
    return _loader(kind)(value)


@cache
def _loader(kind: Any) -> Loader:
    """The loader of a type, cached since each commit reads a ledger several times."""
    origin, inner = get_origin(kind), get_args(kind)
    if is_dataclass(kind):
        return _of_fields(kind)
    if origin in (Union, UnionType):
        return partial(_load_union, inner)
    if origin is tuple:
        return partial(_load_tuple, inner)
    if origin is Literal:
        return lambda value: _require(value, value in inner)
    if origin is not None:  # a mapping
        return partial(_load_mapping, inner[1])
    return lambda value: _require(value, _is_scalar(kind, value))


def _of_fields(kind: Any) -> Loader:
    types, is_variant, is_whole = _types(kind), issubclass(kind, Variant), issubclass(kind, Whole)

    def load(value: Any) -> Any:
        values = _require(value, isinstance(value, dict))
        if is_variant:
            values = {**values}
            _require(values, values.pop(VARIANT, None) == kind.__name__.lower())
        if not types.keys() >= values.keys():
            unknown = ", ".join(sorted(values.keys() - types.keys()))
            raise UnknownField(f"{kind.__name__} has no {unknown}")
        if is_whole and len(values) < len(types):
            lacking = ", ".join(sorted(types.keys() - values.keys()))
            raise TypeError(f"{kind.__name__} lacks {lacking}")
        return kind(**_load_each(types, values))

    return load


def _load_each(kinds: Mapping[str, Any], values: Mapping[str, Any]) -> dict[str, Any]:
    loaded, name = {}, ""
    try:
        for name, value in values.items():
            loaded[name] = _loader(kinds[name])(value)
    except TypeError as error:
        raise TypeError(f"{name} {error}") from None
    return loaded


@cache
def _types(kind: type) -> dict[str, Any]:
    return get_type_hints(kind)


def _load_union(kinds: tuple[Any, ...], value: Any) -> Any:
    if value is None and type(None) in kinds:
        return None
    for one in kinds[:-1]:
        with suppress(TypeError):
            return _load(one, value)
    return _load(kinds[-1], value)


def _load_mapping(kind: Any, value: Any) -> dict[str, Any]:
    load, items = _loader(kind), _require(value, isinstance(value, dict)).items()
    return {name: load(one) for name, one in items}


def _load_tuple(kinds: tuple[Any, ...], value: Any) -> tuple[Any, ...]:
    values = _require(value, isinstance(value, list))
    if kinds[-1] is not ...:
        return tuple(map(_load, kinds, _require(values, len(values) == len(kinds))))
    if kinds[0] in (int, str):  # a manifest may hold many of them
        return tuple(_require(values, {*map(type, values)} <= {kinds[0]}))
    return tuple(map(_loader(kinds[0]), values))


def _is_scalar(kind: Any, value: Any) -> bool:
    if kind in (int, float):
        number = isinstance(value, (int, kind)) and not isinstance(value, bool)
        return number and isfinite(value)
    return kind is Any or isinstance(value, kind)


def _require(value: Any, fits: bool) -> Any:
    if not fits:
        raise TypeError(f"is {str(value)[:40]!r}")
    return value
