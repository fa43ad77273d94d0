"""Logged rows as record batches: columns of the table, and columns that describe the change.

The latter are `_op` (as in Debezium: c, u, d), `_gtid`, `_ts` and `_before`. If an update changes
the primary key, the batch has a delete of the old key and a create of the new one. The key is the
one that the table had when the server logged the row.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import cached_property
from typing import Protocol

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from pyarrow import types
from pymysql.constants import FIELD_TYPE

from pyspark_mysql.binlog import events, tables
from pyspark_mysql.binlog.images import PADDING, ByteBuffer, Numbers, RowImage
from pyspark_mysql.binlog.reader import Change, TableStatement
from pyspark_mysql.binlog.tables import BinlogColumn, LoggedTable
from pyspark_mysql.binlog.values import DAY, differ, values
from pyspark_mysql.follow.table import BEFORE, GTID, META, OP, TS, FollowedTable, require_readable
from pyspark_mysql.follow.windows import LoggedRows, windows
from pyspark_mysql.read.columns import ResultColumn
from pyspark_mysql.read.rows import unreadable
from sparkonce.errors import OptionError, StoreRefused
from sparkonce.values import from_json
from sparkonce.values.spark_types import spark_type

CREATE, UPDATE, DELETE = range(3)
OPERATIONS = pa.array(events.OPERATIONS)

PROTOCOL_TYPES = {
    tables.TIMESTAMP2: FIELD_TYPE.TIMESTAMP,
    tables.DATETIME2: FIELD_TYPE.DATETIME,
    tables.TIME2: FIELD_TYPE.TIME,
}
"""The protocol's numbers of types that have another number in the log."""


class Changes:
    """Builds batches of a schema.

    Args:
        schema: of the batches.
        key: the columns that the key of each row must have; None for any.
        table: whose rows they are.
        lenient: whether a column that the log lacks is null, and a column of another type is read
            as long as each value fits.
    """

    def __init__(
        self,
        schema: pa.Schema,
        key: Sequence[str] | None,
        table: FollowedTable,
        *,
        lenient: bool = False,
    ) -> None:
        self.schema, self.key, self.table, self.lenient = schema, key, table, lenient

    def batches(self, rows: Iterable[Change]) -> Iterator[pa.RecordBatch]:
        """The rows, in their order, and statements that the stream carries on.

        Raises:
            StoreRefused: the log lacks a column, or has another type or another key.
            ValueUnreadable: a value is not valid for its type.
        """
        for window in windows(rows):
            for one in window.rows.values():
                yield self._batch(one)
            if window.statements:
                yield statements(window.statements, self.schema)

    def _batch(self, rows: LoggedRows) -> pa.RecordBatch:
        block = Block(self.table, rows, lenient=self.lenient)
        if self.key is not None:
            block.require_key(self.key)
        return pa.RecordBatch.from_arrays([*map(block.column, self.schema)], schema=self.schema)


def statements(
    found: Sequence[TableStatement], schema: pa.Schema, **texts: Sequence[str]
) -> pa.RecordBatch:
    """Statements as rows; `texts` are the values of further columns, and all others are null."""
    known = {
        OP: pa.array([one.operation for one in found]),
        GTID: pa.array([str(one.begin.gtid) for one in found]),
        TS: pa.array([one.begin.micros for one in found], META[TS]),
        **{name: pa.array(each, pa.string()) for name, each in texts.items()},
    }
    columns = [
        known[one.name].cast(one.type) if one.name in known else pa.nulls(len(found), one.type)
        for one in schema
    ]
    return pa.RecordBatch.from_arrays(columns, schema=schema)


class Layout(Protocol):
    """What the log omits of a table."""

    def completed(self, logged: LoggedTable) -> LoggedTable:
        """The table with it."""

    def named(self, logged: LoggedTable) -> dict[str, int]:
        """The place of each column, by its name in lower case."""


