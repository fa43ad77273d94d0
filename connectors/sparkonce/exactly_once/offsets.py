"""The offsets of an epoch, as Spark writes them down before it computes its rows."""

from __future__ import annotations

import base64
import hashlib
import zlib
from dataclasses import dataclass

LONGEST = 1024 * 1024
"""Bytes of packed offsets that are kept: those of some fifty thousand partitions of Kafka."""


@dataclass(frozen=True)
class Offsets:
    """What ``offsets/N`` holds: the ends of the sources' ranges in one epoch."""

    text: bytes

    @property
    def digest(self) -> str:
        """By which two are compared."""
        return hashlib.sha256(self.text).hexdigest()

    @property
    def packed(self) -> str | None:
        """In the form in which they are kept; None if that is too long."""
        packed = base64.b64encode(zlib.compress(self.text)).decode()
        return packed if len(packed) <= LONGEST else None

    @classmethod
    def unpacked(cls, packed: str) -> Offsets:
        """From the form in which they are kept."""
        return cls(zlib.decompress(base64.b64decode(packed)))

    @property
    def lines(self) -> list[str]:
        """The version, the metadata of the epoch, and a line for each source."""
        return self.text.decode().splitlines()
