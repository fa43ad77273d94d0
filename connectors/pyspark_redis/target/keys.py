"""The keys of a target, and the keys of sparkonce, which belong to no target.

Option ``key`` is a template like ``user:{id}``, or columns like ``order_id,line_no``.
`pyspark_redis.server.session` lists the keys of sparkonce.
"""

from __future__ import annotations

import re
import string
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.compute as pc
from pyarrow import types

from sparkonce import checks
from sparkonce.errors import BadRow, OptionError
from sparkonce.values.rows import null_key, percent_encoded
from sparkonce.values.text import to_text

if TYPE_CHECKING:
    import redis

PREFIX = r"[A-Za-z0-9._-]{1,64}"  # what option ``keyPrefix`` may be

OWN = (
    rf"\{{{PREFIX}\}}:(?:names|decided|open|probe|(?:record|staged|log|letters|lanes|lettered):.*)"
    rf"|{PREFIX}:\{{[0-9]+\}}:[^:@]+@[0-9a-f]{{16}}(?::probe)?"
)
"""The names of all keys of sparkonce, with any prefix; the last part matches lanes of a cluster."""

_OWN = re.compile(OWN.encode(), re.DOTALL)

SCANNED = 1000  # keys that the server examines for one reply, and may delete in one step


@dataclass(frozen=True)
class Key:
    """A parsed ``key`` option."""

    parts: tuple[str, ...]  # alternating literals (even positions) and columns (odd positions)
    # Whether ``:`` and ``%`` inside a value are percent-encoded, so that different rows never share
    # a key. True for columns; a template takes values literally.
    escaped: bool

    @property
    def columns(self) -> tuple[str, ...]:
        """The columns that identify a row."""
        return self.parts[1::2]

    @property
    def text(self) -> str:
        """The key as a template."""
        return "".join(f"{{{p}}}" if i % 2 else p for i, p in enumerate(self.parts))

    @property
    def pattern(self) -> str:
        """A pattern of ``SCAN`` for every key that begins with the first fixed text."""
        return literal(self.parts[0]) + "*"

    @property
    def name(self) -> str:
        """A name that distinguishes this key from others; columns are escaped, templates not."""
        return ",".join(self.columns) if self.escaped else self.text


def literal(text: str) -> str:
    """A pattern of ``SCAN`` that matches only this text."""
    return re.sub(r"([*?\[\]\\^-])", r"\\\1", text)


def parse_key(option: str, schema: pa.Schema) -> Key:
    """Read the ``key`` option of a query; OptionError if a column is missing or unsuitable."""
    key = parse_key_text(option)
    parts = [_column(part, option, schema) if i % 2 else part for i, part in enumerate(key.parts)]
    return Key(tuple(parts), key.escaped)


def parse_key_text(option: str) -> Key:
    """Read the ``key`` option without a schema; OptionError if it names no column."""
    if "{" in option or "}" in option:
        key = Key(_template(option), escaped=False)
    else:
        names = [name.strip() for name in option.split(",")]
        joined = [piece for name in names for piece in (":", name)][1:]
        # A single column needs no escape, because its key has no other part.
        key = Key(("", *joined, ""), escaped=len(names) > 1)
    if not key.columns:
        raise OptionError(
            f"Option key={option!r} names no column",
            why="every row would be stored under the same key",
            todo="put a column in braces, for example user:{id}",
        )
    return key


def make_keys(key: Key, rows: pa.RecordBatch) -> Any:
    """The key of each row, as a binary Arrow array; BadRow if a column is null."""
    pieces = []
    for i, part in enumerate(key.parts):
        if i % 2 == 0:
            pieces.append(pa.scalar(part.encode(), pa.binary()))
            continue
        column = rows.column(part)
        if column.null_count:
            raise null_key(part, rows, key.text, "Redis cannot store a row without a key")
        text = utf8(column)
        pieces.append(percent_encoded(text) if key.escaped else text)
    return pc.binary_join_element_wise(*pieces, pa.scalar(b"", pa.binary()))


