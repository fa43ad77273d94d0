"""Dead letters in a directory, as files of JSON lines that a Spark stream reads."""

from __future__ import annotations

import json
import os
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from hashlib import sha256
from pathlib import Path
from typing import NamedTuple
from uuid import uuid4

from sparkonce.errors import SparkonceError
from sparkonce.letterbox import Letterbox

AT_ONCE, BYTES_AT_ONCE = 500, 64 * 1024 * 1024
"""Letters, and bytes of rows, that are read at once and make one file."""

FIRST = 10
"""Letters that are read before it is known how large they are."""


class Moved(NamedTuple):
    """How many letters were moved, and how many were in the directory already."""

    new: int
    known: int


class LetterFolder:
    """A directory that the letters of one sink are moved into, while this command has its lock.

    Args:
        path: of the directory.

    Attributes:
        sink: whose letters it has; None if there are none.
    """

    def __init__(self, path: Path) -> None:
        self.path, self.sink = path, None
        self._known: set[bytes] = set()
        for line in self._lines():
            letter = json.loads(line)
            self.sink = letter["sink"]
            self._known.add(_digest(letter))

    def take(self, box: Letterbox, sink: str, most: int) -> Iterator[Moved]:
        """Move letters here.

        Args:
            box: where they are.
            sink: whose.
            most: how many; others may come meanwhile.

        Raises:
            SparkonceError: the directory has letters of another sink.
        """
        if self.sink not in (None, sink):
            raise SparkonceError(
                f"{self.path} has letters of sink {self.sink}",
                why="a stream that reads it would write those of both into one target",
                todo=f"take another directory for {sink}",
            )
        some = FIRST
        while most > 0 and (found := box.read(sink, min(some, most))):
            # A letter that is here came back: a command died before it deleted it, or a driver
            # did after it wrote it.
            told = {_digest(letter): letter for letter in (one.to_json() for one in found)}
            new = [letter for digest, letter in told.items() if digest not in self._known]
            if new:
                self._write(new)
            self._known.update(told)
            box.drop([one.id for one in found])
            most -= len(found)
            yield Moved(len(new), len(found) - len(new))
            largest = max(len(one.row) for one in found)
            some = max(1, min(AT_ONCE, BYTES_AT_ONCE // (largest + 1)))

    def _write(self, letters: Sequence[dict[str, object]]) -> None:
        """Write a file, which is there whole or not at all; its name never comes again."""
        draft = self.path / f".{uuid4().hex}"
        with draft.open("x") as file:
            for one in letters:
                file.write(f"{json.dumps(one)}\n")
            file.flush()
            os.fsync(file.fileno())
        draft.rename(self.path / f"letters-{time.time_ns()}-{uuid4().hex[:8]}.json")
        for directory in (self.path, self.path.parent):
            _sync(directory)

    def _lines(self) -> Iterator[str]:
        for path in self.path.glob("letters-*.json"):
            with path.open() as file:
                yield from file


@contextmanager
def letter_folder(path: Path) -> Iterator[LetterFolder]:
    """A directory for letters; it is made.

    Raises:
        SparkonceError: another command moves letters into it, or it can't be written.
    """
    import fcntl  # which Windows has not

    try:
        path.mkdir(parents=True, exist_ok=True)
        with (path / ".lock").open("w") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            for draft in path.glob(".[0-9a-f]*"):  # of a command that died
                draft.unlink()
            yield LetterFolder(path)
    except BlockingIOError:
        raise SparkonceError(
            f"Another command moves letters into {path}",
            why="it has the lock of the directory",
            todo="wait for its end",
        ) from None
    except OSError as error:
        raise SparkonceError(
            f"Letters can't be moved into {path}: {error.strerror or error}",
            why="a letter is deleted only when a file has it",
            todo="mend that, or take another directory; then start the command again",
        ) from None


def _sync(directory: Path) -> None:
    opened = os.open(directory, os.O_RDONLY)
    try:
        os.fsync(opened)
    finally:
        os.close(opened)


def _digest(letter: dict[str, object]) -> bytes:
    """What tells letters apart.

    Ids begin anew in a table that was made anew; time and reason may differ where a letter is
    written again.
    """
    parts = [letter[name] for name in ("id", "sink", "epoch", "key", "row")]
    return sha256(json.dumps(parts).encode()).digest()
