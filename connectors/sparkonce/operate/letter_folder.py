"""Dead letters in a directory, as files of JSON lines that a Spark stream reads."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator, Sequence
from hashlib import sha256
from pathlib import Path

from sparkonce.errors import SparkonceError
from sparkonce.letterbox import Letterbox, StoredLetter

AT_ONCE = 500
"""Letters of one file."""


class LetterFolder:
    """A directory that letters are moved into; it knows those that it has, or had once.

    Args:
        path: of the directory; it is made.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        path.mkdir(parents=True, exist_ok=True)
        names = self._names()
        self._next = max((int(name.stem) for name in names), default=0) + 1
        self._known = {_digest(json.loads(line)) for name in names for line in _lines(name)}

    def take(self, box: Letterbox, sink: str | None, most: int) -> Iterator[int]:
        """Move letters here.

        Args:
            box: where they are.
            sink: whose; None for those of all.
            most: how many; others may come meanwhile.

        Yields:
            How many were moved, file by file.

        Raises:
            SparkonceError: another command moves letters into the same directory.
        """
        while most > 0 and (found := box.read(sink, min(AT_ONCE, most))):
            # A letter that is here came back: a command died before it deleted it, or a driver
            # did after it wrote it.
            new = [one for one in found if _digest(one.to_json()) not in self._known]
            if new:
                self._write(new)
            box.drop([one.id for one in found])
            most -= len(found)
            yield len(new)

    def _write(self, letters: Sequence[StoredLetter]) -> None:
        told = [one.to_json() for one in letters]
        # A file source passes over names that begin with a dot.
        draft = self.path / f".{os.getpid()}"
        with draft.open("w") as file:
            file.writelines(json.dumps(one) + "\n" for one in told)
            file.flush()
            os.fsync(file.fileno())
        try:
            self._publish(draft)
        finally:
            draft.unlink()
        self._known.update(map(_digest, told))

    def _publish(self, draft: Path) -> None:
        """Give a file the next number, which only one can have who knows of all before it."""
        try:
            os.link(draft, self.path / f"{self._next:06}.json")
        except FileExistsError:
            raise SparkonceError(
                f"Another command moves letters into {self.path}",
                why="it has written a file since this one began",
                todo="start this command again: it moves what is left",
            ) from None
        self._next += 1
        directory = os.open(self.path, os.O_RDONLY)
        try:
            os.fsync(directory)
        finally:
            os.close(directory)

    def _names(self) -> list[Path]:
        return [path for path in self.path.glob("*.json") if path.stem.isdigit()]


def _lines(path: Path) -> list[str]:
    return path.read_text().splitlines()


def _digest(letter: dict[str, object]) -> bytes:
    """What tells letters apart.

    Ids begin anew in a table that was made anew; time and reason may differ where a letter is
    written again.
    """
    parts = [letter[name] for name in ("id", "sink", "epoch", "key", "row")]
    return sha256(json.dumps(parts).encode()).digest()
