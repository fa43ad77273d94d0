"""A ledger and a claim that an earlier release wrote, under a place as the user spelled it."""

from __future__ import annotations

from dataclasses import replace
from itertools import count

import pytest
from tests.worlds import TARGET, MemoryWorld

from sparkonce.errors import CheckpointReplaced, QueryRetired
from sparkonce.exactly_once.registers import claim_name
from sparkonce.operate.admin import Admin
from sparkonce.places import spellings
from sparkonce.protocol import Record
from sparkonce.tck.simulation.actors import Query
from sparkonce.tck.simulation.faults import DIES_AFTER, DIES_BEFORE, REPLY_LOST, Crash, Fault

GIVEN = "s3a://bucket//orders/"
STORED = {
    "checkpoint/78783918af588e8b": Record(1, "c1", "", '{"sink": "old@cdaa34252a408990"}'),
    "old@cdaa34252a408990": Record(
        3,
        "l3",
        "a2c02431e3524b8b98c0c99e10b61494",
        '{"format":1,"name":"old@cdaa34252a408990","query_id":"old","target":"memory:rows",'
        '"repeatable":false,"retired":[],"generation":1,"epoch":0,'
        '"token":"a2c02431e3524b8b98c0c99e10b61494","manifest":null,"run_id":"run-0",'
        '"past_runs":[],"replayed":{},"doomed":{},"checkpoint":"s3a://bucket//orders",'
        '"offsets":null,"former_offsets":null,"decided_at":1795515975.3634043,"rows":1,"aside":0,'
        '"unstored":0,"epochs":1,"updated":1795515975.363583,"revision":3,'
        '"stamp":"l3","replaces":"l2","inherits":false,"forgotten":false}',
    ),
}
"""What the release before this spelling left of one epoch of query `old` at `GIVEN`."""


def left() -> MemoryWorld:
    """A store as the earlier release left it."""
    found = MemoryWorld()
    for name, record in STORED.items():
        found.memory.swap(name, record, "")
    return found


@pytest.fixture
def world() -> MemoryWorld:
    return left()


def query(world: MemoryWorld, id: str, given: str = GIVEN, *, repeatable: bool = False) -> Query:  # noqa: A002
    """A query of this release, whose checkpoint a user spells so."""
    now, *old = spellings(given)
    return Query(world, id, checkpoint=now, formerly=tuple(old), repeatable=repeatable)


def as_then(world: MemoryWorld, id: str, given: str, *, repeatable: bool = False) -> Query:  # noqa: A002
    """A query of the earlier release."""
    return Query(world, id, checkpoint=given.rstrip("/"), repeatable=repeatable)


def test_a_running_query_goes_on_and_its_place_gets_the_new_spelling(world: MemoryWorld) -> None:
    running = query(world, "old")
    running.start().write(1, ["b"])
    running.start().write(2, ["c"])
    assert world.rows == ["b", "c"]
    assert running.ledger.checkpoint == "s3://bucket/orders"


@pytest.mark.parametrize("given", [GIVEN, "s3a://bucket//orders"])
def test_a_checkpoint_deleted_before_the_upgrade_is_noticed(world: MemoryWorld, given: str) -> None:
    with pytest.raises(CheckpointReplaced, match="continue:old"):
        query(world, "new", given).start().write(0, ["again"])
    assert world.rows == []


@pytest.mark.parametrize("given", ["s3://bucket/orders", "s3n://bucket/orders/", GIVEN])
def test_a_checkpoint_deleted_after_the_upgrade_is_noticed_under_any_spelling(
    world: MemoryWorld, given: str
) -> None:
    query(world, "old").start().write(1, ["b"])
    with pytest.raises(CheckpointReplaced, match="continue:old"):
        query(world, "new", given).start().write(0, ["again"])


@pytest.mark.parametrize(
    ("sink_id", "given"), [(None, GIVEN), ("orders", GIVEN), ("orders", "s3://bucket/orders")]
)
def test_an_upsert_takes_its_place_over_as_it_did(sink_id: str | None, given: str) -> None:
    """Where a sink id names the ledger, the place may be spelled anew at the same time."""
    world = MemoryWorld()
    before = replace(as_then(world, "old", GIVEN, repeatable=True), sink_id=sink_id)
    before.start().write(0, ["a"])
    after = replace(query(world, "new", given, repeatable=True), sink_id=sink_id)
    after.start().write(0, ["a"])
    assert after.ledger.retired == ("old",)
    with pytest.raises(QueryRetired):
        replace(query(world, "old", repeatable=True), sink_id=sink_id).start().write(1, ["b"])


@pytest.mark.parametrize("first", ["s3://bucket/orders", "s3a://bucket/orders", GIVEN])
def test_a_query_that_ran_is_not_refused_for_one_that_spelled_its_place_otherwise(
    first: str,
) -> None:
    """The earlier release took them for two places, and let the second begin."""
    world = MemoryWorld()
    spelled = [first, *{"s3a://bucket/orders", "s3://bucket/orders"} - {first}]
    for number, given in enumerate(spelled):
        as_then(world, f"q{number}", given).start().write(0, [f"{number} 0"])
    for number, given in enumerate(spelled):
        for epoch in (1, 2):
            query(world, f"q{number}", given).start().write(epoch, [f"{number} {epoch}"])
    assert len(world.rows) == 3 * len(spelled)


def test_the_last_one_that_ran_there_holds_the_place(world: MemoryWorld) -> None:
    as_then(world, "first", "s3://bucket/orders").start().write(0, ["x"])
    query(world, "old").start().write(1, ["b"])
    with pytest.raises(CheckpointReplaced, match="continue:old"):
        query(world, "new").start().write(0, ["again"])


@pytest.mark.parametrize("fault", [DIES_BEFORE, DIES_AFTER, REPLY_LOST], ids=str)
def test_the_first_commit_after_the_upgrade_may_die_anywhere(fault: Fault) -> None:
    for at in count():
        world = left()
        running = query(world, "old")
        store = running.faulty()
        store.fail_at(at, fault)
        try:
            running.start().write(1, ["b"])
        except Crash:
            running.through = None
            running.start().write(1, ["b"])
        with pytest.raises(CheckpointReplaced, match="continue:old"):
            query(world, "new").start().write(0, ["again"])
        assert world.rows == ["b"]
        if at >= len(store.calls):
            assert at > 6
            return


def test_a_place_that_was_forgotten_is_free(world: MemoryWorld) -> None:
    query(world, "old").start().write(1, ["b"])
    Admin(world.memory).forget("old@cdaa34252a408990")
    assert not world.memory.read(claim_name(TARGET, "s3a://bucket//orders")).revision
    query(world, "new").start().write(0, ["again"])
    assert world.rows == ["b", "again"]
