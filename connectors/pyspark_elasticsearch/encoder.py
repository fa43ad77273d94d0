"""Encodes rows as the lines of a ``_bulk`` request; see `chunks` for what is filled in later."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

import pyarrow as pa
import pyarrow.compute as pc

from pyspark_elasticsearch import keys, names, sequence
from pyspark_elasticsearch.chunks import packed
from pyspark_elasticsearch.documents import joined, member, values
from sparkonce import letters, operations, schema_text
from sparkonce.bad_rows import reasons
from sparkonce.letters import Letter
from sparkonce.protocol import Reasons
from sparkonce.rows import Bad, sorted_out

FENCED = ',"version":\x01,"version_type":"external_gte"'


class Lines(NamedTuple):
    """Operations, one text each, and what orders them; see `sequence`."""

    texts: Any
    order: bytes = b""


class ChunkEncoder:
    """Encodes rows for one plan; see `pyspark_elasticsearch.connector` for its detail."""

    def __init__(self, detail: Mapping[str, Any]) -> None:
        self.detail = detail
        self.mode: str = detail["mode"]
        self.key: list[str] = detail["key"]
        self.columns: list[str] = detail["columns"]
        self.parts: list[names.Part] = detail["parts"]
        # Only bad rows are written by it.
        aside = detail["aside"]
        self.schema = schema_text.parse(detail["schema"]) if aside else pa.schema([])
        self._lines: Callable[[pa.RecordBatch, Any], Any] = {
            "append": self._created,
            "upsert": self._indexed,
            "update": self._guarded,
            "increment": self._guarded,
            "delete": self._deleted,
        }[self.mode]

    def __call__(self, rows: pa.RecordBatch) -> bytes:
        """The chunk of these rows.

        Raises:
            BadRow: a key is null, or an operation unknown.
            ValueError: a value has no place in a document.
        """
        return self.sort(rows)[0] if self.detail["aside"] else self._packed(rows, [])

    def sort(self, rows: pa.RecordBatch) -> tuple[bytes, Reasons]:
        """See `Sorter.sort`."""
        fit, bad = sorted_out(rows, self._tried)
        payload = self._packed(_one_batch(fit, rows), [self.letter(one) for one in bad])
        return payload, reasons(bad)

    def _packed(self, rows: pa.RecordBatch, bad: list[Letter]) -> bytes:
        lines = self.lines(rows) if len(rows) else Lines(pa.array([], pa.string()))
        return packed(lines.texts, bad, lines.order)

    def letter(self, bad: Bad) -> Letter:
        """What is put aside of a row that has no lines."""
        return letters.of_row(bad.reason, bad.row, self.schema, self.key)

    def lines(self, rows: pa.RecordBatch) -> Lines:
        """One text for each row that does something: its action, and its document."""
        rows, deleted = operations.split(rows, self.detail["op"])
        if not self.key:
            return Lines(self._lines(rows, keys.numbers(len(rows)).cast(pa.string())))
        ids = keys.ids(rows, self.key)
        if self.mode == "increment":
            return Lines(self._guarded(*self._summed(rows, ids)))
        if self.detail["nulls"] == "keep":
            return Lines(self._guarded(*self._folded(rows, ids)))
        kept = self._kept(rows, self._documents(rows, ids))
        if kept is not None:
            rows, ids = rows.take(kept), ids.take(kept)
            deleted = deleted.take(kept) if deleted is not None else None
        order = self._order(rows, self._documents(rows, ids))
        if deleted is None:
            return Lines(self._lines(rows, ids), order)
        return Lines(pc.if_else(deleted, self._deleted(rows, ids), self._lines(rows, ids)), order)

    def _indices(self, rows: pa.RecordBatch) -> Any:
        return names.texts(self.parts, rows, self.detail["reserved"])

    def _documents(self, rows: pa.RecordBatch, ids: Any) -> Any:
        """What names a document: its id, and its index where that is made from the row."""
        if not self.parts:
            return ids
        return joined(self._indices(rows), "/", ids)

    def _kept(self, rows: pa.RecordBatch, ids: Any) -> Any | None:
        """The places of the rows that stay where an id comes several times; None for all."""
        if self.detail["versionColumn"]:
            return None  # the server keeps the highest version, wherever it comes
        column = self.detail["sequence"]
        if not column:
            return keys.last_of_each(ids)
        if rows.column(column).null_count:
            raise ValueError(f"column {column!r}, of option sequenceColumn, is null in a row")
        return sequence.highest_of_each(ids, rows.column(column))

    def _order(self, rows: pa.RecordBatch, ids: Any) -> bytes:
        column = self.detail["sequence"]
        return sequence.order_of(ids, rows.column(column)) if column else b""

    def _tried(self, rows: pa.RecordBatch) -> pa.RecordBatch:
        """The same rows, which have lines."""
        self.lines(rows)
        return rows

    # -- the lines of each write mode

    def _created(self, rows: pa.RecordBatch, ids: Any) -> Any:
        action = [*self._begun("create", rows), "\x02", ids, *self._action(rows), "}}\n{"]
        stamp = ["\x04", ","] if self.detail["visibleAlias"] else []
        return joined(*action, *stamp, *self._members(rows), "}\n")

    def _indexed(self, rows: pa.RecordBatch, ids: Any) -> Any:
        action = [*self._action(rows), *self._version(rows), "}}\n{"]
        return joined(*self._begun("index", rows), ids, *action, *self._members(rows), "}\n")

    def _deleted(self, rows: pa.RecordBatch, ids: Any) -> Any:
        action = self._action(rows)
        return joined(*self._begun("delete", rows), ids, *action, *self._version(rows), "}}\n")

    def _guarded(self, rows: pa.RecordBatch, ids: Any) -> Any:
        action = [*self._begun("update", rows), ids, *self._action(rows)]
        action.append(',"retry_on_conflict":20}}\n')
        script = ['{"scripted_upsert":true,"script":{\x03"a":{', *self._changes(rows), "}}}"]
        fresh = ',"upsert":{', *self._key_members(rows), "}}\n"
        return joined(*action, *script, *fresh)

    # -- their parts

    def _begun(self, operation: str, rows: pa.RecordBatch) -> list[Any]:
        if not self.parts:
            return [f'{{"{operation}":{{"_id":"']
        return [f'{{"{operation}":{{"_index":"', self._indices(rows), '","_id":"']

    def _action(self, rows: pa.RecordBatch) -> list[Any]:
        routing = self.detail["routing"]
        if not routing:
            return ['"']
        return ['","routing":', _text(rows, routing)]

    def _version(self, rows: pa.RecordBatch) -> list[Any]:
        if self.detail["versioning"] == "none":
            return []
        column = self.detail["versionColumn"]
        if not column:
            return [FENCED]
        return [',"version":', _versions(rows, column), ',"version_type":"external"']

    def _members(self, rows: pa.RecordBatch) -> list[Any]:
        return _listed([(name, values(rows, name)) for name in self.columns])

    def _key_members(self, rows: pa.RecordBatch) -> list[Any]:
        """What a new document begins with: the columns that say which it is."""
        named = dict.fromkeys([*self.key, *names.columns(self.parts)])
        return _listed([(name, values(rows, name)) for name in named])

    def _changes(self, rows: pa.RecordBatch) -> list[Any]:
        """What the script gets; `nulls=keep` leaves nulls out, so the key, never null, is first."""
        if self.mode == "increment":
            return _listed([(name, values(rows, name)) for name in self.detail["added"]])
        if self.detail["nulls"] == "write":
            return self._members(rows)
        known = (*self.key, *names.columns(self.parts))
        rest = [name for name in self.columns if name not in known]
        return [
            *self._key_members(rows),
            *(_unless_null(name, values(rows, name)) for name in rest),
        ]

    def _folded(self, rows: pa.RecordBatch, ids: Any) -> tuple[pa.RecordBatch, Any]:
        """One row for each id, with the last value of each column that is not null."""
        places, columns = keys.folded(self._documents(rows, ids), rows.columns)
        if places is None:
            return rows, ids
        return pa.record_batch(columns, rows.schema), ids.take(places)

    def _summed(self, rows: pa.RecordBatch, ids: Any) -> tuple[pa.RecordBatch, Any]:
        """One row for each id, with the sums of its numbers."""
        added = self.detail["added"]
        documents = self._documents(rows, ids)
        for name in added:
            keys.require_sums_fit(documents, rows, name)
        places, sums = keys.sums_of_each(documents, [rows.column(name) for name in added])
        if places is None:
            return rows, ids
        kept = rows.take(places)
        columns = dict(zip(rows.schema.names, kept.columns, strict=True))
        columns.update(zip(added, sums, strict=True))
        return pa.record_batch(columns), ids.take(places)


def _listed(members: list[tuple[str, Any]]) -> list[Any]:
    pieces: list[Any] = []
    for place, (name, column) in enumerate(members):
        pieces += [f"{',' if place else ''}{member(name)}", column]
    return pieces


def _unless_null(name: str, column: Any) -> Any:
    return pc.fill_null(pc.binary_join_element_wise(f",{member(name)}", column, ""), "")


def _text(rows: pa.RecordBatch, name: str) -> Any:
    """A column as JSON strings, of which none may be null."""
    quoted = values(rows, name)
    if quoted.null_count:
        raise ValueError(f"column {name!r} is null in a row, and option routing names it")
    if pc.any(pc.equal(quoted, '""')).as_py():
        raise ValueError(
            f"column {name!r} is empty in a row, and option routing names it: Elasticsearch would"
            " take that for no routing"
        )
    kind = rows.column(name).type
    bare = pa.types.is_boolean(kind) or pa.types.is_duration(kind)
    bare = bare or pa.types.is_integer(kind) or pa.types.is_floating(kind)
    return joined('"', quoted, '"') if bare else quoted


def _versions(rows: pa.RecordBatch, name: str) -> Any:
    column = rows.column(name)
    lowest = pc.min(column).as_py()
    if column.null_count or (lowest is not None and lowest < 0):
        raise ValueError(f"column {name!r}, of option versionColumn, is null or negative in a row")
    return column.cast(pa.string())


def _one_batch(batches: list[pa.RecordBatch], of: pa.RecordBatch) -> pa.RecordBatch:
    if len(batches) == 1:
        return batches[0]
    whole = pa.Table.from_batches(batches, of.schema).combine_chunks().to_batches()
    return whole[0] if whole else of.slice(0, 0)