class Block:
    """Rows of one layout, from one or several events."""

    def __init__(self, followed: Layout, rows: LoggedRows, *, lenient: bool = False) -> None:
        self.rows, self.table, self.lenient = rows, followed.completed(rows.table), lenient
        self.named = followed.named(self.table)
        data = b"".join([*rows.data, PADDING])
        self.buffer, image = ByteBuffer(data), RowImage(self.table.columns)
        starts = image.starts(data, len(data) - len(PADDING))
        ends = np.cumsum([*map(len, rows.data)])
        self.change_of = np.searchsorted(ends, starts, "right")
        self.cells = image.cells(self.buffer, starts)
        self._choose_rows()

    def require_key(self, names: Sequence[str]) -> None:
        """Reject rows whose key has other columns."""
        wanted = {self.named.get(one.lower()) for one in names}
        if wanted != {*self.table.key}:
            raise StoreRefused(
                f"Rows that {self._where} logged have another key than {', '.join(names)}",
                why="someone altered the table, before or since",
                todo="start a new query after the ALTER",
            )

    def column(self, field: pa.Field) -> pa.Array:
        """A column of the rows that are emitted."""
        if field.name in self.meta:
            return self.meta[field.name]().cast(field.type)
        if field.name == BEFORE:
            return self.before(field.type)
        return self._values(field, self.chosen)

    @cached_property
    def meta(self) -> dict[str, Callable[[], pa.Array]]:
        """Columns that the table does not have."""
        which = pa.array(self.change_of[self.chosen])
        return {
            OP: lambda: OPERATIONS.take(pa.array(self.operations)),
            GTID: lambda: pa.array(self.rows.gtids).take(which),
            TS: lambda: pa.array(self.rows.micros, META[TS]).take(which),
        }

    def _choose_rows(self) -> None:
        """Choose the rows to emit: of an update the new row, or both if its key changed."""
        codes = [events.OPERATIONS.index(one) for one in self.rows.operations]
        logged = np.array(codes, np.int64)[self.change_of]
        updates = logged == UPDATE
        after = updates & (np.cumsum(updates) % 2 == 0)
        before = updates & ~after
        moved = self._moved(before, after)
        self.chosen = np.nonzero(~before | moved)[0]
        done = np.where(before, DELETE, np.where(after & moved, CREATE, logged))[self.chosen]
        self.operations = done
        # The row that has the former values of each; -1 if it did not exist.
        choices = [self.chosen, self.chosen - 1]
        self.former = np.select([done == DELETE, done == UPDATE], choices, -1)

    def _moved(self, before: Numbers, after: Numbers) -> Numbers:
        """Rows of updates that change the key."""
        moved = np.zeros(len(before), bool)
        old, new = np.nonzero(before)[0], np.nonzero(after)[0]
        for at in self.table.key if len(old) else ():
            was, became = (self.cells[at].of(one) for one in (old, new))
            differs = differ(was, became, self.buffer)
            moved[old] |= differs
            moved[new] |= differs
        return moved

    def before(self, kind: pa.DataType) -> pa.Array:
        """The former values of the rows."""
        if (self.former < 0).all():
            return pa.nulls(len(self.former), kind)
        at = np.where(self.former < 0, self.former.max(), self.former)
        columns = [self._values(field, at) for field in kind]
        return pa.StructArray.from_arrays(columns, fields=[*kind], mask=pa.array(self.former < 0))

    def _values(self, field: pa.Field, rows: Numbers) -> pa.Array:
        """The values of a column in the given rows."""
        if field.name.lower() not in self.named and self.lenient:
            return pa.nulls(len(rows), field.type)
        if field.name.lower() not in self.named:
            raise StoreRefused(
                f"Column {field.name!r} is not in rows that {self._where} logged",
                why="someone altered the table, before or since",
                todo="exclude it with option columns, or start a new query after the ALTER",
            )
        cells = self.cells[self.named[field.name.lower()]].of(rows)
        try:
            logged = logged_as(cells.column)
            if not (self.lenient and _is_checked(logged.natural, field.type)):
                require_readable(logged, field.type)
            return _converted(values(cells, self.buffer), cells.column, field.type)
        except OptionError as error:
            raise self._altered(field, error) from None
        except (ValueError, pa.ArrowInvalid) as error:
            raise unreadable(error, field, f" that {self._where} logged") from None

    def _altered(self, field: pa.Field, error: OptionError) -> StoreRefused:
        return StoreRefused(
            f"Column {field.name!r} had another type when {self._where} logged its values: they"
            f" can't be read as {spark_type(field)}",
            why=f"someone altered the table, before or since; {error.why}",
            todo="declare in .schema(...) a type that holds both, exclude the column with option"
            " columns, or start a new query after the ALTER",
        )

    @property
    def _where(self) -> str:
        first, last = (self.rows.gtids[at] for at in (0, -1))
        return f"transaction {first}" if first == last else f"transactions {first} to {last}"


