"""Rows that are JSON objects, by option rowColumn: their members are columns of their table.

Rows with other members are written separately. So columns that a row lacks keep their values, or
get their defaults.
"""

from __future__ import annotations

import json
import re
from collections.abc import Collection, Iterator, Sequence
from dataclasses import replace
from typing import NamedTuple

import pyarrow as pa
import pyarrow.compute as pc

from pyspark_mysql.write.plan import TableRows
from sparkonce.change import split_operations
from sparkonce.values import from_json, spark_types
from sparkonce.values.rows import Unfit

OPERATION = "operation "
"""The column of operations among a table's columns, whose names don't end with a space."""

ADVICE = "write a JSON object of the table's columns, for example to_json(struct(*))"


class TypedRows(NamedTuple):
    """Neighbouring rows with the same members.

    Attributes:
        detail: of these rows, whose columns are the members.
        rows: with a column for each member, and that of operations.
        first: the place of the first one.
    """

    detail: TableRows
    rows: pa.RecordBatch
    first: int


class JsonRows:
    """Reads the rows of one table."""

    def __init__(self, detail: TableRows) -> None:
        self.detail, self.column = detail, str(detail.row)
        schema = spark_types.parse(detail.fields)
        self.names, self.fields = schema.names, {one.name.lower(): one for one in schema}

    def typed(self, rows: pa.RecordBatch) -> list[TypedRows]:
        """The rows with typed columns.

        Raises:
            Unfit: a row that does not delete is null.
            ValueError: a row is no JSON object of columns of the table.
        """
        texts = rows.column(self.column)
        deleted = split_operations(rows, self.detail.op).deleted
        writes = pa.repeat(True, len(rows)) if deleted is None else pc.invert(deleted)
        if len(nulls := pc.indices_nonzero(pc.and_(writes, texts.is_null()))):
            raise Unfit(self.column, nulls, "option rowColumn names it", ADVICE)
        try:
            first = pc.index(writes, True).as_py()
            names = self.names if first < 0 else _members(texts[first].as_py())
            return [self._typed(self._equal(texts, writes, names), rows, 0)]
        except ValueError:  # rows differ in their members, or one is wrong
            return [*self._runs(rows, texts, writes)]

    def _equal(self, texts: pa.Array, writes: pa.Array, names: Sequence[str]) -> pa.StructArray:
        """The rows as structs of these members; each row that writes must have all of them."""
        found = from_json.objects(texts, self._kind(names))
        for at, name in enumerate(names):
            lacking = pc.and_(found.field(at).is_null(), writes)
            if pc.any(lacking).as_py() and not _all_have(texts.filter(lacking), name):
                raise ValueError(f"column {self.column!r}: a row lacks {name!r}")
        return found

    def _runs(self, rows: pa.RecordBatch, texts: pa.Array, writes: pa.Array) -> Iterator[TypedRows]:
        """Runs of rows with equal members. A row that deletes belongs to any of them."""
        begin, members = 0, list[str]()
        for at, (text, is_write) in enumerate(
            zip(texts.to_pylist(), writes.to_pylist(), strict=True)
        ):
            own = sorted(_members(text)) if is_write else members
            if members and own != members:
                yield self._run(rows.slice(begin, at - begin), begin, members)
                begin = at
            members = own
        yield self._run(rows.slice(begin), begin, members or self.names)

    def _run(self, rows: pa.RecordBatch, first: int, names: Sequence[str]) -> TypedRows:
        kind, texts = self._kind(names), rows.column(self.column)
        deleted = split_operations(rows, self.detail.op).deleted
        if deleted is None:
            return self._typed(from_json.objects(texts, kind), rows, first)
        written, gone = pc.indices_nonzero(pc.invert(deleted)), pc.indices_nonzero(deleted)
        structs = [from_json.objects(texts.take(written), kind)]
        structs += [self._key(text, kind) for text in texts.take(gone).to_pylist()]
        order = pc.sort_indices(pa.concat_arrays([written, gone]))
        return self._typed(pa.concat_arrays(structs).take(order), rows, first)

    def _key(self, text: str | None, kind: pa.StructType) -> pa.StructArray:
        """The key of a row that deletes. Its other members need not fit."""
        tree = from_json.parse_tree(text or "{}")
        if not isinstance(tree, dict):
            raise ValueError(f"column {self.column!r}: it is no object")
        _require_apart([*tree])
        spelled, key = {one.name.lower(): one.name for one in kind}, self.detail.key
        values = {name.lower(): value for name, value in tree.items()}
        own = {spelled[name.lower()]: values.get(name.lower()) for name in key}
        return from_json.array_of_tree(own, kind)

    def _typed(self, found: pa.StructArray, rows: pa.RecordBatch, first: int) -> TypedRows:
        detail, op = self.detail, self.detail.op
        named = {
            self.fields[one.name.lower()].name: found.field(at) for at, one in enumerate(found.type)
        }
        written = tuple(name for name in detail.columns if name in named)
        columns = {name: named[name] for name in written}
        columns |= {OPERATION: rows.column(op)} if op else {}
        batch = pa.RecordBatch.from_pydict(columns)
        return TypedRows(replace(detail, columns=written), batch, first)

    def _kind(self, names: Collection[str]) -> pa.StructType:
        """The type of objects with these members.

        Raises:
            ValueError: the table lacks one, or they lack a column of the key.
        """
        given, table = {name.lower() for name in names}, self.detail.table_name
        for name in names:
            if name.lower() not in self.fields:
                known = ", ".join(self.fields)
                raise ValueError(
                    f"column {self.column!r}: table {table} has {known}, and lacks {name!r}"
                )
        for name in (*self.detail.key, *self.detail.required):
            if name.lower() not in given:
                raise ValueError(
                    f"column {self.column!r} lacks {name!r}, which table {table} needs"
                )
        return pa.struct([(name, self.fields[name.lower()].type) for name in names])


def _members(text: str) -> list[str]:
    """The names of an object's members.

    Raises:
        ValueError: the text is no object.
    """
    found = from_json.parse_tree(text)
    if not isinstance(found, dict) or not found:
        raise ValueError("it is no JSON object with a member")
    _require_apart([*found])
    return [*found]


def _require_apart(names: Sequence[str]) -> None:
    """Reject members that are the same column: the server ignores case."""
    if len({name.lower() for name in names}) < len(names):
        raise ValueError(f"two of the members {', '.join(names)} are the same column")


def _all_have(texts: pa.Array, name: str) -> bool:
    """Whether all objects have a member; a quote within a text is escaped."""
    spelled = {json.dumps(name), json.dumps(name, ensure_ascii=False)}
    pattern = rf"(?:{'|'.join(map(re.escape, spelled))})\s*:"
    return bool(pc.all(pc.match_substring_regex(texts, pattern)).as_py())
