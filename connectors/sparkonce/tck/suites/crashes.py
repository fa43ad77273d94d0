"""Rules C01 to C03 and I03: every call to the store is a crash point.

For each call of a fault-free run and each kind of fault the check runs, fails there, restarts, and
replays with other rows until it has committed all epochs. It then lets every late request arrive.
Every epoch must have taken effect once, as a whole.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from itertools import count

from sparkonce.errors import CommitRefused, ConcurrentDriver, StaleSkip
from sparkonce.tck.simulation.actors import Query
from sparkonce.tck.simulation.faults import (
    CRASHES,
    LATE,
    LOSSES,
    REPEATS,
    REPLY_LOST,
    REQUEST_LOST,
    Fault,
    FaultyStore,
)
from sparkonce.tck.simulation.oracles import (
    after,
    require,
    require_agreement,
    require_clean,
    require_exactly_once,
    require_no_leftovers,
    require_rows,
    require_whole,
    with_witness,
)
from sparkonce.tck.simulation.race import reading
from sparkonce.tck.simulation.restarts import SimulatedSpark
from sparkonce.tck.subject import NewSubject, Subject
from sparkonce.tck.suites.suite import Contract

Scenario = Callable[[Subject], list[SimulatedSpark]]
ZOMBIES = (ConcurrentDriver, StaleSkip)
"""Errors by which a commit may reject a run after a late request of an earlier run."""


def one_query(world: Subject) -> list[SimulatedSpark]:
    """Two epochs of one query, with restarts."""
    spark = SimulatedSpark(Query(world))
    spark.run_to(1)
    return [spark]


def moved_query(world: Subject) -> list[SimulatedSpark]:
    """A query that an operator stops and moves; an option then names its former checkpoint."""
    query = Query(world, checkpoint=None)
    spark = SimulatedSpark(query)
    spark.run_to(0)
    for path in ("/here", "/there"):
        query.checkpoint = path
        spark.run_to(spark.checkpoint.committed + 1)
    return [spark]


def replaced_query(sink_id: str | None) -> Scenario:
    """A query whose checkpoint is deleted, and the query that continues for it."""

    def run(world: Subject) -> list[SimulatedSpark]:
        old = SimulatedSpark(Query(world, id="old", sink_id=sink_id))
        new = SimulatedSpark(
            Query(world, id="new", sink_id=sink_id, on_new_checkpoint="continue:old")
        )
        old.run_to(0)
        new.run_to(0)
        went_on = old.run_until_failure(1)
        seen = f"query 'old' was replaced by 'new', and commits epoch {old.checkpoint.committed}"
        require(not went_on, seen)
        return [old, new]

    return run


def calls_of(new_subject: NewSubject, scenario: Scenario) -> list[str]:
    """The calls of a run without faults."""
    world = new_subject()
    store = FaultyStore(world.connect(), connect=world.connect)
    world.store = store
    scenario(world)
    return store.calls


def fail(world: Subject, scenario: Scenario, faults: dict[int, Fault]) -> list[SimulatedSpark]:
    """Run with faults, let late requests arrive, commit one more epoch without any, and count.

    Raises:
        AssertionError: an oracle found a fault.
    """
    store = FaultyStore(world.connect(), faults, connect=world.connect)
    world.store = store
    sparks = scenario(world)
    require_exactly_once(*sparks)
    store.deliver_all()
    world.store = world.observer
    world.settle()
    sparks[-1].run_to(sparks[-1].checkpoint.committed + 1)
    require_exactly_once(*sparks)
    require_clean(world, *(spark.query for spark in sparks))
    return sparks


def fail_everywhere(
    new_subject: NewSubject,
    scenario: Scenario,
    faults: Sequence[Fault],
    *,
    allowed: tuple[type[CommitRefused], ...] = (),
) -> None:
    """Try each fault at each call.

    Args:
        new_subject: creates a store for each try.
        scenario: the queries to run.
        faults: kinds of fault.
        allowed: errors with which a commit of the last query may fail meanwhile.

    Raises:
        AssertionError: one of them loses or duplicates rows, or rejects a valid commit.
    """
    calls = calls_of(new_subject, scenario)
    require(len(calls) > 20, f"the scenario makes only {len(calls)} calls")
    for fault, at in _points(faults, calls, new_subject().step):
        try:
            last = fail(new_subject(), scenario, {at: fault})[-1]
        except Exception as error:
            kind = "" if isinstance(error, AssertionError) else f"{type(error).__name__}: "
            where = f"fault '{fault}' at call {at} of {len(calls)} ({calls[at]})"
            raise AssertionError(f"{kind}{error}\n  after: {where}") from error
        strange = [error for error in last.refusals if not isinstance(error, allowed)]
        said = "; ".join(f"{type(error).__name__} ({error})" for error in strange)
        where = f"fault '{fault}' at call {at} of {len(calls)} ({calls[at]})"
        require(not strange, f"a commit was rejected: {said}\n  after: {where}")


def _points(
    faults: Sequence[Fault], calls: Sequence[str], pace: int
) -> Iterator[tuple[Fault, int]]:
    for number, fault in enumerate(faults):
        points = [at for at, call in enumerate(calls) if call == "apply" or not fault.within]
        for at in points[number % pace :: 1 if fault.within else pace]:
            yield fault, at


def _fail_in_one_commit(new_subject: NewSubject, fault: Fault) -> None:
    """Try a fault at each call of a single commit, which must still succeed."""
    for at in count():
        world = new_subject()
        query = Query(world)
        run = query.start()
        receipts = run.stage(0, with_witness(["a/0#x", "a/0#y"]))
        store = query.faulty()
        store.fail_at(at, fault)
        with after(f"fault '{fault}' at call {at} of a commit, and at no other"):
            run.commit(0, receipts)
            store.deliver_all()
            require_rows(world, {"a/0#x", "a/0#y"})
            require_agreement(world, query)
        if at >= len(store.calls):
            return


class CrashRules(Contract):
    """Checks with a fault at every call."""

    def test_c01_a_crash_at_any_call_changes_nothing(self, new_subject: NewSubject) -> None:
        """The process dies before or after each call."""
        fail_everywhere(new_subject, one_query, CRASHES)

    def test_c01_a_crash_in_a_moved_query_changes_nothing(self, new_subject: NewSubject) -> None:
        """The checkpoint path becomes known, and changes."""
        fail_everywhere(new_subject, moved_query, CRASHES)

    def test_c02_a_lost_request_or_reply_at_any_call_changes_nothing(
        self, new_subject: NewSubject
    ) -> None:
        """For one call, or for as long as a server takes to restart."""
        fail_everywhere(new_subject, one_query, LOSSES)

    def test_c02_a_request_in_flight_does_not_count_as_lost(self, new_subject: NewSubject) -> None:
        """It arrives while the commit that sent it resolves its outcome: no commit is rejected."""
        for fault in LATE[:3]:
            _fail_in_one_commit(new_subject, fault)

    def test_c02_one_lost_request_or_reply_does_not_fail_a_commit(
        self, new_subject: NewSubject
    ) -> None:
        """The commit resolves the outcome itself, and continues without a restart."""
        for fault in (REQUEST_LOST, REPLY_LOST):
            _fail_in_one_commit(new_subject, fault)

    def test_c03_a_request_that_arrives_again_changes_nothing(
        self, new_subject: NewSubject
    ) -> None:
        """Immediately, or some calls later."""
        fail_everywhere(new_subject, one_query, REPEATS, allowed=ZOMBIES)

    def test_c03_a_request_that_arrives_late_changes_nothing(self, new_subject: NewSubject) -> None:
        """Up to thirty calls later, from live and from dead processes."""
        fail_everywhere(new_subject, one_query, LATE, allowed=ZOMBIES)

    def test_c08_nothing_stays_staged_after_any_crash(self, new_subject: NewSubject) -> None:
        """Zombies stage after everything else; one commit later their rows are removed."""
        for at in range(0, len(calls_of(new_subject, one_query)), 3):
            world = new_subject()
            [spark] = fail(world, one_query, {at: CRASHES[at % 2]})
            spark.query.start().stage_late(0, ["late"])
            spark.query.start().stage_late(spark.checkpoint.committed, ["late"])
            world.settle()
            spark.run_to(spark.checkpoint.committed + 1)
            require_no_leftovers(world, spark.query)
            require_clean(world, spark.query)

    def test_c13_readers_see_whole_epochs(self, new_subject: NewSubject) -> None:
        """A reader reads before every call, with a crash at each."""
        new_subject().need("whole epochs")
        for at in range(0, len(calls_of(new_subject, one_query)), new_subject().step):
            world = new_subject()
            faults = {at: CRASHES[1]}
            world.store = FaultyStore(world.connect(), faults, connect=world.connect)
            spark = SimulatedSpark(Query(world))
            seen = world.store.watch(world.took_effect)
            spark.run_to(2)
            require(len(seen) > 20, f"read only {len(seen)} times")
            require_whole(seen, spark)

    def test_c13_a_reader_beside_commits_sees_whole_epochs(self, new_subject: NewSubject) -> None:
        """The reader reads all the time, in its own thread."""
        world = new_subject()
        world.need("whole epochs")
        spark = SimulatedSpark(Query(world))
        with reading(world.took_effect) as seen:
            spark.run_to(12)
        require(len(seen) > 5, f"read only {len(seen)} times")
        require_whole(seen, spark)

    def test_i03_a_fault_in_a_take_over_changes_nothing(self, new_subject: NewSubject) -> None:
        """A new query takes the sink of an old one, with a fault at any call of either."""
        faults = [*CRASHES, *LOSSES[:2], LATE[1], LATE[6]]
        for sink_id in (None, "orders"):
            scenario = replaced_query(sink_id)
            fail_everywhere(new_subject, scenario, faults, allowed=(CommitRefused,))
