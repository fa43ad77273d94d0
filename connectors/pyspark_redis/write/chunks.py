"""Chunks as columnar MessagePack: ``[keys, has_nulls, column, ..., flags, expiries, letters]``.

Keys and columns are arrays of texts or nils; `has_nulls` has a boolean for each column. Flags (of
rows that delete), expiries and letters are there where the plan or the rows have them; see
`Values.places`. A letter is an array of reason, key, row, and JSON of its base64.

Numbers travel as decimal texts, since Lua's numbers lose integers above 2^53. No Python object
is made for a row: headers and values are joined by Arrow.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from pyspark_redis.write import packing, segments, special
from pyspark_redis.write.letters import letter_texts
from pyspark_redis.write.template import keys, require_free, utf8
from pyspark_redis.write.values import JOINED, Values
from sparkonce.change import Increment, split_operations
from sparkonce.exactly_once.bad_rows import reasons
from sparkonce.protocol import Reasons
from sparkonce.values import letters
from sparkonce.values.letters import Letter
from sparkonce.values.rows import null_key, sorted_out


class ChunkEncoder:
    """Encodes rows for one plan."""

    def __init__(self, values: Values) -> None:
        self.values, self.key, self.special = values, values.key, values.special
        adds = isinstance(values.change, Increment)
        self.added = values.fields if adds and not self.special.score else ()
        self.reserved = values.reserved
        self.naming = {*self.key.columns, self.special.op, self.special.order}
        if values.collects:
            self.naming |= {*values.fields}

    def __call__(self, rows: pa.RecordBatch) -> bytes:
        """The chunk of these rows.

        Raises:
            BadRow: a key is null or reserved, a number can't be added, an operation is unknown.
            ValueError: a value has no text, or a string is not UTF-8.
        """
        return self._packed(self._texts(rows), [])

    def split(self, rows: pa.RecordBatch) -> tuple[bytes, Reasons]:
        """See `BadRowSplitter.split`."""
        fit, bad = sorted_out(rows, self._texts)
        named, schema = self.key.columns, self.values.arrow
        aside = [letters.of_row(one.reason, one.row, schema, named) for one in bad]
        texts = [pa.concat_arrays(parts) for parts in zip(*fit, strict=True)]
        return self._packed(texts or self._texts(rows.slice(0, 0)), aside), reasons(bad)

    def _texts(self, rows: pa.RecordBatch) -> list[pa.BinaryArray]:
        """Keys and columns of the rows that do something, as a chunk has them."""
        doing = split_operations(rows, self.special.op)
        rows, deleted = doing.keyed(self.naming), doing.deleted
        texts = [keys(self.key, rows)]
        require_free(texts[0], self.reserved)
        self._require_fit(rows, deleted)
        found = self._columns(rows)
        texts += [found[name] for name in self.values.columns]
        if self.special.op:
            none = pa.nulls(len(rows), pa.binary())
            texts.append(none if deleted is None else pc.if_else(deleted, b"1", none))
        if self.special.expiry:
            texts.append(utf8(special.expiries(self.special.expiry, rows)))
        return texts

    def _packed(self, texts: Sequence[pa.BinaryArray], aside: Sequence[Letter]) -> bytes:
        told = [letter_texts(one) for one in aside]
        if self.values.lanes:
            return segments.to_bytes(list(segments.segments(texts, _chunk)), told)
        return _chunk(texts, told)

    def _require_fit(self, rows: pa.RecordBatch, deleted: Any | None) -> None:
        """See that the server takes each value as it is."""
        if self.special.order:
            special.require_ordered(self.special.order, rows)
        if self.special.score:
            self._require_scores(rows, self.special.score, deleted)
        for name in self.added:
            special.require_finite(name, rows)
        for name in self.values.fields if self.values.collects and not self.values.joined else ():
            if rows.column(name).null_count:
                raise null_key(name, rows, self.values.model, "a null is no element")

    def _columns(self, rows: pa.RecordBatch) -> dict[str, pa.BinaryArray]:
        """The text of each column of a chunk; those of one type are written together."""
        found: dict[str, pa.BinaryArray] = {}
        if self.values.joined:
            members = rows.select(list(self.values.fields))
            found[JOINED] = utf8(members.to_struct_array())
        alike: dict[pa.DataType, list[str]] = {}
        for name in self.values.columns:
            if name != JOINED:
                alike.setdefault(rows.column(name).type, []).append(name)
        for names in alike.values():
            found |= _written(rows, names)
        return found

    def _require_scores(self, rows: pa.RecordBatch, name: str, deleted: Any | None) -> None:
        if isinstance(self.values.change, Increment):
            special.require_finite(name, rows)  # a null adds nothing
        elif deleted is None:
            special.require_score(name, rows)
        else:
            special.require_score(name, rows.filter(pc.invert(deleted)))
        special.require_exact(name, rows)


def _chunk(texts: Sequence[pa.BinaryArray], aside: Sequence[tuple[str, ...]] = ()) -> bytes:
    row_keys, *columns = texts
    # In Lua a column without nulls takes the faster way.
    nulls = [packing.TRUE if column.null_count else packing.FALSE for column in columns]
    packed = packing.texts([row_keys, *columns])
    parts = [packed[0], packing.array(nulls), *packed[1:]]
    if aside:
        letters = (pa.array(one, pa.string()).cast(pa.binary()) for one in aside)
        parts.append(packing.array([packing.texts([one])[0] for one in letters]))
    return packing.array(parts)


def _written(rows: pa.RecordBatch, names: Sequence[str]) -> dict[str, pa.BinaryArray]:
    """The texts of columns of one type.

    Raises:
        ValueError: a value has no text; it names the column.
    """
    try:
        texts = utf8(pa.concat_arrays([rows.column(name) for name in names]))
    except ValueError as error:
        if len(names) > 1:
            return {name: text for one in names for name, text in _written(rows, [one]).items()}
        raise ValueError(f"column {names[0]!r}: {error}") from None
    count = len(rows)
    return {name: texts.slice(at * count, count) for at, name in enumerate(names)}
