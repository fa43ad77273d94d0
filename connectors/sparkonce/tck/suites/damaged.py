"""Rule C23: records of a store that another program wrote or damaged."""

from __future__ import annotations

from dataclasses import replace

from sparkonce.errors import RecordDamaged
from sparkonce.exactly_once.registers import claim_name
from sparkonce.operate.admin import Admin
from sparkonce.protocol import Record
from sparkonce.tck.simulation.actors import Query
from sparkonce.tck.simulation.decisions import raises
from sparkonce.tck.simulation.oracles import after, require, require_rows, with_witness
from sparkonce.tck.subject import NewSubject, Subject
from sparkonce.tck.suites.suite import Contract

BODIES = ("", "{", "[]", '{"format":1}', '{"format":1,"decision":{"manifest":7}}', "\x1b[2J")


class DamagedRules(Contract):
    """Checks of a sink with an unreadable record, beside one with a readable record."""

    def test_c23_an_unreadable_ledger_stops_its_own_sink(self, new_subject: NewSubject) -> None:
        """Nothing overwrites it until an operator says so."""
        for body in BODIES:
            with after(f"the body of a ledger became {body!r}"):
                world = new_subject()
                hurt, well = _two(world)
                _damage(world, hurt.name, body)
                raises(RecordDamaged, hurt.start().write, 1, with_witness(["h/1#0"]))
                well.start().write(1, with_witness(["w/1#0"]))
                self._require_operable(world, hurt, well)
                require_rows(world, {"h/0#0", "w/0#0", "w/1#0"})

    def _require_operable(self, world: Subject, hurt: Query, well: Query) -> None:
        """Status, recover and gc continue with other sinks; forget gives the damaged one up."""
        admin = Admin(world.store)
        found = {sink.name: sink for sink in admin.sinks()}
        damaged = [sink.name for sink in found.values() if sink.damage is not None]
        require(damaged == [hurt.name], f"sinks reported as damaged: {damaged}")
        require(hurt.name in found[hurt.name].state, f"{found[hurt.name].state} names no record")
        for sink in found.values():
            require(not admin.gc(sink, 0.0), f"gc dropped attempts of {sink.name}")
        raises(RecordDamaged, admin.recover, found[hurt.name])
        admin.sweep(0.0, 0.0)
        left = {sink.name for sink in admin.sinks()}
        require(left == {hurt.name, well.name}, f"sinks after gc: {left}")
        admin.forget(hurt.name)
        left = {sink.name for sink in admin.sinks()}
        require(left == {well.name}, f"sinks after forget: {left}")

    def test_c23_an_unreadable_claim_is_named(self, new_subject: NewSubject) -> None:
        """A new query at its path stops; one that continues there needs no claim."""
        world = new_subject()
        query, _ = _two(world)
        path = claim_name(query.target, query.checkpoint or "")
        _damage(world, path, "{")
        query.start().write(1, with_witness(["h/1#0"]))
        next_ = Query(world, id="next", checkpoint=query.checkpoint)
        raises(RecordDamaged, next_.start().write, 0, with_witness(["n/0#0"]))
        Admin(world.store).forget(query.name)
        require_rows(world, {"h/0#0", "h/1#0", "w/0#0"})


def _two(world: Subject) -> tuple[Query, Query]:
    queries = tuple(Query(world, id=one, checkpoint=f"/checkpoints/{one}") for one in "hw")
    for query in queries:
        query.start().write(0, with_witness([f"{query.id}/0#0"]))
    hurt, well = queries
    return hurt, well


def _damage(world: Subject, name: str, body: str) -> None:
    there: Record = world.observer.read(name)
    hurt = replace(there, revision=there.revision + 1, stamp="damaged", body=body)
    world.observer.swap(name, hurt, there.stamp)
