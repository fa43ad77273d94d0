"""What can be read of Spark's checkpoint without Spark.

Layout: ``metadata`` holds the query id, ``offsets/N`` the offsets of epoch N, see
https://spark.apache.org/docs/latest/streaming/apis-on-dataframes-and-datasets.html
"""

from __future__ import annotations

import json
import logging
import re
from functools import lru_cache
from pathlib import Path
from typing import Any

from sparkonce.errors import told
from sparkonce.offsets import Offsets

log = logging.getLogger("sparkonce")


def canonical(location: str | None) -> str | None:
    """One spelling for each place: absolute for local paths, untouched for other file systems.

    A local path does not name its host, which in a container is another one at each start.
    """
    if not location:
        return None
    path = local(location)
    return str(path.resolve()) if path else location.rstrip("/")


def offsets(location: str | None, epoch: int) -> Offsets | None:
    """What ``offsets/<epoch>`` holds; None where it can't be read from here."""
    text = _read(location, f"offsets/{epoch}")
    return Offsets(text) if text is not None else None


@lru_cache
def warn_if_unreadable(location: str | None, sink: str) -> None:
    """Say, once a sink, what can't be guarded where the checkpoint can't be read from here."""
    if query_id(location) is None:
        log.warning(
            told(
                f"Sink {sink!r}: its checkpoint ({location or 'not given as an option'}) can't be"
                " read by Python on the driver",
                why="a copied or restored one is noticed only by its epoch numbers, and may apply"
                " rows again",
                todo="set option checkpointLocation to a path that can be read, and option sinkId,"
                " to have every case noticed",
            )
        )


def query_id(location: str | None) -> str | None:
    """The id of the query that owns a checkpoint; None where it can't be read from here."""
    told = _parsed((_read(location, "metadata") or b"").decode(errors="replace"))
    return str(told["id"]) if isinstance(told, dict) and "id" in told else None


def is_whole(text: bytes, lines: int = 2) -> bool:
    """Whether Spark can read a file of its offsets or commits, which a crash may have torn.

    Such a file is a version, and lines of JSON, or a dash, behind it.

    Args:
        text: what it holds.
        lines: how many there must be.
    """
    version, *rest = text.decode(errors="replace").splitlines() or [""]
    if not re.fullmatch(r"v\d+", version) or len(rest) + 1 < lines:
        return False
    return all(_is_readable(line, named=version != "v1") for line in rest)


def _is_readable(line: str, *, named: bool) -> bool:
    """Whether a line is JSON, or no offset; from version 2 on a source's name may stand before."""
    texts = [line, line.partition(":")[2]] if named else [line]
    return any(text == "-" or _parsed(text) is not None for text in texts)


def _parsed(text: str) -> Any:
    try:
        return json.loads(text)
    except ValueError:
        return None


def _read(location: str | None, name: str) -> bytes | None:
    home = local(location) if location else None
    if home is None:
        return None
    try:
        return (home / name).read_bytes()
    except OSError:
        return None


def local(location: str) -> Path | None:
    """The path of a checkpoint on this machine; None if it lies elsewhere."""
    scheme, colon, rest = location.partition(":")
    if not colon or "/" in scheme:
        return Path(location)
    if scheme == "file":
        return Path("/" + rest.lstrip("/"))
    return None
