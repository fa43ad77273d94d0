"""A core whose guards have a fault: what it refuses, and what its ledger remembers."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from tests.kit.mutants.mutant import CHUNKS, CORE, ROWS, leave_out, plant
from tests.ledgers import with_fields

from sparkonce.errors import CheckpointBehindSink, SinkBehindCheckpoint
from sparkonce.exactly_once.commit import Committer
from sparkonce.exactly_once.driver import Driver, Policy
from sparkonce.exactly_once.guards import Verdict, _after, identify, judge
from sparkonce.exactly_once.guards import _allow_replacing as allow_replacing
from sparkonce.exactly_once.ledger import Ledger, Ownership
from sparkonce.exactly_once.registers import Registers, Standing, holder_of
from sparkonce.protocol import Manifest, Record

COMMIT, GUARDS, REGISTERS = f"{CORE}.commit", f"{CORE}.guards", f"{CORE}.registers"
OWNERSHIP = f"{CORE}.ledger.Ownership"
LEDGER, JUDGE, IDENTIFY = f"{CORE}.ledger.Ledger", f"{GUARDS}.judge", f"{GUARDS}.identify"
DECIDED, SUCCEEDED_BY = Ledger.decided, Ledger.succeeded_by
ESTABLISH, TAKE, RIVAL = Committer._establish, Committer._take, Registers.rival

# -- epochs

leave_out(
    "skipped receipt committed",
    "C10",
    f"{GUARDS}.require_skips_of",
    "A task that skipped its rows for another decision is taken for one without rows.",
)


@plant("replay committed again", "C05", at=JUDGE)
def applies_replays(*case: Any) -> Verdict:
    """An epoch that the ledger holds is decided once more."""
    judge(*case)
    return Verdict.NEXT


@plant("epochs out of order", "C07", at=JUDGE)
def jumps(*case: Any) -> Verdict:
    """An epoch is committed though those before it are missing."""
    try:
        return judge(*case)
    except SinkBehindCheckpoint:
        return Verdict.NEXT


@plant("emptied store taken for a new one", "C14", at=JUDGE)
def takes_empty_for_new(ledger: Ledger, *case: Any) -> Verdict:
    """A sink without a ledger begins at whatever epoch comes."""
    return Verdict.NEXT if ledger.decision.epoch < 0 else judge(ledger, *case)


@plant("a loss claimed by a read", "C24", at=f"{COMMIT}.Committer._is_present")
def trusts_a_read(*_case: Any) -> bool:
    """What one node answered counts as the store's state."""
    return True


@plant("an accepted loss covers later ones", "C24", at=JUDGE)
def accepts_any_loss(ledger: Ledger, driver: Driver, policy: Policy) -> Verdict:
    """The option names the epoch to continue with, and not the lost ones before it."""
    if str(policy.on_lost_commit).endswith(f"-{driver.epoch - 1}"):
        return Verdict.NEXT
    return judge(ledger, driver, policy)


@plant("epochs decrease", "C15", at=JUDGE)
def goes_back(*case: Any) -> Verdict:
    """An epoch of a restored checkpoint is committed under its old number."""
    try:
        return judge(*case)
    except CheckpointBehindSink:
        return Verdict.NEXT


@plant("restored checkpoint skipped in silence", "C15", at=JUDGE)
def skips_the_past(*case: Any) -> Verdict:
    """An epoch of a restored checkpoint is taken for a replay, and its rows are lost."""
    try:
        return judge(*case)
    except CheckpointBehindSink:
        return Verdict.REPLAY


leave_out(
    "offsets not compared",
    "C15",
    f"{GUARDS}._require_same",
    "A copied checkpoint that has read other rows is not told from a replay.",
)

# -- runs


@plant("runs forgotten", "C15", at=f"{LEDGER}.decided")
def forgets_runs(self: Ledger, *decision: Any, **more: Any) -> Ledger:
    """A driver that a later run has superseded goes on."""
    return with_fields(DECIDED(self, *decision, **more), past_runs=())


