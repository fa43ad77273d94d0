"""What can be read of Spark's checkpoint without Spark.

Layout: ``metadata`` holds the query id, ``offsets/N`` the offsets of epoch N, see
https://spark.apache.org/docs/latest/streaming/apis-on-dataframes-and-datasets.html
"""

from __future__ import annotations

import hashlib
import json
from pathlib import Path


def canonical(location: str | None) -> str | None:
    """One spelling for each place: absolute for local paths, untouched for other file systems.

    A local path does not name its host, which in a container is another one at each start.
    """
    if not location:
        return None
    local = _local(location)
    return str(local.resolve()) if local else location.rstrip("/")


def offsets_digest(location: str | None, epoch: int) -> str | None:
    """A digest of ``offsets/<epoch>``; None where it can't be read from here."""
    text = _read(location, f"offsets/{epoch}")
    return hashlib.sha256(text).hexdigest() if text is not None else None


def query_id(location: str | None) -> str | None:
    """The id of the query that owns a checkpoint; None where it can't be read from here."""
    text = _read(location, "metadata")
    return str(json.loads(text)["id"]) if text else None


def _read(location: str | None, name: str) -> bytes | None:
    local = _local(location) if location else None
    if local is None:
        return None
    try:
        return (local / name).read_bytes()
    except OSError:
        return None


def _local(location: str) -> Path | None:
    scheme, colon, rest = location.partition(":")
    if not colon or "/" in scheme:
        return Path(location)
    if scheme == "file":
        return Path("/" + rest.lstrip("/"))
    return None
