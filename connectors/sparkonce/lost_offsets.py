"""Puts the offsets of a decided epoch back into a checkpoint that has lost them.

Spark writes ``offsets/N`` before it computes epoch N, and does not sync it to disk. A host that
crashes may lose the file; Spark then plans epoch N anew and reads other rows under this number,
which the sink refuses, since it has decided epoch N. The ledger keeps what the file held.
"""

from __future__ import annotations

import json
import os
import time
from pathlib import Path

from sparkonce import checkpoint
from sparkonce.checkpoint import Offsets
from sparkonce.errors import SparkonceError
from sparkonce.ledger import Ledger


def decided(name: str, ledger: Ledger | None) -> Offsets:
    """The offsets of the last decided epoch of a sink.

    Raises:
        SparkonceError: its ledger does not have them.
    """
    if ledger is None or ledger.offsets_text is None:
        raise SparkonceError(
            f"The ledger of sink {name!r} keeps no offsets",
            why="the sink has decided nothing yet; or its checkpoint could not be read by Python on"
            " the driver; or the offsets are too long",
            todo="see `sparkonce status`; offsets are kept where the checkpoint has a local path,"
            f" and up to {checkpoint.LONGEST:,} bytes when compressed",
        )
    return Offsets.unpacked(ledger.offsets_text)


def restore(location: str, name: str, ledger: Ledger | None) -> Path | None:
    """Write ``offsets/N`` as the ledger has it. What is there is kept beside the offsets.

    Args:
        location: of the checkpoint, whose query must not run.
        name: of the sink.
        ledger: of the sink.

    Returns:
        Where the file lies that was there; None if there was none.

    Raises:
        SparkonceError: the checkpoint is not that of the sink's query, or has gone on.
    """
    offsets = decided(name, ledger)
    assert ledger is not None  # noqa: S101 (decided() has looked)
    home = checkpoint.local(location)
    if home is None or checkpoint.query_id(location) != ledger.query_id:
        raise SparkonceError(
            f"{location} is not the checkpoint of query {ledger.query_id}",
            why="its file `metadata` names another query, or can't be read from here",
            todo=f"name the folder of the checkpoint, which was {ledger.checkpoint}",
        )
    _require_at(home, ledger.epoch)
    _require_files_kept(home, offsets, ledger)
    return _replace(home, ledger.epoch, offsets)


def _require_at(home: Path, epoch: int) -> None:
    """Refuse a checkpoint in which Spark has gone on from the epoch."""
    later = [
        f"{log}/{number}"
        for log, first in (("commits", epoch), ("offsets", epoch + 1))
        for number in _numbers(home / log)
        if number >= first
    ]
    if later:
        raise SparkonceError(
            f"Checkpoint {home} has {', '.join(later)}",
            why=f"Spark will not read offsets/{epoch} again, and has gone on from it",
            todo="go on with the checkpoint that wrote last; see the docs on checkpoints that"
            " diverged",
        )


def _require_files_kept(home: Path, offsets: Offsets, ledger: Ledger) -> None:
    """Refuse where a file source has noted other files under its own number since the decision.

    Its offset is just a number of its own log, ``sources/<n>``.
    """
    lines = offsets.text.decode().splitlines()[2:]
    for source, line in enumerate(lines):
        offset = json.loads(line) if line.startswith("{") else {}
        number = offset.get("logOffset")
        if number is not None and not _is_kept(home / "sources" / str(source), number, ledger):
            raise SparkonceError(
                f"The file source's own log sources/{source}/{number} was lost or written anew"
                f" after epoch {ledger.epoch} was decided",
                why="it says which files the epoch has read, and may name others now",
                todo="compare the files that it names with the rows of that epoch by hand; or"
                " start a new checkpoint, into an emptied target where rows are added",
            )


def _is_kept(log: Path, number: int, ledger: Ledger) -> bool:
    entries = [entry for entry in log.glob("[0-9]*") if int(entry.stem) <= number]
    newest = max((int(entry.stem) for entry in entries), default=-1)
    return newest == number and all(e.stat().st_mtime <= ledger.decided_at for e in entries)


def _numbers(log: Path) -> list[int]:
    return sorted(int(entry.name) for entry in log.glob("[0-9]*") if entry.name.isdigit())


def _replace(home: Path, epoch: int, offsets: Offsets) -> Path | None:
    path, kept = home / "offsets" / str(epoch), None
    if path.exists():
        kept = home / f"offsets-{epoch}-replaced-{time.time():.0f}"
        os.replace(path, kept)
    # Hadoop's checksum of the file that was there.
    (path.parent / f".{epoch}.crc").unlink(missing_ok=True)
    draft = home / f".offsets-{epoch}"
    with draft.open("wb") as file:
        file.write(offsets.text)
        file.flush()
        os.fsync(file.fileno())
    os.replace(draft, path)
    return kept
