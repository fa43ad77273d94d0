"""A core that writes batches with a fault: numbers, second writes, and what is left of them."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from tests.kit.mutants.mutant import CHUNKS, ROWS, Mutant, nothing
from tests.ledgers import by_part

from sparkonce.errors import RecordDamaged
from sparkonce.exactly_once.commit import Committer
from sparkonce.exactly_once.driver import Driver, Policy
from sparkonce.exactly_once.guards import Verdict, judge
from sparkonce.exactly_once.ledger import Ledger, from_record, kin_of
from sparkonce.exactly_once.neighbours import finish_others
from sparkonce.exactly_once.registers import Registers
from sparkonce.protocol import Follows, Record


def _wants_no_gap(ledger: Ledger, driver: Driver, policy: Policy) -> Verdict:
    return judge(ledger, replace(driver, follows=Follows.NEXT), policy)


def _nobody(*_: Any) -> list[Any]:
    return []


def _ends_alone(self: Committer, done: Ledger) -> None:
    if done.is_done_with:
        self.registers.drop({done.name: done.to_record()})


def _keeps_its_token(self: Ledger) -> Ledger:
    assert self.decision.manifest is not None
    return self.moved(**by_part(self, dropped=self.totals.dropped + self.decision.manifest.rows))


class _SeesTheLast:
    """Lists who decided at all, in place of who did so later."""

    def _decided_after(self: Any, name: str) -> list[str]:
        kin = kin_of(name)
        return [one for one in self.order if one != name and one.endswith(kin)]


def _none_if_damaged(record: Record, name: str) -> Ledger | None:
    try:
        return from_record(record, name)
    except RecordDamaged:
        return None


def _reads_all(registers: Registers, driver: Driver) -> None:
    for name in registers.store.names():
        registers.read(name)
    finish_others(registers, driver)


BATCH_MUTANTS = [
    Mutant(
        "second write of a batch skipped",
        "a run that writes a batch twice is taken for a replay, and its second rows are dropped",
        "C20",
        patches={"sparkonce.exactly_once.commit.require_first_write": nothing},
    ),
    Mutant(
        "another query's version skipped",
        "a version that another query wrote under the name is taken for a repetition",
        "C20",
        patches={"sparkonce.exactly_once.guards._taken_by_another": nothing},
    ),
    Mutant(
        "sessions that take turns are drivers of one checkpoint",
        "a session whose name another one has used since is refused as superseded",
        "C20",
        patches={"sparkonce.exactly_once.guards._may_take_turns": nothing},
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
    Mutant(
        "a batch reads each ledger of its target",
        "it looks for unfinished ones by itself, and takes long beside many that are done",
        "C21",
        patches={"sparkonce.exactly_once.commit.finish_others": _reads_all},
    ),
    Mutant(
        "late decision undoes what came later",
        "whoever finishes a decision asks nobody what others have decided since",
        "C22",
        (CHUNKS, ROWS),
        patches={"sparkonce.exactly_once.neighbours.overtakers": _nobody},
    ),
    Mutant(
        "an ended batch is forgotten while an older one waits",
        "the record of a batch goes, and the one that it overtook is finished over it",
        "C22",
        (CHUNKS, ROWS),
        patches={"sparkonce.exactly_once.commit.Committer._end": _ends_alone},
    ),
    Mutant(
        "what is dropped can still be applied",
        "the ledger holds a decision on, that was given up",
        "C22",
        (CHUNKS, ROWS),
        patches={"sparkonce.exactly_once.ledger.Ledger.given_up": _keeps_its_token},
    ),
    Mutant(
        "each batch counts as overtaken",
        "a decision is refused because of others that came before it",
        "C22",
        (CHUNKS, ROWS),
        store=_SeesTheLast,
    ),
    Mutant(
        "a ledger that can't be read counts as none",
        "a sink whose record is damaged begins anew",
        "C23",
        patches={"sparkonce.exactly_once.registers.from_record": _none_if_damaged},
    ),
]
