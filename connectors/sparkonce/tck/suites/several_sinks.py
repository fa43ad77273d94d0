"""Rule S12: sinks that share a target, a store, or almost a name."""

from __future__ import annotations

from functools import partial

from sparkonce.protocol import Record
from sparkonce.store import Store
from sparkonce.tck.simulation.actors import Query
from sparkonce.tck.simulation.decisions import Write, brief, write
from sparkonce.tck.simulation.oracles import (
    after,
    require,
    require_agreement,
    require_rows,
    require_witness,
    with_witness,
)
from sparkonce.tck.subject import NewSubject
from sparkonce.tck.suites.applies import ApplyRules

LONG = "x" * 99
ALIKE = [("orders", "Orders"), ("a_b", "a-b"), ("a.b", "a-b"), (f"{LONG}y", f"{LONG}z")]
"""Sink ids that a collation, a pattern or a key of limited length may confuse."""


class SinkRules(ApplyRules):
    """Checks of neighbouring sinks."""

    def test_s12_sinks_of_one_target_do_not_affect_each_other(
        self, new_subject: NewSubject
    ) -> None:
        """Two queries write epochs in turns, with a row id in common."""
        world = new_subject()
        queries = [Query(world, id=name, checkpoint=f"/checkpoints/{name}") for name in "ab"]
        runs = [query.start() for query in queries]
        for epoch in range(3):
            both = [run.stage(epoch, with_witness([f"{run.query.id}{epoch}"])) for run in runs]
            for run, receipts in zip(runs, both, strict=True):
                run.commit(epoch, receipts)
        require_witness(world)
        held = world.took_effect()
        require(len(held) == 7, f"six rows and their witness were written: {held}")

    def test_s12_a_commit_of_one_sink_in_the_middle_of_another(
        self, new_subject: NewSubject
    ) -> None:
        """Before each of its calls in turn, the other sink commits an epoch to the same target."""
        for call in ("prepare", "publish", "decide", "swap", "apply", "discard"):
            world = new_subject()
            slow, fast = (Query(world, id=name, checkpoint=f"/checkpoints/{name}") for name in "ab")
            both, wanted = (slow.start(), fast.start()), set[str]()
            for epoch in range(2):
                rows = [[f"{run.query.id}/{epoch}#{n}" for n in range(3)] for run in both]
                first, second = (
                    partial(run.commit, epoch, run.stage(epoch, with_witness(each)))
                    for run, each in zip(both, rows, strict=True)
                )
                store = slow.faulty()
                store.before(call, second)
                wanted.update(*rows)
                with after(f"before {call} of epoch {epoch} another sink committed its own"):
                    first()
                    if call not in store.calls:
                        second()
                    require_rows(world, wanted)
                    require_agreement(world, slow, fast)

    def test_s12_names_that_look_alike_are_names_of_two_sinks(
        self, new_subject: NewSubject
    ) -> None:
        """Ids that differ in case, in one sign, or only near their end: their records and logs."""
        for ids in ALIKE:
            world = new_subject()
            runs = [Query(world, sink_id=sink_id).start() for sink_id in ids]
            writes = [write(sink_id) for sink_id in ids]
            for run, one in zip(runs, writes, strict=True):
                what = f"no record of {one.new.body!r}"
                require_swap(world.store, run.query.name, one, one.new, what)
            for run, (new, _) in zip(runs, writes, strict=True):
                seen = world.observer.read(run.query.name)
                require(seen == new, f"{ids} have records; {new.body!r} returned {brief(seen)}")
            runs[0].stage_late(0, ["a"])
            world.settle()
            found = world.observer.staged(runs[1].query.name)
            require(not found, f"{ids[0]!r} has staged chunks, and {ids[1]!r} lists {found}")


def require_swap(store: Store, name: str, one: Write, there: Record, over: str) -> None:
    """Check that a swap returns the record that the store must have afterwards."""
    answer = store.swap(name, *one)
    seen = (
        f"a swap over {over}: wrote {brief(one.new)}, returned {brief(answer)}, not {brief(there)}"
    )
    require(answer == there, seen)
