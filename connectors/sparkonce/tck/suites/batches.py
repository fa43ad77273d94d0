"""Rules C20 and C21: batches with a number that only grows, or without a name."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import suppress
from unittest import mock

from sparkonce.errors import (
    CommitRefused,
    SparkonceError,
    VersionBehindSink,
    VersionTaken,
    WrittenTwice,
)
from sparkonce.operate.admin import Admin
from sparkonce.protocol import Follows
from sparkonce.tck.simulation.actors import Query, Run
from sparkonce.tck.simulation.decisions import raises
from sparkonce.tck.simulation.faults import CRASHES, LOSSES, REPEATS, REPLY_LOST, Crash, Fault
from sparkonce.tck.simulation.oracles import after, require, require_rows, with_witness
from sparkonce.tck.subject import NewSubject, Subject
from sparkonce.tck.suites.suite import Contract

ROWS = {"a/0#x", "a/0#y", "a/0#z"}
FAULTS = [*CRASHES, *LOSSES, *REPEATS]


def writes(run: Run, epoch: int = 0) -> None:
    """Write the rows of a batch, in two tasks."""
    first, *others = sorted(ROWS)
    run.write(epoch, with_witness([first]), with_witness(others))


def batches(new_subject: NewSubject, follows: Follows) -> Query:
    """A writer of batches with its own target."""
    return Query(new_subject(), checkpoint=None, follows=follows)


def failing(new_subject: NewSubject, follows: Follows, run_id: str) -> Iterator[tuple[str, Query]]:
    """Writers of one batch with a fault at one of its calls; each with a text that names it."""
    world = batches(new_subject, follows)
    store = world.faulty()
    writes(Run(world, run_id))
    calls, pace = store.calls, world.world.step
    for number, fault in enumerate(FAULTS):
        for at in range(number % pace, len(calls), pace):
            yield (
                f"fault '{fault}' at call {at} of {len(calls)} ({calls[at]})",
                _failed(batches(new_subject, follows), run_id, at, fault),
            )


def _failed(query: Query, run_id: str, at: int, fault: Fault) -> Query:
    store = query.faulty()
    store.fail_at(at, fault)
    with suppress(Crash, SparkonceError):
        writes(Run(query, run_id))
    store.deliver_all()
    query.through = None
    query.world.settle()
    return query


class BatchRules(Contract):
    """Checks of batch writers."""

    def test_c20_a_numbered_batch_counts_once_whatever_call_fails(
        self, new_subject: NewSubject
    ) -> None:
        """Another run writes the batch again, as Spark or an orchestrator does."""
        for happened, query in failing(new_subject, Follows.GROWS, "first"):
            with after(happened):
                writes(query.start())
                require_rows(query.world, ROWS)

    def test_c20_a_run_writes_a_batch_once(self, new_subject: NewSubject) -> None:
        """The second write is an error, also after a replay; so is a lower number."""
        query = batches(new_subject, Follows.GROWS)
        for run in (query.start(), query.start()):
            writes(run, 7)
            with after("one run has written batch 7"):
                raises(WrittenTwice, writes, run, 7)
        with after("batch 5 followed 7"):
            raises(CommitRefused, writes, query.start(), 5)
        writes(query.start(), 7)
        require_rows(query.world, ROWS)

    def test_c20_a_replay_with_a_lost_reply_is_no_second_write(
        self, new_subject: NewSubject
    ) -> None:
        """The driver finds its own mark in the ledger, which another writer has moved meanwhile."""
        query = _replaying(new_subject)
        store = query.faulty()
        writes(query.start(), 7)
        at = store.calls.index("swap")
        query = _replaying(new_subject)
        run, rival = query.start(), Query(query.world, checkpoint=None, follows=Follows.GROWS)
        store = query.faulty()

        def moves() -> None:
            other = rival.start()
            other.abort(8, other.stage(8, ["a/8#x"]))

        store.fail_at(at, REPLY_LOST)
        store.before("swap", lambda: store.before("read", moves))
        with after("the reply to a replay's write was lost, and an abort moved the ledger"):
            writes(run, 7)
        require_rows(query.world, ROWS)

    def test_c20_a_version_of_another_query_is_no_replay(self, new_subject: NewSubject) -> None:
        """It has other rows; the commit neither writes them nor skips them in silence."""
        query = batches(new_subject, Follows.GROWS)
        query.named, query.stream = True, "one"
        writes(query.start(), 7)
        for stream in ("another", ""):
            query.stream = stream
            with after("query one has written version 7"):
                raises(VersionTaken, query.start().write, 7, with_witness(["a/7#x"]))
        query.start().write(8, with_witness(["a/8#x"]))
        require_rows(query.world, {*ROWS, "a/8#x"})

    def test_c20_sessions_write_versions_by_turns(self, new_subject: NewSubject) -> None:
        """An orchestrator runs some jobs here and some there: none supersedes another."""
        query = batches(new_subject, Follows.GROWS)
        query.named = True
        first, second = query.start(), query.start()
        for number, job in enumerate((first, second, first)):
            with after(f"two sessions wrote {number} versions in turn"):
                job.write(number, with_witness([f"a/{number}#x"]))
        writes(second, 2)
        require_rows(query.world, {f"a/{number}#x" for number in range(3)})

    def test_c20_a_version_without_a_run_may_repeat(self, new_subject: NewSubject) -> None:
        """The writer is unknown; a lower number is an error, a gap is none."""
        query = batches(new_subject, Follows.GROWS)
        query.named = True
        job = Run(query, "")
        for _ in range(3):
            writes(job, 7)
        with after("version 6 followed 7"):
            raises(VersionBehindSink, writes, job, 6)
        job.write(9, with_witness(["a/9#x"]))
        require_rows(query.world, {*ROWS, "a/9#x"})

    def test_c21_a_batch_without_a_name_is_whole_or_nothing_whatever_call_fails(
        self, new_subject: NewSubject
    ) -> None:
        """`recover` finishes a decided batch; `gc` removes what an undecided one left."""
        for happened, query in failing(new_subject, Follows.ONCE, ""):
            admin = Admin(query.store)
            with after(happened):
                for sink in admin.sinks():
                    admin.recover(sink)
                if query.world.took_effect():
                    require_rows(query.world, ROWS)
                _clean(query.world, admin)
                require(not query.store.names(), f"records stay: {query.store.names()}")

    def test_c21_a_batch_without_a_name_leaves_nothing(self, new_subject: NewSubject) -> None:
        """A batch removes its record at its end, or ledgers pile up."""
        query = batches(new_subject, Follows.ONCE)
        writes(Run(query, ""))
        require_rows(query.world, ROWS)
        query.world.settle()
        require(not query.store.names(), f"records stay: {query.store.names()}")

    def test_c21_a_batch_first_finishes_what_another_has_decided(
        self, new_subject: NewSubject
    ) -> None:
        """Only `recover` finds the batch later, and would put older rows over newer ones."""
        query = batches(new_subject, Follows.ONCE)
        query.faulty().before("apply", _dies)
        with suppress(Crash):
            writes(Run(query, ""))
        query.world.settle()
        later = Query(query.world, id="b", checkpoint=None, follows=Follows.ONCE)
        Run(later, "").write(0, with_witness(["b/0#x"]))
        with after("a batch followed one that was decided, and had no row yet"):
            require_rows(query.world, {*ROWS, "b/0#x"})

    def test_c21_a_batch_makes_as_many_calls_beside_many_finished_sinks(
        self, new_subject: NewSubject
    ) -> None:
        """Its cost does not grow with the number of ledgers of its target."""
        query = batches(new_subject, Follows.ONCE)
        asked = []
        for sinks in (1, 20):
            for number in range(sinks):
                done = Query(query.world, id=f"d{number}", checkpoint=f"/{sinks}/{number}")
                done.start().write(0, with_witness([f"d{number}/{sinks}#x"]))
            batch = Query(query.world, id=f"b{sinks}", checkpoint=None, follows=Follows.ONCE)
            store = batch.faulty()
            Run(batch, "").write(0, with_witness([f"b{sinks}/0#x"]))
            asked.append(len(store.calls))
        require(asked[0] == asked[1], f"calls of a batch beside 1 and beside 20 sinks: {asked}")


def _replaying(new_subject: NewSubject) -> Query:
    """A writer whose batch 7 has taken effect."""
    query = batches(new_subject, Follows.GROWS)
    writes(query.start(), 7)
    return query


def _dies() -> None:
    raise Crash("dies before its rows")


def _clean(world: Subject, admin: Admin) -> None:
    """Run the steps of `gc`, and run them again some time later."""
    for sink in admin.sinks():
        admin.gc(sink, grace=0)
    world.settle()
    with mock.patch("time.time", return_value=time.time() + 3600):
        admin.sweep(grace=60)
    world.settle()
