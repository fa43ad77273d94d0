"""Which keys a read selects, and the columns that it takes from a key."""

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

WHOLE = "_key"  # the column of the whole key

PATTERN = re.compile(r"[*?\[]")

MOST = 10_000
"""The most keys that a read looks up by name; if conditions name more, it scans all keys."""


@dataclass(frozen=True)
class KeyPattern:
    """The form of the keys that a read selects."""

    key: Key | None  # the template of a key; None if column `_key` is the whole key
    pattern: bytes  # a pattern of SCAN that matches all these keys, and perhaps others

    @property
    def columns(self) -> tuple[str, ...]:
        """The columns whose values are in a key."""
        return self.key.columns if self.key else (WHOLE,)

    def texts(self, keys: pa.Array) -> dict[str, pa.Array]:
        """The text of each column in binary keys; null where a key has another form.

        Raises:
            ValueUnreadable: a key can be split in two ways.
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
        """Reject keys that the sink would not write for these values: ``user:07`` for number 7."""
        if self.key is None or not set(self.columns) <= set(columns):
            return
        made = make_keys(self.key, pa.RecordBatch.from_pydict(dict(columns)))
        other = pc.not_equal(made, keys)
        if pc.any(other).as_py():
            key = keys.filter(other)[0].as_py()
            raise ValueUnreadable(
                f"Key {key!r} can't be read as columns {', '.join(self.columns)}",
                why="a row with these values would have another key",
                todo="read those columns as strings, or read whole keys by option keyPattern",
            )

    def named(self, filters: Filters, schema: pa.Schema) -> list[bytes] | None:
        """The only keys that the conditions of a query allow; None if the conditions name none."""
        if self.key is None or not set(self.columns) <= set(schema.names):
            return None
        kinds = pa.schema([schema.field(name) for name in self.columns])
        values = [[*_equal(filters, name)] for name in self.columns]
        # Conditions name keys only if values that are equal in Spark have one text.
        fit = all(is_exact(one.type) and "collate" not in spark_type(one) for one in kinds)
        if not (fit and 0 < prod(map(len, values)) <= MOST):
            return None
        rows = [dict(zip(self.columns, each, strict=True)) for each in product(*values)]
        try:
            made = make_keys(self.key, pa.RecordBatch.from_pylist(rows, kinds))
        except (pa.ArrowException, OverflowError):  # a value that no row can have
            return None
        return [*dict.fromkeys(made.to_pylist())]

    def fitted(self, schema: pa.Schema) -> KeyPattern:
        """This pattern with the column names of a schema; OptionError if a type is unsuitable."""
        if self.key is None:
            return self
        parts = [_column(one, schema) if at % 2 else one for at, one in enumerate(self.key.parts)]
        return KeyPattern(Key(tuple(parts), self.key.escaped), self.pattern)


def key_pattern(options: Options) -> KeyPattern:
    """The pattern of options ``key`` and ``keyPattern``; OptionError if they are invalid."""
    key, pattern = options["key"], options["keyPattern"]
    if bool(key) == bool(pattern):
        raise OptionError(
            "Options key and keyPattern: exactly one of them selects the keys",
            why=f"{'both are' if key else 'neither is'} set",
            todo="set one of them",
        )
    if pattern:
        return KeyPattern(None, pattern.encode())
    made = parse_key_text(key)
    taken = {"stream": ENTRY, "zset": options["scoreColumn"].lower()}.get(options["model"])
    for name in made.columns:
        if name.lower() in (WHOLE, taken):
            raise OptionError(
                f"Option key has a column {name!r}, which has another meaning",
                why=f"{WHOLE} is the whole key, {ENTRY} is the id of a stream entry, and option"
                " scoreColumn names the score of a member",
                todo="rename the column in option key: any other name is valid",
            )
    return KeyPattern(made, "*".join(map(literal, made.parts[::2])).encode())


def require_no_pattern(stream: str) -> None:
    """Reject the name of a stream that does not exist and looks like a pattern."""
    if PATTERN.search(stream):
        raise OptionError(
            f"Option streams names {stream!r}, and no stream of that name exists",
            why="each name is the name of one stream, not a pattern",
            todo="name the streams, separated by commas",
        )


def _column(name: str, schema: pa.Schema) -> str:
    field = next((one for one in schema if one.name.lower() == name.lower()), None)
    if field is None:
        return name
    if not is_exact(field.type):
        raise OptionError(
            f"Column {field.name!r} of type {field.type} can't be read from a key",
            why="equal values of this type can have different text forms",
            todo="read it as a string, a decimal or a whole number",
        )
    return str(field.name)


def _expression(key: Key, any_text: str) -> str:
    texts = [
        # Byte by byte: RE2 reads bytes as Latin-1.
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
                why="a value in the key contains the text between two columns of option key",
                todo="read whole keys by option keyPattern, as column _key",
            )


def _unescaped(texts: pa.Array) -> pa.Array:
    if not pc.any(pc.match_substring(texts, "%")).as_py():
        return texts
    read = [one if one is None else unquote_to_bytes(one) for one in texts.to_pylist()]
    return pa.array(read, pa.binary())


def _equal(filters: Filters, column: str) -> Iterator[Any]:
    """The values that the conditions allow for a column; none if they do not name values."""
    for one in filters:
        match one:
            case Compare(column=name, operator="=", value=value) if name == column:
                yield value
                return
            case OneOf(column=name, values=values) if name == column:
                yield from values
                return
