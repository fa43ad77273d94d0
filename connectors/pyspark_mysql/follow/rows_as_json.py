"""Rows of any table as JSON, by what the log says of their columns."""

from __future__ import annotations

import json
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import cached_property, partial

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from pyspark_mysql.binlog.images import Numbers
from pyspark_mysql.binlog.names import TableName
from pyspark_mysql.binlog.reader import Change, TableStatement
from pyspark_mysql.binlog.tables import Charsets, LoggedTable
from pyspark_mysql.binlog.values import SHOWN_TYPES
from pyspark_mysql.follow.changes import Block, logged_as, statements
from pyspark_mysql.follow.table import BEFORE, META, OP, as_shown
from pyspark_mysql.follow.windows import LoggedRows, windows
from sparkonce.values.text import to_json

TABLE, KEY, ROW = "_table", "_key", "_row"
SCHEMA = pa.schema([(TABLE, pa.string()), *META.items(), (KEY, pa.string()), (ROW, pa.string())])
"""The columns of a stream of many tables; `_before` only on request."""

SIZES = {one.size for one in SHOWN_TYPES.values()}
HASH = "DB_ROW_HASH_"
"""The begin of the names of MariaDB's hidden columns."""


def schema_of(asked: Collection[str]) -> pa.Schema:
    """The schema of a stream of many tables; `asked` are the columns that an option names."""
    return SCHEMA.append(pa.field(BEFORE, pa.string())) if BEFORE in asked else SCHEMA


class LogLayout:
    """Names, types, character sets and keys of columns, from the log alone."""

    def __init__(
        self,
        charsets: Charsets,
        learn: Callable[[str], None],
        kinds: Callable[[], Mapping[str, str]],
    ) -> None:
        self._charsets, self._learn, self._kinds = charsets, learn, kinds
        self._known: dict[int, tuple[LoggedTable, LoggedTable]] = {}

    def completed(self, logged: LoggedTable) -> LoggedTable:
        """The table with the character sets of its columns."""
        _, found = self._known.get(id(logged), (None, None))
        if found is None:
            of = self._charsets.of
            for one in logged.columns:
                if charset := of(one.collation):
                    self._learn(charset.name)
            columns = [replace(one, charset=of(one.collation)) for one in logged.columns]
            if any(one.padding in SIZES for one in columns):
                kinds = self._kinds()
                columns = [as_shown(one, kinds) for one in columns]
            found = replace(logged, columns=tuple(columns))
            self._known[id(logged)] = logged, found  # keeps `logged`, and so its id
        return found

    def named(self, logged: LoggedTable) -> dict[str, int]:
        """The place of each column, by its name in lower case."""
        return {one.name.lower(): at for at, one in enumerate(logged.columns)}


