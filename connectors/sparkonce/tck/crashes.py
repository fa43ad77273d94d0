"""Rules C01 to C03 and I03: every call to the store is a crash point.

For each call of a fault-free run and each kind of fault: run, fail there, restart and replay with
other rows until all epochs are committed, let every late request arrive. Then every epoch took
effect once, as one whole.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

from sparkonce.errors import CommitRefused, ConcurrentDriver, StaleSkip
from sparkonce.tck.actors import Query
from sparkonce.tck.contract import Contract
from sparkonce.tck.faults import CRASHES, LATE, LOSSES, REPEATS, Fault, FaultyStore
from sparkonce.tck.oracles import (
    require,
    require_clean,
    require_exactly_once,
    require_no_leftovers,
    require_whole,
)
from sparkonce.tck.restarts import Spark
from sparkonce.tck.subject import NewSubject, Subject

Scenario = Callable[[Subject], list[Spark]]
ZOMBIES = (ConcurrentDriver, StaleSkip)
"""What may refuse a run after a request of an earlier one arrived late."""


def one_query(world: Subject) -> list[Spark]:
    """Two epochs of one query, with restarts."""
    spark = Spark(Query(world))
    spark.run_to(1)
    return [spark]


def moved_query(world: Subject) -> list[Spark]:
    """A query that is stopped, moved, and gets the path of its checkpoint as an option."""
    query = Query(world, checkpoint=None)
    spark = Spark(query)
    spark.run_to(0)
    for path in ("/here", "/there"):
        query.checkpoint = path
        spark.run_to(spark.checkpoint.committed + 1)
    return [spark]


def replaced_query(sink_id: str | None) -> Scenario:
    """A query whose checkpoint is deleted, and the one that goes on for it."""

    def run(world: Subject) -> list[Spark]:
        old = Spark(Query(world, id="old", sink_id=sink_id))
        new = Spark(Query(world, id="new", sink_id=sink_id, on_new_checkpoint="continue:old"))
        old.run_to(0)
        new.run_to(0)
        require(not old.run_until_failure(1), "the old query commits beside the new one")
        return [old, new]

    return run


def calls_of(new_subject: NewSubject, scenario: Scenario) -> list[str]:
    """The calls that a run without faults makes."""
    world = new_subject()
    store = FaultyStore(world.connect())
    world.store = store
    scenario(world)
    return store.calls


def fail(world: Subject, scenario: Scenario, faults: dict[int, Fault]) -> list[Spark]:
    """Run with faults, let late requests arrive, commit one more epoch without any, and count.

    Raises:
        AssertionError: an oracle found something.
    """
    store = FaultyStore(world.connect(), faults)
    world.store = store
    sparks = scenario(world)
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
        new_subject: makes a store for each try.
        scenario: what runs.
        faults: kinds of fault.
        allowed: what may refuse a commit of the last query on its way.

    Raises:
        AssertionError: one of them loses or doubles rows, or refuses what it should not.
    """
    calls = calls_of(new_subject, scenario)
    require(len(calls) > 20, f"the scenario makes {len(calls)} calls only")
    for fault, at in _points(faults, len(calls), new_subject().pace):
        try:
            last = fail(new_subject(), scenario, {at: fault})[-1]
        except Exception as error:
            where = f"'{fault}' at call {at} of {len(calls)}, {calls[at]}"
            raise AssertionError(f"{error}\n  after fault {where}") from error
        strange = [error for error in last.refusals if not isinstance(error, allowed)]
        require(not strange, f"after '{fault}' at call {at} ({calls[at]}): {strange}")


def _points(faults: Sequence[Fault], calls: int, pace: int) -> Iterator[tuple[Fault, int]]:
    for number, fault in enumerate(faults):
        for at in range(number % pace, calls, pace):
            yield fault, at


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
        """For one call, or for as long as a server takes to come back."""
        fail_everywhere(new_subject, one_query, LOSSES)

    def test_c03_a_request_that_arrives_again_changes_nothing(
        self, new_subject: NewSubject
    ) -> None:
        """At once, or some calls later."""
        fail_everywhere(new_subject, one_query, REPEATS, allowed=ZOMBIES)

    def test_c03_a_request_that_arrives_late_changes_nothing(self, new_subject: NewSubject) -> None:
        """Up to thirty calls later, from the living and from the dead."""
        fail_everywhere(new_subject, one_query, LATE, allowed=ZOMBIES)

    def test_c08_nothing_stays_staged_after_any_crash(self, new_subject: NewSubject) -> None:
        """Zombies stage after everything; one commit later their rows are gone."""
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
        """Read before every call, with a crash at each."""
        new_subject().need("whole epochs")
        for at in range(0, len(calls_of(new_subject, one_query)), new_subject().pace):
            world = new_subject()
            world.store = FaultyStore(world.connect(), {at: CRASHES[1]})
            spark = Spark(Query(world))
            seen = world.store.watch(world.took_effect)
            spark.run_to(2)
            require(len(seen) > 20, f"read {len(seen)} times only")
            require_whole(seen, spark)

    def test_i03_a_fault_in_a_take_over_changes_nothing(self, new_subject: NewSubject) -> None:
        """A new query takes the sink of an old one, with a fault at any call of either."""
        faults = [*CRASHES, *LOSSES[:2], LATE[1], LATE[6]]
        for sink_id in (None, "orders"):
            scenario = replaced_query(sink_id)
            fail_everywhere(new_subject, scenario, faults, allowed=(CommitRefused,))
