"""Encodes rows as the lines of a ``_bulk`` request; see `chunks` for what is filled in later."""

from __future__ import annotations

from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from pyspark_elasticsearch.write import keys, lines, names, values
from pyspark_elasticsearch.write.chunks import packed
from pyspark_elasticsearch.write.documents import Documents
from pyspark_elasticsearch.write.lines import Slot
from sparkonce.change import split_operations
from sparkonce.exactly_once.bad_rows import reasons
from sparkonce.protocol import Reasons
from sparkonce.values import letters
from sparkonce.values.rows import sorted_out


class ChunkEncoder:
    """Encodes rows for one plan."""

    def __init__(self, documents: Documents) -> None:
        self.documents, self.key = documents, documents.key
        self.op, self.order = documents.op, documents.order
        self.added, self.keeps = documents.added, documents.keeps
        self.written, self.deleted = lines.written(documents), lines.deleted(documents)
        slots = [piece for piece in self.written if isinstance(piece, Slot) and piece.column]
        self.left = {one: f",{lines.member(one.column)}" for one in slots if one.what == "left"}
        held = [*(one.column for one in slots), documents.routing]
        self.columns = list(dict.fromkeys(filter(None, held)))
        self.naming = {*documents.key, documents.order, documents.routing}
        self.naming |= {part[0] for part in documents.parts if not isinstance(part, str)}

    def __call__(self, rows: pa.RecordBatch) -> bytes:
        """The chunk of these rows.

        Raises:
            BadRow: a key is null, or an operation unknown.
            ValueError: a value has no place in a document.
        """
        return self.split(rows)[0] if self.documents.aside else packed(self.lines(rows), [])

    def split(self, rows: pa.RecordBatch) -> tuple[bytes, Reasons]:
        """See `BadRowSplitter.split`."""
        fit, bad = sorted_out(rows, lambda part: (part, self.lines(part)))
        schema = self.documents.arrow if bad else pa.schema([])
        aside = [letters.of_row(one.reason, one.row, schema, self.key) for one in bad]
        if len(fit) == 1:
            found = fit[0][1]
        else:  # the last row of a key, or the sum of its rows, is one of all that are left
            whole = pa.Table.from_batches([part for part, _ in fit], rows.schema).combine_chunks()
            found = self.lines(whole.to_batches()[0]) if fit else pa.array([], pa.string())
        return packed(found, aside), reasons(bad)

    def lines(self, rows: pa.RecordBatch) -> Any:
        """One text for each row that does something: its action, and its document."""
        doing = split_operations(rows, self.op)
        rows, deleted = doing.keyed(self.naming), doing.deleted
        ids, parts = keys.ids(rows, self.key), self.documents.parts
        index = names.texts(parts, rows, self.documents.reserved) if parts else None
        if self.key and self.order is None:
            # By versions of a column the server keeps the highest one, wherever it comes.
            place = ids if index is None else values.joined(index, "/", ids)
            rows, kept = keys.folded(rows, place, self.added, keeps=self.keeps)
            if kept is not None:
                ids, index, deleted = (
                    one if one is None else one.take(kept) for one in (ids, index, deleted)
                )
        held = self._held(rows, ids, index)
        written = values.joined(*(held.get(piece, piece) for piece in self.written))
        if deleted is None:
            return written
        gone = values.joined(*(held.get(piece, piece) for piece in self.deleted))
        return pc.if_else(deleted, gone, written)

    def _held(self, rows: pa.RecordBatch, ids: Any, index: Any | None) -> dict[Any, Any]:
        """What rows put into the slots of their lines."""
        texts, routing = values.texts(rows, self.columns), self.documents.routing
        held: dict[Any, Any] = {lines.ID: ids, lines.INDEX: index}
        held |= {Slot("value", name): text for name, text in texts.items()}
        if self.order:
            held[lines.VERSION] = values.versions(rows, self.order)
        if routing:
            held[lines.ROUTING] = values.routing(rows, routing, texts[routing])
        for slot, begun in self.left.items():
            there = pc.binary_join_element_wise(begun, texts[slot.column], "")
            held[slot] = pc.fill_null(there, "")
        return held
