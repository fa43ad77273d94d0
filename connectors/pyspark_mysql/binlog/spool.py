"""Bytes that wait for the end of their transaction, in memory, and many of them on disk."""

from __future__ import annotations

import tempfile
from contextlib import suppress
from typing import IO, TypeAlias

from sparkonce.errors import StoreRefused

IN_MEMORY = 32 * 1024 * 1024
"""Bytes beyond which they go to a file."""

Slot: TypeAlias = tuple[int, int]
"""Where in the file bytes begin, and how many they are."""


class Spool:
    """Keeps bytes for a time."""

    def __init__(self) -> None:
        self._file: IO[bytes] | None = None
        self._size = 0

    def put(self, data: bytes) -> Slot | None:
        """Keep bytes; None where there is room in memory, so that their owner may keep them.

        Raises:
            StoreRefused: the disk has no room for them.
        """
        self._size += len(data)
        if self._size <= IN_MEMORY:
            return None
        try:
            self._file = self._file or tempfile.TemporaryFile()  # noqa: SIM115 (see clear)
            at = self._file.seek(0, 2)
            self._file.write(data)
            self._file.flush()
        except OSError as error:
            raise StoreRefused(
                f"Rows of a transaction can't be kept in {tempfile.gettempdir()}: {error}",
                why="they are given when the transaction's end is read, and wait until then",
                todo="make room there, or name another folder by the environment's TMPDIR",
            ) from None
        return at, len(data)

    def get(self, slot: Slot) -> bytes:
        """The bytes of a slot."""
        if self._file is None:
            raise ValueError("cleared")
        self._file.seek(slot[0])
        return self._file.read(slot[1])

    def clear(self) -> None:
        """Forget all."""
        self._size = 0
        if self._file:
            with suppress(OSError):
                self._file.close()
            self._file = None
