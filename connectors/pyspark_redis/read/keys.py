"""Which keys are read, and what they say of a row."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from itertools import product
from math import prod
from typing import Any
from urllib.parse import unquote_to_bytes

import pyarrow as pa
import pyarrow.compute as pc

from pyspark_redis.read.models import ENTRY
from pyspark_redis.target.keys import Key, is_exact, literal, make_keys, parse_key_text
from sparkonce.errors import OptionError, ValueUnreadable
from sparkonce.options import Options
from sparkonce.reading import Compare, Filters, OneOf
from sparkonce.values.spark_types import spark_type

WHOLE = "_key"  # the column of a key as it is

PATTERN = re.compile(r"[*?\[]")

MOST = 10_000
"""Keys that are asked for by their names; where conditions name more, all are looked at."""


@dataclass(frozen=True)
class KeyPattern:
    """What keys look like."""

    key: Key | None  # what makes one of columns; None where they are taken whole
    pattern: bytes  # that matches all of them, and perhaps others, as SCAN has it

    @property
    def columns(self) -> tuple[str, ...]:
        """What a key says of a row."""
        return self.key.columns if self.key else (WHOLE,)

    def texts(self, keys: pa.Array) -> dict[str, pa.Array]:
        """The text of each column in keys, which are bytes; null where a key is none of these.

        Raises:
            ValueUnreadable: a key can be read in two ways.
        """
        if self.key is None:
            return {WHOLE: keys}
        escaped = self.key.escaped
        found = pc.extract_regex(keys, _expression(self.key, "[^:]*" if escaped else ".*?"))
        if not escaped and len(self.columns) > 1:
            _require_one_way(keys, found, pc.extract_regex(keys, _expression(self.key, ".*")))
        texts = [pc.struct_field(found, [at]) for at in range(len(self.columns))]
        read = map(_unescaped, texts) if escaped else texts
        return dict(zip(self.columns, read, strict=True))

    def require_same(self, keys: pa.Array, columns: Mapping[str, pa.Array]) -> None:
        """Refuse keys that a row of these values would not have: ``user:07`` for the number 7."""
        if self.key is None or not set(self.columns) <= set(columns):
            return
        made = make_keys(self.key, pa.RecordBatch.from_pydict(dict(columns)))
        other = pc.not_equal(made, keys)
        if pc.any(other).as_py():
            key = keys.filter(other)[0].as_py()
            raise ValueUnreadable(
                f"Key {key!r} can't be read as columns {', '.join(self.columns)}",
                why="a row with its values would have another key",
                todo="read those columns as strings, or keys as they are by option keyPattern",
            )

    def named(self, filters: Filters, schema: pa.Schema) -> list[bytes] | None:
        """The only keys that the conditions of a query leave; None if they don't say."""
        if self.key is None or not set(self.columns) <= set(schema.names):
            return None
        kinds = pa.schema([schema.field(name) for name in self.columns])
        values = [[*_equal(filters, name)] for name in self.columns]
        # Only where values that Spark takes for equal have one text do conditions name keys.
        fit = all(is_exact(one.type) and "collate" not in spark_type(one) for one in kinds)
        if not (fit and 0 < prod(map(len, values)) <= MOST):
            return None
        rows = [dict(zip(self.columns, each, strict=True)) for each in product(*values)]
        try:
            made = make_keys(self.key, pa.RecordBatch.from_pylist(rows, kinds))
        except (pa.ArrowException, OverflowError):  # a value that no row has
            return None
        return [*dict.fromkeys(made.to_pylist())]

    def fitted(self, schema: pa.Schema) -> KeyPattern:
        """The same, with the columns as a schema writes them; OptionError where one is unfit."""
        if self.key is None:
            return self
        parts = [_column(one, schema) if at % 2 else one for at, one in enumerate(self.key.parts)]
        return KeyPattern(Key(tuple(parts), self.key.escaped), self.pattern)


def key_pattern(options: Options) -> KeyPattern:
    """What options ``key`` and ``keyPattern`` say; OptionError where they are no use."""
    key, pattern = options["key"], options["keyPattern"]
    if bool(key) == bool(pattern):
        raise OptionError(
            "Options key and keyPattern: one of them says which keys are read",
            why=f"{'both are' if key else 'none is'} set",
            todo="set one of them",
        )
    if pattern:
        return KeyPattern(None, pattern.encode())
    made = parse_key_text(key)
    taken = {"stream": ENTRY, "zset": options["scoreColumn"].lower()}.get(options["model"])
    for name in made.columns:
        if name.lower() in (WHOLE, taken):
            raise OptionError(
                f"Option key has a column {name!r}, which means something else",
                why=f"{WHOLE} is the key as it is, {ENTRY} the id of an entry of a stream, and"
                " option scoreColumn names the score of a member",
                todo="call it otherwise in option key: the name is free",
            )
    return KeyPattern(made, "*".join(map(literal, made.parts[::2])).encode())


def require_no_pattern(stream: str) -> None:
    """Refuse the name of a stream that is not there, and looks as if it stood for others."""
    if PATTERN.search(stream):
        raise OptionError(
            f"Option streams names {stream!r}, and there is no stream of that name",
            why="each name stands for one stream: it is no pattern",
            todo="name the streams, with commas between",
        )


def _column(name: str, schema: pa.Schema) -> str:
    field = next((one for one in schema if one.name.lower() == name.lower()), None)
    if field is None:
        return name
    if not is_exact(field.type):
        raise OptionError(
            f"Column {field.name!r} of type {field.type} can't be read from a key",
            why="equal values of this type can have different texts",
            todo="read it as a string, a decimal or a whole number",
        )
    return str(field.name)


def _expression(key: Key, any_text: str) -> str:
    texts = [
        # Byte by byte: RE2 takes bytes for Latin-1.
        f"(?P<c{at // 2}>{any_text})" if at % 2 else "".join(f"\\x{b:02x}" for b in part.encode())
        for at, part in enumerate(key.parts)
    ]
    return f"(?s)^{''.join(texts)}$"


def _require_one_way(keys: pa.Array, found: pa.Array, other: pa.Array) -> None:
    for at in range(found.type.num_fields):
        differs = pc.not_equal(pc.struct_field(found, [at]), pc.struct_field(other, [at]))
        if pc.any(differs).as_py():
            raise ValueUnreadable(
                f"Key {keys.filter(differs)[0].as_py()!r} can be read in several ways",
                why="a value in it holds the text that stands between two columns in option key",
                todo="read keys as they are by option keyPattern, as column _key",
            )


def _unescaped(texts: pa.Array) -> pa.Array:
    if not pc.any(pc.match_substring(texts, "%")).as_py():
        return texts
    read = [one if one is None else unquote_to_bytes(one) for one in texts.to_pylist()]
    return pa.array(read, pa.binary())


def _equal(filters: Filters, column: str) -> Iterator[Any]:
    """The values that a column may have; none where conditions don't say."""
    for one in filters:
        match one:
            case Compare(column=name, operator="=", value=value) if name == column:
                yield value
                return
            case OneOf(column=name, values=values) if name == column:
                yield from values
                return
