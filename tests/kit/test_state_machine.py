"""A Hypothesis state machine against a plain model: which try of which epoch took effect.

The model knows nothing of ledgers: it is a dict of (query, epoch) and rows. After each step the
target equals its values, as a multiset.
"""

from __future__ import annotations

import contextlib
import logging
from collections import Counter
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import (
    RuleBasedStateMachine,
    initialize,
    invariant,
    precondition,
    rule,
    run_state_machine_as_test,
)
from integration.support.marks import slow_cases

from sparkonce.errors import (
    CheckpointBehindSink,
    CheckpointReplaced,
    ConcurrentDriver,
    QueryRetired,
    SinkBehindCheckpoint,
    StagedDataMissing,
    StoreError,
)
from sparkonce.operate.admin import Admin
from sparkonce.protocol import Receipt
from sparkonce.tck.memory_subject import PROFILES, MemorySubject
from sparkonce.tck.simulation.actors import Query, Run
from sparkonce.tck.simulation.faults import ALL, CRASHES, Crash, Fault, FaultyStore

pytestmark = pytest.mark.usefixtures("quiet")
CALLS = 12
Parts = Sequence[int]
PARTS = st.lists(st.integers(0, 3), min_size=1, max_size=3).filter(any)


class Sink(RuleBasedStateMachine):
    """One sink, the queries that own it one after the other, and Spark's commit log."""

    profile = "whole epochs"

    @initialize()
    def begin(self) -> None:
        self.world = MemorySubject(PROFILES[self.profile]())
        self.took: dict[tuple[str, int], list[str]] = {}
        self.owners = [Query(self.world, "q0", sink_id="orders")]
        self.noted = -1
        self.run = self.query.start()
        self.names = 0
        self.backup: tuple[Any, dict[tuple[str, int], list[str]], int, int] | None = None

    @property
    def query(self) -> Query:
        return self.owners[-1]

    # -- what Spark does

    def rows(self, epoch: int, parts: Parts, run: Run) -> list[list[str]]:
        self.names += 1
        name = f"{run.query.id}/{epoch}#{self.names}"
        return [[f"{name}.{part}.{n}" for n in range(size)] for part, size in enumerate(parts)]

    def stage(self, run: Run, epoch: int, parts: Parts) -> tuple[list[Receipt], list[str]]:
        rows = self.rows(epoch, parts, run)
        return run.stage(epoch, *rows), [row for part in rows for row in part]

    @rule(parts=PARTS)
    def commit(self, parts: Parts) -> None:
        epoch = self.noted + 1
        receipts, rows = self.stage(self.run, epoch, parts)
        self.run.commit(epoch, receipts)
        self.took.setdefault((self.query.id, epoch), rows)
        self.noted = epoch

    @rule(parts=PARTS, restarts=st.booleans())
    def replay(self, parts: Parts, restarts: bool) -> None:
        """Of the last epoch, which is the one that Spark may not have noted."""
        if restarts:
            self.restart()
        if self.noted >= 0:
            receipts, _ = self.stage(self.run, self.noted, parts)
            self.run.commit(self.noted, receipts)

    @rule()
    def restart(self) -> None:
        self.run = self.query.start()

    @rule(parts=PARTS)
    def abort(self, parts: Parts) -> None:
        receipts, _ = self.stage(self.run, self.noted + 1, parts)
        self.run.abort(self.noted + 1, receipts)
        with contextlib.suppress(StagedDataMissing):
            self.run.commit(self.noted + 1, receipts)
            assert (self.query.id, self.noted + 1) in self.took, "an aborted epoch was committed"
            self.noted += 1

    @rule(
        parts=PARTS,
        at=st.integers(0, CALLS),
        fault=st.sampled_from([*CRASHES, *ALL]),
        aborts=st.booleans(),
    )
    def fail(self, parts: Parts, at: int, fault: Fault, aborts: bool) -> None:
        """A commit meets a fault; whatever came of it, the next run learns it from the sink."""
        epoch = self.noted + 1
        receipts, rows = self.stage(self.run, epoch, parts)
        store = self.query.faulty()
        store.fail_at(at, fault)
        try:
            self.run.commit(epoch, receipts)
        except (Crash, StoreError, ConcurrentDriver):
            if aborts:
                with contextlib.suppress(Crash, StoreError):
                    self.run.abort(epoch, receipts)
        self.query.through = None
        store.deliver_all()
        self.restart()
        self.learn(epoch, rows)

    def learn(self, epoch: int, *tried: list[str]) -> None:
        """Replay an epoch with other rows: it took effect with these, or as one of those tried."""
        receipts, rows = self.stage(self.run, epoch, [1])
        self.run.commit(epoch, receipts)
        held = set(self.world.rows)
        self.took[self.query.id, epoch] = next((one for one in tried if held & {*one}), rows)
        self.noted = epoch

    # -- what others do

    @rule()
    def take_over(self) -> None:
        old = self.query
        override = f"continue:{old.id}"
        new = Query(self.world, f"q{len(self.owners)}", "orders", on_new_checkpoint=override)
        self.owners.append(new)
        self.noted = -1
        self.restart()
        self.commit([2])

    @precondition(lambda self: len(self.owners) > 1)
    @rule(parts=PARTS, epoch=st.integers(0, 3))
    def come_back(self, parts: Parts, epoch: int) -> None:
        """A query that was replaced; one that has committed nothing may not even be known."""
        run = self.owners[-2].start()
        known = any(query == run.query.id for query, _ in self.took)
        receipts, _ = self.stage(run, epoch, parts)
        with pytest.raises(QueryRetired if known else (QueryRetired, CheckpointReplaced)):
            run.commit(epoch, receipts)

    @rule(parts=PARTS, at=st.integers(0, CALLS))
    def second_driver(self, parts: Parts, at: int) -> None:
        """It commits the next epoch in the middle of the first one's commit of it."""
        epoch, second = self.noted + 1, replace(self.query, through=None).start()
        receipts, rows = self.stage(self.run, epoch, parts)
        others, more = self.stage(second, epoch, [1, 1])

        def interrupt() -> None:
            with contextlib.suppress(ConcurrentDriver, StagedDataMissing):
                second.commit(epoch, others)

        self.query.through = FaultyStore(self.world.connect(), hooks={at: interrupt})
        with contextlib.suppress(ConcurrentDriver, StagedDataMissing):
            self.run.commit(epoch, receipts)
        self.query.through = None
        self.restart()
        self.learn(epoch, rows, more)

    @rule(back=st.integers(1, 3))
    def restore_checkpoint(self, back: int) -> None:
        epoch = self.noted - back
        if epoch >= 0:
            run = self.query.start()
            with pytest.raises(CheckpointBehindSink):
                run.commit(epoch, self.stage(run, epoch, [1])[0])

    @rule(back=st.integers(0, 2))
    def zombie(self, back: int) -> None:
        """A task stages what nobody waits for."""
        epoch = max(0, self.noted - back + 1)
        self.run.stage_late(epoch, [f"zombie{self.names}"])

    @rule()
    def gc(self) -> None:
        self.world.settle()
        admin = Admin(self.world.store)
        for sink in admin.sinks():
            admin.recover(sink)
            admin.gc(sink, grace=0)
        self.world.settle()
        assert not self.world.store.staged(self.query.name)

    # -- a store that loses its last commits

    @rule()
    def back_up(self) -> None:
        state = self.world.snapshot(), dict(self.took), self.noted, len(self.owners)
        self.backup = state

    @precondition(lambda self: self.backup is not None and self.backup[3] == len(self.owners))
    @rule()
    def restore(self) -> None:
        state, took, noted, _ = self.backup or (None, {}, -1, 0)
        self.world.restore(state)
        self.took, lost = dict(took), self.noted > noted
        self.restart()
        if lost:
            receipts, _ = self.stage(self.run, self.noted + 1, [2])
            with pytest.raises(SinkBehindCheckpoint):
                self.run.commit(self.noted + 1, receipts)
            self.run.abort(self.noted + 1, receipts)
            assert Counter(self.world.rows) == self.wanted()
        self.noted = noted

    # -- what is always true

    def wanted(self) -> Counter[str]:
        return Counter(row for rows in self.took.values() for row in rows)

    @invariant()
    def the_target_is_the_model(self) -> None:
        assert Counter(self.world.rows) == self.wanted()

    @invariant()
    def the_ledger_counts_it(self) -> None:
        if self.took:
            assert self.query.ledger.totals.rows == sum(self.wanted().values())


@pytest.fixture(autouse=True)
def quick(monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture) -> None:
    """Nobody waits, and nothing is logged in ten thousand commits."""
    monkeypatch.setattr("sparkonce.exactly_once.retry.time.sleep", lambda _: None)
    caplog.set_level(logging.CRITICAL, logger="sparkonce")


@pytest.mark.parametrize("profile", ["row by row", *slow_cases("whole epochs", "atomic chunks")])
def test_the_target_follows_the_model(profile: str) -> None:
    machine = type("Machine", (Sink,), {"profile": profile})
    run_state_machine_as_test(
        machine,
        settings=settings(
            max_examples=80,
            stateful_step_count=30,
            derandomize=True,
            suppress_health_check=[*HealthCheck],
        ),
    )
