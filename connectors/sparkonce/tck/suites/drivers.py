"""Rules C04, A02 and I03: two drivers at one store, in every order of their calls."""

from __future__ import annotations

import contextlib
from collections import Counter
from collections.abc import Callable, Sequence

from sparkonce.errors import (
    CheckpointReplaced,
    ConcurrentDriver,
    QueryRetired,
    SparkonceError,
    StagedDataMissing,
)
from sparkonce.exactly_once.ledger import Ledger
from sparkonce.protocol import Receipt
from sparkonce.store import Store
from sparkonce.tck.simulation.actors import Query, Run
from sparkonce.tck.simulation.decisions import raises
from sparkonce.tck.simulation.duel import Duel, every_order
from sparkonce.tck.simulation.oracles import (
    after,
    require,
    require_clean,
    require_exactly_once,
    require_nothing_staged,
    require_rows,
    with_witness,
)
from sparkonce.tck.simulation.restarts import Checkpoint, Planned, SimulatedSpark
from sparkonce.tck.simulation.turns import Actor
from sparkonce.tck.subject import NewSubject
from sparkonce.tck.suites.suite import Contract


def successor_continues(duel: Duel) -> None:
    """Another driver commits what is left, and one more epoch.

    Raises:
        AssertionError: rows were lost or duplicated.
    """
    spark = SimulatedSpark(Query(duel.world), duel.sparks[0].checkpoint)
    spark.run_to(spark.checkpoint.committed + 2)
    require_exactly_once(spark)
    require_clean(duel.world, spark.query)


def commits_and_aborts(duel: Duel, spark: SimulatedSpark, planned: Planned) -> list[Actor]:
    """Two actors: the commit of an epoch, and its abort in another worker of the same run."""
    elsewhere = Query(duel.world)

    def commit(store: Store) -> None:
        spark.query.through = store
        spark.commit(planned)

    def abort(store: Store) -> None:
        elsewhere.through = store
        run = elsewhere.start()
        run.run_id = planned.run.run_id
        run.abort(planned.epoch, planned.receipts)

    return [commit, abort]


def begun_to_abort(run: Run, receipts: Sequence[Receipt]) -> Callable[[], None]:
    """Doom attempts as a store without a combined step does; return the discard that follows."""
    query, registers = run.query, run.committer().registers
    attempts = {one.task.attempt: one.task.query_id for one in receipts}
    absent = Ledger.unwritten(query.name, query.id, query.target)
    registers.swap((registers.load(query.name) or absent).dooming(attempts))
    return lambda: query.world.observer.discard(query.name, list(attempts))


def before_rows(query: Query, step: Callable[[], None]) -> None:
    """Run this in the next commit of a query: between its decision and its rows, if possible."""
    name = "publish" if "apply" in query.world.limits else "apply"
    query.faulty().before(name, step)


