"""The keys of a target, and which keys are a sparkonce's own and so part of none.

Option ``key`` is a template such as ``user:{id}``, or columns such as ``order_id,line_no``.
`pyspark_redis.server.session` lists the keys that are sparkonce's own.
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
"""The names of all keys of any sparkonce; the last ones are those of a cluster's lanes."""

_OWN = re.compile(OWN.encode(), re.DOTALL)

SCANNED = 1000  # keys that the server looks through for one answer, and may delete in one step


@dataclass(frozen=True)
class Key:
    """A parsed ``key`` option."""

    parts: tuple[str, ...]  # literals (even positions) and column names (odd positions), in turn
    # Whether ``:`` and ``%`` inside a value are percent-encoded, so that two rows never share a key
    # by accident. So it is for columns; a template is taken literally.
    escaped: bool

    @property
    def columns(self) -> tuple[str, ...]:
        """The columns that name a row."""
        return self.parts[1::2]

    @property
    def text(self) -> str:
        """The key as a template."""
        return "".join(f"{{{p}}}" if i % 2 else p for i, p in enumerate(self.parts))

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
    """Read the ``key`` option of a query; OptionError where it names no column fit for a key."""
    key = parse_key_text(option)
    parts = [_column(part, option, schema) if i % 2 else part for i, part in enumerate(key.parts)]
    return Key(tuple(parts), key.escaped)


def parse_key_text(option: str) -> Key:
    """Read the ``key`` option, whatever columns there are; OptionError where it names none."""
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


def make_keys(key: Key, rows: pa.RecordBatch) -> Any:
    """The key of each row, as a binary Arrow array; BadRow if a column is null."""
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
    """Refuse keys of a sparkonce's own: of this connector, by how they begin, and of any prefix."""
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
    """The text of each value, by `to_text`; ValueError if a string is no UTF-8."""
    text = to_text(column)
    if not pa.types.is_binary(column.type) and not pa.types.is_large_binary(column.type):
        try:
            text.cast(pa.string())  # for its check of the bytes alone
        except pa.ArrowInvalid:
            raise ValueError("a string is not valid UTF-8") from None
    return text


def _template(option: str) -> tuple[str, ...]:
    parts = [""]
    try:
        for literal, column, spec, conversion in string.Formatter().parse(option):
            parts[-1] += literal
            if spec or conversion or column == "":
                raise ValueError("braces hold just a column name")
            parts += [] if column is None else [column, ""]
    except ValueError as error:
        raise OptionError(
            f"Option key={option!r} is no template",
            why=str(error),
            todo="write it like user:{id}; {{ and }} stand for braces",
        ) from None
    return tuple(parts)


def _column(name: str, option: str, schema: pa.Schema) -> str:
    found = checks.key_column(f"key={option!r}", name, schema)
    kind = schema.field(found).type
    if not is_exact(kind):
        raise OptionError(
            f"Option key={option!r} names column {found!r} of type {kind}",
            why="equal values of this type can have different texts, so a row had no one key",
            todo="cast it to string, decimal or a whole number before the sink",
        )
    return found


def is_exact(kind: pa.DataType) -> bool:
    """Whether equal values of a type have equal texts, so that a row has one key."""
    is_one = types.is_boolean, types.is_integer, types.is_decimal, types.is_string, types.is_binary
    is_time = types.is_date, types.is_timestamp, types.is_time, types.is_duration
    return any(is_kind(kind) for is_kind in (*is_one, *is_time))


def begins(prefix: str) -> tuple[bytes, bytes]:
    """What the keys of one sparkonce begin with: on any server, and on a cluster, too."""
    return f"{{{prefix}}}:".encode(), f"{prefix}:{{".encode()


def is_own(key: bytes, *reserved: bytes) -> bool:
    """Whether a key is a sparkonce's own, or begins with what is reserved for one."""
    return key.startswith(reserved) or _OWN.fullmatch(key) is not None


def scan_target(client: redis.Redis, pattern: str, prefix: str) -> Iterator[tuple[list[Any], bool]]:
    """Keys of the target, some at a time, and whether they are the last; a sparkonce's own stay.

    A key that is there all the time is found: https://redis.io/docs/latest/commands/scan.
    """
    cursor, (own, _) = None, begins(prefix)
    while cursor != 0:
        answer: tuple[int, list[Any]] = client.scan(cursor or 0, match=pattern, count=SCANNED)
        cursor, keys = answer
        theirs = [key for key in keys if not is_own(key, own)]
        # The last answer counts though it be empty: by it the script knows that all is deleted.
        if theirs or cursor == 0:
            yield theirs, cursor == 0
