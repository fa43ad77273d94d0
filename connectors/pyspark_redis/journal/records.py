"""Records as the scripts take and give them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from sparkonce.protocol import Record


def values(record: Record) -> list[Any]:
    """What a script is given."""
    return [record.revision, record.stamp, record.token, record.body]


def record(values: Sequence[Any]) -> Record:
    """What a script has answered."""
    revision, stamp, token, body = (text(value or b"") for value in values)
    return Record(int(revision or 0), stamp, token, body)


def text(value: Any) -> str:
    """What the server has, which is bytes, as text."""
    return str(value, "utf-8")
