"""The commit algorithm, once, for every connector. docs/protocol.md numbers its steps."""

from __future__ import annotations

import json
import logging
import time
from collections.abc import Collection, Iterable, Sequence
from typing import Any

from sparkonce.errors import (
    DecisionLost,
    SinkBehindCheckpoint,
    StoreError,
    StoreUnreachable,
)
from sparkonce.exactly_once import conflicts, guards, neighbours
from sparkonce.exactly_once.bad_rows import require_few
from sparkonce.exactly_once.driver import Driver, Policy
from sparkonce.exactly_once.guards import Verdict
from sparkonce.exactly_once.ledger import Ledger, from_record, new_token
from sparkonce.exactly_once.registers import (
    LOST_RACES,
    Learned,
    LostRace,
    Registers,
    Standing,
    claim_name,
    contended,
    holder_of,
    offsets_record,
)
from sparkonce.exactly_once.totals import Start
from sparkonce.protocol import Applied, Manifest, Part, Plan, Proposal, Receipt, Record
from sparkonce.store import Patience, Store

log = logging.getLogger("sparkonce")


class Committer:
    """Commits and aborts the epochs of one sink."""

    def __init__(self, store: Store, plan: Plan[Any], policy: Policy, patience: Patience) -> None:
        self.store, self.plan, self.policy, self.patience = store, plan, policy, patience
        self.registers = Registers(store, patience)

    def commit(self, driver: Driver, receipts: Sequence[Receipt]) -> Ledger:
        """Commit the receipts of one epoch so that they take effect once, whatever happened before.

        Raises:
            CommitRefused: the epoch could lose or duplicate rows; each subclass is one reason.
            StoreError: the store cannot commit it; a decision stays decided.
        """
        try:
            return self._commit(driver, receipts)
        except StoreError as error:
            if driver.once and self._is_unfinished(driver.name):
                raise conflicts.unfinished_batch(error, driver) from error
            raise

    def _is_unfinished(self, name: str) -> bool:
        try:
            ledger = from_record(self.store.read(name), name)
        except StoreError:
            return False
        return ledger is not None and ledger.decision.manifest is not None

    def _commit(self, driver: Driver, receipts: Sequence[Receipt]) -> Ledger:
        first: Ledger | None = None
        start = Start(time.time(), max((one.seconds for one in receipts), default=0.0))
        if (driver.once or driver.named) and not self.policy.own_keys:
            neighbours.finish_others(self.registers, driver)
        for lost in range(1, LOST_RACES + 1):  # after a lost race, read and judge again
            standing = self._stand(driver)
            base = standing.base
            first = first or base
            guards.require_same_decision(first, base, driver)
            try:
                verdict = guards.judge(base, driver, self.policy)
            except SinkBehindCheckpoint:
                if self._is_present(standing.ledger, driver):
                    raise
                first = None
                time.sleep(self.patience.wait(lost))  # the node may catch up
                continue
            guards.require_first_write(first, driver)
            guards.require_skips_of(
                base.decision.token if verdict is Verdict.REPLAY else None,
                list(receipts),
                driver.epoch,
            )
            try:
                base = self._establish(standing, driver)
                guards.require_not_doomed(base, receipts)
                taken, since = self._take(base, driver, receipts, verdict, start)
            except DecisionLost:
                if not standing.may_vanish():  # else an abort or gc removed it: nothing is lost
                    raise
                continue
            except LostRace as race:
                self._pause(lost, race.unanswered)
                continue
            # Outside the race: a driver decides an epoch once, even if the decision vanishes.
            done = self._finish(taken, since, driver)
            if verdict is Verdict.NEXT and done.pace:
                log.info("%s", done.pace.summary(done.name, start))
            self._clean(done, receipts)  # not before the finish, which needs the chunks
            self._end(done)  # last: `_clean` discards chunks only under the stamp of this record
            return done
        raise contended(driver.name)

    def abort(self, driver: Driver, receipts: Sequence[Receipt]) -> None:
        """Doom and discard what these tasks staged, unless it is decided.

        So a commit that still runs cannot decide them. The abort undoes no decision, and retries
        nothing, since Spark reports the error that caused it only afterwards.
        """
        registers = Registers(self.store, Patience(max_retries=0))
        mine = {one.task.attempt: one.task.query_id for one in receipts if one.rows}
        if mine:  # without chunks to discard, send no write to a server that may be full
            registers.doom(driver.name, _absent(driver), mine)
            self._leave(driver, mine)

    def _leave(self, driver: Driver, dropped: Collection[str]) -> None:
        """Remove the ledger of a query that has decided nothing, and its claim.

        A commit that still runs finds its chunks discarded. After an error, `gc` removes both.
        """
        try:
            ledger = from_record(self.store.read(driver.name), driver.name)
            if ledger is not None and ledger.may_be_left_by(driver.query_id, dropped):
                name = claim_name(driver.target, driver.checkpoint or "")
                claim = self.store.read(name)  # before: records of a query that returns stay
                left = self.store.swap(driver.name, Record(), ledger.stamp)
                if not left.revision and holder_of(claim, name) == driver.name:
                    self.registers.drop({name: claim})
        except StoreError as error:
            log.warning(
                "Can't remove the ledger of %s, which has no decision: %s", driver.name, error
            )

    def _pause(self, lost: int, unanswered: StoreUnreachable | None) -> None:
        """Wait before the next try, if the store did not reply; no other writer won this race."""
        if unanswered is None:
            return
        if lost > self.patience.max_retries:
            raise unanswered
        time.sleep(self.patience.wait(lost))

    # -- identity

    def _stand(self, driver: Driver) -> Standing:
        for _ in range(LOST_RACES):  # finishing an epoch moves its ledger: read all again
            ledger = self.registers.load(driver.name)
            claim, rival = self.registers.rival(ledger, driver)
            # A rejected driver finishes nothing.
            base = guards.identify(ledger, rival, driver, self.policy)
            standing = Standing(ledger, rival, claim, base)
            unfinished = standing.unfinished()
            if unfinished is None:
                return standing
            log.warning("Finishing epoch %d of %s", unfinished.decision.epoch, unfinished.name)
            if self._may_finish(driver):
                self.registers.finish(unfinished)
            else:
                neighbours.finish_late(self.registers, unfinished)
        raise contended(driver.name)

    def _is_present(self, ledger: Ledger | None, driver: Driver) -> bool:
        """Whether a ledger is what was read, by a write: a node that lags answers reads, too.

        The write replaces it by itself under another stamp, and an absent one by one without
        epochs, which the abort or gc removes. A node that is cut off refuses the write, or cannot
        make it durable.
        """
        moved = (ledger or _absent(driver)).moved()
        try:
            return self.registers.swap(moved).stamp == moved.stamp
        except DecisionLost:
            return False

    def _may_finish(self, driver: Driver) -> bool:
        """Whether the driver finishes its sink's decision without asking who decided since.

        A stream does, and so does the query that takes its sink over. An overwrite does not, since
        it would remove the rows of others.
        """
        return self.policy.own_keys or not (driver.once or driver.named or self.plan.empties)

    def _establish(self, standing: Standing, driver: Driver) -> Ledger:
        """Make this driver's query the owner; returns the ledger for its decision.

        Each step is repeatable after a crash. The claim is last: whoever has read it before cannot
        take it any more, and whoever reads it now must move this ledger first.

        Raises:
            LostRace: another writer was faster.
        """
        base, rival, claim = standing.base, standing.rival, standing.claim
        if standing.ledger is not base:
            if not (base.owner.retired or self.policy.repeatable):
                neighbours.warn_of_neighbours(self.registers, driver)
            _announce(base)
            base = self._write(base.moved())  # first: a later holder of the claim must retire it
        if rival is not None:
            self._clean(self._write(rival.moved(owner=rival.owner.retire())))
        if claim is not None:  # its own, too: whoever is about to free it then fails
            body = json.dumps({"sink": driver.name})
            mine = Record(claim.revision + 1, new_token(), "", body)
            name = claim_name(driver.target, driver.checkpoint or "")
            there = self.patience.run(lambda: self.store.swap(name, mine, claim.stamp))
            if there.stamp != mine.stamp:  # equal also if only the reply to a try was lost
                raise LostRace
        return base

    def _write(self, new: Ledger) -> Ledger:
        now = self.registers.swap(new)
        if now.stamp != new.stamp:
            raise LostRace
        return now

    # -- deciding

    def _take(
        self,
        base: Ledger,
        driver: Driver,
        receipts: Sequence[Receipt],
        verdict: Verdict,
        start: Start,
    ) -> tuple[Ledger, float | None]:
        """Write the next revision for this epoch; returns it, and `since` for `Store.apply`.

        Raises:
            LostRace: another writer was faster.
        """
        mine = base.seen_at(driver.checkpoint, driver.target)
        if verdict is Verdict.REPLAY:
            level = logging.WARNING if driver.named else logging.INFO
            happened = (
                "was dropped by an operator" if base.decision.was_dropped else "took effect before"
            )
            log.log(level, "Epoch %d of %s %s: skipped", base.decision.epoch, base.name, happened)
            # Written, not just read: a partitioned store may show what it loses later.
            return self._write(mine.replayed_by(driver.run_id)), None
        guards.require_same_shape(self.plan.shape, self.plan.target, receipts)
        planned, since = self.manifest(mine, driver, receipts), time.monotonic()
        require_few(self.policy.max_bad_rows, planned, receipts)
        manifest = self.patience.run(lambda: self.store.prepare(planned))
        decided = mine.decided(
            manifest,
            driver.run_id,
            driver.offsets,
            start=start,
            repeatable=self.policy.repeatable,
            stream=driver.stream if driver.named else None,
        )
        now, unanswered = self._decide(decided, manifest, driver)
        if (
            now.decision.token != manifest.token
        ):  # not by stamp: a publish or a roll forward has moved it
            raise LostRace(unanswered)
        acknowledged = unanswered is None and now.stamp == decided.stamp  # or others may apply it
        return now, since if acknowledged else None

    def _finish(self, taken: Ledger, since: float | None, driver: Driver) -> Ledger:
        for tried in range(1, LOST_RACES + 1):
            try:
                done, since = self.registers.finish(taken, since=since), None
            except DecisionLost:
                if self._is_present(None, driver):  # else a node lags, and knows no ledger yet
                    raise
            else:
                if done.owner.query_id != driver.query_id or done.decision.epoch >= driver.epoch:
                    break
                if self._is_present(done, driver):  # a failover lost it
                    raise conflicts.lost_decision(done, driver)
            time.sleep(self.patience.wait(tried))  # the node may catch up
        else:
            raise contended(driver.name)
        if done.totals.dropped > taken.totals.dropped:
            raise conflicts.given_up(done, driver)
        return done

    def _decide(self, decided: Ledger, manifest: Manifest, driver: Driver) -> Learned:
        decision = Proposal(decided.to_record(), decided.replaces, manifest, offsets_record(driver))

        def finish(applied: Applied) -> Record:
            return decided.finished(applied).to_record()

        return self.registers.learn(  # `publish` returns None if the epoch needs several steps
            decided,
            lambda: self.store.publish(decision, finish) or self.store.decide(decision),
        )

    def manifest(self, base: Ledger, driver: Driver, receipts: Sequence[Receipt]) -> Manifest:
        """The manifest of this epoch: all receipts, in the order of partitions."""
        return Manifest(
            sink=driver.name,
            generation=base.owner.generation,
            query_id=driver.query_id,
            epoch=driver.epoch,
            token=new_token(),
            target=self.plan.target,
            detail=self.plan.stored,
            parts=_parts(receipts),
            unstored=base.totals.unstored,
            commutes=self.plan.commutes or self.policy.own_keys,
        )

    def _end(self, done: Ledger) -> None:
        """Remove the record of a batch without a name; after a failure here, `gc` removes it."""
        if done.is_done_with:
            try:
                # A sink with an older unfinished decision must find this newer one.
                if not neighbours.is_any_unfinished(self.registers, done.name):
                    self.registers.drop({done.name: done.to_record()})
            except StoreError as error:
                log.warning("Can't remove the record of %s, which is applied: %s", done.name, error)

    def _clean(self, ledger: Ledger, receipts: Sequence[Receipt] = ()) -> None:
        """Discard what no decision can hold any more. After a failure, the next commit does it.

        It discards nothing if the ledger has moved: a failover may restore an unfinished decision.
        The chunks of this commit are discarded by name, as a store may list them late.
        """
        parts = [part for part in _parts(receipts) if part.attempt not in ledger.decision.held]
        try:
            over = {part.attempt for part in parts}.union(leftovers(self.store, ledger))
            self.store.discard(ledger.name, sorted(over), ledger.stamp, parts)
        except StoreError as error:
            log.warning("Keeping leftovers of %s until the next commit: %s", ledger.name, error)


def _absent(driver: Driver) -> Ledger:
    """The ledger of a driver's sink before its first write."""
    return Ledger.unwritten(driver.name, driver.query_id, driver.target, once=driver.once)


def _parts(receipts: Iterable[Receipt]) -> tuple[Part, ...]:
    """The staged attempts, in the order of partitions."""
    return tuple(
        Part(receipt.task.partition, receipt.task.attempt, receipt.rows, receipt.sizes)
        for receipt in sorted(receipts, key=lambda receipt: receipt.task.partition)
        if receipt.rows
    )


def leftovers(store: Store, ledger: Ledger, *, fresh: bool = False) -> list[str]:
    """Attempts that no decision of this sink can hold any more; `fresh` as in `Store.staged`."""
    return [
        staged.attempt
        for staged in store.staged(ledger.name, fresh=fresh)
        if staged.attempt not in ledger.decision.held
        and ledger.is_over(staged.query_id, staged.epoch)
    ]


def _announce(owner: Ledger) -> None:
    if owner.owner.retired:
        log.warning(
            "Query %s replaces query %s as the owner of sink %s; its epochs restart at 0",
            owner.owner.query_id,
            owner.owner.retired[-1],
            owner.name,
        )
