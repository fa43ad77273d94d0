"""What a driver finds in the store before it decides, and what may come of it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

from sparkonce.errors import StoreUnreachable
from sparkonce.exactly_once.ledger import Ledger
from sparkonce.protocol import Record


@dataclass(frozen=True)
class Standing:
    """What a driver found: its ledger, a rival for its checkpoint, and where it goes on from."""

    ledger: Ledger | None
    rival: Ledger | None
    claim: Record | None
    base: Ledger

    def unfinished(self) -> Ledger | None:
        """A ledger with an epoch that is decided and not applied."""
        for ledger in (self.ledger, self.rival):
            if ledger is not None and ledger.manifest is not None:
                return ledger
        return None

    def may_vanish(self) -> bool:
        """Whether an abort (see `_leave`) or gc may have taken one of its ledgers away."""
        found = [one for one in (self.ledger, self.rival, self.base) if one is not None]
        return any(one.untouched or one.forgotten for one in found)


class LostRace(Exception):
    """Another writer took the revision, or nobody can tell who did: it must be tried again.

    Args:
        unanswered: why nobody can tell.
    """

    def __init__(self, unanswered: StoreUnreachable | None = None) -> None:
        super().__init__()
        self.unanswered = unanswered


class Taken(NamedTuple):
    """What has become of an epoch: the ledger, and since when it may be applied, see `finish`."""

    ledger: Ledger
    since: float | None = None
