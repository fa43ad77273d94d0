"""Restores the offsets of a decided epoch in a checkpoint that has lost them.

Spark writes ``offsets/N`` before it computes epoch N, and does not sync it to disk. A host that
crashes may lose the file. Spark then plans epoch N again and reads other rows under this number.
The sink rejects them, since it has decided epoch N. The store keeps the content of the file; see
`kept_offsets`.
"""

from __future__ import annotations

import json
import os
import time
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

from sparkonce.errors import SparkonceError
from sparkonce.exactly_once.driver import LONGEST, Offsets
from sparkonce.exactly_once.ledger import Ledger
from sparkonce.spark import checkpoint
from sparkonce.spark.checkpoint import Checkpoint
from sparkonce.spark.storage import Unreadable


def decided(name: str, ledger: Ledger | None, kept: Mapping[int, Offsets]) -> Offsets:
    """The offsets of the last decided epoch of a sink.

    Raises:
        SparkonceError: the store does not keep them.
    """
    if ledger is None or ledger.decision.epoch not in kept:
        raise SparkonceError(
            f"The store keeps no offsets of sink {name!r}",
            why="the sink has decided nothing yet, or it is a batch, or Python on the driver could"
            " not read its checkpoint, or the offsets are too long",
            todo="see `sparkonce status`; the store keeps offsets if Python on the driver can read"
            f" the checkpoint, and up to {LONGEST:,} bytes when compressed",
        )
    return kept[ledger.decision.epoch]


def restore(
    location: str, name: str, ledger: Ledger | None, kept: Mapping[int, Offsets]
) -> list[Path]:
    """Write the decided ``offsets/N``, and that of the epoch before.

    Spark then replays epoch N, which the sink skips, and continues from there. Files that a crash
    has torn are moved aside, since Spark does not start with them. Spark does not need other lost
    epochs for that; the state that a stateful query kept of them is not restored. The query of the
    checkpoint must not run.

    Returns:
        The new paths of the replaced files, beside the folders of offsets and commits.

    Raises:
        SparkonceError: the checkpoint belongs to another query, or has continued past the epoch.
    """
    offsets = decided(name, ledger, kept)
    assert ledger is not None  # noqa: S101 (decided() has checked)
    home, epoch, query = _local(location, ledger), ledger.decision.epoch, ledger.owner.query_id
    if _owner(location) != query:
        raise SparkonceError(
            f"{location} is not the checkpoint of query {query}",
            why="its file `metadata` names another query, is torn or unreadable from here",
            todo=f"name the folder of the checkpoint, which was {ledger.owner.checkpoint}; if a"
            f' crash has torn the file, write {{"id":"{query}"}} into it',
        )
    # All checks precede the first change: a refusal leaves the checkpoint unchanged.
    torn = _torn(home, epoch, offsets)
    _require_not_gone_on(home, epoch, torn)
    _require_start(home, epoch, kept, torn)
    _require_files_kept(home, offsets, ledger)
    # Kept offsets overwrite the files that exist; the other torn files are in the way.
    mended = {home / "offsets" / str(number) for number in kept}
    try:
        aside = [old for path in torn if path not in mended for old in _put_aside(path)]
        return aside + _write(home, epoch, kept, torn)
    except OSError as error:
        raise SparkonceError(
            f"Offsets can't be written into {home}: {error.strerror}",
            why="the folder of the checkpoint can't be changed from here",
            todo="run this as the user of Spark's driver; you can safely repeat it",
        ) from None


def _local(location: str, ledger: Ledger) -> Path:
    home, epoch = checkpoint.local_path(location), ledger.decision.epoch
    if home is None:
        raise SparkonceError(
            f"Offsets can't be restored in {location}",
            why="only local folders allow a safe change",
            todo=f"write the output of `sparkonce offsets URL {ledger.name}` into its offsets/"
            f"{epoch} by hand, and remove commits/{epoch}; or copy the checkpoint to a local"
            " folder, restore it there, and copy it back. Its query must not run",
        )
    return home


def _owner(location: str) -> str | None:
    try:
        return Checkpoint(location).query_id()
    except Unreadable:
        return None


def _torn(home: Path, epoch: int, offsets: Offsets) -> list[Path]:
    """The files of the epoch before, and of later ones, that Spark can't read."""
    paths = [
        home / log / str(number)
        for log in ("offsets", "commits")
        for number in _numbers(home / log)
        if number >= epoch - 1
    ]
    # Only the number of its lines shows that a crash cut a file at the end of a line.
    least = {"offsets": len(offsets.lines), "commits": 2}
    return [p for p in paths if not checkpoint.is_whole(p.read_bytes(), least[p.parent.name])]


