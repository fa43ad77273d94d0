"""Scenarios over the store in memory: a query that dies, a ledger that moves, a refusal."""

from __future__ import annotations

import traceback
from collections.abc import Callable

import pyarrow as pa
import pytest

from sparkonce.errors import OptionError
from sparkonce.protocol import Receipt
from sparkonce.tck.memory_subject import PLAN, MemorySubject
from sparkonce.tck.simulation.actors import Query
from sparkonce.tck.simulation.faults import DIES_BEFORE, Crash
from sparkonce.tck.simulation.memory import MemoryStore

TARGET = PLAN.target
SCHEMA = pa.schema(
    [
        ("id", pa.int64()),
        ("name", pa.string()),
        ("x", pa.float64()),
        ("price", pa.decimal128(10, 2)),
        ("tags", pa.list_(pa.string())),
    ]
)
"""What tests of options write: columns that a key, a number or a sequence can be, and can't."""


class MemoryWorld(MemorySubject):
    """A store in memory that publishes whole epochs, or applies them chunk by chunk."""

    def __init__(self, *, whole_epochs: bool = True) -> None:
        super().__init__(MemoryStore(whole_epochs=whole_epochs))


def move_ledger(query: Query, epoch: int = 0) -> None:
    """A driver that starts beside the query aborts what a task of its own has staged."""
    run = Query(query.world).start()
    run.abort(epoch, run.stage(epoch, ["aborted"]))


def die_before(query: Query, call: str, epoch: int, *partitions: list[str]) -> list[Receipt]:
    """A driver stages an epoch, and dies in its commit right before the first such call."""
    run = query.start()
    receipts = run.stage(epoch, *partitions)
    query.faulty().fail_next(call, DIES_BEFORE)
    with pytest.raises(Crash):
        run.commit(epoch, receipts)
    query.through = None
    return receipts


def decide_and_die(query: Query, epoch: int, *partitions: list[str]) -> None:
    """A driver decides an epoch and dies before it has applied anything.

    Only a store that applies chunk by chunk leaves one so.
    """
    die_before(query, "apply", epoch, *partitions)
    assert query.ledger.decision.epoch == epoch
    assert query.ledger.decision.manifest is not None


def encode(rows: object) -> bytes:
    """Rows as a chunk."""
    return MemoryWorld().encode(rows)


def assert_refused(make: Callable[[], object], said: str, *secrets: str) -> None:
    """An option error says this, and what to do; no secret is shown, nor in what caused it."""
    with pytest.raises(OptionError) as refused:
        make()
    assert said in str(refused.value)
    assert refused.value.todo
    told = traceback.format_exception(refused.value)
    shown = [one for one in told if not one.startswith("  File")]  # which is source code
    assert not [secret for secret in secrets if secret in "".join(shown)]
