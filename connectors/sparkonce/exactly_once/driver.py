"""The driver of an epoch, its offsets, and the policy that its options set."""

from __future__ import annotations

import base64
import hashlib
import zlib
from dataclasses import dataclass

from sparkonce.exactly_once.bad_rows import NONE, MaxBadRows
from sparkonce.protocol import Follows, Origin

LONGEST = 1024 * 1024
"""Most bytes of packed offsets that a store keeps: about fifty thousand partitions of Kafka."""


@dataclass(frozen=True)
class Offsets:
    """The content of ``offsets/N``: the ends of the sources' ranges in one epoch."""

    text: bytes

    @property
    def digest(self) -> str:
        """A digest, for comparison."""
        return hashlib.sha256(self.text).hexdigest()

    @property
    def packed(self) -> str | None:
        """The compressed form that the store keeps; None if it is too long."""
        packed = base64.b64encode(zlib.compress(self.text)).decode()
        return packed if len(packed) <= LONGEST else None

    @classmethod
    def unpacked(cls, packed: str) -> Offsets:
        """The offsets from their compressed form."""
        return cls(zlib.decompress(base64.b64decode(packed)))

    @property
    def lines(self) -> list[str]:
        """The version, the metadata of the epoch, and a line for each source."""
        return self.text.decode().splitlines()


@dataclass(frozen=True)
class Policy:
    """What to do when sink and checkpoint disagree; each override covers one case only.

    Attributes:
        repeatable: see `Plan`.
        on_new_checkpoint: ``continue:<old query id>``, ``fail``, or None for the default: a new
            checkpoint at the path of the old one continues if both plans are repeatable.
        on_lost_commit: ``continue@<first>-<last>`` of the lost epochs, ``continue@<epoch>`` for
            rows that nodes of a cluster lost, or None.
        max_bad_rows: how many rows of an epoch may become dead letters.
        own_keys: whether no other writer has keys of these rows.
    """

    repeatable: bool
    on_new_checkpoint: str | None = None
    on_lost_commit: str | None = None
    max_bad_rows: MaxBadRows = NONE
    own_keys: bool = False


@dataclass(frozen=True)
class Driver(Origin):
    """The writer of an epoch, and its ledger.

    Attributes:
        name: of the ledger.
        checkpoint: the location of the checkpoint; None if unknown.
        offsets: the content of ``offsets/<epoch>``; None if unreadable.
        offsets_before: the same for the epoch before.
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
        """Whether its checkpoint is at the location that a ledger has."""
        return place is not None and place == self.checkpoint
