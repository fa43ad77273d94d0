"""Which columns of a table can be followed."""

from __future__ import annotations

import pyarrow as pa

from pyspark_mysql.binlog.values import words_unknown
from pyspark_mysql.follow.changes import BEFORE, META
from pyspark_mysql.follow.columns import require_readable
from pyspark_mysql.follow.layout import CHOICES, is_compressed, is_read, words_of
from pyspark_mysql.follow.table import Followed
from pyspark_mysql.target.columns import Column
from sparkonce.errors import StoreRefused

LEAVE_OUT = "leave it out by option columns"


def require_columns(table: Followed, schema: pa.Schema) -> None:
    """Refuse columns that can't be followed, or not as the types of a schema.

    Raises:
        OptionError: the table has no such column, or its values would change.
        StoreRefused: values of its type or character set are not read from the log.
    """
    for field in schema:
        inner = [*field.type] if field.name == BEFORE else [field]
        for one in inner if field.name not in META else ():
            column = table.column(one.name)
            _require_read(table, column.name)
            require_readable(column, one.type)


def require_key(table: Followed) -> None:
    """Refuse a primary key whose values can't be read from the log.

    Raises:
        StoreRefused: so it is.
    """
    for name in table.key:
        _require_read(table, name, "begin with startingPosition=latest, and leave it out")


def _require_read(table: Followed, name: str, todo: str = LEAVE_OUT) -> None:
    column = next(one for one in table.layout.columns if one.name == name)
    if not is_read(column):
        raise StoreRefused(
            f"Column {name!r} of type {_type(column)} can't be followed",
            why="the binary log has its values in a form that is not known here",
            todo=f"{todo}, or ALTER it to a type that every server has",
        )
    charset = table.layout.charsets.of(0, column.charset)
    if charset and not charset.is_read:
        raise StoreRefused(
            f"Column {name!r} of character set {charset.name} can't be followed",
            why="of some of its bytes Python makes other characters than the server",
            todo=f"{todo}, or ALTER it to utf8mb4",
        )
    if not table.logs_names and column.kind in CHOICES and words_of(column, charset) is None:
        raise words_unknown(name)


def _type(column: Column) -> str:
    return f"{column.kind} COMPRESSED" if is_compressed(column) else column.kind
