"""Rule C22: a decision that is finished late, after other writers of its target have decided."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import suppress
from dataclasses import replace
from functools import partial
from itertools import product
from typing import Any

from sparkonce.errors import BatchOvertaken, DecisionDropped, SparkonceError
from sparkonce.operate.admin import Admin, SinkStatus
from sparkonce.protocol import Follows
from sparkonce.tck.simulation.actors import Query, Run
from sparkonce.tck.simulation.decisions import raises
from sparkonce.tck.simulation.faults import CRASHES, DIES_AFTER, Crash, Fault, FaultyStore
from sparkonce.tck.simulation.oracles import WITNESS, after, require, require_rows, with_witness
from sparkonce.tck.subject import NewSubject, Subject
from sparkonce.tck.suites.suite import Contract

WRITERS: Mapping[str, Mapping[str, Any]] = {
    "stream": {"follows": Follows.NEXT},
    "foreachBatch": {"follows": Follows.GROWS},
    "named batch": {"follows": Follows.GROWS, "named": True},
    "plain batch": {"follows": Follows.ONCE},
}
OLD, NEW, LATER = {f"old/0#{one}" for one in "uvwxyz"}, {"new/0#x", "new/0#y"}, {"later/0#x"}


class OvertakenRules(Contract):
    """Checks of two writers of one target: the first died, and is finished late."""

    def test_c22_newer_decisions_of_others_are_not_undone_in_silence(
        self, new_subject: NewSubject
    ) -> None:
        """Whoever finishes it: `recover`, another batch, or its own job, run again."""
        for happened, old in _overtaken(new_subject):
            with after(happened):
                _require_refused(old)
                if old.follows is Follows.NEXT:
                    raises(BatchOvertaken, Admin(old.store).recover, _status(old))
                Admin(old.store).recover(_status(old), over_newer=True)
                require_rows(old.world, {*OLD, *NEW})

    def test_c22_a_stream_that_restarts_continues(self, new_subject: NewSubject) -> None:
        """It finishes its own epoch; if it shares keys with others, its rows may be older."""
        for happened, old in _overtaken(new_subject, firsts=("stream", "foreachBatch")):
            with after(happened):
                _write(old, OLD)
                require_rows(old.world, {*OLD, *NEW})

    def test_c22_an_overwrite_is_no_stream_that_continues(self, new_subject: NewSubject) -> None:
        """In ``foreachBatch`` it would remove rows that others have written since."""
        for call in ("decide", "apply", "swap"):
            old = _writer(new_subject(), "foreachBatch", "old", empties=True)
            _dies(old, call, OLD)
            if _is_open(old):
                _write(_writer(old.world, "stream", "new"), NEW)
                raises(BatchOvertaken, _write, old, OLD)

    def test_c22_a_dropped_decision_no_longer_takes_effect(self, new_subject: NewSubject) -> None:
        """Its applied rows stay, and its dropped rows are counted; others continue."""
        for happened, old in _overtaken(new_subject):
            with after(happened):
                before = old.world.took_effect()
                require(Admin(old.store).drop(_status(old)), "drop found no decision")
                Admin(old.store).recover(_status(old))
                if old.follows is not Follows.ONCE:
                    _write(old, OLD)
                now = old.world.took_effect()
                require(now == before, f"rows took effect after drop: {now - before}")
                dropped = old.ledger.totals.dropped
                require(dropped == 2 * len(OLD), f"drop counted {dropped} rows")
                _write(_writer(old.world, "plain batch", "later"), LATER)
                wanted = before.keys() - {WITNESS} | LATER
                for number in (1, 2) if old.follows is not Follows.ONCE else ():
                    _write(old, row := {f"old/{number}#x"}, number)
                    wanted |= row
                require_rows(old.world, wanted)

    def test_c22_a_driver_that_applies_a_dropped_decision_stops(
        self, new_subject: NewSubject
    ) -> None:
        """Its driver receives an error, and applies no more of it."""
        for kind in WRITERS:
            old = _writer(new_subject(), kind, "old")
            store, admin = old.faulty(), Admin(old.world.store)
            store.before("apply", partial(_drop, admin, old))
            with after(f"drop removed a {kind} before its first chunk was applied"):
                if "apply" in _calls(old, store):
                    now = old.world.took_effect()
                    require(not now, f"rows took effect: {now}")

    def test_c22_an_earlier_decision_is_no_reason(self, new_subject: NewSubject) -> None:
        """A decision is finished, no matter who wrote to the target before it."""
        for kind in WRITERS:
            world = new_subject()
            _write(_writer(world, kind, "new"), NEW)
            old = _writer(world, "plain batch", "old")
            _dies(old, "apply", OLD)
            with after(f"a {kind} wrote, then a batch died before all its rows were applied"):
                Admin(world.store).recover(_status(old))
                require_rows(world, {*OLD, *NEW})

    def test_c22_what_commutes_is_finished(self, new_subject: NewSubject) -> None:
        """Appends and increments; and a batch whose keys no other writer of the target has."""
        for happened, old in _overtaken(new_subject, commutes=True):
            with after(happened):
                _write(_writer(old.world, "plain batch", "later"), LATER)
                require_rows(old.world, {*OLD, *NEW, *LATER})

    def test_c22_a_batch_that_ended_is_remembered_while_an_older_one_waits(
        self, new_subject: NewSubject
    ) -> None:
        """It looked for others before they decided, and would remove its record at its end."""
        for call, rows in product(("publish", "decide"), (OLD, {"old/0#x"})):
            world = new_subject()
            old, new = (_writer(world, "plain batch", name) for name in ("old", "new"))
            store = new.faulty()
            store.before(call, partial(_dies, old, "decide", rows))
            _write(new, NEW)
            if not _is_open(old):
                continue
            with after(f"before its {call}, another batch decided and died; then this one ended"):
                world.settle()
                Admin(world.store).sweep(grace=0)
                _require_refused(old)


def _overtaken(
    new_subject: NewSubject, *, firsts: tuple[str, ...] = tuple(WRITERS), commutes: bool = False
) -> Iterator[tuple[str, Query]]:
    """Writers that died with a decision, after which another one wrote: each, with a text."""
    pace = new_subject().step
    for number, (first, second, fault) in enumerate(product(firsts, WRITERS, CRASHES)):
        if number % min(pace, len(CRASHES)) == 0:
            yield from _of_pair(new_subject, first, second, fault, commutes=commutes)


def _of_pair(
    new_subject: NewSubject, first: str, second: str, fault: Fault, *, commutes: bool
) -> Iterator[tuple[str, Query]]:
    for call in ("publish", "decide", "apply", "swap"):
        old = _writer(new_subject(), first, "old", commutes=commutes)
        _dies(old, call, OLD, fault)
        if not _is_open(old):
            continue
        _write(_writer(old.world, second, "new"), NEW)
        what = f"a {first} died at {call} ('{fault}'), then a {second} wrote"
        if _is_open(old):
            yield what, old
        else:
            with after(what):
                require_rows(old.world, {*OLD, *NEW})


def _writer(
    world: Subject, kind: str, name: str, *, commutes: bool = False, empties: bool = False
) -> Query:
    checkpoint = f"/checkpoints/{name}" if kind == "stream" else None
    planned = replace(world.plan, commutes=commutes, empties=empties)
    return Query(world, id=name, checkpoint=checkpoint, plan=planned, **WRITERS[kind])


def _write(query: Query, rows: set[str], number: int = 0) -> None:
    run = query.start()
    if query.named or query.follows is Follows.ONCE:
        run = Run(query, "")
    first, *others = sorted(rows)
    run.write(number, with_witness([first]), with_witness(others))


def _dies(query: Query, call: str, rows: set[str], fault: Fault = DIES_AFTER) -> None:
    """Write, and die at the first call of this name, if any."""
    query.faulty().fail_next(call, fault)
    with suppress(Crash, SparkonceError):
        _write(query, rows)
    query.through = None
    query.world.settle()


def _calls(query: Query, store: FaultyStore) -> list[str]:
    """Write, and accept that an operator dropped it; return the calls."""
    with suppress(DecisionDropped):
        _write(query, OLD)
    return store.calls


def _is_open(query: Query) -> bool:
    return _status(query).is_unfinished


def _drop(admin: Admin, query: Query) -> None:
    admin.drop(_status(query))


def _status(query: Query) -> SinkStatus:
    return Admin(query.world.store).sink(query.name)


def _require_refused(old: Query) -> None:
    """Check that no process finishes it without an explicit request."""
    before = old.world.took_effect()
    raises(BatchOvertaken, Admin(old.store).recover, _status(old))
    raises(BatchOvertaken, _write, _writer(old.world, "plain batch", "later"), LATER)
    if old.named:
        raises(BatchOvertaken, _write, old, OLD)
    now = old.world.took_effect()
    require(now == before, f"rows took effect late, over newer ones: {now - before}")
