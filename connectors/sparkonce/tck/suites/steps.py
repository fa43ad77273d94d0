"""Rules S01 to S15: each step of a store, alone."""

from __future__ import annotations

import contextlib
from collections import Counter
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from typing import Any

from sparkonce.errors import StagedDataMissing, StoreUnreachable
from sparkonce.exactly_once.ledger import new_token
from sparkonce.protocol import Chunk, Manifest, Part, Receipt, Record, Task
from sparkonce.store import Store
from sparkonce.tck.simulation.actors import Query
from sparkonce.tck.simulation.decisions import Ready, brief, raises, staged, write
from sparkonce.tck.simulation.oracles import (
    after,
    difference,
    require,
    require_agreement,
    require_rows,
    require_witness,
    with_witness,
)
from sparkonce.tck.simulation.race import race
from sparkonce.tck.subject import NewSubject, Subject, batch
from sparkonce.tck.suites.several_sinks import SinkRules, require_swap

LONGEST_SINK_ID = "aZ09._-" * 14 + "zz"
ROUNDS = 20


class StepRules(SinkRules):
    """Checks of each step of the `Store` protocol."""

    def test_s01_read_gives_what_any_client_wrote_last(self, new_subject: NewSubject) -> None:
        """Two clients write in turns, and each reads what the other wrote."""
        world = new_subject()
        name, now = f"name {new_token()}", Record()
        clients = [world.connect(), world.connect()]
        seen = clients[0].read(name)
        require(seen == Record(), f"before any write, read returned {brief(seen)}")
        for turn in range(6):
            writer, reader = clients[turn % 2], clients[1 - turn % 2]
            now = writer.swap(name, *write(f"body {turn}", after=now))
            for client in (reader, writer):
                seen = client.read(name)
                require(seen == now, f"after {brief(now)} was written, read returned {brief(seen)}")

    def test_s02_swap_writes_only_over_what_it_replaces(self, new_subject: NewSubject) -> None:
        """A swap over another stamp, or over nothing, changes nothing; it returns the record."""
        world = new_subject()
        store, name = world.store, f"name {new_token()}"
        orphan = write("orphan", after=Record(1, "never existed"))
        require_swap(store, name, orphan, Record(), "a missing record")
        first = write("first")
        require_swap(store, name, first, first.new, "no record")
        second = write("second first")
        require_swap(store, name, second, first.new, "no record, although one exists")
        require_swap(store, name, orphan, first.new, "another record than the stored one")
        require(store.read(name) == first.new, f"the record is now {brief(store.read(name))}")

    def test_s02_of_swaps_at_the_same_time_one_wins(self, new_subject: NewSubject) -> None:
        """Clients race for each revision; each learns the same winner."""
        world = new_subject()
        name, now = f"name {new_token()}", Record()
        clients = [world.connect() for _ in range(3)]
        for number in range(ROUNDS):
            writes = [write(f"{number}.{n}", after=now) for n in range(len(clients))]
            pairs = zip(clients, writes, strict=True)
            answers = race([partial(client.swap, name, *one) for client, one in pairs])
            now = world.observer.read(name)
            results = ", ".join(brief(answer) for answer in answers)
            seen = f"three clients swapped together and got {results}; the store has {brief(now)}"
            require(now in [one.new for one in writes] and set(answers) == {now}, seen)

    def test_s03_a_swap_that_arrives_again_writes_nothing(self, new_subject: NewSubject) -> None:
        """Immediately, and after others; even if revisions and tokens recur."""
        world = new_subject()
        store, name = world.store, f"name {new_token()}"
        first = write("first")
        second = write("second", after=first.new)
        for one in (first, first, second, second):
            require_swap(store, name, one, one.new, "the record that it replaces, or a second time")
        third = write("third", after=second.new)
        third = third._replace(new=replace(third.new, token=second.new.token))
        for late, after_it in ((first, second), (write("x", revision=3), second), (second, third)):
            store.swap(name, *after_it)
            what = f"a long replaced record, after {brief(after_it.new)}"
            require_swap(store, name, late, after_it.new, what)
        require(store.read(name) == third.new, f"the record is now {brief(store.read(name))}")

    def test_s04_staging_again_changes_nothing(self, new_subject: NewSubject) -> None:
        """A task stages a chunk twice; its twin of the same partition is another attempt."""
        world = new_subject()
        run = Query(world).start()
        tasks = [run.task(0), run.task(0)]
        payload = world.encode(batch(with_witness(["a"])))
        for task in (tasks[0], tasks[0], tasks[1]):
            world.store.stage(Chunk(task, 0, 2, payload))
        world.settle()
        found = {one.attempt: one.chunks for one in world.observer.staged(run.query.name)}
        wanted = {task.attempt: 1 for task in tasks}
        seen = f"two attempts of one partition staged a chunk each, {wanted}; staged lists {found}"
        require(found == wanted, seen)
        run.commit(0, [Receipt(tasks[0], (2,), (len(payload),))])
        require_witness(world)

    def test_s05_every_attempt_is_listed(self, new_subject: NewSubject) -> None:
        """Each sink lists its own, before any ledger is written."""
        world = new_subject()
        query = Query(world, id=f"q-{new_token()}")
        run = query.start()
        receipts = run.stage(3, ["a", "b", "c"], ["d"])
        world.settle()
        found = {
            (one.attempt, one.query_id, one.epoch, one.chunks)
            for one in world.observer.staged(query.name)
        }
        wanted = {(one.task.attempt, query.id, 3, len(one.rows)) for one in receipts}
        require(found == wanted, f"staged: {found}, not {wanted}")
        names = world.observer.names()
        require(query.name in names, f"{query.name!r} has staged chunks, but names lists {names}")
        sizes = {one.task.attempt: sum(one.sizes) for one in receipts}
        for one in world.observer.staged(query.name, fresh=True):
            wanted_bytes = sizes[one.attempt]
            require(one.bytes in (0, wanted_bytes), f"{one.bytes} bytes, not {wanted_bytes}")
        ages = [one.age for one in world.observer.staged(query.name)]
        require(all(0 <= age < 60 for age in ages), f"ages in seconds: {ages}")

    def test_s06_an_incomplete_chunk_is_rejected(self, new_subject: NewSubject) -> None:
        """Missing, of another size, or of an unknown attempt."""
        world = new_subject()
        run = Query(world).start()
        run.write(0, with_witness(["z"]))
        good = staged(run, 1, run.stage(1, with_witness(["a", "b"])))
        [part] = good.manifest.parts
        bad = {
            "one chunk more than was staged": replace(
                part, rows=(*part.rows, 2), sizes=(*part.sizes, 9)
            ),
            "a chunk of another size than was staged": replace(
                part, sizes=tuple(size + 1 for size in part.sizes)
            ),
            "an attempt that nobody staged": Part(1, new_token(), (1,), (9,)),
        }
        for what, one in bad.items():
            with after(f"the manifest named {what}"):
                _require_not_decided(world, good, replace(good.manifest, parts=(one,)))
        if "apply" in world.limits:
            return
        there = world.store.decide(good.over("gone"))
        require(there == world.observer.read(run.query.name), f"decide wrote {brief(there)}")
        require(there != good.decided, "a decision was written over another record")
        there = world.store.decide(good.decision)
        require(there == good.decided, f"all chunks exist, and decide left {brief(there)}")

    def test_s06_chunks_that_a_failover_lost_are_not_decided(self, new_subject: NewSubject) -> None:
        """A failover loses the last staged chunks right before the decision, but not the ledger."""
        world = new_subject()
        world.need("snapshot")
        query = Query(world)
        run = query.start()
        run.write(0, with_witness(["a/0#a"]))
        state = world.snapshot()
        receipts = run.stage(1, with_witness(["a/1#b"]))
        query.faulty().before("publish", lambda: world.restore(state))
        with after("a failover rolled back staged chunks, right before the decision"):
            raises(StagedDataMissing, run.commit, 1, receipts)
        query.through = None
        query.start().write(1, with_witness(["a/1#again"]))
        require_rows(world, {"a/0#a", "a/1#again"})
        require_agreement(world, query)

    def test_s11_discard_removes_only_the_named_attempts(self, new_subject: NewSubject) -> None:
        """Attempts of this sink; the same attempt of another sink stays."""
        world = new_subject()
        mine, other = Query(world, id="mine").start(), Query(world, id="other").start()
        task, kept = mine.task(0), [mine.task(0), mine.task(0, 1), mine.task(1)]
        twin = replace(other.task(0), attempt=task.attempt)
        for each in (task, *kept, twin):
            world.store.stage(Chunk(each, 0, 1, world.encode(batch(["a"]))))
        for attempts in ([], [new_token()], [task.attempt], [task.attempt]):
            world.store.discard(mine.query.name, attempts)
        world.settle()
        left = {name: _attempts(world, name) for name in (mine.query.name, other.query.name)}
        wanted = {mine.query.name: {one.attempt for one in kept}, other.query.name: {task.attempt}}
        require(left == wanted, f"left: {left}, not {wanted}")

    def test_s13_no_reply_is_unreachable(self, new_subject: NewSubject) -> None:
        """Every step of a store at a dead address raises `StoreUnreachable`."""
        world = new_subject()
        world.need("unreachable")
        run = Query(world).start()
        good = staged(run, 0, run.stage(0, with_witness(["a"])))
        world.store.swap(run.query.name, good.decided, good.decision.over)
        store = world.unreachable()
        for call in _every_step(store, good, run.task(0)):
            raises(StoreUnreachable, call)
        if "apply" not in world.limits:
            raises(StoreUnreachable, store.decide, good.decision)
            raises(StoreUnreachable, store.apply, good.manifest)

    def test_s14_bytes_are_unchanged(self, new_subject: NewSubject) -> None:
        """A record and a chunk of a megabyte, with odd characters; and the longest name."""
        world = new_subject()
        body = "ä'\"\\`\n\t\N{PARTY POPPER}%s{}" * 60_000
        for name in (LONGEST_SINK_ID, f"plain-{new_token()}"):
            new, over = write(body)
            world.store.swap(name, new, over)
            seen = world.observer.read(name)
            require(seen == new, f"record {name!r}: {_first_difference(new.body, seen.body)}")
        query = Query(world, sink_id=LONGEST_SINK_ID)
        run = query.start()
        rows = [f"ä'\"\\`%s \N{PARTY POPPER} {number} {new_token()}" for number in range(12_000)]
        task, payload = run.task(0), world.encode(batch(rows))
        world.store.stage(Chunk(task, 0, len(rows), payload))
        run.commit(0, [Receipt(task, (len(rows),), (len(payload),))])
        found = world.took_effect()
        require(
            found == Counter(rows), f"of 12,000 rows: {_some(difference(Counter(rows), found))}"
        )