def require_free(made: pa.BinaryArray, reserved: Iterable[bytes]) -> None:
    """Reject keys of sparkonce: those with a reserved prefix, and those of any `keyPrefix`."""
    owned = [pc.starts_with(made, pattern=own) for own in reserved]
    if pc.any(pc.match_substring(made, "}:")).as_py():  # all keys of sparkonce contain it
        owned.append(pc.match_substring_regex(made, f"(?s)^(?:{OWN})$"))
    for each in owned:
        if pc.any(each).as_py():
            key = made.filter(each)[0].as_py().decode(errors="replace")
            raise BadRow(
                f"A row has the key {key!r}, which is one of sparkonce's own",
                why="sparkonce keeps ledgers, staged rows and dead letters under these keys",
                todo="begin option key with another fixed text, for example row:",
            )


def utf8(column: pa.Array) -> pa.BinaryArray:
    """The text of each value, by `to_text`; ValueError if a string is not UTF-8."""
    text = to_text(column)
    if not pa.types.is_binary(column.type) and not pa.types.is_large_binary(column.type):
        try:
            text.cast(pa.string())  # only to check the bytes
        except pa.ArrowInvalid:
            raise ValueError("a string is not valid UTF-8") from None
    return text


def _template(option: str) -> tuple[str, ...]:
    parts = [""]
    try:
        for literal, column, spec, conversion in string.Formatter().parse(option):
            parts[-1] += literal
            if spec or conversion or column == "":
                raise ValueError("braces may contain only a column name")
            parts += [] if column is None else [column, ""]
    except ValueError as error:
        raise OptionError(
            f"Option key={option!r} is not a template",
            why=str(error),
            todo="write it like user:{id}; {{ and }} represent braces",
        ) from None
    return tuple(parts)


def _column(name: str, option: str, schema: pa.Schema) -> str:
    found = checks.key_column(f"key={option!r}", name, schema)
    kind = schema.field(found).type
    if not is_exact(kind):
        raise OptionError(
            f"Option key={option!r} names column {found!r} of type {kind}",
            why="equal values of this type can have different text forms, so the key would be"
            " ambiguous",
            todo="cast it to string, decimal or a whole number before the sink",
        )
    return found


def is_exact(kind: pa.DataType) -> bool:
    """Whether equal values of a type have equal texts, so that a row has exactly one key."""
    is_one = types.is_boolean, types.is_integer, types.is_decimal, types.is_string, types.is_binary
    is_time = types.is_date, types.is_timestamp, types.is_time, types.is_duration
    return any(is_kind(kind) for is_kind in (*is_one, *is_time))


def begins(prefix: str) -> tuple[bytes, bytes]:
    """The prefixes of the connector's keys: on any server, and those of lanes in a cluster."""
    return f"{{{prefix}}}:".encode(), f"{prefix}:{{".encode()


def is_own(key: bytes, *reserved: bytes) -> bool:
    """Whether a key belongs to sparkonce, or begins with a reserved prefix."""
    return key.startswith(reserved) or _OWN.fullmatch(key) is not None


def scan_target(client: redis.Redis, pattern: str, prefix: str) -> Iterator[tuple[list[Any], bool]]:
    """Blocks of keys of the target, each with whether it is the last; omits keys of sparkonce.

    The scan finds each key that exists all the time: https://redis.io/docs/latest/commands/scan.
    """
    cursor, (own, _) = None, begins(prefix)
    while cursor != 0:
        answer: tuple[int, list[Any]] = client.scan(cursor or 0, match=pattern, count=SCANNED)
        cursor, keys = answer
        theirs = [key for key in keys if not is_own(key, own)]
        # Yield the last block even if it is empty: it tells the script that all keys are deleted.
        if theirs or cursor == 0:
            yield theirs, cursor == 0
