"""Rules C05 to C16 and A01: what a commit does, and what it rejects."""

from __future__ import annotations

import contextlib
from dataclasses import replace
from functools import partial
from itertools import product
from unittest import SkipTest

from sparkonce.errors import (
    CheckpointBehindSink,
    CheckpointDiverged,
    CommitRefused,
    ConcurrentDriver,
    SinkBehindCheckpoint,
    StagedDataMissing,
    StaleSkip,
    UnsupportedQuery,
)
from sparkonce.protocol import Receipt, Record
from sparkonce.tck.simulation.actors import Query, Run
from sparkonce.tck.simulation.decisions import raises
from sparkonce.tck.simulation.faults import (
    DIES_AFTER,
    DIES_BEFORE,
    DIES_WITHIN,
    REQUEST_LOST,
    Crash,
    Fault,
)
from sparkonce.tck.simulation.oracles import (
    WITNESS,
    after,
    difference,
    require,
    require_agreement,
    require_clean,
    require_nothing_staged,
    require_rows,
    require_witness,
    with_witness,
)
from sparkonce.tck.subject import NewSubject, Subject
from sparkonce.tck.suites.suite import Contract


def rows(epoch: int, text: str, number: int = 3, query: str = "a") -> list[str]:
    """Some rows of one epoch, with their witness."""
    return with_witness(f"{query}/{epoch}#{text}.{n}" for n in range(number))


def written(world: Subject, epochs: int) -> tuple[Query, Run]:
    """A query that has committed this number of epochs."""
    query = Query(world)
    run = query.start()
    for epoch in range(epochs):
        run.write(epoch, rows(epoch, "x"), rows(epoch, "y"), offsets=f"offsets {epoch}")
    return query, run


def unchanged(world: Subject, before: object, what: str) -> None:
    """Check that the target is unchanged. Raises AssertionError if it is not."""
    now = world.contents()
    require(now == before, f"after {what} the target has changed: {difference(before, now)}")


def crash(run: Run, call: str, fault: Fault, epoch: int, *partitions: list[str]) -> None:
    """Write an epoch, and die at the first call of this name."""
    run.query.faulty().fail_next(call, fault)
    raises(Crash, run.write, epoch, *partitions)
    run.query.through = None


