"""Encodes rows as the lines of a ``_bulk`` request; see `chunks` for what is filled in later."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from pyspark_elasticsearch import keys, names, versions
from pyspark_elasticsearch.chunks import packed
from pyspark_elasticsearch.documents import joined, members
from sparkonce import letters, operations, schema_text
from sparkonce.bad_rows import reasons
from sparkonce.protocol import Reasons
from sparkonce.rows import sorted_out

FENCED = ',"version":\x01,"version_type":"external_gte"'


class ChunkEncoder:
    """Encodes rows for one plan; see `pyspark_elasticsearch.connector` for its detail."""

    def __init__(self, detail: Mapping[str, Any]) -> None:
        self.detail = detail
        self.mode: str = detail["mode"]
        self.key: list[str] = detail["key"]
        self.naming = {*self.key, detail["versionColumn"], detail["routing"]}
        self.naming |= {part[0] for part in detail["parts"] if not isinstance(part, str)}
        # Only bad rows are written by it.
        self.schema = schema_text.parse(detail["schema"]) if detail["aside"] else pa.schema([])

    def __call__(self, rows: pa.RecordBatch) -> bytes:
        """The chunk of these rows.

        Raises:
            BadRow: a key is null, or an operation unknown.
            ValueError: a value has no place in a document.
        """
        return self.sort(rows)[0] if self.detail["aside"] else packed(self.lines(rows), [])

    def sort(self, rows: pa.RecordBatch) -> tuple[bytes, Reasons]:
        """See `Sorter.sort`."""
        fit, bad = sorted_out(rows, lambda part: (part, self.lines(part)))
        aside = [letters.of_row(one.reason, one.row, self.schema, self.key) for one in bad]
        if len(fit) == 1:
            lines = fit[0][1]
        else:  # the last row of a key, or the sum of its rows, is one of all that are left
            whole = pa.Table.from_batches([part for part, _ in fit], rows.schema).combine_chunks()
            lines = self.lines(whole.to_batches()[0]) if fit else pa.array([], pa.string())
        return packed(lines, aside), reasons(bad)

    def lines(self, rows: pa.RecordBatch) -> Any:
        """One text for each row that does something: its action, and its document."""
        rows, deleted = operations.split(rows, self.detail["op"])
        if deleted is not None:
            rows = _only_named(rows, deleted, self.naming)
        ids = keys.ids(rows, self.key) if self.key else keys.numbers(len(rows)).cast(pa.string())
        parts, reserved = self.detail["parts"], self.detail["reserved"]
        index = names.texts(parts, rows, reserved) if parts else None
        if self.mode == "increment":
            rows, ids = keys.summed(rows, ids, self.detail["added"])
        elif self.detail["nulls"] == "keep":
            rows, ids = keys.folded(rows, ids)
        elif self.key and not self.detail["versionColumn"]:
            # By their versions the server keeps the highest one, wherever it comes.
            kept = keys.last_of_each(joined(index, "/", ids) if index is not None else ids)
            if kept is not None:
                rows, ids = rows.take(kept), ids.take(kept)
                index = index.take(kept) if index is not None else None
                deleted = deleted.take(kept) if deleted is not None else None
        action = self._action(rows, ids, index)
        written = self._written(rows, action)
        if deleted is None:
            return written
        return pc.if_else(deleted, joined('{"delete":{', *action, "}}\n"), written)

    def _action(self, rows: pa.RecordBatch, ids: Any, index: Any | None) -> list[Any]:
        """What names a document, and its version where the write mode gives one."""
        place = [] if index is None else ['"_index":"', index, '",']
        named = [*place, '"_id":"' if self.key else '"_id":"\x02', ids, '"']
        if self.detail["routing"]:
            named += [',"routing":', _routing(rows, self.detail["routing"])]
        if self.mode not in ("upsert", "delete"):
            return named
        column = self.detail["versionColumn"]
        if not column:
            return [*named, FENCED]
        return [*named, ',"version":', versions.texts(rows, column), ',"version_type":"external"']

    def _written(self, rows: pa.RecordBatch, action: list[Any]) -> Any:
        """The lines of rows that delete nothing by their operation."""
        if self.mode == "delete":
            return joined('{"delete":{', *action, "}}\n")
        if self.mode in ("append", "upsert"):
            verb = '{"create":{' if self.mode == "append" else '{"index":{'
            stamp = "\x04," if self.detail["visibleAlias"] else ""
            document = _members(rows, self.detail["columns"])
            return joined(verb, *action, "}}\n{" + stamp, *document, "}\n")
        begun = ['{"update":{', *action, ',"retry_on_conflict":20}}\n']
        script = ['{"scripted_upsert":true,"script":{\x03"a":{', *self._changes(rows), "}}}"]
        return joined(*begun, *script, ',"upsert":{', *_members(rows, self.key), "}}\n")

    def _changes(self, rows: pa.RecordBatch) -> list[Any]:
        """What the script gets; `nulls=keep` leaves nulls out, so the key, never null, is first."""
        if self.mode == "increment":
            return _members(rows, self.detail["added"])
        if self.detail["nulls"] == "write":
            return _members(rows, self.detail["columns"])
        rest = members(rows, [name for name in self.detail["columns"] if name not in self.key])
        left = [
            pc.fill_null(pc.binary_join_element_wise(f",{name}", column, ""), "")
            for name, column in rest.items()
        ]
        return [*_members(rows, self.key), *left]


def _only_named(rows: pa.RecordBatch, deleted: Any, naming: Collection[str]) -> pa.RecordBatch:
    """The rows; of those that delete what names their document: the rest need not fit into one."""
    columns = [
        one if name in naming else pc.if_else(deleted, pa.scalar(None, one.type), one)
        for name, one in zip(rows.schema.names, rows.columns, strict=True)
    ]
    return pa.record_batch(columns, rows.schema)


def _members(rows: pa.RecordBatch, columns: Sequence[str]) -> list[Any]:
    """These columns as members of a JSON object, in pieces."""
    pieces: list[Any] = []
    for name, column in members(rows, columns).items():
        pieces += [f",{name}" if pieces else name, column]
    return pieces


def _routing(rows: pa.RecordBatch, name: str) -> Any:
    """A column as JSON strings, of which none may be null."""
    (quoted,) = members(rows, [name]).values()
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
