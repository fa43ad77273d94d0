"""Rules S07 to S10 and S15: how decided chunks take effect."""

from __future__ import annotations

import contextlib
from functools import partial
from typing import NoReturn
from unittest import SkipTest

from sparkonce.errors import StagedDataMissing, StoreLostData
from sparkonce.protocol import Advance, Manifest, Record
from sparkonce.store import Store
from sparkonce.tck.simulation.actors import Query, Run
from sparkonce.tck.simulation.decisions import Ready, brief, decided, raises, staged
from sparkonce.tck.simulation.faults import Crash
from sparkonce.tck.simulation.oracles import (
    after,
    require,
    require_agreement,
    require_rows,
    with_witness,
)
from sparkonce.tck.simulation.race import race
from sparkonce.tck.subject import NewSubject, Subject
from sparkonce.tck.suites.suite import Contract

RACES = 8
NEVER = "publish: every epoch of this store is applied in several steps"


def dying_after(chunks: int) -> Advance:
    """Watches an apply, and dies after this number of chunks."""
    left = [chunks]

    def advance(_rows: int) -> None:
        left[0] -= 1
        if left[0] == 0:
            raise Crash(f"dies after {chunks} chunks")

    return advance


def _published(store: Store, ready: Ready) -> Record | None:
    """The result of publish; the slower of two may also find its chunks missing."""
    with contextlib.suppress(StagedDataMissing):
        return store.publish(ready.decision, ready.finish)
    return None


def _skip_unless_published(store: Store, good: Ready) -> NoReturn:
    """Skip if a stale decision returned None because this store never publishes.

    Raises:
        SkipTest: the store never publishes.
        AssertionError: it does, and should have returned the stored record.
    """
    if store.publish(good.decision, good.finish) is None:
        raise SkipTest(NEVER)
    epoch = good.manifest.epoch
    raise AssertionError(f"a stale publish of epoch {epoch} returned None, not the stored record")


def _apply_with_a_sleep(world: Subject, query: Query, late: Manifest, epochs: int) -> None:
    """Apply; after the first chunk another driver finishes, and writes up to `epochs` epochs."""
    runs: list[Run] = []

    def advance(_rows: int) -> None:
        if not runs:
            runs.append(query.start())
            for epoch in range(epochs):
                runs[0].write(epoch, with_witness([f"epoch {epoch}"]))

    world.connect().apply(late, advance)
    require(runs, "apply never reported an applied chunk")


