"""The letter of a row that the server refused, which is known by its texts in a chunk alone."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from typing import Any

import pyarrow as pa

from pyspark_redis.write.values import JOINED, Values
from sparkonce.values import from_json, letters
from sparkonce.values.letters import Letter

LONGEST = 64 * 1024 * 1024
"""Bytes of a row that is written whole, where the server takes so many."""

CUT = "larger than a dead letter may be, and cut: "


def letter_texts(
    letter: Letter, longest: Callable[[int], int] = lambda _: LONGEST
) -> tuple[str, str, str, str]:
    """Reason, key, row and base64, as the stream has them.

    Args:
        letter: of a row.
        longest: how many bytes a row of so many may have, at most.
    """
    reason, row, key, armored = letter
    size = len(row.encode())
    most = longest(size)
    if size > most:
        row, key = (text.encode()[:most].decode(errors="ignore") for text in (row, key))
        reason = CUT + reason
    return reason, key, row, json.dumps(armored)


def of_texts(reason: str, texts: Sequence[bytes | None], values: Values) -> Letter:
    """The letter of a row that the server refused.

    Args:
        reason: why.
        texts: of its columns, as the chunk has them.
        values: of the manifest.
    """
    named = dict(zip(values.columns, texts, strict=True))
    joined = named.pop(JOINED, None)
    schema = values.arrow
    trees = {name: _tree(text, schema.field(name).type) for name, text in named.items()}
    if joined is not None:
        trees = {**from_json.parse_tree(joined), **trees}
    return letters.of_trees(reason, trees, schema, values.key.columns)


def _tree(text: bytes | None, kind: pa.DataType) -> Any:
    if text is None or pa.types.is_binary(kind):
        return text
    return from_json.parse_tree(text) if pa.types.is_nested(kind) else text.decode()