def _require_not_decided(world: Subject, good: Ready, manifest: Manifest) -> None:
    """Check that neither step that decides accepts this manifest or writes anything."""
    known = world.observer.read(manifest.sink)
    decision = good.decision._replace(manifest=manifest)
    if "apply" not in world.limits:
        raises(StagedDataMissing, world.store.decide, decision)
    with contextlib.suppress(StagedDataMissing):
        there = world.store.publish(decision, good.finish)
        require(there is None, f"publish accepted it: the store holds {brief(there or Record())}")
    require(world.observer.read(manifest.sink) == known, "a rejected manifest was decided")
    require_rows(world, {"z"})


def _first_difference(wrote: str, read: str) -> str:
    at = next((n for n, (a, b) in enumerate(zip(wrote, read, strict=False)) if a != b), None)
    if at is None:
        return f"wrote {len(wrote)} characters, read {len(read)}, alike up to the shorter end"
    return f"at character {at} wrote {wrote[at : at + 20]!r}, read {read[at : at + 20]!r}"


def _some(text: str) -> str:
    return f"{text[:500]}..."


def _attempts(world: Subject, name: str) -> set[str]:
    return {one.attempt for one in world.observer.staged(name)}


def _every_step(store: Store, good: Ready, task: Task) -> list[Callable[[], Any]]:
    name = good.manifest.sink
    return [
        partial(store.check, None),
        partial(store.read, name),
        partial(store.swap, name, good.finished, good.decided.stamp),
        store.names,
        partial(store.stage, Chunk(task, 0, 1, b"x")),
        partial(store.staged, name),
        partial(store.discard, name, [task.attempt]),
        partial(store.discard, name, [task.attempt], good.decided.stamp),
    ]
