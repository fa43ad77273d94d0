"""Records as the scripts take and give them."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from sparkonce.codec import reading
from sparkonce.protocol import Record


def values(record: Record) -> list[Any]:
    """What a script is given."""
    return [record.revision, record.stamp, record.token, record.body]


def record(name: str, values: Sequence[Any]) -> Record:
    """The record of this name, as a script has answered it."""
    with reading(name):
        revision, stamp, token, body = (text(value or b"") for value in values)
        return Record(int(revision or 0), stamp, token, body)


def named(key: str, names: Iterable[Any]) -> list[str]:
    """The names of sinks in a key of sparkonce's own."""
    with reading(key):
        return sorted(map(text, names))


def text(value: Any) -> str:
    """What the server has, which is bytes, as text."""
    return str(value, "utf-8")
