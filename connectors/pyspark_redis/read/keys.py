"""Which keys are read, and what they say of a row."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from itertools import product
from typing import Any
from urllib.parse import unquote_to_bytes

import pyarrow as pa
import pyarrow.compute as pc

from pyspark_redis.read.forms import ENTRY
from pyspark_redis.write import template
from pyspark_redis.write.template import Key
from sparkonce import checks
from sparkonce.errors import OptionError, ValueUnreadable
from sparkonce.options import Options
from sparkonce.reading import Compare, Filters, OneOf
from sparkonce.values.spark_types import spark_type

WHOLE = "_key"
"""The column of a key as it is."""

PATTERN = re.compile(r"[*?\[]")

MOST = 10_000
"""Keys that are asked for by their names; where conditions name more, all are looked at."""


@dataclass(frozen=True)
class Naming:
    """What keys look like.

    Attributes:
        key: what makes one of columns; None where they are taken whole.
        pattern: that matches all of them, and perhaps others, as SCAN has it.
    """

    key: Key | None
    pattern: bytes

    @property
    def columns(self) -> tuple[str, ...]:
        """What a key says of a row."""
        return self.key.columns if self.key else (WHOLE,)

    def texts(self, keys: pa.Array) -> dict[str, pa.Array]:
        """The text of each column, by the key it is in; null where a key is none of these.

        Args:
            keys: as bytes.

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
        """Refuse keys that a row with these values would not have.

        Raises:
            ValueUnreadable: there is one, such as ``user:07`` for the number 7.
        """
        if self.key is None or not set(self.columns) <= set(columns):
            return
        made = template.keys(self.key, pa.RecordBatch.from_pydict(dict(columns)))
        other = pc.not_equal(made, keys)
        if pc.any(other).as_py():
            key = keys.filter(other)[0].as_py()
            raise ValueUnreadable(
                f"Key {key!r} can't be read as columns {', '.join(self.columns)}",
                why="a row with its values would have another key",
                todo="read those columns as strings, or keys as they are by option keyPattern",
            )

    def named(self, filters: Filters, schema: pa.Schema) -> list[bytes] | None:
        """The only keys that conditions leave; None if they don't say.

        Args:
            filters: of the query.
            schema: of its columns.
        """
        if self.key is None or not set(self.columns) <= set(schema.names):
            return None
        if not all(_is_one_text(schema.field(name)) for name in self.columns):
            return None
        values = [[*_equal(filters, name)] for name in self.columns]
        many = 1
        for each in values:
            many *= len(each)
        if not 0 < many <= MOST:
            return None
        rows = [dict(zip(self.columns, each, strict=True)) for each in product(*values)]
        kinds = pa.schema([schema.field(name) for name in self.columns])
        try:
            made = template.keys(self.key, pa.RecordBatch.from_pylist(rows, kinds))
        except (pa.ArrowException, OverflowError):  # a value that no row has
            return None
        return [*dict.fromkeys(made.to_pylist())]


def naming(options: Options) -> Naming:
    """What options ``key`` and ``keyPattern`` say.

    Raises:
        OptionError: they say nothing, or contradict each other.
    """
    key, pattern = options["key"], options["keyPattern"]
    checks.refuse(
        [
            (
                bool(key) == bool(pattern),
                "Options key and keyPattern: one of them says which keys are read",
                f"{'both are' if key else 'none is'} set",
                "set one of them",
            )
        ]
    )
    if pattern:
        return Naming(None, pattern.encode())
    made = template.parsed(key)
    for name in made.columns:
        if name.lower() in _taken(options):
            raise OptionError(
                f"Option key has a column {name!r}, which means something else",
                why=f"{WHOLE} is the key as it is, {ENTRY} the id of an entry of a stream, and"
                " option scoreColumn names the score of a member",
                todo="call it otherwise in option key: the name is free",
            )
    return Naming(made, "*".join(map(template.literal, made.parts[::2])).encode())


def _taken(options: Options) -> set[str]:
    """Names of columns that are no part of a key."""
    of_model = {"stream": ENTRY, "zset": options["scoreColumn"].lower()}
    return {WHOLE, of_model.get(options["model"], WHOLE)}


def require_no_pattern(stream: str) -> None:
    """Refuse the name of a stream that is not there, and looks as if it stood for others.

    Raises:
        OptionError: it does.
    """
    if PATTERN.search(stream):
        raise OptionError(
            f"Option streams names {stream!r}, and there is no stream of that name",
            why="each name stands for one stream: it is no pattern",
            todo="name the streams, with commas between",
        )


def fitted(naming: Naming, schema: pa.Schema) -> Naming:
    """The same, with the columns as a schema writes them.

    Raises:
        OptionError: a column is of a type that names no row.
    """
    if naming.key is None:
        return naming
    parts = [_column(part, schema) if at % 2 else part for at, part in enumerate(naming.key.parts)]
    return Naming(Key(tuple(parts), naming.key.escaped), naming.pattern)


def _column(name: str, schema: pa.Schema) -> str:
    for field in schema:
        if field.name.lower() == name.lower():
            if not any(is_exact(field.type) for is_exact in template.EXACT):
                raise OptionError(
                    f"Column {field.name!r} of type {field.type} can't be read from a key",
                    why="equal values of this type can have different texts",
                    todo="read it as a string, a decimal or a whole number",
                )
            return str(field.name)
    return name


def _expression(key: Key, any_text: str) -> str:
    texts = [
        f"(?P<c{at // 2}>{any_text})" if at % 2 else _quoted(part)
        for at, part in enumerate(key.parts)
    ]
    return f"(?s)^{''.join(texts)}$"


def _quoted(text: str) -> str:
    """A text as RE2 has it, byte by byte: it takes bytes for Latin-1."""
    return "".join(f"\\x{byte:02x}" for byte in text.encode())


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
    return pa.array(
        [one if one is None else unquote_to_bytes(one) for one in texts.to_pylist()], pa.binary()
    )


def _is_one_text(field: pa.Field) -> bool:
    """Whether values that Spark takes for equal have one text, so that conditions name keys."""
    known = any(is_known(field.type) for is_known in template.EXACT)
    return known and "collate" not in spark_type(field)


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
