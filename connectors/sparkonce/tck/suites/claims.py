"""Rule I03: a query that decides holds the claim on its checkpoint path."""

from __future__ import annotations

import contextlib
from collections.abc import Callable

from sparkonce.errors import CheckpointReplaced, QueryRetired, SparkonceError
from sparkonce.operate.admin import Admin
from sparkonce.protocol import Receipt
from sparkonce.store import Store
from sparkonce.tck.simulation.actors import Query, Run
from sparkonce.tck.simulation.decisions import raises
from sparkonce.tck.simulation.duel import Duel, every_order
from sparkonce.tck.simulation.faults import DIES_BEFORE, Crash
from sparkonce.tck.simulation.oracles import require_exactly_once, with_witness
from sparkonce.tck.simulation.restarts import SimulatedSpark
from sparkonce.tck.simulation.turns import Actor
from sparkonce.tck.subject import NewSubject, Subject
from sparkonce.tck.suites.suite import Contract

Cleaning = Callable[[Subject, Run, list[Receipt]], Actor]


class ClaimRules(Contract):
    """Checks that try every order in which a clean-up and a commit interrupt each other."""

    def test_i03_a_claim_is_freed_with_the_query_that_decided_nothing(
        self, new_subject: NewSubject
    ) -> None:
        """Not with its next run, which starts while an abort, or `gc`, removes the ledger."""
        for cleans in (_aborts, _sweeps):

            def prepare(cleans: Cleaning = cleans) -> Duel:
                duel = Duel(new_subject())
                first = Query(duel.world)
                run = first.start()
                receipts = run.stage(0, with_witness(["0#refused"]))
                first.faulty().fail_next("publish", DIES_BEFORE)
                raises(Crash, run.commit, 0, receipts)
                duel.actors.append(cleans(duel.world, run, receipts))
                duel.running(SimulatedSpark(Query(duel.world)), 0)
                return duel

            every_order(prepare, _its_path_is_claimed, step=new_subject().step)

    def test_i03_forget_beside_the_query_that_follows(self, new_subject: NewSubject) -> None:
        """Forget frees the claim of the query that it retires."""

        def prepare() -> Duel:
            duel = Duel(new_subject())
            first = Query(duel.world, id="old", sink_id="orders")
            first.start().write(0, with_witness(["old/0#a"]))
            duel.actors.append(_forgets(first))
            heir = Query(duel.world, id="a", sink_id="orders", on_new_checkpoint="continue:old")
            duel.driver(SimulatedSpark(heir), 0)
            return duel

        every_order(prepare, _its_path_is_claimed, step=new_subject().step)


def _aborts(_: Subject, run: Run, receipts: list[Receipt]) -> Actor:
    def abort(store: Store) -> None:
        run.query.through = store
        run.abort(0, receipts)

    return abort


def _sweeps(world: Subject, run: Run, receipts: list[Receipt]) -> Actor:
    world.observer.discard(run.query.name, [one.task.attempt for one in receipts])
    return lambda store: Admin(store).sweep(grace=0)


def _forgets(query: Query) -> Actor:
    def forget(store: Store) -> None:
        with contextlib.suppress(SparkonceError):  # the epoch is decided and not yet applied
            Admin(store).forget(query.name)

    return forget


def _its_path_is_claimed(duel: Duel) -> None:
    """Except if forget retired the query."""
    [spark] = duel.sparks
    if spark.run_until_failure(1) or not isinstance(spark.refusals[-1], QueryRetired):
        spark.run_to(1)
        new = Query(duel.world, id="new")
        raises(CheckpointReplaced, new.start().write, 0, with_witness(["new/0#x"]))
    require_exactly_once(spark)
