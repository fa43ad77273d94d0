"""Rules S05, S08 and S11 with many chunks, attempts and sinks: more than a page, or one digit."""

from __future__ import annotations

from sparkonce.protocol import Chunk
from sparkonce.tck.simulation.actors import Query
from sparkonce.tck.simulation.oracles import require, require_rows
from sparkonce.tck.subject import NewSubject, batch
from sparkonce.tck.suites.suite import Contract

MANY = 120
PARTITIONS = CHUNKS = 12


class VolumeRules(Contract):
    """Checks of what a store lists, fetches and orders in large numbers."""

    def test_s05_many_attempts_and_sinks_are_all_listed(self, new_subject: NewSubject) -> None:
        """One call also discards all of them."""
        world = new_subject()
        run, payload = Query(world).start(), world.encode(batch(["a"]))
        tasks = [run.task(0, number) for number in range(MANY)]
        sinks = [Query(world, id=f"query-{number}").start() for number in range(MANY)]
        for task in (*tasks, *(sink.task(0) for sink in sinks)):
            world.store.stage(Chunk(task, 0, 1, payload))
        world.settle()
        found = {one.attempt for one in world.observer.staged(run.query.name)}
        require(
            found == {task.attempt for task in tasks},
            f"staged lists {len(found)} of {MANY} attempts",
        )
        unlisted = {sink.query.name for sink in sinks} - set(world.observer.names())
        require(not unlisted, f"names leaves out {len(unlisted)} of {MANY} sinks")
        world.store.discard(run.query.name, [task.attempt for task in tasks])
        world.settle()
        left = world.observer.staged(run.query.name)
        require(not left, f"after discard {len(left)} of {MANY} attempts are left")

    def test_s08_many_chunks_take_effect_in_order(self, new_subject: NewSubject) -> None:
        """Partition 2 before partition 10, chunk 2 before chunk 10; staged in any order."""
        world = new_subject()
        run = Query(world).start()
        rows = [[f"{p}.{n}" for n in range(2 * CHUNKS)] for p in range(PARTITIONS)]
        tasks = [(run.task(0, number), rows[number]) for number in range(PARTITIONS)]
        receipts = [run.stage_task(task, ids) for task, ids in reversed(tasks)]
        run.commit(0, receipts)
        wanted = [row for ids in rows for row in ids]
        require_rows(world, set(wanted), witnessed=False)
        order = world.in_order() or wanted
        swapped = [pair for pair in zip(order, wanted, strict=True) if pair[0] != pair[1]]
        require(
            not swapped, f"row (partition.row) {swapped[:1]}: the first took effect, not the second"
        )