def logged_as(logged: BinlogColumn) -> ResultColumn:
    """A column as the log describes it. It may have been altered since."""
    code, meta = logged.type.code, logged.type.meta
    length = scale = 0
    if code == tables.BIT:
        length = (meta & 255) + 8 * (meta >> 8)
    elif code == tables.NEWDECIMAL:
        scale = meta >> 8
        length = (meta & 255) + (scale > 0) + (not logged.unsigned)
    code, binary = PROTOCOL_TYPES.get(code, code), logged.charset is None and not logged.shown
    return ResultColumn(logged.name, code, length, scale, bool(logged.unsigned), True, binary)


def _is_checked(logged: pa.DataType, kind: pa.DataType) -> bool:
    """Whether Arrow converts between these types only values that stay equal."""
    exact = (types.is_integer, types.is_decimal)
    return all(any(is_one(one) for is_one in exact) for one in (logged, kind))


def _converted(found: pa.Array, column: BinlogColumn, kind: pa.DataType) -> pa.Array:
    """The values of a column as the requested type."""
    if types.is_duration(found.type):
        return _time(found, column.type.meta, kind)
    if found.type == kind:
        return found
    convert = next((convert for is_one, convert in CONVERSIONS if is_one(kind)), pa.Array.cast)
    return convert(found, kind)


def _boolean(found: pa.Array, kind: pa.DataType) -> pa.Array:  # noqa: ARG001 (there is one)
    if not pc.all(pc.is_in(found, pa.array([0, 1, None], found.type))).as_py():
        raise ValueError("it is neither 0 nor 1")
    return pc.not_equal(found, pa.scalar(0, found.type))


def _text(found: pa.Array, kind: pa.DataType) -> pa.Array:
    if not types.is_decimal(found.type):
        return found.cast(kind)
    return pa.array([None if one is None else f"{one:f}" for one in found.to_pylist()], kind)


CONVERSIONS: tuple[
    tuple[Callable[[pa.DataType], bool], Callable[[pa.Array, pa.DataType], pa.Array]], ...
] = (
    (types.is_boolean, _boolean),
    (types.is_duration, lambda found, kind: found.cast(pa.int64()).cast(kind)),
    (types.is_string, _text),
    (types.is_binary, lambda found, kind: _text(found, pa.string()).cast(kind)),
    (types.is_nested, lambda found, kind: from_json.column(found.cast(pa.binary()), kind)),
)
"""Conversions that Arrow lacks or does differently."""


def _time(found: pa.Array, digits: int, kind: pa.DataType) -> pa.Array:
    """A TIME as a time of day, or as text, which may exceed a day or be negative."""
    micros = found.cast(pa.int64())
    if types.is_time(kind):
        if pc.any(pc.or_(pc.less(micros, 0), pc.greater_equal(micros, DAY))).as_py():
            raise ValueError("it is not a time of day")
        return micros.cast(pa.time64("us"))
    texts = (None if one is None else _time_text(one, digits) for one in micros.to_pylist())
    return pa.array(texts, pa.string()).cast(kind)


def _time_text(micros: int, digits: int) -> str:
    """The text as the server shows it: -12:34:56.78."""
    seconds, rest = divmod(abs(micros), 1_000_000)
    fraction = f".{rest:06d}"[: digits + 1] if digits else ""
    sign = "-" if micros < 0 else ""
    return f"{sign}{seconds // 3600:02d}:{seconds // 60 % 60:02d}:{seconds % 60:02d}{fraction}"
