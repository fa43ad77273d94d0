"""What a driver finds in the store, before it decides."""

from __future__ import annotations

from dataclasses import dataclass

from sparkonce.ledger import Ledger
from sparkonce.protocol import Record


@dataclass(frozen=True)
class Standing:
    """What a driver found: its ledger, a rival for its checkpoint, and where it goes on from.

    Attributes:
        resumed: whether the last epoch of its ledger was decided, and had to be finished.
    """

    ledger: Ledger | None
    rival: Ledger | None
    claim: Record | None
    base: Ledger
    resumed: bool = False

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