class ApplyRules(Contract):
    """Checks of `Store.publish` and `Store.apply`."""

    def test_s07_publish_does_all_or_nothing(self, new_subject: NewSubject) -> None:
        """With another record in the store it does nothing; repeated, it does nothing more."""
        world = new_subject()
        run = Query(world).start()
        run.write(0, with_witness(["a"]))
        good = staged(run, 1, run.stage(1, with_witness(["b", "c"])))
        known = world.observer.read(run.query.name)
        stale = good.over("gone")
        answer = world.store.publish(stale, good.finish)
        require_rows(world, {"a"})
        there = world.observer.read(run.query.name)
        seen = f"publish with a stale stamp wrote {brief(there)} over {brief(known)}"
        require(there == known, seen)
        if answer is None:
            _skip_unless_published(world.store, good)
        require(
            answer == known, f"the store holds {brief(known)}, publish returned {brief(answer)}"
        )
        for again in (False, True):
            done = world.store.publish(good.decision, good.finish)
            which = "the second time" if again else "the first time"
            require(done == good.finished, f"publish returned {brief(done or Record())} {which}")
            with after(f"publish was called {which}"):
                require_rows(world, {"a", "b", "c"})

    def test_s07_publish_of_missing_chunks_does_nothing(self, new_subject: NewSubject) -> None:
        """The second of two attempts was discarded: no row and no decision takes effect."""
        world = new_subject()
        run = Query(world).start()
        run.write(0, with_witness(["a"]))
        good = staged(run, 1, run.stage(1, with_witness(["b"]), with_witness(["c"])))
        known = world.observer.read(run.query.name)
        stale = good.over("gone")
        if world.store.publish(stale, good.finish) is None:
            _skip_unless_published(world.store, good)
        world.store.discard(run.query.name, [good.manifest.parts[1].attempt])
        step = partial(world.store.publish, good.decision, good.finish)
        raises(StagedDataMissing, step)
        with after("publish found a chunk of its manifest missing"):
            require_rows(world, {"a"})
            there = world.observer.read(run.query.name)
            require(there == known, f"the ledger was {brief(known)} and is {brief(there)}")

    def test_s07_of_publications_at_the_same_time_one_wins(self, new_subject: NewSubject) -> None:
        """Two decisions replace one record; the first is sent twice."""
        world = new_subject()
        query, wanted = Query(world), set[str]()
        clients = [world.connect() for _ in range(3)]
        query.start().write(0, with_witness(["before"]))
        for epoch in range(1, RACES):
            runs = [query.start() for _ in range(2)]
            pair = [
                staged(run, epoch, run.stage(epoch, with_witness([f"{epoch}.{n}"])))
                for n, run in enumerate(runs)
            ]
            three = zip(clients, [*pair, pair[0]], strict=True)
            steps = [partial(_published, client, decision) for client, decision in three]
            answers = [answer for answer in race(steps) if answer is not None]
            if not answers:
                raise SkipTest(NEVER)
            now = world.observer.read(query.name)
            won = [n for n, decision in enumerate(pair) if decision.finished == now]
            wanted.update(f"{epoch}.{n}" for n in won)
            with after(f"two drivers published epoch {epoch} together, one of them twice"):
                require(len(won) == 1, f"the ledger is {brief(now)}, which neither wrote")
                require_rows(world, {"before", *wanted})
                results = ", ".join(brief(answer) for answer in answers)
                require(
                    set(answers) == {now},
                    f"publish returned {results}; the store holds {brief(now)}",
                )

    def test_s08_apply_takes_effect_once(self, new_subject: NewSubject) -> None:
        """A repeated apply, and two clients that apply together."""
        world = new_subject()
        run = Query(world).start()
        world.need("apply")
        rows = [f"a#{number}" for number in range(12)]
        manifest = decided(run, 0, with_witness(rows[:7]), with_witness(rows[7:])).manifest
        race([partial(world.connect().apply, manifest) for _ in range(2)])
        with after("two clients applied one manifest together"):
            require_rows(world, set(rows))
        for store in (world.store, world.connect()):
            store.apply(manifest)
        with after("a manifest was applied again"):
            require_rows(world, set(rows))

    def test_s08_apply_resumes_where_it_was_interrupted(self, new_subject: NewSubject) -> None:
        """Its caller dies after each chunk in turn; another client continues, twice."""
        for died in range(1, 6):
            world = new_subject()
            world.need("apply")
            rows = [with_witness(["a", "b", "c"]), with_witness(["d"])]
            manifest = decided(Query(world).start(), 0, *rows).manifest
            with contextlib.suppress(Crash):
                world.connect().apply(manifest, dying_after(died))
            with after(
                f"the caller of apply died after chunk {died} of 4, and it was called again"
            ):
                for _ in range(2):
                    world.connect().apply(manifest)
                    require_rows(world, {"a", "b", "c", "d"})

    def test_s08_chunks_take_effect_in_the_order_of_the_manifest(
        self, new_subject: NewSubject
    ) -> None:
        """Partition by partition, chunk by chunk: a later row overwrites an earlier one."""
        world = new_subject()
        query = Query(world)
        rows = [[f"a/{epoch}#{n}" for n in range(9)] for epoch in range(2)]
        query.start().write(0, rows[0][:5], rows[0][5:])
        if "apply" not in world.limits:
            run = query.start()
            world.store.apply(decided(run, 1, rows[1][:5], rows[1][5:]).manifest)
            found, wanted = world.in_order(), [*rows[0], *rows[1]]
        else:
            found, wanted = world.in_order(), rows[0]
        if found is None:
            raise SkipTest("the target does not show in which order rows took effect")
        require(found == wanted, f"rows took effect as {found}, not as {wanted}")

    def test_s09_a_superseded_apply_does_nothing(self, new_subject: NewSubject) -> None:
        """A driver decided and slept; others finished its epoch and wrote later ones."""
        world = new_subject()
        query = Query(world)
        world.need("apply")
        late = decided(query.start(), 0, with_witness(["a", "b"])).manifest
        run, wanted = query.start(), {"a", "b"}
        run.write(0, with_witness(["x"]))
        for epoch in (1, 2):
            world.connect().apply(late)
            with after(f"epoch 0 was applied late, when epoch {epoch - 1} was the last one"):
                require_rows(world, wanted)
            run.write(epoch, with_witness([f"epoch {epoch}"]))
            wanted.add(f"epoch {epoch}")
        world.connect().apply(late)
        with after("epoch 0 was applied late, when epoch 2 was the last one"):
            require_rows(world, wanted)

    def test_s09_an_apply_that_is_superseded_in_its_middle(self, new_subject: NewSubject) -> None:
        """A driver slept after its first chunk; others finished its epoch and wrote later ones."""
        for epochs in (1, 3):
            world = new_subject()
            world.need("apply")
            if "whole epochs" not in world.limits:
                raise SkipTest(
                    "this store publishes whole epochs: an apply has no middle to sleep in"
                )
            query, wanted = Query(world), {"a", "b", "c", "d"}
            rows = with_witness(["a", "b", "c"]), with_witness(["d"])
            late = decided(query.start(), 0, *rows).manifest
            _apply_with_a_sleep(world, query, late, epochs)
            wanted.update(f"epoch {epoch}" for epoch in range(1, epochs))
            with after(
                "an apply of epoch 0 slept after its first chunk, another driver finished epochs"
                f" 0 to {epochs - 1}, and the apply continued"
            ):
                require_rows(world, wanted)

    def test_s10_a_missing_decided_chunk_is_an_error(self, new_subject: NewSubject) -> None:
        """Apply neither skips the chunk in silence nor counts it as applied."""
        world = new_subject()
        run = Query(world).start()
        world.need("apply")
        manifest = decided(run, 0, with_witness(["a"]), with_witness(["b"])).manifest
        world.store.discard(run.query.name, [manifest.parts[1].attempt])
        raises(StoreLostData, world.store.apply, manifest)
        require(world.took_effect()["b"] == 0, "a row of a missing chunk took effect")

    def test_s15_an_epoch_is_not_finished_before_it_is_applied(
        self, new_subject: NewSubject
    ) -> None:
        """Neither with no chunk applied, nor with one of two."""
        world = new_subject()
        world.need("apply")
        run = Query(world).start()
        ready = decided(run, 0, with_witness(["a"]), with_witness(["b"]))
        finish = partial(
            world.store.swap, run.query.name, ready.finished, ready.decided.stamp, applied=2
        )
        there = finish()
        require(there == ready.decided, f"nothing was applied, and swap wrote {brief(there)}")
        with contextlib.suppress(Crash):
            world.store.apply(ready.manifest, dying_after(1))
        there = finish()
        require(there == ready.decided, f"one chunk was applied, and swap wrote {brief(there)}")
        world.store.apply(ready.manifest)
        there = finish()
        require(
            there == ready.finished, f"all chunks were applied, but the record is {brief(there)}"
        )
        require_rows(world, {"a", "b"})

    def test_s15_chunks_lost_in_a_failover_before_finish_are_applied_again(
        self, new_subject: NewSubject
    ) -> None:
        """The store returns to its state right after the decision; the driver lives."""
        world = new_subject()
        world.need("apply")
        world.need("snapshot")
        query = Query(world)
        run = query.start()
        receipts = run.stage(0, with_witness(["a/0#a", "a/0#b"]))
        store = query.faulty()

        def fail_over_before_finish() -> None:
            state = world.snapshot()
            store.before("swap", lambda: world.restore(state))

        store.before("apply", fail_over_before_finish)
        with after("a failover between the last apply and the finish"):
            run.commit(0, receipts)
            require_rows(world, {"a/0#a", "a/0#b"})
            require_agreement(world, query)
