"""A core with a fault in what a ledger remembers of who had the sink before."""

from __future__ import annotations

from tests.kit.mutants.mutant import CHUNKS, ROWS, Mutant
from tests.ledgers import with_fields

from sparkonce.exactly_once.driver import Driver, Policy
from sparkonce.exactly_once.guards import _after, _allow_replacing
from sparkonce.exactly_once.ledger import Ledger
from sparkonce.exactly_once.ownership import Ownership
from sparkonce.exactly_once.registers import Standing

CORE = "sparkonce.exactly_once"
SUCCEEDED_BY = Ledger.succeeded_by


def _lasts(_: Standing) -> bool:
    return False


def _inherits_nothing(rival: Ledger, own: Ledger) -> Ledger:
    return with_fields(_after(rival, own), inherits=own.owner.inherits)


def _inherits_no_tombstone(self: Ledger, query_id: str) -> Ledger:
    return with_fields(SUCCEEDED_BY(self, query_id), inherits=self.owner.inherits)


def _heeds_tombstones(old: Ledger, driver: Driver, policy: Policy, *, same_path: bool) -> None:
    _allow_replacing(with_fields(old, forgotten=False), driver, policy, same_path=same_path)


def _as_it_is(self: Ownership, **_: bool) -> Ownership:
    return self


def _own_alone(self: Standing) -> Ledger | None:
    return (
        self.ledger
        if self.ledger is not None and self.ledger.decision.manifest is not None
        else None
    )


OWNER_MUTANTS = [
    Mutant(
        "ledger left in mid-commit taken for lost",
        "a commit whose ledger an abort takes away, with nothing decided, says that it was lost",
        "A02",
        patches={f"{CORE}.registers.Standing.may_vanish": _lasts},
    ),
    Mutant(
        "a rival's decisions are not inherited",
        "an abort takes away the ledger of a query that took a path over, and with it who had that",
        "I01",
        patches={f"{CORE}.guards._after": _inherits_nothing},
    ),
    Mutant(
        "a tombstone is not inherited",
        "an abort takes away the ledger that says which query was forgotten before",
        "I02",
        patches={f"{CORE}.ledger.Ledger.succeeded_by": _inherits_no_tombstone},
    ),
    Mutant(
        "a tombstone owns its sink",
        "after a forget a query may take the sink only where its options name the one before",
        "I01",
        patches={f"{CORE}.guards._allow_replacing": _heeds_tombstones},
    ),
    Mutant(
        "a query that comes back is retired by itself",
        "a query that was replaced before anything was decided, and has the sink again, is refused",
        "I01",
        patches={f"{CORE}.ownership.Ownership.resumed": _as_it_is},
    ),
    Mutant(
        "rival replaced before its epoch is finished",
        "a query begins while what the one before it has decided is not applied",
        "C06",
        (CHUNKS, ROWS),
        patches={f"{CORE}.registers.Standing.unfinished": _own_alone},
    ),
]