leave_out(
    "decided anew",
    "C04",
    f"{GUARDS}.require_same_decision",
    "A driver takes what another one decides while it commits for a replay, and goes on.",
)


@plant("replay only read", "C04", at=f"{COMMIT}.Committer._take")
def only_reads_replays(
    self: Committer, base: Ledger, driver: Driver, receipts: Any, verdict: Verdict, *start: Any
) -> tuple[Ledger, float | None]:
    """A driver that finds its epoch decided leaves no mark, so that it is no second driver."""
    if verdict is Verdict.REPLAY:
        return base, None
    return TAKE(self, base, driver, receipts, verdict, *start)


@plant("replays supersede", "C04", at=f"{LEDGER}.replayed_by")
def supersedes_by_replaying(self: Ledger, run_id: str) -> Ledger:
    """A driver that wakes up and replays an epoch stops the one that has taken over."""
    return self.moved(owner=self.owner.decided_by(run_id))


@plant("replays forgotten", "C04", at=f"{LEDGER}.replayed_by")
def forgets_replays(self: Ledger, _: str) -> Ledger:
    """A driver takes each epoch that another one decides for a replay of its own, and goes on."""
    return self.moved()


# -- what the ledger counts


@plant("ledger counts chunks", "C16", at=f"{LEDGER}.decided")
def counts_chunks(self: Ledger, manifest: Manifest, *decision: Any, **more: Any) -> Ledger:
    """The ledger's rows are not those that took effect."""
    decided = DECIDED(self, manifest, *decision, **more)
    return with_fields(decided, rows=self.totals.rows + len(manifest.chunks))


@plant("replays counted", "C16", at=f"{COMMIT}.Committer._take")
def counts_replays(
    self: Committer, base: Ledger, driver: Driver, receipts: Any, verdict: Verdict, *start: Any
) -> Any:
    """An epoch that is replayed counts as one more."""
    again = int(verdict is Verdict.REPLAY)
    counted = with_fields(base, epochs=base.totals.epochs + again)
    return TAKE(self, counted, driver, receipts, verdict, *start)


# -- who owns a sink


@plant("repeatable by the last epoch", "I01", at=f"{LEDGER}.decided")
def repeatable_as_the_last(self: Ledger, *decision: Any, repeatable: bool, **more: Any) -> Ledger:
    """A query that once added rows, and is an upsert now, is replaced by another upsert."""
    return with_fields(DECIDED(self, *decision, **more), repeatable=repeatable)


@plant("an undecided ledger owns its sink", "I01", at=f"{LEDGER}.untouched")
@property
def has_no_past(self: Ledger) -> bool:
    """A query that never decided anything blocks the third one that comes."""
    return self.decision.epoch < 0 and not self.owner.retired


@plant("an undecided ledger hides what it replaced", "I01", at=f"{LEDGER}.untouched")
@property
def counts_its_own(self: Ledger) -> bool:
    """A query that took over and decided nothing is replaced as if nothing had been written."""
    return not self.totals.epochs


@plant("any upsert takes over", "I02", at=IDENTIFY)
def replaces_whatever_has_its_name(
    ledger: Ledger | None, rival: Ledger | None, driver: Driver, policy: Policy
) -> Ledger:
    """A query with another checkpoint path, or after an increment, retires the owner of a sink."""
    if ledger is not None and policy.repeatable:
        ledger = with_fields(ledger, checkpoint=driver.checkpoint, repeatable=True)
    return identify(ledger, rival, driver, policy)


@plant("epochs compared before identity", "I01", at=IDENTIFY)
def compares_epochs_first(ledger: Ledger | None, rival: Any, driver: Driver, policy: Any) -> Ledger:
    """A new query's epoch is compared with that of the old one, before anyone asks whose it is."""
    if ledger is not None and driver.epoch <= ledger.decision.epoch:
        return ledger
    return identify(ledger, rival, driver, policy)


