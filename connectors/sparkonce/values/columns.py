"""The columns of a query: their names, and whether Spark hands over what it has announced."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence

import pyarrow as pa
from pyarrow import types

from sparkonce.errors import OptionError, UnsupportedQuery

CONTROL = re.compile(r"[\x00-\x1f\x7f-\x9f]")
"""Unicode's category Cc: https://www.unicode.org/reports/tr44/#General_Category_Values"""


def require_names(schema: pa.Schema) -> None:
    """Refuse names by which rows can't be stored.

    Raises:
        OptionError: two columns have the same name, or a name, also of a field inside a column, has
            a control character.
    """
    require_distinct(schema.names)
    for field in schema:
        for path in _paths(field, ()):
            if CONTROL.search(path[-1]):
                raise _control(path)


def require_distinct(names: Sequence[str]) -> None:
    """Refuse two columns of one name.

    Raises:
        OptionError: it says which.
    """
    for name in names:
        if names.count(name) > 1:
            raise OptionError(
                f"Column {name!r} is there twice",
                why="rows are stored by column name",
                todo="rename one of them before the sink",
            )


def as_announced(batches: Iterable[pa.RecordBatch], schema: pa.Schema) -> Iterator[pa.RecordBatch]:
    """The batches, each compared with the schema of the query.

    Raises:
        UnsupportedQuery: names or types differ, so that values would be taken for others.
    """
    announced = _fields(schema)
    for batch in batches:
        found = _fields(batch.schema)
        if found != announced:
            # All may be there, in another order or beside others: the first is named then.
            wrong = [one for one in announced if one not in found] or announced
            raise UnsupportedQuery(
                f"Spark hands over the columns {batch.schema.names!r} otherwise than it has"
                f" announced them; the first that differs is {wrong[0][0]!r}",
                why="its values would be lost, or taken for those of another column",
                todo="rename that column and the fields inside it to plain letters, or cast it",
            )
        yield batch


def _control(path: tuple[str, ...]) -> OptionError:
    return OptionError(
        f"Column {'.'.join(path)!r} has a control character in its name",
        why="Spark cuts a name at a NUL, and the values of such a field arrive as null; other"
        " control characters split lines of logs and of requests",
        todo="rename it before the sink (inside a struct: cast it to a struct of other names), or"
        " read without it",
    )


def _paths(field: pa.Field, above: tuple[str, ...]) -> Iterator[tuple[str, ...]]:
    """The field and all inside it, each with the names that lead to it."""
    path = (*above, field.name)
    yield path
    for number in range(field.type.num_fields):
        yield from _paths(field.type.field(number), path)


def _fields(fields: Iterable[pa.Field]) -> list[tuple[str, object]]:
    return [(field.name, _form(field.type)) for field in fields]


def _form(kind: pa.DataType) -> object:
    """A type without what sessions of Spark may have otherwise: sizes of texts, the time zone."""
    if types.is_struct(kind):
        return _fields(kind)
    if types.is_map(kind):
        return "map", _form(kind.key_type), _form(kind.item_type)
    if types.is_nested(kind):
        return "list", _form(kind.value_type)
    if types.is_timestamp(kind):
        return kind.unit, kind.tz is None
    alike = {pa.large_string(): pa.string(), pa.large_binary(): pa.binary()}
    return alike.get(kind, kind)
