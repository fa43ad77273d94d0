"""Keys: a template such as ``user:{id}``, or columns such as ``order_id,line_no``."""

from __future__ import annotations

import re
import string
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from pyspark_redis.server.own_keys import OWN
from sparkonce import checks
from sparkonce.errors import BadRow, OptionError
from sparkonce.values.rows import null_key, percent_encoded
from sparkonce.values.text import to_text

EXACT = (
    pa.types.is_boolean,
    pa.types.is_integer,
    pa.types.is_decimal,
    pa.types.is_string,
    pa.types.is_binary,
    pa.types.is_date,
    pa.types.is_timestamp,
    pa.types.is_time,
    pa.types.is_duration,
)
"""Types whose equal values have equal texts, so that a row has one key."""


@dataclass(frozen=True)
class Key:
    """A parsed ``key`` option.

    Attributes:
        parts: literals (even positions) and column names (odd positions), in turn.
        escaped: whether ``:`` and ``%`` inside a value are percent-encoded, so that two rows
            never share a key by accident. So it is for columns; a template is taken literally.
    """

    parts: tuple[str, ...]
    escaped: bool

    @property
    def columns(self) -> tuple[str, ...]:
        """The columns that name a row."""
        return self.parts[1::2]

    @property
    def text(self) -> str:
        """The key as a template."""
        parts = [f"{{{p}}}" if i % 2 else p for i, p in enumerate(self.parts)]
        return "".join(parts)

    @property
    def pattern(self) -> str:
        """What matches every key that begins with the first fixed text, for ``SCAN``."""
        return literal(self.parts[0]) + "*"

    @property
    def name(self) -> str:
        """What tells it from other keys: columns are escaped, and a template's values are not."""
        return ",".join(self.columns) if self.escaped else self.text


def literal(text: str) -> str:
    """A text in a pattern of ``SCAN``, which matches nothing else."""
    return re.sub(r"([*?\[\]\\^-])", r"\\\1", text)


def parse_key(option: str, schema: pa.Schema) -> Key:
    """Read the ``key`` option of a query.

    Raises:
        OptionError: it names no column of the schema, or one that can't be part of a key.
    """
    key = parsed(option)
    parts = [_column(part, option, schema) if i % 2 else part for i, part in enumerate(key.parts)]
    return Key(tuple(parts), key.escaped)


def parsed(option: str) -> Key:
    """Read the ``key`` option, whatever columns there are.

    Raises:
        OptionError: it names no column.
    """
    if "{" in option or "}" in option:
        key = Key(_template(option), escaped=False)
    else:
        names = [name.strip() for name in option.split(",")]
        joined = [piece for name in names for piece in (":", name)][1:]
        # One column alone meets no other in a key, and stands as it is.
        key = Key(("", *joined, ""), escaped=len(names) > 1)
    if not key.columns:
        raise OptionError(
            f"Option key={option!r} names no column",
            why="every row would be stored under the same key",
            todo="put a column in braces, for example user:{id}",
        )
    return key


def keys(key: Key, rows: pa.RecordBatch) -> Any:
    """The key of each row, as a binary Arrow array.

    Raises:
        BadRow: a key column is null.
        ValueError: a string is not UTF-8.
    """
    pieces = []
    for i, part in enumerate(key.parts):
        if i % 2 == 0:
            pieces.append(pa.scalar(part.encode(), pa.binary()))
            continue
        column = rows.column(part)
        if column.null_count:
            raise null_key(part, rows, key.text, "a row without a key has no place in Redis")
        text = utf8(column)
        pieces.append(percent_encoded(text) if key.escaped else text)
    return pc.binary_join_element_wise(*pieces, pa.scalar(b"", pa.binary()))


def require_free(made: pa.BinaryArray, reserved: Iterable[bytes]) -> None:
    """See that no row has a key of a sparkonce's own, of whatever prefix.

    Args:
        made: the keys.
        reserved: what those of this connector begin with.

    Raises:
        BadRow: one has.
    """
    owned = [pc.starts_with(made, pattern=own) for own in reserved]
    if pc.any(pc.match_substring(made, "}:")).as_py():  # as all of them have
        owned.append(pc.match_substring_regex(made, f"(?s)^(?:{OWN})$"))
    for each in owned:
        if pc.any(each).as_py():
            key = made.filter(each)[0].as_py().decode(errors="replace")
            raise BadRow(
                f"A row has the key {key!r}, which is one of sparkonce's own",
                why="under such keys it keeps ledgers, staged rows and dead letters",
                todo="begin option key with a fixed text, or with another one, such as row:",
            )


def utf8(column: pa.Array) -> pa.BinaryArray:
    """The text of each value, as `to_text` gives it; binary values may be any bytes, strings not.

    Raises:
        ValueError: a value has no text, or a string is not UTF-8: Spark checks none.
    """
    text = to_text(column)
    if not pa.types.is_binary(column.type) and not pa.types.is_large_binary(column.type):
        try:
            text.cast(pa.string())  # for its check of the bytes alone
        except pa.ArrowInvalid:
            raise ValueError("a string is not valid UTF-8") from None
    return text


def _template(option: str) -> tuple[str, ...]:
    try:
        pieces = list(string.Formatter().parse(option))
    except ValueError as error:
        raise _bad_template(option, str(error)) from None
    parts = [""]
    for literal, column, spec, conversion in pieces:
        parts[-1] += literal
        if column is None:
            continue
        if spec or conversion or not column:
            raise _bad_template(option, "braces hold just a column name")
        parts += [column, ""]
    return tuple(parts)


def _bad_template(option: str, why: str) -> OptionError:
    return OptionError(
        f"Option key={option!r} is no template",
        why=why,
        todo="write it like user:{id}; {{ and }} stand for braces",
    )


def _column(name: str, option: str, schema: pa.Schema) -> str:
    found = checks.key_column(f"key={option!r}", name, schema)
    kind = schema.field(found).type
    if not any(is_exact(kind) for is_exact in EXACT):
        raise OptionError(
            f"Option key={option!r} names column {found!r} of type {kind}",
            why="equal values of this type can have different texts, so a row had no one key",
            todo="cast it to string, decimal or a whole number before the sink",
        )
    return found