@plant("silent skip after a replaced checkpoint", "I01", at=IDENTIFY, also={JUDGE: skips_the_past})
def adopts(ledger: Ledger | None, rival: Any, driver: Driver, policy: Any) -> Ledger:
    """A new query goes on under the old one's epochs, and those it has already are skipped."""
    if ledger is not None and ledger.owner.query_id != driver.query_id:
        return with_fields(ledger, query_id=driver.query_id)
    return identify(ledger, rival, driver, policy)


@plant("checkpoint path not claimed", "I01", at=f"{REGISTERS}.Registers.rival")
def claims_nothing(*_: Any) -> tuple[None, None]:
    """Nothing tells a new query that another one wrote from the same checkpoint path."""
    return None, None


@plant("claim trusted by its name", "I03", at=f"{REGISTERS}.Registers.rival")
def trusts_a_claim_in_its_name(
    self: Registers, ledger: Ledger | None, driver: Driver
) -> tuple[Record | None, Ledger | None]:
    """A claim that is about to be freed is not written anew."""
    claim, rival = RIVAL(self, ledger, driver)
    own = claim is not None and holder_of(claim, "claim") == driver.name
    return None if own else claim, rival


@plant("retired by a query that decided nothing", "I01", at=f"{LEDGER}.retires")
def retires_all_the_same(self: Ledger, query_id: str) -> bool:
    """Two queries that decided nothing retire each other."""
    return query_id in self.owner.retired


@plant("retired query continues", "I02", at=IDENTIFY)
def forgives(ledger: Ledger | None, rival: Ledger | None, driver: Driver, policy: Policy) -> Ledger:
    """A query that was replaced is not refused while its own ledger is there."""
    known, other = (one and with_fields(one, retired=()) for one in (ledger, rival))
    base = identify(known, other, driver, policy)
    return ledger if ledger is not None and base is known else base


@plant("rival not retired before the first decision", "I03", at=f"{COMMIT}.Committer._establish")
def leaves_the_rival(self: Committer, standing: Standing, driver: Driver) -> Ledger:
    """A new query decides while the ledger of the one it replaces still stands."""
    return ESTABLISH(self, replace(standing, rival=None), driver)


# -- who had the sink before


@plant("ledger removed in mid-commit counts as lost", "A02", at=f"{REGISTERS}.Standing.may_vanish")
def lasts(_: Standing) -> bool:
    """A commit whose ledger an abort takes away, with nothing decided, says that it was lost."""
    return False


@plant("a rival's decisions are not inherited", "I01", at=f"{GUARDS}._after")
def inherits_nothing(rival: Ledger, own: Ledger) -> Ledger:
    """An abort takes away the ledger of a query that took a path over, and with it who had that."""
    return with_fields(_after(rival, own), inherits=own.owner.inherits)


@plant("a tombstone is not inherited", "I02", at=f"{LEDGER}.succeeded_by")
def inherits_no_tombstone(self: Ledger, query_id: str) -> Ledger:
    """An abort takes away the ledger that says which query was forgotten before."""
    return with_fields(SUCCEEDED_BY(self, query_id), inherits=self.owner.inherits)


@plant("a tombstone owns its sink", "I01", at=f"{GUARDS}._allow_replacing")
def heeds_tombstones(old: Ledger, *case: Any, same_path: bool) -> None:
    """After a forget a query may take the sink only where its options name the one before."""
    allow_replacing(with_fields(old, forgotten=False), *case, same_path=same_path)


@plant("a returning query retires itself", "I01", at=f"{CORE}.ledger.Ownership.resumed")
def as_it_is(self: Ownership, **_: bool) -> Ownership:
    """A query that was replaced before anything was decided, and has the sink again, is refused."""
    return self


@plant(
    "rival replaced before its epoch is finished",
    "C06",
    CHUNKS,
    ROWS,
    at=f"{REGISTERS}.Standing.unfinished",
)
def looks_at_its_own_alone(self: Standing) -> Ledger | None:
    """A query begins while what the one before it has decided is not applied."""
    own = self.ledger
    return own if own is not None and own.decision.manifest is not None else None
