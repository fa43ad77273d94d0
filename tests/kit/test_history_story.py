"""The story of the recordings, told to the store in memory: what it would notice."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest
from integration.counters import COUNTER
from integration.epochs import DirectQuery
from integration.history import story

from sparkonce.errors import SparkonceError
from sparkonce.exactly_once.guards import Policy
from sparkonce.exactly_once.ledger import Ledger, from_record
from sparkonce.exactly_once.retry import Patience
from sparkonce.exactly_once.staging import ChunkSize
from sparkonce.sink import Sink
from sparkonce.tck.memory_subject import PLAN
from sparkonce.tck.simulation.memory import MemoryStore

ENDINGS = pytest.mark.parametrize("ending", [story.goes_on, story.is_recovered])


class MemoryQuery(DirectQuery):
    """A query into a store in memory that applies an epoch chunk by chunk."""

    def __init__(self) -> None:
        super().__init__(COUNTER)
        self.store = MemoryStore(whole_epochs=False)

    @property
    def sink(self) -> Sink:
        size = ChunkSize(int(story.CHUNK), 1 << 20)
        return Sink(
            self.store,
            PLAN,
            lambda _: _encode,
            Policy(repeatable=False),
            Patience(0),
            size,
            None,
            None,
        )

    def counts(self) -> Counter[int]:
        return Counter(map(int, self.store.rows))


def _encode(rows: Any) -> bytes:
    return json.dumps([str(one) for one in rows.column("id").to_pylist()]).encode()


def ledger_is_lost(query: MemoryQuery, _: Ledger) -> None:
    query.store.records.clear()


def decision_is_dropped(query: MemoryQuery, ledger: Ledger) -> None:
    put(query, ledger.finished())


def decision_is_taken_back(query: MemoryQuery, ledger: Ledger) -> None:
    put(query, replace(ledger.finished(), epoch=0))


def progress_is_lost(query: MemoryQuery, _: Ledger) -> None:
    query.store.applied.clear()


def put(query: MemoryQuery, ledger: Ledger) -> None:
    record = query.store.records[query.name]
    query.store.records[query.name] = replace(record, body=ledger.to_record().body)


@pytest.fixture
def query() -> MemoryQuery:
    made = MemoryQuery()
    story.tell(made)
    return made


@ENDINGS
def test_story_has_its_end(query: MemoryQuery, ending: Callable[..., None]) -> None:
    ending(query, query.counts)


@ENDINGS
@pytest.mark.parametrize(
    "harm", [ledger_is_lost, decision_is_dropped, decision_is_taken_back, progress_is_lost]
)
def test_story_notices(
    query: MemoryQuery,
    ending: Callable[..., None],
    harm: Callable[[MemoryQuery, Ledger], None],
) -> None:
    ledger = from_record(query.store.read(query.name), query.name)
    assert ledger
    assert ledger.manifest
    harm(query, ledger)
    with pytest.raises((AssertionError, SparkonceError, ValueError)):
        ending(query, query.counts)
