"""What can be read of Spark's checkpoint without Spark.

Layout: ``metadata`` holds the query id, ``offsets/N`` the offsets of epoch N, see
https://spark.apache.org/docs/latest/streaming/apis-on-dataframes-and-datasets.html
"""

from __future__ import annotations

import json
import logging
import re
from dataclasses import dataclass, field
from functools import lru_cache
from pathlib import Path
from typing import Any

from sparkonce.errors import CheckpointUnreadable, UnsupportedQuery, error_text
from sparkonce.exactly_once.driver import Offsets
from sparkonce.spark import storage
from sparkonce.spark.storage import Settings, Unreadable

READABLE = (
    "give checkpointLocation with its scheme (hdfs:, s3a:), and checkpointStorageOptions where the"
    " session's settings don't reach there (docs/checkpoints.md)"
)
NOWHERE = "its file metadata is not there, or names no query"
PLACED = "set option checkpointLocation, or queryName where the session places checkpoints"

STARTS = re.compile(rb"v\d+\n.")
"""How each form of offsets begins; a file system that caches may show none of them yet."""

log = logging.getLogger("sparkonce")


@dataclass(frozen=True)
class View:
    """What the driver of an epoch could read.

    Attributes:
        offsets: of the epoch; None if they are not there.
        before: those of the epoch before.
        trouble: why neither could be read; empty if they could.
    """

    offsets: Offsets | None = None
    before: Offsets | None = None
    trouble: str = ""


@dataclass(frozen=True)
class Checkpoint:
    """A checkpoint, read by Python on the driver.

    Attributes:
        location: as Spark was told it; None if that is not known.
        settings: how its file system is reached, if that is another one.
    """

    location: str | None
    settings: Settings = field(default_factory=Settings)

    @property
    def place(self) -> str | None:
        """One spelling for each place; absolute for local paths.

        A local path does not name its host, which in a container is another one at each start.
        """
        return storage.canonical_location(self._resolved(self.location)) if self.location else None

    def look(self, query_id: str, epoch: int) -> View:
        """Read what the driver of a query needs at an epoch."""
        try:
            owner = self.query_id()
            # A folder of the driver may have the path that Spark means in another file system.
            if owner != query_id:
                named = f"its file metadata names query {owner}"
                return View(trouble=named if owner else NOWHERE)
            return View(self.offsets(epoch), self.offsets(epoch - 1))
        except Unreadable as error:
            return View(trouble=str(error))

    def query_id(self) -> str | None:
        """The id of the query that owns the checkpoint; None if it is not there.

        Raises:
            Unreadable: nobody can tell.
        """
        metadata = _parsed((self._read("metadata") or b"").decode(errors="replace"))
        return str(metadata["id"]) if isinstance(metadata, dict) and "id" in metadata else None

    def offsets(self, epoch: int) -> Offsets | None:
        """What ``offsets/<epoch>`` holds; None if it is not there.

        Raises:
            Unreadable: nobody can tell.
        """
        text = self._read(f"offsets/{epoch}") if epoch >= 0 else None
        if text is not None and not STARTS.match(text):
            raise Unreadable(f"offsets/{epoch} is there, and not whole")
        return Offsets(text) if text is not None else None

    def _read(self, name: str) -> bytes | None:
        if not self.location:
            raise Unreadable("no option says where it lies")
        home = local_path(self.location)
        if home is None:
            return storage.read(self.location, name, self.settings)
        try:
            return (home / name).read_bytes()
        except (FileNotFoundError, NotADirectoryError):
            # Only what is known to be absent is None: else an outage would skip a comparison.
            return None
        except OSError as error:
            raise Unreadable(f"{error.strerror}: {home / name}") from None

    @staticmethod
    def _resolved(location: str) -> str:
        # A name of DBFS is no path here: /dbfs, where it may be mounted, is only a spelling of it.
        path = None if location.startswith("dbfs:") else local_path(location)
        return str(path.resolve()) if path else location


def require_readable(view: View, sink: str, location: str | None, *, warn: bool) -> None:
    """Refuse a checkpoint that can't be read, or say, once a sink, what can't be guarded.

    Raises:
        CheckpointUnreadable: it can't be read, and a warning is not enough.
    """
    if view.trouble and not warn:
        raise _refusal(sink, location, view.trouble)
    if view.trouble:
        _warn(sink, location, view.trouble)


def require_seen(location: str | None, sink: str) -> None:
    """Refuse a local folder that the driver does not see, before any row is staged.

    How another file system is reached only tasks are told; so it is first looked for in a commit.

    Raises:
        CheckpointUnreadable: it is not there.
    """
    if not location or local_path(location) is None:
        return
    try:
        owner, trouble = Checkpoint(location).query_id(), NOWHERE
    except Unreadable as error:
        owner, trouble = None, str(error)
    if owner is None:
        raise _refusal(sink, location, trouble)


def _refusal(sink: str, location: str | None, trouble: str) -> CheckpointUnreadable:
    return CheckpointUnreadable(
        _unreadable(sink, location, trouble),
        why="a copied or restored checkpoint would be noticed by its epoch numbers only, and"
        " rows that are read again would be applied again, or new ones dropped",
        todo=f"{READABLE if location else PLACED}; the epoch is replayed once it can be read."
        " Or set onUnreadableCheckpoint=warn, to go on without that guard",
    )


def require_planned(view: View, epoch: int, place: str | None) -> None:
    """Refuse an epoch that is committed before Spark has written down what it reads.

    Raises:
        UnsupportedQuery: the checkpoint can be read, and lacks the epoch's offsets.
    """
    if view.offsets is None and not view.trouble:
        raise UnsupportedQuery(
            f"Spark commits epoch {epoch}, but checkpoint {place} has no offsets/{epoch}",
            why="a real-time trigger, or asynchronous progress tracking, writes the offsets of an"
            " epoch behind its rows; after a crash Spark would read other rows under this number."
            " Or this folder is an old copy, and Spark's checkpoint lies in another file system",
            todo="use trigger(processingTime=...) or trigger(availableNow=True), without"
            " asyncProgressTrackingEnabled; give checkpointLocation with its scheme (hdfs:)",
        )


# The cache makes it one warning for each trouble, and not one an epoch.
@lru_cache
def _warn(sink: str, location: str | None, trouble: str) -> None:
    log.warning(
        error_text(
            _unreadable(sink, location, trouble),
            why="a copied or restored one is noticed only by its epoch numbers, and may apply"
            " rows again",
            todo="set option checkpointLocation to a path that can be read, and option sinkId,"
            " to have every case noticed",
        )
    )


def _unreadable(sink: str, location: str | None, trouble: str) -> str:
    place = storage.canonical_location(location) if location else "not given as an option"
    return (
        f"Sink {sink!r}: its checkpoint ({place}) can't be read by Python on the driver: {trouble}"
    )


def is_whole(text: bytes, lines: int = 2) -> bool:
    """Whether Spark can read a file of its offsets or commits, which a crash may have torn.

    Such a file is a version, and lines of JSON, or a dash, behind it.
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
    except (ValueError, RecursionError):
        return None


def local_path(location: str) -> Path | None:
    """The path of a checkpoint on this machine; None if it lies elsewhere."""
    scheme, _, path = storage.split_location(location)
    if not scheme:
        return Path(location)
    if scheme == "file":
        return Path("/" + path.lstrip("/"))
    spelled = storage.canonical_location(location)
    if scheme == "dbfs" and spelled.startswith(storage.VOLUMES):
        return Path(spelled)
    mount = Path(storage.MOUNT)
    if scheme == "dbfs" and mount.is_dir():
        return mount / path.lstrip("/")
    return None
