"""Rules S16 to S18 and C18: what can't take effect any more makes room, and nothing else does."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial

import pyarrow as pa

from sparkonce.ledger import new_token
from sparkonce.protocol import Chunk, Record
from sparkonce.tck.actors import Query, Run
from sparkonce.tck.contract import Contract
from sparkonce.tck.decisions import brief, raises, record
from sparkonce.tck.faults import REQUEST_LOST
from sparkonce.tck.oracles import (
    after,
    require,
    require_agreement,
    require_clean,
    require_nothing_staged,
    require_rows,
    with_witness,
)
from sparkonce.tck.subject import NewSubject, batch


class _TaskFailed(Exception):
    """What the query itself raises, while its rows are read."""


class CleaningRules(Contract):
    """Checks of the steps that drop what was staged."""

    def test_s16_doom_drops_only_with_its_record(self, new_subject: NewSubject) -> None:
        """Over another record, or again after others, it neither writes nor drops."""
        world = new_subject()
        run, other = Query(world, id="mine").start(), Query(world, id="other").start()
        gone, kept = run.task(0), run.task(0)
        twin = Chunk(other.task(0), 0, 1, world.encode(batch(["a"])))
        for chunk in (twin, *(Chunk(task, 0, 1, twin.payload) for task in (gone, kept))):
            world.store.stage(chunk)
        store, name, both = world.store, run.query.name, {gone.attempt, kept.attempt}
        orphan = record("orphan", after=Record(1, "never there"))
        first = record("first")
        second = record("second", after=first)
        steps = [
            (orphan, [gone.attempt], Record(), both),
            (first, [gone.attempt, new_token()], first, {kept.attempt}),
            (first, [gone.attempt], first, {kept.attempt}),
            (second, [], second, {kept.attempt}),
            (first, [kept.attempt], second, {kept.attempt}),
            (orphan, [kept.attempt], second, {kept.attempt}),
        ]
        for number, (new, attempts, there, left) in enumerate(steps):
            answer = store.doom(name, new, attempts)
            world.settle()
            found = {one.attempt for one in world.observer.staged(name)}
            what = f"doom {number} of {len(steps)}, by {brief(new)}"
            require(answer == there, f"{what}: was told {brief(answer)}, not {brief(there)}")
            require(found == left, f"{what}: {len(found)} attempts are left, not {len(left)}")
        [still] = world.observer.staged(other.query.name)
        require(still.attempt == twin.task.attempt, f"of another sink, {still} is left")

    def test_s17_an_empty_record_takes_one_away(self, new_subject: NewSubject) -> None:
        """The one that it replaces; again, or late, it takes nothing. A new one may come."""
        world = new_subject()
        store, query = world.store, Query(world)
        name, first, fresh = query.name, record("first"), record("fresh")
        second, gone = record("second", after=first), Record(replaces=first.stamp)
        steps = [
            (gone, Record()),
            (Record(), Record()),
            (first, first),
            (Record(), first),
            (Record(replaces="never there"), first),
            (gone, Record()),
            (gone, Record()),
            (second, Record()),
            (fresh, fresh),
            (gone, fresh),
        ]
        for number, (new, there) in enumerate(steps):
            answer = store.swap(name, new)
            seen = world.observer.read(name)
            world.settle()
            listed = name in world.observer.names()
            what = f"swap {number} of {len(steps)} left {brief(seen)}, and told {brief(answer)}"
            require(answer == seen == there, f"{what}, not {brief(there)}")
            require(listed == (there != Record()), f"{what}: is it listed? {listed}")

    def test_s17_a_name_is_listed_while_anything_is_left(self, new_subject: NewSubject) -> None:
        """A record, or something staged."""
        world = new_subject()
        run, only = Query(world).start(), record("only")
        name, chunk = run.query.name, Chunk(run.task(0), 0, 1, world.encode(batch(["a"])))
        steps: list[tuple[Callable[[], object], bool]] = [
            (partial(world.store.swap, name, only), True),
            (partial(world.store.stage, chunk), True),
            (partial(world.store.swap, name, Record(replaces=only.stamp)), True),
            (partial(world.store.discard, name, [chunk.task.attempt]), False),
        ]
        for number, (step, wanted) in enumerate(steps):
            step()
            world.settle()
            listed = name in world.observer.names()
            require(listed == wanted, f"after step {number} of {len(steps)}, listed is {listed}")

    def test_s18_discard_over_a_stamp(self, new_subject: NewSubject) -> None:
        """Over another record, or where there is none, it drops nothing."""
        world = new_subject()
        run, first = Query(world).start(), record("first")
        name, store, chunk = run.query.name, world.store, world.encode(batch(["a"]))
        tasks = [run.task(0) for _ in range(3)]
        for task in tasks:
            store.stage(Chunk(task, 0, 1, chunk))
        one, two, three = (task.attempt for task in tasks)
        second = record("second", after=first)
        steps: list[tuple[Record, str, str | None, set[str]]] = [
            (Record(), one, "never there", {one, two, three}),
            (Record(), one, "", {two, three}),
            (first, two, "", {two, three}),
            (second, two, first.stamp, {two, three}),
            (second, two, second.stamp, {three}),
            (second, three, None, set()),
        ]
        for number, (there, attempt, over, left) in enumerate(steps):
            if there != Record():
                store.swap(name, there)
            store.discard(name, [attempt], over)
            world.settle()
            found = {staged.attempt for staged in world.observer.staged(name)}
            what = f"discard {number} of {len(steps)} over {over!r}, of {brief(there)}"
            require(found == left, f"{what}: {len(found)} attempts are left, not {len(left)}")

    def test_s18_a_decision_that_a_failover_brings_back_has_its_chunks(
        self, new_subject: NewSubject
    ) -> None:
        """The store goes back to what it was right after the decision, before the clean-up."""
        world = new_subject()
        world.need("apply")
        world.need("snapshot")
        query = Query(world)
        run = query.start()
        receipts = run.stage(0, with_witness(["a/0#a", "a/0#b"]))
        store = query.faulty()

        def fail_over_before_the_clean_up() -> None:
            state = world.snapshot()
            store.before("staged", lambda: world.restore(state))

        store.before("apply", fail_over_before_the_clean_up)
        with after("a failover between the finish and the clean-up"):
            run.commit(0, receipts)
            query.through = None
            query.start().write(1, with_witness(["a/1#c"]))
            require_rows(world, {"a/0#a", "a/0#b", "a/1#c"})
            require_agreement(world, query)

    def test_c18_a_task_that_raises_leaves_nothing_staged(self, new_subject: NewSubject) -> None:
        """As often as it is started again; what the query raised is what is seen."""
        world = new_subject()
        query = Query(world)
        for _ in range(3):
            raises(_TaskFailed, _fail_after, query.start(), ["a/0#x", "a/0#y"])
        world.settle()
        left = world.observer.staged(query.name)
        require(not left, f"3 tasks failed, and {len(left)} attempts stay staged")
        query.start().write(0, with_witness(["a/0#good"]))
        require_clean(world, query)

    def test_c18_a_clean_up_that_fails_hides_no_error(self, new_subject: NewSubject) -> None:
        """Then a later commit cleans."""
        world = new_subject()
        query = Query(world)
        query.faulty().fail_next("discard", REQUEST_LOST)
        with after("the discard of a failed task, 1 attempt, got no answer"):
            raises(_TaskFailed, _fail_after, query.start(), ["a/0#x"])
        query.through = None
        query.start().write(0, ["a/0#good"])
        require_nothing_staged(world, query)


def _fail_after(run: Run, rows: list[str]) -> None:
    def batches() -> Iterator[pa.RecordBatch]:
        yield batch(rows)
        raise _TaskFailed(f"after {len(rows)} rows")

    run.stage_batches(run.task(0), batches())
