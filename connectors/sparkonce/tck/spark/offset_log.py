"""The offsets in a checkpoint, as text that a check may rewrite."""

from __future__ import annotations

import json
import os
import re
from base64 import b64decode
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any

HEAD = 2
"""Lines before the offsets: a version, and Spark's metadata of the epoch."""
NONE = "-"
"""Spark's entry for a source that has no offset yet."""
PICKLE = re.compile(rb"(\xc2)?\x80[\x02-\x05].+\.", re.S)
"""From protocol 2 on; as Latin-1 in UTF-8, too."""


def offsets(checkpoint: Path) -> Iterator[Any]:
    """All offsets, epoch by epoch.

    Raises:
        ValueError: one is not JSON.
    """
    for path in _logged(checkpoint):
        yield from (json.loads(line) for line in _told(path.read_text().splitlines()))


def write_anew(checkpoint: Path) -> None:
    """Rewrite all offsets with another order of keys, and other spaces: the same JSON."""
    for path in _logged(checkpoint):
        lines = path.read_text().splitlines()
        path.write_text("\n".join([*lines[:HEAD], *map(respelt, lines[HEAD:])]))
        path.with_name(f".{path.name}.crc").unlink(missing_ok=True)


def respelt(text: str) -> str:
    """The same JSON in another spelling; the entry for no offset stays."""
    if text == NONE:
        return text
    return json.dumps(_reordered(json.loads(text)), separators=(" ,  ", " :  "))


def foreign(offset: Any) -> Iterator[str]:
    """A part of an offset that another process or machine can't use."""
    for text in _texts(offset):
        if _is_pickle(text):
            yield f"a pickle: {text[:40]}"
        elif os.path.isabs(text) and os.path.exists(text):
            yield f"a path of this machine: {text}"


def _told(lines: list[str]) -> list[str]:
    return [line for line in lines[HEAD:] if line != NONE]


def _logged(checkpoint: Path) -> list[Path]:
    return sorted((checkpoint / "offsets").glob("[0-9]*"), key=lambda path: int(path.name))


def _reordered(value: Any) -> Any:
    """The same with all keys sorted, or reversed if they are sorted already."""
    if isinstance(value, list):
        return [_reordered(one) for one in value]
    if not isinstance(value, dict):
        return value
    names = sorted(value)
    names = names[::-1] if names == [*value] else names
    return {name: _reordered(value[name]) for name in names}


def _texts(value: Any) -> Iterator[str]:
    if isinstance(value, str):
        yield value
    elif isinstance(value, dict):
        for name, one in value.items():
            yield from (name, *_texts(one))
    elif isinstance(value, list):
        for one in value:
            yield from _texts(one)


def _is_pickle(text: str) -> bool:
    """Whether a text is a pickle, in any encoding of bytes as text."""
    ways = (partial(b64decode, text, validate=True), partial(bytes.fromhex, text), text.encode)
    return any(PICKLE.fullmatch(_decoded(way)) for way in ways)


def _decoded(way: Callable[[], bytes]) -> bytes:
    try:
        return way()
    except ValueError:
        return b""