def _require_not_gone_on(home: Path, epoch: int, torn: Sequence[Path]) -> None:
    """Reject a checkpoint in which Spark has continued from the epoch.

    A commit without its offsets does not count: the crash lost part of both. Spark does not start
    from offsets of the next epoch without them, either.
    """
    planned = home / "offsets" / str(epoch)
    lost = planned in torn or not planned.exists()
    first = epoch + 1 if torn or lost else epoch
    later = [home / "commits" / str(n) for n in _numbers(home / "commits") if n >= first]
    later += [home / "offsets" / str(n) for n in _numbers(home / "offsets") if n > epoch + lost]
    whole = [str(path.relative_to(home)) for path in later if path not in torn]
    if whole:
        raise SparkonceError(
            f"Checkpoint {home} has {', '.join(whole)}",
            why=f"Spark has continued past epoch {epoch}, and will not read offsets/{epoch} again",
            todo="continue with the checkpoint that wrote last",
        )


def _require_start(
    home: Path, epoch: int, kept: Mapping[int, Offsets], torn: Sequence[Path]
) -> None:
    """Reject a checkpoint without the epoch before, from which Spark continues."""
    before = home / "offsets" / str(epoch - 1)
    if epoch > 0 and epoch - 1 not in kept and (before in torn or not before.exists()):
        raise SparkonceError(
            f"Checkpoint {home} lacks offsets/{epoch - 1}, too, which the store does not keep",
            why="Spark reads from these offsets; the query does not start without them",
            todo="restore that file from a backup, or start a new checkpoint, into an emptied"
            " target if the query adds rows",
        )


def _require_files_kept(home: Path, offsets: Offsets, ledger: Ledger) -> None:
    """Reject a file source that has logged other files under its number since the decision.

    The offset of a file source is just a number in its own log, ``sources/<n>``.
    """
    for source, text in _sources(offsets):
        number = json.loads(text).get("logOffset") if text.startswith("{") else None
        log = home / "sources" / source
        wrong = None if number is None else _what_is_wrong(log, number, ledger)
        if wrong:
            raise SparkonceError(
                f"The file source's own log sources/{source}/{wrong}",
                why="it says which files the epoch has read, and may name others now",
                todo="compare the files that it names with the rows of that epoch by hand; or"
                " start a new checkpoint, into an emptied target if the query adds rows",
            )


def _sources(offsets: Offsets) -> Iterator[tuple[str, str]]:
    """The folder and the offset of each source: by place in version 1, by name in version 2."""
    version, _, *lines = offsets.lines
    if version not in ("v1", "v2"):
        raise SparkonceError(
            f"Offsets have the unknown version {version!r}",
            why="this release may misread them",
            todo="upgrade sparkonce",
        )
    for place, line in enumerate(lines):
        name, _, text = line.partition(":")
        yield (str(place), line) if version == "v1" else (name, text)


def _what_is_wrong(log: Path, number: int, ledger: Ledger) -> str | None:
    """The entry of a file source's log that has changed; None if none has."""
    entries = [entry for entry in log.glob("[0-9]*") if int(entry.stem) <= number]
    newest = max((int(entry.stem) for entry in entries), default=-1)
    if newest < number or any(e.stat().st_mtime > ledger.decision.decided_at for e in entries):
        return f"{number} was lost or rewritten after the decision of epoch {ledger.decision.epoch}"
    torn = [entry.name for entry in entries if not checkpoint.is_whole(entry.read_bytes())]
    return f"{torn[0]} is torn" if torn else None


def _numbers(log: Path) -> list[int]:
    return sorted(int(entry.name) for entry in log.glob("[0-9]*") if entry.name.isdigit())


def _write(
    home: Path, newest: int, kept_offsets: Mapping[int, Offsets], torn: Sequence[Path]
) -> list[Path]:
    kept = []
    for epoch, offsets in sorted(kept_offsets.items()):
        path = home / "offsets" / str(epoch)
        whole = path.exists() and path not in torn
        if whole and (epoch != newest or path.read_bytes() == offsets.text):
            continue
        # With commits/N Spark would not replay N; with offsets/N+1 it reads both anyway.
        if epoch == newest and not (path.parent / str(newest + 1)).exists():
            kept += _put_aside(home / "commits" / str(epoch))
        kept += _put_aside(path)
        # Written under another name, then renamed: a crash now must not leave a torn file again.
        draft = home / f".offsets-{epoch}"
        with draft.open("wb") as file:
            file.write(offsets.text)
            file.flush()
            os.fsync(file.fileno())
        os.replace(draft, path)
    # The names must be on disk, too: a crash of the host lost the files before.
    sync_directory(home / "offsets")
    return kept


def sync_directory(path: Path) -> None:
    """Sync the names in a directory to disk."""
    opened = os.open(path, os.O_RDONLY)
    try:
        os.fsync(opened)
    finally:
        os.close(opened)


def _put_aside(path: Path) -> list[Path]:
    """Move a file out of Spark's way, and delete Hadoop's checksum of it."""
    # Hadoop would compare an old checksum with the new file of that name, and fail.
    (path.parent / f".{path.name}.crc").unlink(missing_ok=True)
    if not path.exists():
        return []
    kept = path.parent.parent / f"{path.parent.name}-{path.name}-replaced-{time.time():.0f}"
    os.replace(path, kept)
    return [kept]
