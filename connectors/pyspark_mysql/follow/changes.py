"""Rows of the log as record batches: columns of the table, and what happened to the row.

Columns that no table has are `_op` (Debezium's words: c, u, d), `_gtid`, `_ts` and `_before`. A row
whose primary key changes is deleted under the old one, and created under the new one. The key is
the one that the table had when the row was logged.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import pyarrow as pa

from pyspark_mysql.binlog import headers
from pyspark_mysql.binlog.images import PADDING, Buffer, Image, Numbers, Place
from pyspark_mysql.binlog.log import Rows
from pyspark_mysql.binlog.tables import Table
from pyspark_mysql.binlog.texts import differ
from pyspark_mysql.follow.columns import described, require_readable, value
from pyspark_mysql.follow.layout import Layout
from pyspark_mysql.read.described import Described
from sparkonce.errors import OptionError, StoreRefused, ValueUnreadable
from sparkonce.values.spark_types import spark_type

OP, GTID, TS, BEFORE = "_op", "_gtid", "_ts", "_before"
META = {OP: pa.string(), GTID: pa.string(), TS: pa.timestamp("us", "UTC")}
"""Columns that every stream has; `_before` where it is asked for."""

BLOCK = 8 * 1024 * 1024
"""Bytes of rows that a batch is made of."""

CREATE, UPDATE, DELETE = range(3)
OPERATIONS = pa.array(headers.OPERATIONS)


def schema_of(columns: Iterable[Described], asked: Collection[str]) -> pa.Schema:
    """The schema of changes, with the types that lose nothing.

    Args:
        columns: of the table.
        asked: columns that an option names.

    Raises:
        StoreRefused: a column has a name that a stream gives to something else.
    """
    fields = [pa.field(one.name, one.natural) for one in columns]
    for field in fields:
        if field.name.lower() in (*META, BEFORE):
            raise StoreRefused(
                f"The table has a column {field.name!r}",
                why="a stream has a column of that name, in any case, which says what happened to"
                " the row",
                todo="rename the table's column",
            )
    before = [pa.field(BEFORE, pa.struct(fields))] if BEFORE in asked else []
    return pa.schema([*fields, *(pa.field(*one) for one in META.items()), *before])


class Changes:
    """Makes batches.

    Args:
        schema: of the rows.
        key: the columns that the key of each row must have; None if it may have any.
        layout: of the table.
    """

    def __init__(self, schema: pa.Schema, key: Sequence[str] | None, layout: Layout) -> None:
        self.schema, self.key, self.layout = schema, key, layout

    def batches(self, rows: Iterable[Rows]) -> Iterator[pa.RecordBatch]:
        """The rows, in their order.

        Raises:
            StoreRefused: a column is not in the log, or of another type, or the key another one.
            ValueUnreadable: a value is none of its type.
        """
        pieces, size = list[Rows](), 0
        for one in rows:
            if pieces and (pieces[0].table is not one.table or size > BLOCK):
                yield self._batch(pieces)
                pieces, size = [], 0
            pieces.append(one)
            size += len(one.data)
        if pieces:
            yield self._batch(pieces)

    def _batch(self, pieces: list[Rows]) -> pa.RecordBatch:
        table = self.layout.completed(pieces[0].table)
        block = _Block(table, pieces, self.layout.named(table))
        if self.key is not None:
            block.require_key(self.key)
        columns = [block.column(field) for field in self.schema]
        return pa.RecordBatch.from_arrays(columns, schema=self.schema)


@dataclass
class _Chosen:
    """The rows that are told.

    Attributes:
        at: which of those that are logged they are.
        operations: what happened to each.
        former: which says what it was; -1 if it was not there.
    """

    at: Numbers
    operations: Numbers
    former: Numbers


class _Block:
    """Rows of one form, of one or several events."""

    def __init__(self, table: Table, pieces: list[Rows], named: dict[str, int]) -> None:
        self.table, self.pieces, self.named = table, pieces, named
        data = b"".join([*(one.data for one in pieces), PADDING])
        self.buffer, image = Buffer(data), Image(table.columns)
        starts = image.starts(data, len(data) - len(PADDING))
        ends = np.cumsum([len(one.data) for one in pieces])
        self.piece = np.searchsorted(ends, starts, "right")
        self.places = image.places(self.buffer, starts)

    def require_key(self, names: Sequence[str]) -> None:
        """Refuse rows whose key has other columns."""
        wanted = {self.named.get(one.lower()) for one in names}
        if wanted != {*self.table.key}:
            raise StoreRefused(
                f"Rows that {self._where} logged have another key than {', '.join(names)}",
                why="the table was altered, before or since",
                todo="begin a new query behind the ALTER",
            )

    def column(self, field: pa.Field) -> pa.Array:
        """A column of the rows that are told."""
        if field.name in self.meta:
            return self.meta[field.name]().cast(field.type)
        if field.name == BEFORE:
            return self._before(field.type)
        return self._values(field, self.chosen.at)

    @cached_property
    def meta(self) -> dict[str, Callable[[], pa.Array]]:
        """Columns that the table does not have."""
        which = pa.array(self.piece[self.chosen.at])
        begins = [one.begin for one in self.pieces]
        return {
            OP: lambda: OPERATIONS.take(pa.array(self.chosen.operations)),
            GTID: lambda: pa.array([str(one.gtid) for one in begins]).take(which),
            TS: lambda: pa.array([one.micros for one in begins], META[TS]).take(which),
        }

    @cached_property
    def chosen(self) -> _Chosen:
        """Of an update the row as it became; both, where its key changed."""
        codes = [headers.OPERATIONS.index(one.operation) for one in self.pieces]
        logged = np.array(codes, np.int64)[self.piece]
        updates = logged == UPDATE
        after = updates & (np.cumsum(updates) % 2 == 0)
        before = updates & ~after
        moved = self._moved(before, after)
        at = np.nonzero(~before | moved)[0]
        done = np.where(before, DELETE, np.where(after & moved, CREATE, logged))[at]
        former = np.select([done == DELETE, done == UPDATE], [at, at - 1], -1)
        return _Chosen(at, done, former)

    def _moved(self, before: Numbers, after: Numbers) -> Numbers:
        """Rows of updates that change the key."""
        moved = np.zeros(len(before), bool)
        old, new = np.nonzero(before)[0], np.nonzero(after)[0]
        for at in self.table.key if len(old) else ():
            was, became = (self.places[at].of(one) for one in (old, new))
            differs = differ(was, became, self.buffer)
            moved[old] |= differs
            moved[new] |= differs
        return moved

    def _before(self, kind: pa.DataType) -> pa.Array:
        """What rows were."""
        former = self.chosen.former
        if (former < 0).all():
            return pa.nulls(len(former), kind)
        at = np.where(former < 0, former.max(), former)
        columns = [self._values(field, at) for field in kind]
        return pa.StructArray.from_arrays(columns, fields=[*kind], mask=pa.array(former < 0))

    def _values(self, field: pa.Field, rows: Numbers) -> pa.Array:
        place = self._place(field.name).of(rows)
        try:
            require_readable(described(place.column), field.type)
            return value(place, self.buffer, field.type)
        except OptionError as error:
            raise self._altered(field, error) from None
        except (ValueError, pa.ArrowInvalid) as error:
            raise self._unreadable(field, error) from None

    def _place(self, name: str) -> Place:
        if name.lower() not in self.named:
            raise StoreRefused(
                f"Column {name!r} is not in rows that {self._where} logged",
                why="the table was altered, before or since",
                todo="leave it out by option columns, or begin a new query behind the ALTER",
            )
        return self.places[self.named[name.lower()]]

    def _altered(self, field: pa.Field, error: OptionError) -> StoreRefused:
        return StoreRefused(
            f"Column {field.name!r} had another type when {self._where} logged rows of it: it can't"
            f" be read as {spark_type(field)}",
            why=f"the table was altered, before or since; {error.why}",
            todo="give it a type by .schema(...) that holds both, leave it out by option columns,"
            " or begin a new query behind the ALTER",
        )

    def _unreadable(self, field: pa.Field, error: Exception) -> ValueUnreadable:
        return ValueUnreadable(
            f"A value of column {field.name!r} that {self._where} logged can't be read as"
            f" {spark_type(field)}: {error}",
            why="the table holds what is none of that type, such as a zero date, a number out of"
            " range, or a TINYINT(1) that is neither 0 nor 1",
            todo="read it as a larger type by .schema(...), leave it out, or mend the value",
        )

    @property
    def _where(self) -> str:
        first, last = (str(self.pieces[at].begin.gtid) for at in (0, -1))
        return f"transaction {first}" if first == last else f"transactions {first} to {last}"
