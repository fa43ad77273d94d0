"""A core whose guards have a fault: what it refuses, and what it remembers."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from tests.kit.mutants.mutant import Mutant, nothing
from tests.ledgers import with_fields

from sparkonce.errors import CheckpointBehindSink, SinkBehindCheckpoint
from sparkonce.exactly_once.commit import Committer, Standing
from sparkonce.exactly_once.driver import Driver, Policy
from sparkonce.exactly_once.guards import Verdict, identify, judge
from sparkonce.exactly_once.ledger import Ledger
from sparkonce.exactly_once.registers import DecidedEpoch, Registers, holder_of
from sparkonce.protocol import Manifest, Record

JUDGE, IDENTIFY = "sparkonce.exactly_once.commit.judge", "sparkonce.exactly_once.commit.identify"
LEDGER = "sparkonce.exactly_once.ledger.Ledger"
DECIDED, ESTABLISH = Ledger.decided, Committer._establish
TAKE, RIVAL = Committer._take, Registers.rival


def _applies_replays(ledger: Ledger, driver: Driver, policy: Policy, **_: bool) -> Verdict:
    judge(ledger, driver, policy)
    return Verdict.NEXT


def _jumps(ledger: Ledger, driver: Driver, policy: Policy, **_: bool) -> Verdict:
    try:
        return judge(ledger, driver, policy)
    except SinkBehindCheckpoint:
        return Verdict.NEXT


def _takes_empty_for_new(ledger: Ledger, driver: Driver, policy: Policy, **_: bool) -> Verdict:
    return Verdict.NEXT if ledger.decision.epoch < 0 else judge(ledger, driver, policy)


def _goes_back(ledger: Ledger, driver: Driver, policy: Policy, **_: bool) -> Verdict:
    try:
        return judge(ledger, driver, policy)
    except CheckpointBehindSink:
        return Verdict.NEXT


def _skips_the_past(ledger: Ledger, driver: Driver, policy: Policy, **_: bool) -> Verdict:
    try:
        return judge(ledger, driver, policy)
    except CheckpointBehindSink:
        return Verdict.REPLAY


def _epochs_first(
    ledger: Ledger | None, rival: Ledger | None, driver: Driver, policy: Policy
) -> Ledger:
    if ledger is not None and driver.epoch <= ledger.decision.epoch:
        return ledger
    return identify(ledger, rival, driver, policy)


def _adopts(ledger: Ledger | None, rival: Ledger | None, driver: Driver, policy: Policy) -> Ledger:
    if ledger is not None and ledger.owner.query_id != driver.query_id:
        return with_fields(ledger, query_id=driver.query_id)
    return identify(ledger, rival, driver, policy)


def _forgives(
    ledger: Ledger | None, rival: Ledger | None, driver: Driver, policy: Policy
) -> Ledger:
    known = with_fields(ledger, retired=()) if ledger is not None else None
    base = identify(
        known, with_fields(rival, retired=()) if rival is not None else None, driver, policy
    )
    return ledger if ledger is not None and base is known else base


def _leaves_the_rival(self: Committer, standing: Standing, driver: Driver) -> Ledger:
    return ESTABLISH(self, replace(standing, rival=None), driver)


def _trusts_a_claim_in_its_name(
    self: Registers, ledger: Ledger | None, driver: Driver
) -> tuple[Record | None, Ledger | None]:
    claim, rival = RIVAL(self, ledger, driver)
    own = claim is not None and holder_of(claim, "claim") == driver.name
    return None if own else claim, rival


def _retires_all_the_same(self: Ledger, query_id: str) -> bool:
    return query_id in self.owner.retired


def _claims_nothing(*_: Any) -> tuple[None, None]:
    return None, None


def _forgets_runs(self: Ledger, *decision: Any, **more: Any) -> Ledger:
    return with_fields(DECIDED(self, *decision, **more), past_runs=())


def _has_no_past(self: Ledger) -> bool:
    return self.decision.epoch < 0 and not self.owner.retired


def _counts_its_own(self: Ledger) -> bool:
    return not self.totals.epochs


def _supersedes_by_replaying(self: Ledger, run_id: str) -> Ledger:
    return self.moved(owner=self.owner.decided_by(run_id))


def _forgets_replays(self: Ledger, _: str) -> Ledger:
    return self.moved()


def _replaces_whatever_has_its_name(
    ledger: Ledger | None, rival: Ledger | None, driver: Driver, policy: Policy
) -> Ledger:
    if ledger is not None and policy.repeatable:
        ledger = with_fields(ledger, checkpoint=driver.checkpoint, repeatable=True)
    return identify(ledger, rival, driver, policy)


def _as_the_last(
    self: Ledger, manifest: Manifest, *decision: Any, repeatable: bool, **more: Any
) -> Ledger:
    return with_fields(DECIDED(self, manifest, *decision, **more), repeatable=repeatable)


def _counts_chunks(self: Ledger, manifest: Manifest, *decision: Any, **more: Any) -> Ledger:
    return with_fields(
        DECIDED(self, manifest, *decision, **more), rows=self.totals.rows + len(manifest.chunks)
    )


def _counts_replays(
    self: Committer, base: Ledger, driver: Driver, receipts: Any, verdict: Verdict, *start: Any
) -> Ledger | None:
    again = int(verdict is Verdict.REPLAY)
    return TAKE(
        self,
        with_fields(base, epochs=base.totals.epochs + again),
        driver,
        receipts,
        verdict,
        *start,
    )


def _only_reads_replays(
    self: Committer, base: Ledger, driver: Driver, receipts: Any, verdict: Verdict, *start: Any
) -> DecidedEpoch:
    if verdict is Verdict.REPLAY:
        return DecidedEpoch(base)
    return TAKE(self, base, driver, receipts, verdict, *start)


CORE_MUTANTS = [
    Mutant(
        "skipped receipt committed",
        "a task that skipped its rows for another decision is taken for one without rows",
        "C10",
        patches={"sparkonce.exactly_once.commit.require_skips_of": nothing},
    ),
    Mutant(
        "replay committed again",
        "an epoch that the ledger holds is decided once more",
        "C05",
        patches={JUDGE: _applies_replays},
    ),
    Mutant(
        "epochs out of order",
        "an epoch is committed though those before it are missing",
        "C07",
        patches={JUDGE: _jumps},
    ),
    Mutant(
        "emptied store taken for a new one",
        "a sink without a ledger begins at whatever epoch comes",
        "C14",
        patches={JUDGE: _takes_empty_for_new},
    ),
    Mutant(
        "epochs go back",
        "an epoch of a restored checkpoint is committed under its old number",
        "C15",
        patches={JUDGE: _goes_back},
    ),
    Mutant(
        "restored checkpoint skipped in silence",
        "an epoch of a restored checkpoint is taken for a replay, and its rows are lost",
        "C15",
        patches={JUDGE: _skips_the_past},
    ),
    Mutant(
        "offsets not compared",
        "a copied checkpoint that has read other rows is not told from a replay",
        "C15",
        patches={"sparkonce.exactly_once.guards._require_same": nothing},
    ),
    Mutant(
        "runs forgotten",
        "a driver that a later run has superseded goes on",
        "C15",
        patches={f"{LEDGER}.decided": _forgets_runs},
    ),
    Mutant(
        "decided anew",
        "a driver takes what another one decides while it commits for a replay, and goes on",
        "C04",
        patches={"sparkonce.exactly_once.commit.require_same_decision": nothing},
    ),
    Mutant(
        "replay only read",
        "a driver that finds its epoch decided leaves no mark, so that it is no second driver",
        "C04",
        patches={"sparkonce.exactly_once.commit.Committer._take": _only_reads_replays},
    ),
    Mutant(
        "repeatable by the last epoch",
        "a query that once added rows, and is an upsert now, is replaced by another upsert",
        "I01",
        patches={f"{LEDGER}.decided": _as_the_last},
    ),
    Mutant(
        "an undecided ledger owns its sink",
        "a query that never decided anything blocks the third one that comes",
        "I01",
        patches={f"{LEDGER}.untouched": property(_has_no_past)},
    ),
    Mutant(
        "an undecided ledger hides what it replaced",
        "a query that took over and decided nothing is replaced as if nothing had been written",
        "I01",
        patches={f"{LEDGER}.untouched": property(_counts_its_own)},
    ),
    Mutant(
        "replays supersede",
        "a driver that wakes up and replays an epoch stops the one that has taken over",
        "C04",
        patches={f"{LEDGER}.replayed_by": _supersedes_by_replaying},
    ),
    Mutant(
        "replays forgotten",
        "a driver takes each epoch that another one decides for a replay of its own, and goes on",
        "C04",
        patches={f"{LEDGER}.replayed_by": _forgets_replays},
    ),
    Mutant(
        "any upsert takes over",
        "a query with another checkpoint path, or after an increment, retires the owner of a sink",
        "I02",
        patches={IDENTIFY: _replaces_whatever_has_its_name},
    ),
    Mutant(
        "ledger counts chunks",
        "the ledger's rows are not those that took effect",
        "C16",
        patches={f"{LEDGER}.decided": _counts_chunks},
    ),
    Mutant(
        "replays counted",
        "an epoch that is replayed counts as one more",
        "C16",
        patches={"sparkonce.exactly_once.commit.Committer._take": _counts_replays},
    ),
    Mutant(
        "epochs compared before identity",
        "a new query's epoch is compared with that of the old one, before anyone asks whose it is",
        "I01",
        patches={IDENTIFY: _epochs_first},
    ),
    Mutant(
        "silent skip after a replaced checkpoint",
        "a new query goes on under the old one's epochs, and those it has already are skipped",
        "I01",
        patches={IDENTIFY: _adopts, JUDGE: _skips_the_past},
    ),
    Mutant(
        "checkpoint path not claimed",
        "nothing tells a new query that another one wrote from the same checkpoint path",
        "I01",
        patches={"sparkonce.exactly_once.registers.Registers.rival": _claims_nothing},
    ),
    Mutant(
        "claim trusted by its name",
        "a claim that is about to be freed is not written anew",
        "I03",
        patches={"sparkonce.exactly_once.registers.Registers.rival": _trusts_a_claim_in_its_name},
    ),
    Mutant(
        "retired by a query that decided nothing",
        "two queries that decided nothing retire each other",
        "I01",
        patches={f"{LEDGER}.retires": _retires_all_the_same},
    ),
    Mutant(
        "retired query goes on",
        "a query that was replaced is not refused while its own ledger is there",
        "I02",
        patches={IDENTIFY: _forgives},
    ),
    Mutant(
        "rival not retired before the first decision",
        "a new query decides while the ledger of the one it replaces still stands",
        "I03",
        patches={"sparkonce.exactly_once.commit.Committer._establish": _leaves_the_rival},
    ),
]
