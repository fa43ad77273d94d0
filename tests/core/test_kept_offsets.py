"""How the offsets of decided epochs are kept in the store, beside the ledger."""

from __future__ import annotations

import json
import os
import re

import pytest
from tests.ledgers import with_fields
from tests.worlds import MemoryWorld

from sparkonce.exactly_once.offsets import LONGEST, Offsets
from sparkonce.operate.admin import Admin
from sparkonce.tck.simulation.actors import Query

KAFKA = Offsets(b'v1\n{"batchWatermarkMs":0}\n{"orders":{"0":17}}')


def test_offsets_come_back_as_they_were() -> None:
    assert KAFKA.packed is not None
    assert Offsets.unpacked(KAFKA.packed) == KAFKA


def test_offsets_that_are_very_long_are_not_kept() -> None:
    many = {str(number): 10**12 + number * 7919 for number in range(20_000)}
    assert Offsets(json.dumps({"topic": many}).encode()).packed is not None
    noise = os.urandom(LONGEST).hex()
    assert Offsets(noise.encode()).packed is None
    assert re.fullmatch("[0-9a-f]{64}", Offsets(noise.encode()).digest)


def offsets_of(epoch: int, partitions: int = 10_000) -> str:
    """Those of a topic of Kafka, with so many partitions."""
    topic = {str(number): 10**12 + epoch * 7919 + number * 104_729 for number in range(partitions)}
    return f'v1\n{{"batchWatermarkMs":0}}\n{json.dumps({"topic": topic})}'


@pytest.mark.parametrize("whole", [True, False])
def test_those_of_the_last_two_epochs_are_kept_and_the_ledger_carries_none(whole: bool) -> None:
    world = MemoryWorld(whole_epochs=whole)
    query, admin = Query(world), Admin(world.connect())
    for epoch in range(3):
        query.start().commit(epoch, [], offsets_of(epoch))
    kept = admin.offsets(query.ledger)
    assert {epoch: one.text.decode() for epoch, one in kept.items()} == {
        epoch: offsets_of(epoch) for epoch in (1, 2)
    }
    assert len(query.ledger.to_record().body) < 2000


def test_those_of_another_query_or_decision_are_not_taken_for_them() -> None:
    world = MemoryWorld()
    query, admin = Query(world), Admin(world.connect())
    for epoch in range(2):
        query.start().commit(epoch, [], offsets_of(epoch, 1))
    ledger = query.ledger
    assert set(admin.offsets(ledger)) == {0, 1}
    assert set(admin.offsets(with_fields(ledger, offsets="another"))) == {0}
    assert set(admin.offsets(with_fields(ledger, former_offsets="another"))) == {1}
    assert set(admin.offsets(with_fields(ledger, former_offsets=None))) == {1}
    assert admin.offsets(ledger.succeeded_by("another")) == {}
    assert admin.offsets(None) == {}


def test_a_sink_that_is_forgotten_keeps_none() -> None:
    world = MemoryWorld()
    query, admin = Query(world), Admin(world.connect())
    query.start().commit(0, [], offsets_of(0))
    assert [sink.name for sink in admin.sinks()] == [query.name]
    admin.forget(query.name)
    assert world.memory.names() == [query.name]