class DriverRules(Contract):
    """Checks that try every order in which one driver interrupts another."""

    def test_c04_two_drivers_of_one_checkpoint(self, new_subject: NewSubject) -> None:
        """Both have staged the same epoch, the first or a later one; each commits its own rows."""
        for before in (0, 1):

            def prepare(epoch: int = before) -> Duel:
                duel, checkpoint = Duel(new_subject()), Checkpoint()
                SimulatedSpark(Query(duel.world), checkpoint).run_to(epoch - 1)
                for _ in range(2):
                    duel.driver(SimulatedSpark(Query(duel.world), checkpoint), epoch)
                return duel

            every_order(prepare, _only_rivals_are_refused, alike=True, step=new_subject().step)

    def test_c04_one_stages_and_continues_while_another_commits(
        self, new_subject: NewSubject
    ) -> None:
        """A whole run of two epochs beside a commit of the first."""

        def prepare() -> Duel:
            duel, checkpoint = Duel(new_subject()), Checkpoint()
            duel.running(SimulatedSpark(Query(duel.world), checkpoint), 1)
            duel.driver(SimulatedSpark(Query(duel.world), checkpoint), 0)
            return duel

        every_order(prepare, successor_continues, alike=True, step=max(4, new_subject().step))

    def test_c04_two_drivers_with_other_sink_ids(self, new_subject: NewSubject) -> None:
        """The two drivers share one checkpoint; their option sinkId differs."""

        def prepare() -> Duel:
            duel, checkpoint = Duel(new_subject()), Checkpoint()
            for sink_id in (None, "orders"):
                duel.driver(SimulatedSpark(Query(duel.world, sink_id=sink_id), checkpoint), 0)
            return duel

        def verify(duel: Duel) -> None:
            for spark in duel.sparks * 2:
                spark.run_until_failure(1)
                require_exactly_once(spark)
            require(duel.sparks[0].checkpoint.committed == 1, "neither continues")
            unrefused = {spark.query.name for spark in duel.sparks if not spark.refusals}
            require(len(unrefused) <= 1, "both write")

        every_order(prepare, verify, alike=True, step=new_subject().step)

    def test_c04_what_a_rival_decides_meanwhile_is_no_replay(self, new_subject: NewSubject) -> None:
        """A driver would report rows that it did not compute, and continue beside the rival."""
        world = new_subject()
        query, rival = Query(world), Query(world).start()
        run = query.start()
        receipts = run.stage(0, with_witness(["a/0#x"]))
        theirs = with_witness(["a/0#y"])
        query.faulty().before("publish", lambda: rival.write(0, theirs))
        with after("a rival decided epoch 0 between a commit's read and its decision"):
            raises(ConcurrentDriver, run.commit, 0, receipts)
        require_rows(world, {"a/0#y"})

    def test_c04_a_driver_that_replays_supersedes_nobody(self, new_subject: NewSubject) -> None:
        """It slept while another took over. Only the one that decides the next epoch continues."""
        for sleeper_first in (True, False):
            world = new_subject()
            query = Query(world)
            query.start().write(0, ["0#a"])
            sleeper, other = query.start(), query.start()
            sleeping = sleeper.stage(0, ["0#asleep"])
            other.write(0, ["0#b"])
            sleeper.commit(0, sleeping)
            first, second = (sleeper, other) if sleeper_first else (other, sleeper)
            late = second.stage(1, ["1#late"])
            first.write(1, ["1#a"])
            raises(ConcurrentDriver, second.commit, 1, late)
            first.write(2, ["2#a"])
            held = world.took_effect()
            require(held == Counter(["0#a", "1#a", "2#a"]), f"O1: {held} took effect")

    def test_a02_commit_and_abort_of_one_epoch(self, new_subject: NewSubject) -> None:
        """Spark aborts in another worker while a commit still lives."""
        for before in (0, 1):

            def prepare(epoch: int = before) -> Duel:
                duel = Duel(new_subject())
                spark = SimulatedSpark(Query(duel.world))
                spark.run_to(epoch - 1)
                duel.sparks.append(spark)
                duel.actors = commits_and_aborts(duel, spark, spark.plan(epoch))
                return duel

            every_order(prepare, successor_continues, step=new_subject().step)

    def test_c04_a_driver_whose_rows_a_rival_has_discarded(self, new_subject: NewSubject) -> None:
        """Between its reads of the ledger and of the chunks: its error must name the rival."""
        world = new_subject()
        slow, quick = Query(world), Query(world)
        run = slow.start()
        run.write(0, ["0#a"])
        receipts = run.stage(1, ["1#slow"])
        slow.faulty().before("prepare", lambda: quick.start().write(1, ["1#quick"]))
        raises(ConcurrentDriver, run.commit, 1, receipts)
        slow.through = None
        quick.start().write(2, ["2#a"])
        held = world.took_effect()
        require(held == Counter(["0#a", "1#quick", "2#a"]), f"O1: {held} took effect")
        require_nothing_staged(world, quick)

    def test_a02_an_abort_beside_the_decision_of_another_query(
        self, new_subject: NewSubject
    ) -> None:
        """What it dooms stays doomed: its own commit may live on, and take the sink over."""
        world = new_subject()
        old = Query(world, id="old", sink_id="orders")
        new = Query(world, id="new", sink_id="orders", on_new_checkpoint="continue:old")
        running, aborted = old.start(), new.start()
        running.write(0, ["old/0#a"])
        receipts = aborted.stage(0, ["new/0#a"])
        drop = begun_to_abort(aborted, receipts)
        running.write(1, ["old/1#a"])
        before_rows(new, drop)
        with contextlib.suppress(SparkonceError):
            aborted.commit(0, receipts)
        new.through = None
        new.start().write(0, ["new/0#b"])
        held = world.took_effect()
        once = Counter(["old/0#a", "old/1#a", "new/0#b"])
        require(held == once, f"O1: an aborted attempt was decided: {held}")

    def test_a02_an_abort_beside_that_of_an_earlier_run(self, new_subject: NewSubject) -> None:
        """Neither has decided an epoch; the earlier run's commit lives, and its discard follows."""
        world = new_subject()
        slow, quick = Query(world), Query(world)
        run, later = slow.start(), quick.start()
        receipts = run.stage(0, ["0#slow"])
        drop = begun_to_abort(run, receipts)
        later.abort(0, later.stage(0, ["0#quick"]))
        before_rows(slow, drop)
        raises(StagedDataMissing, run.commit, 0, receipts)
        slow.through = None
        quick.start().write(0, ["0#again"])
        held = world.took_effect()
        require(held == Counter(["0#again"]), f"O1: an aborted attempt was decided: {held}")

    def test_a02_an_abort_that_removes_the_ledger_beside_a_commit(
        self, new_subject: NewSubject
    ) -> None:
        """No query has decided, so nothing is lost: the commit of a later run continues."""
        world = new_subject()
        slow, quick = Query(world), Query(world)
        aborted, run = quick.start(), slow.start()
        receipts = aborted.stage(0, ["0#aborted"])
        slow.faulty().before("prepare", lambda: aborted.abort(0, receipts))
        run.write(0, ["0#a"])
        slow.through = None
        run.write(1, ["1#a"])
        held = world.took_effect()
        require(held == Counter(["0#a", "1#a"]), f"O1: {held} took effect")
        require_nothing_staged(world, slow)

    def test_i03_of_two_new_queries_one_gets_the_sink(self, new_subject: NewSubject) -> None:
        """Both find the checkpoint path, or the sink id, free."""
        for sink_id in (None, "orders"):

            def prepare(sink_id: str | None = sink_id) -> Duel:
                duel = Duel(new_subject())
                for name in "ab":
                    duel.driver(SimulatedSpark(Query(duel.world, id=name, sink_id=sink_id)), 0)
                return duel

            every_order(prepare, _one_query_wrote, alike=True, step=new_subject().step)

    def test_i03_a_query_that_is_replaced_while_it_commits(self, new_subject: NewSubject) -> None:
        """By one that names it, or by one that is repeatable."""
        for sink_id, repeatable in ((None, False), ("orders", True)):

            def prepare(sink_id: str | None = sink_id, repeatable: bool = repeatable) -> Duel:
                duel = Duel(new_subject())
                old, new = (
                    Query(duel.world, id=name, sink_id=sink_id, repeatable=repeatable)
                    for name in ("old", "new")
                )
                new.on_new_checkpoint = None if repeatable else "continue:old"
                sparks = SimulatedSpark(old), SimulatedSpark(new)
                sparks[0].run_to(0)
                duel.driver(sparks[0], 1)
                duel.driver(sparks[1], 0)
                return duel

            every_order(prepare, _old_is_retired, step=new_subject().step)


def _only_rivals_are_refused(duel: Duel) -> None:
    refusals = [error for spark in duel.sparks for error in spark.refusals]
    strange = [error for error in refusals if not isinstance(error, ConcurrentDriver)]
    require(not strange, f"rejected with {strange}")
    successor_continues(duel)


def _one_query_wrote(duel: Duel) -> None:
    for spark in duel.sparks:
        spark.run_until_failure(1)
        require_exactly_once(spark)
    wrote = {row[0] for row in duel.world.took_effect() if "/" in row}
    require(len(wrote) <= 1, "both wrote")
    refusals = [error for spark in duel.sparks for error in spark.refusals]
    known = CheckpointReplaced, QueryRetired, ConcurrentDriver
    strange = [error for error in refusals if not isinstance(error, known)]
    require(not strange, f"rejected with {strange}")


def _old_is_retired(duel: Duel) -> None:
    old, new = duel.sparks
    new.run_to(1)
    require(not old.run_until_failure(2), "the old query continues")
    require(isinstance(old.refusals[-1], QueryRetired), f"rejected with {old.refusals[-1]}")
    require_exactly_once(old, new)
    require_clean(duel.world, old.query, new.query)