class CommitRules(Contract):
    """Checks of single commits."""

    def test_c05_a_replay_with_other_rows_changes_nothing(self, new_subject: NewSubject) -> None:
        """O6, with more partitions, fewer, and none."""
        world = new_subject()
        query, _ = written(world, 2)
        before = world.contents()
        for partitions in ([rows(1, "p"), rows(1, "q"), rows(1, "r")], [rows(1, "s")], []):
            query.start().write(1, *partitions)
            unchanged(world, before, f"a replay over {len(partitions)} partitions")
        require_clean(world, query)

    def test_c05_a_replay_that_staged_before_it_could_know(self, new_subject: NewSubject) -> None:
        """Its tasks ran before the first commit decided."""
        world = new_subject()
        query = Query(world)
        first, second = query.start(), query.start()
        receipts = [run.stage(0, rows(0, run.run_id)) for run in (first, second)]
        first.commit(0, receipts[0])
        before = world.contents()
        with after("two runs staged epoch 0; the first committed it, then the second did"):
            second.commit(0, receipts[1])
        unchanged(world, before, "a replay that had staged")
        require_clean(world, query)

    def test_c06_a_decided_epoch_is_finished_by_the_next_run(self, new_subject: NewSubject) -> None:
        """From its manifest: the run that finishes the epoch has another plan."""
        for fault in (DIES_BEFORE, DIES_WITHIN, DIES_AFTER):
            world = new_subject()
            world.need("apply")
            if "whole epochs" not in world.limits:
                raise SkipTest("this store publishes whole epochs: none is decided and unfinished")
            query, plan = Query(world), world.plan
            crash(query.start(), "apply", fault, 0, rows(0, "x"), rows(0, "y"))
            decided = query.ledger.decision.manifest
            query.plan, store = replace(plan, stored={**plan.stored, "now": 1}), query.faulty()
            with after(f"the driver died at its apply ('{fault}'), and another replayed the epoch"):
                query.start().write(0, rows(0, "other"))
                seen = f"applied {store.applied}, although {decided} was decided"
                require(store.applied[:1] == [decided], seen)
                require_rows(world, {*rows(0, "x"), *rows(0, "y")} - {WITNESS})
                require_clean(world, query)

    def test_c06_a_new_query_finishes_what_the_old_one_decided(
        self, new_subject: NewSubject
    ) -> None:
        """A new query does so before its own first epoch."""
        world = new_subject()
        world.need("apply")
        old = Query(world, id="old")
        new = Query(world, id="new", on_new_checkpoint="continue:old")
        if "whole epochs" in world.limits:
            crash(old.start(), "apply", DIES_BEFORE, 0, rows(0, "x", query="old"))
        else:
            old.start().write(0, rows(0, "x", query="old"))
        new.start().write(0, rows(0, "y", query="new"))
        require(len(world.took_effect()) == 7, f"holds {world.took_effect()}")
        require_clean(world, old, new)

    def test_c07_epochs_take_effect_in_their_order(self, new_subject: NewSubject) -> None:
        """The ledger follows, epoch by epoch."""
        world = new_subject()
        query = Query(world)
        run, revision = query.start(), 0
        for epoch in range(5):
            ledger = run.write(epoch, rows(epoch, "x"), rows(epoch, "y"))
            require(
                (ledger.decision.epoch, ledger.decision.manifest) == (epoch, None),
                f"the ledger is {ledger}",
            )
            require(ledger.revision > revision, "O4: the revision did not move")
            revision = ledger.revision
        for epoch in (6, 9):
            raises(SinkBehindCheckpoint, run.write, epoch, rows(epoch, "gap"))
        require_agreement(world, query)
        require_witness(world)

    def test_c08_leftovers_of_others_are_cleaned_later(self, new_subject: NewSubject) -> None:
        """Attempts that failed without a message; and a clean-up that itself fails."""
        world = new_subject()
        query, run = written(world, 1)
        run.stage(1, rows(1, "failed attempt"))
        query.faulty().fail_next("discard", REQUEST_LOST)
        with after("the discard of its clean-up got no reply"):
            run.write(1, rows(1, "x"))
        query.through = None
        for epoch in (2, 3):
            query.start().write(epoch, rows(epoch, "x"))
        require_clean(world, query)

    def test_c09_only_the_attempts_of_the_receipts_count(self, new_subject: NewSubject) -> None:
        """A failed attempt and a speculative twin have staged their own rows."""
        world = new_subject()
        query = Query(world)
        run = query.start()
        run.stage(0, rows(0, "failed"))
        run.stage(0, rows(0, "twin"), rows(0, "twin too"))
        run.commit(0, run.stage(0, rows(0, "won"), rows(0, "won too")))
        with after("only the rows named 'won' were committed"):
            require_rows(world, {*rows(0, "won"), *rows(0, "won too")} - {WITNESS})
        query.start().write(1, rows(1, "next"))
        require_clean(world, query)

    def test_c10_a_skip_for_another_decision_fails_the_batch(self, new_subject: NewSubject) -> None:
        """With this receipt alone, and with receipts of tasks that staged."""
        world = new_subject()
        query, run = written(world, 1)
        before = world.contents()
        skip = Receipt(run.task(1, 1), skipped="another decision")
        for receipts in ([skip], [*run.stage(1, rows(1, "x")), skip]):
            raises(StaleSkip, run.commit, 1, receipts)
            unchanged(world, before, "a stale skip")
        query.start().write(1, rows(1, "again"))
        require_clean(world, query)

    def test_c11_a_message_that_is_none(self, new_subject: NewSubject) -> None:
        """Through the adapter that Spark calls: it fails a commit, and does not stop an abort."""
        from sparkonce.tck.simulation.writer import Writer

        world = new_subject()
        query = Query(world)
        run = query.start()
        writer = Writer(query)
        messages = [*writer.messages(run.stage(0, rows(0, "x"))), None]
        for bad in (messages, [None]):
            raises(UnsupportedQuery, writer.commit, bad, 0)
        require(not world.took_effect(), "a commit without all messages took effect")
        writer.abort(messages, 0)
        writer.abort([None], 0)
        require_nothing_staged(world, query)
        query.start().write(0, rows(0, "again"))
        require_clean(world, query)

    def test_c12_a_zombie_task_never_takes_effect(self, new_subject: NewSubject) -> None:
        """A task stages after the commit, or after the abort, of its epoch."""
        world = new_subject()
        query, run = written(world, 1)
        run.stage_late(0, rows(0, "after commit"))
        aborted = run.stage(1, rows(1, "aborted"))
        run.abort(1, aborted)
        run.stage_late(1, rows(1, "after abort"))
        run.stage_task(replace(aborted[0].task), rows(1, "the aborted task itself"))
        world.settle()
        for epoch in (1, 2):
            query.start().write(epoch, rows(epoch, "good"))
        require_clean(world, query)

    def test_c14_a_store_that_lost_commits_is_detected(self, new_subject: NewSubject) -> None:
        """In the middle of a run and after a restart; and after the store lost everything."""
        world = new_subject()
        world.need("snapshot")
        states = [world.snapshot()]
        query, run = written(world, 1)
        states.append(world.snapshot())
        run.write(1, rows(1, "lost"))
        for state in reversed(states):
            world.restore(state)
            before = world.contents()
            for each in (run, query.start()):
                raises(SinkBehindCheckpoint, each.write, 2, rows(2, "x"))
                unchanged(world, before, "a rejected commit")
        for wrong in ("continue@1-1", "continue@0-2", "continue@2"):
            query.on_lost_commit = wrong
            raises(SinkBehindCheckpoint, query.start().write, 2, rows(2, "x"))
        query.on_lost_commit = "continue@0-1"
        query.start().write(2, rows(2, "y"))
        require_rows(world, {*rows(2, "y")} - {WITNESS})

    def test_c24_a_read_of_an_older_state_is_no_loss(self, new_subject: NewSubject) -> None:
        """A node that lags, or is cut off from the others, answers the first reads of a commit."""
        world = new_subject()
        query, run = written(world, 1)
        states = [Record(), world.store.read(query.name)]
        run.write(1, rows(1, "x"))
        for epoch, (state, reads) in enumerate(product(states, (1, 2)), 2):
            run = query.start()
            receipts = run.stage(epoch, rows(epoch, "x"))
            query.faulty().answer(query.name, state, reads)
            with after(f"{reads} reads of the ledger returned an older state"):
                run.commit(epoch, receipts)
            query.through = None
        require_clean(world, query)

    def test_c24_an_older_state_after_the_rows_is_no_loss(self, new_subject: NewSubject) -> None:
        """A node that lags, or is cut off from the others, answers the last steps of a commit."""
        world = new_subject()
        query, run = written(world, 1)
        states = Record(), world.store.read(query.name)
        for epoch, (state, answers) in enumerate(product(states, (1, 2, 3)), 1):
            run = query.start()
            receipts, faulty = run.stage(epoch, rows(epoch, "x")), query.faulty()
            faulty.before("apply", partial(faulty.answer, query.name, state, answers))
            with after(f"{answers} answers after the rows had an older state"):
                run.commit(epoch, receipts)
            query.through = None
        require_clean(world, query)

    def test_c24_an_accepted_loss_covers_no_later_one(self, new_subject: NewSubject) -> None:
        """The store loses more before the query restarts as the error advised."""
        world = new_subject()
        world.need("snapshot")
        query, run = written(world, 1)
        before = world.snapshot()
        run.write(1, rows(1, "lost"))
        state = world.snapshot()
        run.write(2, rows(2, "lost"))
        world.restore(state)
        raises(SinkBehindCheckpoint, query.start().write, 3, rows(3, "x"))
        world.restore(before)
        query.on_lost_commit = "continue@2-2"
        raises(SinkBehindCheckpoint, query.start().write, 3, rows(3, "x"))
        query.on_lost_commit = "continue@1-2"
        query.start().write(3, rows(3, "y"))

    def test_c15_a_restored_checkpoint_is_rejected(self, new_subject: NewSubject) -> None:
        """Its epochs are old, or have old numbers; or a later run has continued."""
        world = new_subject()
        query, run = written(world, 3)
        before = world.contents()
        for epoch in (0, 1):
            raises(CheckpointBehindSink, query.start().write, epoch, rows(epoch, "old"))
        other = query.start()
        receipts = other.stage(2, rows(2, "x"))
        raises(CheckpointDiverged, other.commit, 2, receipts, "other")
        receipts = other.stage(3, rows(3, "x"))
        raises(CheckpointDiverged, other.commit, 3, receipts, "offsets 3", "other")
        unchanged(world, before, "rejected commits")
        query.start().write(3, rows(3, "good"))
        raises(ConcurrentDriver, run.write, 4, rows(4, "late"))
        query.start().write(4, rows(4, "good"))
        require_clean(world, query)

    def test_c16_the_ledger_counts_what_took_effect(self, new_subject: NewSubject) -> None:
        """Through replays, failures, empty epochs and restarts."""
        world = new_subject()
        query, run = written(world, 2)
        run.abort(2, run.stage(2, rows(2, "aborted")))
        query.start().write(1, rows(1, "replayed"))
        run = query.start()
        run.write(2)
        run.write(3, [], rows(3, "x"))
        totals = query.ledger.totals
        counted = f"the ledger counts {totals.epochs} with {totals.rows}"
        found = totals.epochs, totals.rows
        require(found == (4, 30), f"4 epochs with 30 rows took effect, {counted}")
        require_clean(world, query)

    def test_a01_abort_discards_its_own_attempts_and_nothing_decided(
        self, new_subject: NewSubject
    ) -> None:
        """Spark calls abort after a commit that raised, and whose decide may have arrived."""
        world = new_subject()
        query, run = written(world, 1)
        other = Query(world, id="other", checkpoint="/checkpoints/other")
        kept = other.start().stage(0, rows(0, "kept", query="other"))
        receipts = run.stage(1, rows(1, "x"))
        run.abort(1, receipts)
        require_nothing_staged(world, query)
        raises((StagedDataMissing, CommitRefused), run.commit, 1, receipts)
        other.start().commit(0, kept)
        for call in ("publish", "decide"):
            self._abort_after(world, query, call)
        require_clean(world, other, query)

    def _abort_after(self, world: Subject, query: Query, call: str) -> None:
        """A commit dies right after its decide; then its own abort runs."""
        run, epoch = query.start(), query.ledger.decision.epoch + 1
        receipts = run.stage(epoch, rows(epoch, call))
        query.faulty().fail_next(call, DIES_AFTER)
        with contextlib.suppress(Crash):
            run.commit(epoch, receipts)
        query.through = None
        with after(f"a driver died after its {call}, its epoch was aborted, and then replayed"):
            run.abort(epoch, receipts)
            query.start().write(epoch, rows(epoch, "again"))
        taken = [row for row in world.took_effect() if row.startswith(f"a/{epoch}#")]
        require(len(taken) == 3, f"epoch {epoch} took effect as {taken}")
