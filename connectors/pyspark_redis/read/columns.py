"""Columns of a read, with the types of the schema, or types inferred from a sample."""

from __future__ import annotations

import json
import logging
from collections.abc import Iterable, Sequence
from itertools import islice
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from pyspark_redis.read.keys import WHOLE, KeyPattern, key_pattern, require_no_pattern
from pyspark_redis.read.models import (
    ENTRY,
    FIELD,
    READERS,
    SCORE,
    VALUE,
    KeyRows,
    ModelReader,
    passing,
)
from pyspark_redis.read.servers import ALL, KeyScan, KeySplit, Servers
from pyspark_redis.read.wire import Wire, good, is_other_type, opened
from pyspark_redis.server.failures import no_stream, translated
from pyspark_redis.target.keys import begins
from sparkonce.errors import OptionError, StoreRefused, ValueUnreadable
from sparkonce.options import Options
from sparkonce.values import from_json, from_text
from sparkonce.values.spark_types import CONTROL, spark_type
from sparkonce.values.text import to_text

log = logging.getLogger("sparkonce")

WHOLE_VALUE = "value"  # if it is the only column, it is the whole value, in any form
NAME = "field"  # the name of a field, if a row is a field of a hash
SAMPLE = 1000  # keys from which types are inferred
ASKED = 20  # keys of a sample in one round trip

GUESSES = (
    pa.bool_(),
    pa.int64(),
    pa.float64(),
    pa.date32(),
    pa.timestamp("us", "UTC"),
    pa.timestamp("us"),
    pa.string(),
)
"""Candidate types, in order: the first one whose values have exactly these texts; else binary."""

Sample = Iterable[tuple[bytes, dict[str, list[Any]]]]  # keys, each with its values by column


class Columns:
    """The columns that a read builds from keys and their values; `score` names the score column."""

    def __init__(self, schema: pa.Schema, pattern: KeyPattern, model: str, score: str) -> None:
        self.schema, self.pattern = schema, pattern
        free = [one for one in schema if one.name not in (*pattern.columns, WHOLE)]
        self._from = {one.name: one.name for one in free}
        self._joined: list[pa.Field] = []
        self._alone: pa.Field | None = None
        if model not in ("hash", "stream"):
            beside = {"zset": {score.lower(): SCORE}, "entries": {NAME: FIELD}}.get(model, {})
            values = [one for one in free if one.name.lower() not in beside]
            self._from = {one.name: beside.get(one.name.lower(), VALUE) for one in free}
            self._joined = values if len(values) > 1 else []
            if len(values) == 1 and values[0].name.lower() != WHOLE_VALUE:
                self._alone = values[0]
        self.reader: ModelReader = READERS[model]([*self._from])

    def batch(self, rows: KeyRows) -> pa.RecordBatch:
        """A batch of these rows without those of other keys.

        Raises:
            ValueUnreadable: a value or a key does not fit its column.
        """
        keys = pa.array(rows.keys, pa.binary())
        named = {WHOLE: keys, **self.pattern.texts(keys)}
        came = {name: pa.array(values, pa.binary()) for name, values in rows.columns.items()}
        fits = named[self.pattern.columns[0]].is_valid()
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
        in_keys = {name: made[name] for name in self.pattern.columns if name in made}
        self.pattern.require_same(keys, in_keys)
        return pa.RecordBatch.from_arrays(
            [made[one] for one in self.schema.names], schema=self.schema
        )

    def _members(self, came: dict[str, pa.Array], keys: pa.Array) -> dict[str, pa.Array]:
        """The columns that are members of one value."""
        if not self._joined:
            return {}
        documents = came[VALUE]
        try:
            whole = from_json.column(documents, pa.struct(self._joined))
        except ValueError:
            # Find the column that fails, to name it in the error.
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
                why="the stored value is not of that type",
                todo="read that column as a string, as binary or as a larger type by"
                f" .schema(...), or correct the value{passed}",
            ) from None


def _where(
    texts: pa.Array, field: pa.Field, keys: pa.Array, entries: pa.Array | None
) -> tuple[str, str, str]:
    """The place of the first unreadable value, how to skip its entry, and what is wrong."""
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
    """Reject values that may be a JSON object with the column as a member."""
    begins = pc.match_substring_regex(texts, rb"^\s*\{")
    for text, key in zip(texts.filter(begins), keys.filter(begins), strict=True):
        if _is_object(text.as_py()):
            raise ValueUnreadable(
                f"The value under key {key.as_py()!r} may be column {field.name!r}, or a JSON"
                " object with that column as a member",
                why="a single column reads the whole value, several columns read its members",
                todo=f"to read the whole value, call the column {WHOLE_VALUE}; to read a member,"
                " name another member, too",
            )


def _is_object(text: bytes) -> bool:
    try:
        return isinstance(json.loads(text), dict)
    except RecursionError:
        return True  # deeper than the parser reads
    except ValueError:
        return False


def inferred(servers: Servers, options: Options) -> pa.Schema:
    """The columns of the first keys of a scan, with types inferred from their texts."""
    pattern, model = key_pattern(options), options["model"]
    found = _keys(servers, READERS[model](), KeyScan(pattern.pattern, begins(options["keyPrefix"])))
    with translated("reading a sample of keys"):
        schema = _schema(islice(found, SAMPLE), pattern, model, options)
    if schema is None:
        raise StoreRefused(
            f"No key of model {model} matches {pattern.pattern.decode()}",
            why="the connector infers the columns from a sample of the keys",
            todo="correct option key, keyPattern or model, or set the columns by .schema(...)",
        )
    return schema


