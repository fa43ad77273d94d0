"""Rules S16 and C18: what can't take effect any more makes room, and nothing else does."""

from __future__ import annotations

from collections.abc import Iterator

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
    require_clean,
    require_nothing_staged,
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
