"""Rules S16 to S19, C18 and C19: clean-up removes what cannot take effect, and nothing else."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from functools import partial
from unittest import mock

import pyarrow as pa

from sparkonce.exactly_once.ledger import new_token
from sparkonce.operate.admin import Admin
from sparkonce.protocol import Chunk, Record, Staged
from sparkonce.tck.simulation.actors import Query, Run
from sparkonce.tck.simulation.decisions import Write, brief, raises, write
from sparkonce.tck.simulation.faults import REQUEST_LOST
from sparkonce.tck.simulation.oracles import (
    after,
    require,
    require_agreement,
    require_clean,
    require_nothing_staged,
    require_rows,
    with_witness,
)
from sparkonce.tck.subject import NewSubject, batch
from sparkonce.tck.suites.suite import Contract

HOUR = 3600.0


class _TaskFailed(Exception):
    """The query's own error, raised while a task reads its rows."""


class CleaningRules(Contract):
    """Checks of the steps that discard staged chunks."""

    def test_s16_doom_drops_only_with_its_record(self, new_subject: NewSubject) -> None:
        """With another record in the store, or repeated after others, it changes nothing."""
        world = new_subject()
        run, other = Query(world, id="mine").start(), Query(world, id="other").start()
        gone, kept = run.task(0), run.task(0)
        twin = Chunk(other.task(0), 0, 1, world.encode(batch(["a"])))
        for chunk in (twin, *(Chunk(task, 0, 1, twin.payload) for task in (gone, kept))):
            world.store.stage(chunk)
        store, name, both = world.store, run.query.name, {gone.attempt, kept.attempt}
        orphan = write("orphan", after=Record(1, "never existed"))
        first = write("first")
        second = write("second", after=first.new)
        steps = [
            (orphan, [gone.attempt], Record(), both),
            (first, [gone.attempt, new_token()], first.new, {kept.attempt}),
            (first, [gone.attempt], first.new, {kept.attempt}),
            (second, [], second.new, {kept.attempt}),
            (first, [kept.attempt], second.new, {kept.attempt}),
            (orphan, [kept.attempt], second.new, {kept.attempt}),
        ]
        for number, ((new, over), attempts, there, left) in enumerate(steps):
            answer = store.doom(name, new, over, attempts)
            world.settle()
            found = {one.attempt for one in world.observer.staged(name)}
            what = f"doom {number} of {len(steps)}, by {brief(new)}"
            require(answer == there, f"{what}: returned {brief(answer)}, not {brief(there)}")
            require(found == left, f"{what}: {len(found)} attempts are left, not {len(left)}")
        [still] = world.observer.staged(other.query.name)
        require(still.attempt == twin.task.attempt, f"of another sink, {still} is left")

    def test_s17_an_empty_record_removes_one(self, new_subject: NewSubject) -> None:
        """It removes the record that it replaces; repeated or late, nothing. A new one may come."""
        world = new_subject()
        store, query = world.store, Query(world)
        name, first, fresh = query.name, write("first"), write("fresh")
        second, gone = write("second", after=first.new), Write(Record(), first.new.stamp)
        steps = [
            (gone, Record()),
            (Write(Record()), Record()),
            (first, first.new),
            (Write(Record()), first.new),
            (Write(Record(), "never existed"), first.new),
            (gone, Record()),
            (gone, Record()),
            (second, Record()),
            (fresh, fresh.new),
            (gone, fresh.new),
        ]
        for number, (one, there) in enumerate(steps):
            answer = store.swap(name, *one)
            seen = world.observer.read(name)
            world.settle()
            listed = name in world.observer.names()
            what = f"swap {number} of {len(steps)} left {brief(seen)}, and returned {brief(answer)}"
            require(answer == seen == there, f"{what}, not {brief(there)}")
            require(listed == (there != Record()), f"{what}: does names list the sink? {listed}")

    def test_s17_a_name_is_listed_while_anything_is_left(self, new_subject: NewSubject) -> None:
        """It has a record, or staged chunks."""
        world = new_subject()
        run, only = Query(world).start(), write("only")
        name, chunk = run.query.name, Chunk(run.task(0), 0, 1, world.encode(batch(["a"])))
        steps: list[tuple[Callable[[], object], bool]] = [
            (partial(world.store.swap, name, *only), True),
            (partial(world.store.stage, chunk), True),
            (partial(world.store.swap, name, Record(), only.new.stamp), True),
            (partial(world.store.discard, name, [chunk.task.attempt]), False),
        ]
        for number, (step, wanted) in enumerate(steps):
            step()
            world.settle()
            listed = name in world.observer.names()
            require(listed == wanted, f"after step {number} of {len(steps)}, names lists {listed}")

    def test_s18_discard_over_a_stamp(self, new_subject: NewSubject) -> None:
        """With another record or none in the store, it removes nothing."""
        world = new_subject()
        run, first = Query(world).start(), write("first")
        name, store, chunk = run.query.name, world.store, world.encode(batch(["a"]))
        tasks = [run.task(0) for _ in range(3)]
        for task in tasks:
            store.stage(Chunk(task, 0, 1, chunk))
        one, two, three = (task.attempt for task in tasks)
        second = write("second", after=first.new)
        nothing = Write(Record())
        steps: list[tuple[Write, str, str | None, set[str]]] = [
            (nothing, one, "never existed", {one, two, three}),
            (nothing, one, "", {two, three}),
            (first, two, "", {two, three}),
            (second, two, first.new.stamp, {two, three}),
            (second, two, second.new.stamp, {three}),
            (second, three, None, set()),
        ]
        for number, (wrote, attempt, over, left) in enumerate(steps):
            if wrote != nothing:
                store.swap(name, *wrote)
            store.discard(name, [attempt], over)
            world.settle()
            found = {staged.attempt for staged in world.observer.staged(name)}
            what = f"discard {number} of {len(steps)} over {over!r}, of {brief(wrote.new)}"
            require(found == left, f"{what}: {len(found)} attempts are left, not {len(left)}")

    def test_s18_a_decision_that_a_failover_restores_has_its_chunks(
        self, new_subject: NewSubject
    ) -> None:
        """The store returns to its state right after the decision, before the clean-up."""
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

    def test_s19_ages_are_by_the_clock_of_the_store(self, new_subject: NewSubject) -> None:
        """The clocks of a task's and an operator's host may be hours behind or ahead."""
        world = new_subject()
        run, payload = Query(world).start(), world.encode(batch(["a"]))
        for skew in (-2 * HOUR, 2 * HOUR):
            with clocks_off_by(skew):
                world.connect().stage(Chunk(run.task(0), 0, 1, payload))
        time.sleep(1)
        world.settle()
        for skew in (-2 * HOUR, 0, 2 * HOUR):
            with clocks_off_by(skew):
                ages = [one.age for one in world.observer.staged(run.query.name)]
            what = f"staged a second ago, and listed on a host whose clock is off by {skew:.0f} s"
            require(all(0.1 < age < HOUR / 2 for age in ages), f"ages of attempts {what}: {ages}")

    def test_c19_gc_drops_what_dead_runs_have_staged(self, new_subject: NewSubject) -> None:
        """A query that dies in each run restarts again and again."""
        world = new_subject()
        query, admin = Query(world), Admin(world.connect())
        old = [query.start().stage(0, ["a/0#dead"]) for _ in range(3)]
        run = query.start()
        old.append(run.stage(0, with_witness(["a/0#early"])))
        late = run.stage_task(run.task(0, 1), with_witness(["a/0#late"]))
        world.settle()
        aged = {receipt.task.attempt for receipts in old for receipt in receipts}
        with mock.patch.object(admin.store, "staged", _aging(admin.store.staged, aged)):
            dropped = admin.gc(admin.sink(query.name), grace=HOUR)
        require(
            dropped == 3, f"of 3 dead runs and one that lives, {dropped} attempts were discarded"
        )
        run.commit(0, [*old[-1], late])
        require_rows(world, {"a/0#early", "a/0#late"})
        require_clean(world, query)

    def test_c18_a_task_that_raises_leaves_nothing_staged(self, new_subject: NewSubject) -> None:
        """However often it restarts; the reader sees the query's own error."""
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
        """Then a later commit cleans up."""
        world = new_subject()
        query = Query(world)
        query.faulty().fail_next("discard", REQUEST_LOST)
        with after("the discard of a failed task, 1 attempt, got no reply"):
            raises(_TaskFailed, _fail_after, query.start(), ["a/0#x"])
        query.through = None
        query.start().write(0, ["a/0#good"])
        require_nothing_staged(world, query)


def _fail_after(run: Run, rows: list[str]) -> None:
    def batches() -> Iterator[pa.RecordBatch]:
        yield batch(rows)
        raise _TaskFailed(f"after {len(rows)} rows")

    run.stage_batches(run.task(0), batches())


@contextmanager
def clocks_off_by(seconds: float) -> Iterator[None]:
    """Within this context, the clock of this host is wrong."""
    right = time.time_ns

    def exact() -> int:
        return right() + int(seconds * 1e9)

    def rough() -> float:
        return exact() / 1e9

    with mock.patch("time.time_ns", exact), mock.patch("time.time", rough):
        yield


def _aging(staged: Callable[..., list[Staged]], attempts: set[str]) -> Callable[..., list[Staged]]:
    """The same list, with these attempts a day older."""

    def aged(sink: str, *, fresh: bool) -> list[Staged]:
        found = staged(sink, fresh=fresh)
        return [
            replace(one, age=one.age + 24 * HOUR) if one.attempt in attempts else one
            for one in found
        ]

    return aged