def inferred_of_streams(servers: Servers, options: Options) -> pa.Schema:
    """The columns of the first entries of streams, with types inferred from their texts."""
    streams = options["streams"]
    with translated("reading a sample of streams"):
        schema = _schema(_entries(servers, streams), KeyPattern(None, b""), "stream", options)
    if schema is None:
        for key in streams:
            require_no_pattern(key)
        raise StoreRefused(
            f"No entry exists in {', '.join(streams)}",
            why="the connector infers the columns from a sample of the entries",
            todo="correct option streams, or set the columns by .schema(...)",
        )
    return schema if ENTRY in schema.names else schema.insert(1, pa.field(ENTRY, pa.string()))


def _keys(servers: Servers, reader: ModelReader, scan: KeyScan) -> Sample:
    for client, _ in servers.of(KeySplit(ALL)):
        with opened(client) as wire:
            for keys in scan.keys(wire):
                for at in range(0, len(keys), ASKED):
                    yield from _asked(wire, reader, keys[at : at + ASKED])


def _asked(wire: Wire, reader: ModelReader, keys: Sequence[bytes]) -> Sample:
    replies = wire.ask([reader.ask(key) for key in keys])
    for key, reply in zip(keys, replies, strict=True):
        if not is_other_type(reply) and (found := reader.sample(good(reply))):
            yield key, found


def _entries(servers: Servers, streams: Sequence[str]) -> Sample:
    reader = READERS["stream"]()
    for key in map(str.encode, streams):
        with opened(servers.holder(key)) as wire:
            (reply,) = wire.ask([reader.ask(key)])
        if is_other_type(reply):
            raise no_stream(key.decode())
        if found := reader.sample(good(reply)):
            yield key, found


def _schema(sample: Sample, pattern: KeyPattern, model: str, options: Options) -> pa.Schema | None:
    """The columns of a sample; None if it is empty."""
    keys, columns = [], dict[str, list[Any]]()
    for key, fields in sample:
        keys.append(key)
        for name, values in fields.items():
            columns.setdefault(name, []).extend(values)
    if not keys:
        return None
    in_keys = pattern.texts(pa.array(keys, pa.binary()))
    types = {name: guess(texts.to_pylist()) for name, texts in in_keys.items()}
    for name, kind in types.items():
        if pa.types.is_floating(kind):  # one value may have two texts
            types[name] = pa.string()
    for meta in {WHOLE, ENTRY}.intersection(options["columns"] or ()):
        types.setdefault(meta, guess(keys) if meta == WHOLE else pa.string())
    _require_value_has_a_name([*in_keys, options.get("scoreColumn", "")], columns)
    names = {VALUE: WHOLE_VALUE, FIELD: NAME, SCORE: options.get("scoreColumn", SCORE)}
    hidden = {one.lower() for one in in_keys}
    for name, values in columns.items():
        if name.lower() in hidden or not _is_column(name, model):
            log.warning(
                "Field %r does not become a column. Why: _key and _id are the key and the id of an"
                " entry, columns of option key have the values in the key, and names are UTF-8"
                " without control characters. What to do: read the field by a client, or rename the"
                " column in option key",
                name,
            )
            continue
        kind = pa.float64() if name == SCORE else guess(values)
        if name == FIELD and not pa.types.is_binary(kind):
            kind = pa.string()  # a name
        types.setdefault(names.get(name, name), kind)
    return pa.schema([*types.items()])


def _is_column(name: str, model: str) -> bool:
    """Whether a field may become a column; some names have another meaning."""
    if name in {VALUE, SCORE, FIELD}:
        return True
    if "\ufffd" in name or CONTROL.search(name):
        return False
    return name != WHOLE and not (model == "stream" and name == ENTRY)


def _require_value_has_a_name(others: Iterable[str], found: Iterable[str]) -> None:
    """Reject an inferred schema in which another column has the name of the value."""
    for name in others:
        if VALUE in found and name.lower() == WHOLE_VALUE:
            raise OptionError(
                f"Option key or scoreColumn has a column {name!r}, which is the name of the value",
                why="without .schema(...) the value has that name, and the column would hide it",
                todo="rename that column in the option; or name all columns by .schema(...), with"
                " another name for the value",
            )
        if FIELD in found and name.lower() == NAME:
            raise OptionError(
                f"Option key has a column {name!r}, which is the name of fields",
                why="with model=entries a column has that name, and the key would hide it",
                todo="rename that column in the option",
            )


def guess(texts: Sequence[bytes | None]) -> pa.DataType:
    """A type that keeps each of these texts exactly: `07` and `1.10` are not numbers."""
    there = pa.array([one for one in texts if one is not None], pa.binary())
    if not len(there):
        return pa.string()
    return next((kind for kind in GUESSES if _is(there, kind)), pa.binary())


def _is(texts: pa.Array, kind: pa.DataType) -> bool:
    try:
        made = to_text(from_text.column(texts, kind))
    except ValueError:
        return False
    if pa.types.is_floating(kind):  # other clients write whole numbers without `.0`
        texts = pc.replace_substring_regex(texts, r"\.0$", "")
    return bool(pc.all(pc.equal(made, texts)).as_py())
