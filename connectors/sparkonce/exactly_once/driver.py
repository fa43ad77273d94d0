"""Who commits an epoch, and what its options allow."""

from __future__ import annotations

from dataclasses import dataclass

from sparkonce.exactly_once.bad_rows import NONE, MaxBadRows
from sparkonce.exactly_once.offsets import Offsets
from sparkonce.protocol import Follows, Origin


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
