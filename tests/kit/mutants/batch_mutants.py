"""A core that writes batches with a fault: numbers, second writes, and what is left of them."""

from __future__ import annotations

from dataclasses import replace

from tests.kit.mutants.mutant import CHUNKS, ROWS, Mutant, nothing

from sparkonce.exactly_once.guards import Driver, Policy, Verdict, judge
from sparkonce.exactly_once.ledger import Ledger
from sparkonce.origin import Follows


def _wants_no_gap(ledger: Ledger, driver: Driver, policy: Policy) -> Verdict:
    return judge(ledger, replace(driver, follows=Follows.NEXT), policy)


BATCH_MUTANTS = [
    Mutant(
        "second write of a batch skipped",
        "a run that writes a batch twice is taken for a replay, and its second rows are dropped",
        "C20",
        patches={"sparkonce.exactly_once.commit.require_first_write": nothing},
    ),
    Mutant(
        "numbers of a batch must follow each other",
        "a batch that leaves a gap is refused, as if the sink had lost some",
        "C20",
        patches={"sparkonce.exactly_once.commit.judge": _wants_no_gap},
    ),
    Mutant(
        "a batch passes over what others have decided",
        "a batch decides before an epoch that another one has decided has taken effect",
        "C21",
        (CHUNKS, ROWS),
        patches={"sparkonce.exactly_once.commit.finish_others": nothing},
    ),
    Mutant(
        "record of a nameless batch stays",
        "each batch leaves a ledger, and ledgers pile up",
        "C21",
        patches={"sparkonce.exactly_once.ledger.Ledger.is_done_with": False},
    ),
]
