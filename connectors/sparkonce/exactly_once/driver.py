"""Who commits an epoch, from which offsets, and what its options allow."""

from __future__ import annotations

import base64
import hashlib
import zlib
from dataclasses import dataclass

from sparkonce.exactly_once.bad_rows import NONE, MaxBadRows
from sparkonce.protocol import Follows, Origin

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


@dataclass(frozen=True)
class Policy:
    """What to do when sink and checkpoint disagree; each override is good for one case only.

    Attributes:
        repeatable: see `Plan`.
        on_new_checkpoint: ``continue:<old query id>``, ``fail``, or None for the default: a new
            checkpoint at the path of the old one goes on if both plans are repeatable.
        on_lost_commit: ``continue@<epoch>``, or None.
        max_bad_rows: how many rows of an epoch may go into dead letters.
        own_keys: whether no other writer has keys of these rows.
    """

    repeatable: bool
    on_new_checkpoint: str | None = None
    on_lost_commit: str | None = None
    max_bad_rows: MaxBadRows = NONE
    own_keys: bool = False


@dataclass(frozen=True)
class Driver(Origin):
    """Who commits what, and into which ledger.

    Attributes:
        name: of the ledger.
        checkpoint: where the checkpoint lies, None if not known.
        offsets: what ``offsets/<epoch>`` holds, None if it can't be read.
        offsets_before: the same of the epoch before.
    """

    name: str
    target: str
    checkpoint: str | None = None
    offsets: Offsets | None = None
    offsets_before: Offsets | None = None

    @property
    def once(self) -> bool:
        """Whether it writes a batch without a name."""
        return self.follows is Follows.ONCE

    def is_at(self, place: str | None) -> bool:
        """Whether its checkpoint lies at a place, as a ledger has it."""
        return place is not None and place == self.checkpoint
