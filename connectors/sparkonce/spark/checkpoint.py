"""Reads Spark's checkpoint without Spark.

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
    "set checkpointLocation with its scheme (hdfs:, s3a:), and checkpointStorageOptions where the"
    " session's settings do not suffice (docs/checkpoints.md)"
)
NOWHERE = "its file metadata is missing, or names no query"
PLACED = "set option checkpointLocation, or queryName where the session places checkpoints"

STARTS = re.compile(rb"v\d+\n.")
"""The beginning of each version of offsets; a file system that caches may not show it yet."""

log = logging.getLogger("sparkonce")


@dataclass(frozen=True)
class View:
    """The offsets that the driver of an epoch could read.

    Attributes:
        offsets: of the epoch; None if they do not exist.
        before: of the epoch before; None if they do not exist.
        trouble: why neither could be read; empty if they could.
    """

    offsets: Offsets | None = None
    before: Offsets | None = None
    trouble: str = ""


@dataclass(frozen=True)
class Checkpoint:
    """A checkpoint, read by Python on the driver.

    Attributes:
        location: as Spark received it; None if unknown.
        settings: how to reach the file system, if it is a remote one.
    """

    location: str | None
    settings: Settings = field(default_factory=Settings)

    @property
    def place(self) -> str | None:
        """The canonical spelling of the location; absolute for local paths.

        A local path does not name its host, which differs at each start of a container.
        """
        return storage.canonical_location(self._resolved(self.location)) if self.location else None

    def look(self, query_id: str, epoch: int) -> View:
        """Read what the driver of a query needs in an epoch."""
        try:
            owner = self.query_id()
            # A local folder of the driver may have the same path as Spark's remote checkpoint.
            if owner != query_id:
                named = f"its file metadata names query {owner}"
                return View(trouble=named if owner else NOWHERE)
            return View(self.offsets(epoch), self.offsets(epoch - 1))
        except Unreadable as error:
            return View(trouble=str(error))

    def query_id(self) -> str | None:
        """The id of the query that owns the checkpoint; None if the file does not exist.

        Raises:
            Unreadable: the file system does not say.
        """
        metadata = _parsed((self._read("metadata") or b"").decode(errors="replace"))
        return str(metadata["id"]) if isinstance(metadata, dict) and "id" in metadata else None

    def offsets(self, epoch: int) -> Offsets | None:
        """The content of ``offsets/<epoch>``; None if the file does not exist.

        Raises:
            Unreadable: the file system does not say.
        """
        text = self._read(f"offsets/{epoch}") if epoch >= 0 else None
        if text is not None and not STARTS.match(text):
            raise Unreadable(f"offsets/{epoch} exists, but is incomplete")
        return Offsets(text) if text is not None else None

    def _read(self, name: str) -> bytes | None:
        if not self.location:
            raise Unreadable("no option names its location")
        home = local_path(self.location)
        if home is None:
            return storage.read(self.location, name, self.settings)
        try:
            return (home / name).read_bytes()
        except (FileNotFoundError, NotADirectoryError):
            # None only for a file that is known to be absent: else an outage would skip a check.
            return None
        except OSError as error:
            raise Unreadable(f"{error.strerror}: {home / name}") from None

    @staticmethod
    def _resolved(location: str) -> str:
        # A name of DBFS is not a local path; its mount at /dbfs is only another spelling.
        path = None if location.startswith("dbfs:") else local_path(location)
        return str(path.resolve()) if path else location


def require_readable(view: View, sink: str, location: str | None, *, warn: bool) -> None:
    """Reject an unreadable checkpoint, or warn once a sink of the missing guard.

    Raises:
        CheckpointUnreadable: the checkpoint is unreadable, and a warning is not enough.
    """
    if view.trouble and not warn:
        raise _refusal(sink, location, view.trouble)
    if view.trouble:
        _warn(sink, location, view.trouble)


def require_seen(location: str | None, sink: str) -> None:
    """Reject a local folder that the driver does not see, before any task stages a row.

    Only tasks see how to reach a remote file system, so the first commit checks that one.

    Raises:
        CheckpointUnreadable: the folder does not exist.
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
        why="only its epoch numbers would reveal a copied or restored checkpoint, and the sink"
        " would apply duplicate rows or drop new ones",
        todo=f"{READABLE if location else PLACED}; Spark replays the epoch once the checkpoint is"
        " readable. Or set onUnreadableCheckpoint=warn, to continue without that guard",
    )


def require_planned(view: View, epoch: int, place: str | None) -> None:
    """Reject the commit of an epoch whose offsets Spark has not written yet.

    Raises:
        UnsupportedQuery: the checkpoint is readable, and lacks the epoch's offsets.
    """
    if view.offsets is None and not view.trouble:
        raise UnsupportedQuery(
            f"Spark commits epoch {epoch}, but checkpoint {place} has no offsets/{epoch}",
            why="a real-time trigger, or asynchronous progress tracking, writes the offsets of an"
            " epoch after its rows; after a crash Spark would read other rows under this number."
            " Or this folder is an old copy, and Spark's checkpoint is in another file system",
            todo="use trigger(processingTime=...) or trigger(availableNow=True), without"
            " asyncProgressTrackingEnabled; set checkpointLocation with its scheme (hdfs:)",
        )


# The cache limits it to one warning for each trouble, instead of one an epoch.
@lru_cache
def _warn(sink: str, location: str | None, trouble: str) -> None:
    log.warning(
        error_text(
            _unreadable(sink, location, trouble),
            why="only its epoch numbers reveal a copied or restored checkpoint, and the sink may"
            " apply rows again",
            todo="set option checkpointLocation to a readable path, and option sinkId; sparkonce"
            " then notices every case",
        )
    )


def _unreadable(sink: str, location: str | None, trouble: str) -> str:
    place = storage.canonical_location(location) if location else "not given as an option"
    return f"Sink {sink!r}: Python on the driver can't read its checkpoint ({place}): {trouble}"


def is_whole(text: bytes, lines: int = 2) -> bool:
    """Whether Spark can read a file of its offsets or commits, which a crash may have torn.

    The file has a version, then lines of JSON or a dash.
    """
    version, *rest = text.decode(errors="replace").splitlines() or [""]
    if not re.fullmatch(r"v\d+", version) or len(rest) + 1 < lines:
        return False
    return all(_is_readable(line, named=version != "v1") for line in rest)


def _is_readable(line: str, *, named: bool) -> bool:
    """Whether a line is JSON or a dash; since version 2 the name of a source may precede it."""
    texts = [line, line.partition(":")[2]] if named else [line]
    return any(text == "-" or _parsed(text) is not None for text in texts)


def _parsed(text: str) -> Any:
    try:
        return json.loads(text)
    except (ValueError, RecursionError):
        return None


def local_path(location: str) -> Path | None:
    """The path of a checkpoint on this machine; None if the checkpoint is remote."""
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
