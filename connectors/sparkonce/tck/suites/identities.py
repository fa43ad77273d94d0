"""Rules I01 and I02: the owner of a sink precedes the order of epochs."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import product

from sparkonce.errors import CheckpointReplaced, QueryRetired, SinkRenamed
from sparkonce.operate.admin import Admin
from sparkonce.tck.simulation.actors import Query
from sparkonce.tck.simulation.decisions import raises
from sparkonce.tck.simulation.faults import DIES_BEFORE, Crash
from sparkonce.tck.simulation.oracles import after, require, require_clean
from sparkonce.tck.subject import NewSubject, Subject
from sparkonce.tck.suites.commits import rows, unchanged
from sparkonce.tck.suites.suite import Contract


def _fails_before_its_decision(query: Query, *, aborted: bool) -> None:
    """It writes its ledger; then its first epoch is rejected, or its driver dies."""
    run = query.start()
    receipts = run.stage(0, rows(0, "x", query=query.id))
    query.faulty().fail_next("publish", DIES_BEFORE)
    raises(Crash, run.commit, 0, receipts)
    query.through = None
    if aborted:
        run.abort(0, receipts)


def old(world: Subject, sink_id: str | None, *, repeatable: bool = False) -> Query:
    """A query that has committed two epochs."""
    query = Query(world, id="old", sink_id=sink_id, repeatable=repeatable)
    run = query.start()
    for epoch in range(2):
        run.write(epoch, rows(epoch, "x", query="old"))
    return query


class IdentityRules(Contract):
    """Checks with more than one query."""

    def test_i01_a_replaced_checkpoint_is_rejected(self, new_subject: NewSubject) -> None:
        """Whatever its epoch: below, equal to and above that of the ledger."""
        for sink_id, override in product((None, "orders"), (None, "continue:another")):
            world = new_subject()
            old(world, sink_id)
            before = world.contents()
            new = Query(world, id="new", sink_id=sink_id, on_new_checkpoint=override)
            for epoch in (0, 1, 2):
                raises(CheckpointReplaced, new.start().write, epoch, rows(epoch, "x", query="new"))
                unchanged(world, before, "a rejected query")

    def test_i01_a_repeatable_query_starts_a_new_generation(self, new_subject: NewSubject) -> None:
        """No row is skipped in silence, not even in epochs that the old query had, too."""
        for sink_id in (None, "orders"):
            world = new_subject()
            first = old(world, sink_id, repeatable=True)
            new = Query(world, id="new", sink_id=sink_id, repeatable=True)
            run = new.start()
            for epoch in range(3):
                run.write(epoch, rows(epoch, "x", query="new"))
            held = [row for row in world.took_effect() if row.startswith("new/")]
            with after(f"query 'new' took over from 'old' (sinkId={sink_id}), with epochs 0 to 2"):
                require(len(held) == 9, f"of 9 rows of the new query {len(held)} took effect")
                require(
                    new.ledger.owner.generation == 2, f"generation {new.ledger.owner.generation}"
                )
                require_clean(world, *([new] if sink_id else [first, new]))

    def test_i01_an_epoch_that_is_not_repeatable_counts_forever(
        self, new_subject: NewSubject
    ) -> None:
        """No matter what the query became later: by a replay of that epoch, or by the next ones."""
        for first, later in product((None, "orders"), ("replay", "next", "both")):
            world = new_subject()
            query = Query(world, id="old", sink_id=first)
            query.start().write(0, rows(0, "x", query="old"))
            query.repeatable = True
            if later != "next":
                query.start().write(0, rows(0, "y", query="old"))
            if later != "replay":
                query.start().write(1, rows(1, "x", query="old"))
            new = Query(world, id="new", sink_id=first, repeatable=True)
            raises(CheckpointReplaced, new.start().write, 0, rows(0, "x", query="new"))

    def test_i01_queries_that_decided_nothing_block_nobody(self, new_subject: NewSubject) -> None:
        """Three in a row, each with a new checkpoint; failed queries leave no ledger behind."""
        for sink_id, aborted in product((None, "orders"), (True, False)):
            world = new_subject()
            failed = [Query(world, id=name, sink_id=sink_id) for name in ("one", "two")]
            for query in failed:
                _fails_before_its_decision(query, aborted=aborted)
            if aborted:
                world.settle()
                names = world.observer.names()
                require(not names, f"two queries decided nothing, were aborted, and left {names}")
            last = Query(world, id="three", sink_id=sink_id)
            last.start().write(0, rows(0, "x", query="three"))
            require_clean(world, last)

    def test_i01_a_query_that_decided_nothing_hides_nobody(self, new_subject: NewSubject) -> None:
        """It took over from one that had: a successor of it would add those rows again."""
        for sink_id in (None, "orders"):
            world = new_subject()
            old(world, sink_id)
            before = world.contents()
            heir = Query(world, id="heir", sink_id=sink_id, on_new_checkpoint="continue:old")
            _fails_before_its_decision(heir, aborted=True)
            new = Query(world, id="new", sink_id=sink_id)
            raises(CheckpointReplaced, new.start().write, 0, rows(0, "x", query="new"))
            unchanged(world, before, "a rejected query")

    def test_i01_a_query_that_decided_nothing_returns(self, new_subject: NewSubject) -> None:
        """The query that replaced it decided nothing either. Whoever decides has the sink."""
        for sink_id, aborted in product((None, "orders"), (True, False)):
            world = new_subject()
            one, two = (Query(world, id=name, sink_id=sink_id) for name in ("one", "two"))
            _fails_before_its_decision(one, aborted=False)
            _fails_before_its_decision(two, aborted=aborted)
            one.start().write(0, rows(0, "x", query="one"))
            before = world.contents()
            with after(f"{one.name} returned (aborted: {aborted})"):
                late = two.start()
                receipts = late.stage(0, rows(0, "x", query="two"))
                raises((CheckpointReplaced, QueryRetired), late.commit, 0, receipts)
                late.abort(0, receipts)
                unchanged(world, before, "a query that was too late")
            one.start().write(1, rows(1, "x", query="one"))
            require_clean(world, one)

    def test_i01_after_forget_a_path_is_claimed_anew(self, new_subject: NewSubject) -> None:
        """By the forgotten sink, under a new query."""
        world = new_subject()
        Admin(world.observer).forget(old(world, "orders").name)
        heir = Query(world, id="heir", sink_id="orders")
        heir.start().write(0, rows(0, "x", query="heir"))
        before = world.contents()
        new = Query(world, id="new")
        raises(CheckpointReplaced, new.start().write, 0, rows(0, "x", query="new"))
        unchanged(world, before, "a rejected query")

    def test_i01_a_path_belongs_to_the_query_that_took_it_over(
        self, new_subject: NewSubject
    ) -> None:
        """A new query of the sink that had it before does not continue in silence."""
        world = new_subject()
        old(world, "orders")
        owner = Query(world, id="owner", on_new_checkpoint="continue:old")
        owner.start().write(0, rows(0, "x", query="owner"))
        before = world.contents()
        new = Query(world, id="new", sink_id="orders", on_new_checkpoint="continue:old")
        raises(CheckpointReplaced, new.start().write, 0, rows(0, "x", query="new"))
        unchanged(world, before, "a rejected query")
        owner.start().write(1, rows(1, "x", query="owner"))

    def test_i01_another_sink_id_on_one_checkpoint_is_rejected(
        self, new_subject: NewSubject
    ) -> None:
        """The new name would know nothing of the epochs that the checkpoint has committed."""
        world = new_subject()
        query = old(world, None)
        before = world.contents()
        query.sink_id = "orders"
        for epoch in (0, 1, 2):
            raises(SinkRenamed, query.start().write, epoch, rows(epoch, "x", query="old"))
            unchanged(world, before, "a rejected query")

    def test_i02_queries_that_both_run_do_not_retire_each_other(
        self, new_subject: NewSubject
    ) -> None:
        """One sink id on two checkpoint paths, or a path that the other has left."""
        for owner, other in _neighbours(new_subject):
            run = owner.start()
            run.write(0, rows(0, "x", query="owner"))
            before = owner.world.contents()
            raises(CheckpointReplaced, other.start().write, 0, rows(0, "x", query="other"))
            unchanged(owner.world, before, "a query that may not take over")
            run.write(1, rows(1, "x", query="owner"))

    def test_i02_a_path_that_a_checkpoint_has_left_is_free(self, new_subject: NewSubject) -> None:
        """A query that starts there retires nobody."""
        world = new_subject()
        moved = Query(world, id="moved", checkpoint="/checkpoints/first", repeatable=True)
        moved.start().write(0, rows(0, "x", query="moved"))
        moved.checkpoint = "/checkpoints/second"
        moved.start().write(1, rows(1, "x", query="moved"))
        new = Query(world, id="new", checkpoint="/checkpoints/first", repeatable=True)
        for epoch in range(2):
            new.start().write(epoch, rows(epoch, "x", query="new"))
            moved.start().write(epoch + 2, rows(epoch + 2, "x", query="moved"))
        require(new.ledger.owner.generation == 1, f"generation {new.ledger.owner.generation}")

    def test_i02_a_replaced_query_never_commits_again(self, new_subject: NewSubject) -> None:
        """Neither its next epoch nor a replay; its staged rows belong to no query."""
        for sink_id in (None, "orders"):
            world = new_subject()
            first = old(world, sink_id)
            late = first.start().stage(2, rows(2, "late", query="old"))
            new = Query(world, id="new", sink_id=sink_id, on_new_checkpoint="continue:old")
            new.start().write(0, rows(0, "x", query="new"))
            before = world.contents()
            raises(QueryRetired, first.start().commit, 2, late)
            for epoch in (0, 1, 2):
                raises(QueryRetired, first.start().write, epoch, rows(epoch, "y", query="old"))
            unchanged(world, before, "a retired query")
            new.start().write(1, rows(1, "x", query="new"))
            require_clean(world, *([new] if sink_id else [first, new]))

    def test_i02_a_forgotten_query_never_commits_again(self, new_subject: NewSubject) -> None:
        """Neither it nor the query that took the sink after it has decided anything."""
        world = new_subject()
        gone, heir = (Query(world, id=name, sink_id="orders") for name in ("gone", "heir"))
        _fails_before_its_decision(gone, aborted=False)
        Admin(world.observer).forget(gone.name)
        _fails_before_its_decision(heir, aborted=True)
        raises(QueryRetired, gone.start().write, 0, rows(0, "x", query="gone"))
        heir.start().write(0, rows(0, "x", query="heir"))
        require_clean(world, heir)


def _neighbours(new_subject: NewSubject) -> Iterator[tuple[Query, Query]]:
    """The owner of a sink id, and another query that writes under the same id."""
    for repeatable, path in ((True, "/checkpoints/other"), (True, None), (False, "/checkpoints/a")):
        world = new_subject()
        owner = Query(world, "owner", "orders", "/checkpoints/a", repeatable=repeatable)
        yield owner, Query(world, "other", "orders", path, repeatable=True)