class RowsAsJson:
    """Builds batches of a schema, whose columns are those of `SCHEMA` and `_before`.

    Args:
        schema: of the batches.
        charsets: of the server.
        learn: queries the characters of a set by its name.
        kinds: queries the types of a table's columns, by their names in lower case.
    """

    def __init__(
        self,
        schema: pa.Schema,
        charsets: Charsets,
        learn: Callable[[str], None],
        kinds: Callable[[TableName], Mapping[str, str]],
    ) -> None:
        self.schema, self._charsets, self._learn, self._kinds = schema, charsets, learn, kinds
        self._layouts: dict[TableName, LogLayout] = {}

    def batches(
        self, rows: Iterable[Change], limits: Mapping[str, int]
    ) -> Iterator[pa.RecordBatch]:
        """The rows, in their order, and statements that the stream carries on.

        Args:
            rows: as logged.
            limits: of tables in their snapshot, the highest number at the start of a key that the
                query has read; rows behind it are left out.

        Raises:
            StoreRefused: the connector can't read the type or the character set of a column.
            ValueUnreadable: a value is not valid for its type.
        """
        for window in windows(rows, mixed=True):
            found = [self._of_layout(one, limits) for one in window.rows.values()]
            if window.statements:
                found.append((self._statements(window.statements), np.array(window.places)))
            if len(found) == 1:
                yield found[0][0]
            else:
                yield _in_order(*zip(*found, strict=True))

    def _of_layout(
        self, rows: LoggedRows, limits: Mapping[str, int]
    ) -> tuple[pa.RecordBatch, Numbers]:
        """The rows of one table and layout, each with its place in the window."""
        name = ".".join(rows.name)
        block = _JsonBlock(Block(self._layout(rows.name), rows), name)
        columns = [block.column(one.name).cast(one.type) for one in self.schema]
        batch = pa.RecordBatch.from_arrays(columns, schema=self.schema)
        at = np.array(rows.places)[block.change_of]
        if name not in limits:
            return batch, at
        read = block.up_to(limits[name])
        return batch.filter(read), at[read.to_numpy(zero_copy_only=False)]

    def _layout(self, table: TableName) -> LogLayout:
        if table not in self._layouts:
            kinds = partial(self._kinds, table)
            self._layouts[table] = LogLayout(self._charsets, self._learn, kinds)
        return self._layouts[table]

    def _statements(self, told: Sequence[TableStatement]) -> pa.RecordBatch:
        names = [".".join(one.name) for one in told]
        texts = [json.dumps({"statement": one.text}, ensure_ascii=False) for one in told]
        return statements(told, self.schema, **{TABLE: names, ROW: texts})

    def of_snapshot(
        self, batches: Iterable[pa.RecordBatch], name: str, key: Sequence[str]
    ) -> Iterator[pa.RecordBatch]:
        """The rows of a table's snapshot, from their typed columns."""
        for batch in batches:
            names = [one for one in batch.schema.names if one != OP]
            known = {
                TABLE: pa.repeat(name, len(batch)),
                OP: batch[OP],
                KEY: to_json(_struct(batch, key)),
                ROW: to_json(_struct(batch, names)),
            }
            columns = [
                known[one.name] if one.name in known else pa.nulls(len(batch), one.type)
                for one in self.schema
            ]
            yield pa.RecordBatch.from_arrays(columns, schema=self.schema)


def _in_order(batches: Sequence[pa.RecordBatch], places: Sequence[Numbers]) -> pa.RecordBatch:
    """The rows of several tables in the order of their events."""
    order = np.argsort(np.concatenate(places), kind="stable")
    return pa.concat_batches(batches).take(pa.array(order))


def _struct(batch: pa.RecordBatch, names: Sequence[str]) -> pa.StructArray:
    return pa.StructArray.from_arrays([batch[one] for one in names], names=[*names])


class _JsonBlock:
    """Rows of one table as columns of JSON.

    Attributes:
        change_of: of each row, the number of its event.
    """

    def __init__(self, block: Block, name: str) -> None:
        self._block = block
        self.change_of = block.change_of[block.chosen]
        self._columns: dict[str, Callable[[], pa.Array]] = {
            TABLE: lambda: pa.repeat(name, len(block.chosen)),
            KEY: self._key,
            ROW: lambda: to_json(self._struct(self._fields)),
            BEFORE: lambda: to_json(block.before(pa.struct(self._fields))),
            **block.meta,
        }

    def column(self, name: str) -> pa.Array:
        """A column of the stream."""
        return self._columns[name]()

    def up_to(self, number: int) -> pa.Array:
        """Which rows have a key that begins with a number up to this one."""
        first = self._block.table.columns[self._block.table.key[0]]
        field = next(one for one in self._fields if one.name == first.name)
        found = self._block.column(field)
        return pc.less_equal(found, pa.scalar(number, found.type))

    @cached_property
    def _fields(self) -> list[pa.Field]:
        columns = self._block.table.columns
        return [
            pa.field(one.name, logged_as(one).natural)
            for one in columns
            if not one.name.startswith(HASH)
        ]

    def _key(self) -> pa.Array:
        columns = self._block.table.columns
        names = [columns[at].name for at in self._block.table.key]
        if not names:
            return pa.nulls(len(self._block.chosen), pa.string())
        fields = {one.name: one for one in self._fields}
        return to_json(self._struct([fields[name] for name in names]))

    def _struct(self, fields: list[pa.Field]) -> pa.StructArray:
        return pa.StructArray.from_arrays([*map(self._block.column, fields)], fields=fields)
