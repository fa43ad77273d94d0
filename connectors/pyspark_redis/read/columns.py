"""The rows that came, as columns of the types that were asked for."""

from __future__ import annotations

import json

import pyarrow as pa
import pyarrow.compute as pc

from pyspark_redis.read.forms import ENTRY, FORMS, SCORE, VALUE, Form, Rows, passing
from pyspark_redis.read.keys import WHOLE, Naming
from sparkonce.errors import ValueUnreadable
from sparkonce.values import from_json
from sparkonce.values.spark_types import spark_type

WHOLE_VALUE = "value"
"""The column that, alone, is the whole value, whatever that is."""


class Columns:
    """What is read of keys, and of that which lies under them.

    Args:
        schema: of the rows.
        naming: of the keys.
        model: name of the model.
        score: the column that has the score of a member.

    Attributes:
        form: asks for what is needed.
    """

    def __init__(self, schema: pa.Schema, naming: Naming, model: str, score: str) -> None:
        self.schema, self.naming = schema, naming
        free = [one for one in schema if one.name not in (*naming.columns, WHOLE)]
        self._from = {one.name: one.name for one in free}
        self._joined: list[pa.Field] = []
        self._alone: pa.Field | None = None
        if model not in ("hash", "stream"):
            scores = {score.lower()} if model == "zset" else set()
            values = [one for one in free if one.name.lower() not in scores]
            self._from = {one.name: SCORE if one.name.lower() in scores else VALUE for one in free}
            self._joined = values if len(values) > 1 else []
            if len(values) == 1 and values[0].name.lower() != WHOLE_VALUE:
                self._alone = values[0]
        self.form: Form = FORMS[model]([*self._from])

    def batch(self, rows: Rows) -> pa.RecordBatch:
        """These rows; without those whose keys are none of those that were asked for.

        Raises:
            ValueUnreadable: a value is none of its type.
        """
        keys = pa.array(rows.keys, pa.binary())
        named = {WHOLE: keys, **self.naming.texts(keys)}
        came = {name: pa.array(values, pa.binary()) for name, values in rows.columns.items()}
        fits = named[self.naming.columns[0]].is_valid()
        if not pc.all(fits).as_py():
            keys = keys.filter(fits)
            named = {name: column.filter(fits) for name, column in named.items()}
            came = {name: column.filter(fits) for name, column in came.items()}
        if self._alone is not None:
            _require_whole(self._alone, came[VALUE], keys)
        made = self._members(came, keys)
        for field in self.schema:
            if field.name not in made:
                texts = named.get(field.name)
                source = came[self._from[field.name]] if texts is None else texts
                made[field.name] = self._column(source, field, keys, came.get(ENTRY))
        said = {name: made[name] for name in self.naming.columns if name in made}
        self.naming.require_same(keys, said)
        return pa.RecordBatch.from_arrays(
            [made[name] for name in self.schema.names], schema=self.schema
        )

    def _members(self, came: dict[str, pa.Array], keys: pa.Array) -> dict[str, pa.Array]:
        """The columns that are members of one value."""
        if not self._joined:
            return {}
        documents = came[VALUE]
        try:
            whole = from_json.column(documents, pa.struct(self._joined))
        except ValueError:
            # To name the one that is to blame.
            for fields in (*([one] for one in self._joined), self._joined):
                self._column(documents, pa.field(fields[0].name, pa.struct(fields)), keys)
            raise
        return {one.name: pc.struct_field(whole, [at]) for at, one in enumerate(self._joined)}

    def _column(
        self, texts: pa.Array, field: pa.Field, keys: pa.Array, entries: pa.Array | None = None
    ) -> pa.Array:
        try:
            return from_json.column(texts, field.type)
        except ValueError as error:
            where, passed, found = _where(texts, field, keys, entries)
            raise ValueUnreadable(
                f"A value of column {field.name!r}{where} can't be read as {spark_type(field)}:"
                f" {found or error}",
                why="what is stored there is none of that type",
                todo="read that column as a string, as binary or as a larger type by"
                f" .schema(...), or mend the value{passed}",
            ) from None


def _where(
    texts: pa.Array, field: pa.Field, keys: pa.Array, entries: pa.Array | None
) -> tuple[str, str, str]:
    """Where a value lies that can't be read, how an entry is passed over, and what is wrong."""
    for at in range(len(texts)):
        try:
            from_json.column(texts.slice(at, 1), field.type)
        except ValueError as error:
            key = keys[at].as_py()
            if entries is None:
                return f" under key {key!r}", "", str(error)
            entry = entries[at].as_py()
            where = f" under key {key!r}, of entry {entry.decode()},"
            return where, f"; {passing(key, entry)}", str(error)
    return "", "", ""


def _require_whole(field: pa.Field, texts: pa.Array, keys: pa.Array) -> None:
    """Refuse values that may be JSON of which the column is a member.

    Raises:
        ValueUnreadable: there is one.
    """
    begins = pc.match_substring_regex(texts, rb"^\s*\{")
    for text, key in zip(texts.filter(begins), keys.filter(begins), strict=True):
        if _is_object(text.as_py()):
            raise ValueUnreadable(
                f"The value under key {key.as_py()!r} may be that of column {field.name!r}, or a"
                " JSON object that has it as a member",
                why="one column is read as the whole value, several are read as members",
                todo=f"to read the whole value, call the column {WHOLE_VALUE}; to read a member,"
                " name another member, too",
            )


def _is_object(text: bytes) -> bool:
    try:
        return isinstance(json.loads(text), dict)
    except RecursionError:
        return True  # as far as anybody reads
    except ValueError:
        return False
