"""Rules S01 to S14: each step of a store, alone."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

from sparkonce.errors import StagedDataMissing, StoreLostData, StoreUnreachable
from sparkonce.ledger import Ledger, new_token
from sparkonce.protocol import Chunk, Manifest, Part, Receipt, Record, Store, Task
from sparkonce.tck.actors import Query, Run
from sparkonce.tck.contract import Contract
from sparkonce.tck.oracles import require, require_witness, with_witness
from sparkonce.tck.race import race
from sparkonce.tck.subject import NewSubject, Subject, batch

ODD_NAME = 'order\'s "ünï" `{x}` \\ %s 100% \N{PARTY POPPER}'
ROUNDS = 20


@dataclass(frozen=True)
class Decision:
    """An epoch that is staged, and the records that would decide and finish it."""

    manifest: Manifest
    decided: Record
    finished: Record


def staged(run: Run, epoch: int, receipts: list[Receipt]) -> Decision:
    """What a commit of these receipts would write."""
    query, store = run.query, run.query.world.store
    base = query.world.ledger(query.name) if store.read(query.name).revision else None
    base = base or Ledger(query.name, query.id, query.target)
    manifest = run.committer().manifest(base, run.driver(epoch), receipts)
    decided = base.decided(store.prepare(manifest), None)
    assert decided.manifest is not None  # noqa: S101 (for mypy)
    return Decision(decided.manifest, decided.to_record(), decided.finished().to_record())


def decided(run: Run, epoch: int, *partitions: list[str]) -> Decision:
    """An epoch that is decided and not applied."""
    decision = staged(run, epoch, run.stage(epoch, *partitions))
    run.query.world.store.swap(run.query.name, decision.decided)
    return decision


def record(text: str, *, after: Record | None = None, revision: int | None = None) -> Record:
    """A record to write."""
    before = after or Record()
    number = before.revision + 1 if revision is None else revision
    return Record(number, new_token(), f"token {text}", text, before.stamp)


def raises(
    expected: type[BaseException] | tuple[type[BaseException], ...],
    call: Callable[..., Any],
    *args: Any,
    **kwargs: Any,
) -> None:
    """See that a call raises what it should.

    Raises:
        AssertionError: it does not.
    """
    try:
        answer = call(*args, **kwargs)
    except expected:
        return
    raise AssertionError(f"{call} {args} gave {answer!r}, not the error {expected}")


class StepRules(Contract):
    """Checks of each step of the `Store` protocol."""

    def test_s01_read_gives_what_any_client_wrote_last(self, new_subject: NewSubject) -> None:
        """Two clients write in turns, and each reads what the other wrote."""
        world = new_subject()
        name, now = f"name {new_token()}", Record()
        clients = [world.connect(), world.connect()]
        require(clients[0].read(name) == Record(), "a record that nobody wrote")
        for turn in range(6):
            writer, reader = clients[turn % 2], clients[1 - turn % 2]
            now = writer.swap(name, record(f"body {turn}", after=now))
            for client in (reader, writer):
                require(client.read(name) == now, f"{client.read(name)} instead of {now}")

    def test_s02_swap_writes_only_over_what_it_replaces(self, new_subject: NewSubject) -> None:
        """A swap over another stamp, or over nothing, changes nothing and tells what is there."""
        world = new_subject()
        store, name = world.store, f"name {new_token()}"
        orphan = record("orphan", after=Record(1, "never there"))
        require(store.swap(name, orphan) == Record(), "a record was written over nothing")
        first = record("first")
        require(store.swap(name, first) == first, "the first swap did not write")
        for late in (record("second first"), orphan):
            require(store.swap(name, late) == first, "a swap wrote over a record it did not know")
        require(store.read(name) == first, f"the record is now {store.read(name)}")

    def test_s02_of_swaps_at_the_same_time_one_wins(self, new_subject: NewSubject) -> None:
        """Clients race for each revision; each learns the same winner."""
        world = new_subject()
        name, now = f"name {new_token()}", Record()
        clients = [world.connect() for _ in range(3)]
        for number in range(ROUNDS):
            news = [record(f"{number}.{n}", after=now) for n in range(len(clients))]
            pairs = zip(clients, news, strict=True)
            answers = race([partial(client.swap, name, new) for client, new in pairs])
            now = world.observer.read(name)
            require(now in news, f"the record is {now}")
            require(set(answers) == {now}, f"{len(set(answers))} clients won one revision")

    def test_s03_a_swap_that_arrives_again_writes_nothing(self, new_subject: NewSubject) -> None:
        """At once, and after others; also if revisions and tokens come back."""
        world = new_subject()
        store, name = world.store, f"name {new_token()}"
        first = record("first")
        second = record("second", after=first)
        for new in (first, first, second, second):
            require(store.swap(name, new) == new, "a repeated swap does not know its own record")
        for late in (first, replace(second, replaces="gone"), record("x", revision=3)):
            require(store.swap(name, late) == second, f"{late} was written late")
        require(store.read(name) == second, f"the record is now {store.read(name)}")

    def test_s04_staging_again_changes_nothing(self, new_subject: NewSubject) -> None:
        """A chunk is staged twice; its twin of the same partition is another attempt."""
        world = new_subject()
        run = Query(world).start()
        tasks = [run.task(0), run.task(0)]
        payload = world.encode(batch(with_witness(["a"])))
        for task in (tasks[0], tasks[0], tasks[1]):
            world.store.stage(Chunk(task, 0, 2, payload))
        world.settle()
        found = {one.attempt: one.chunks for one in world.observer.staged(run.query.name)}
        require(found == {task.attempt: 1 for task in tasks}, f"staged: {found}")
        run.commit(0, [Receipt(tasks[0], (2,), (len(payload),))])
        require_witness(world)

    def test_s05_every_attempt_is_listed(self, new_subject: NewSubject) -> None:
        """By sink, before any ledger was written."""
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
        require(query.name in world.observer.names(), "the sink is not among the names")
        ages = [one.age for one in world.observer.staged(query.name)]
        require(all(0 <= age < 60 for age in ages), f"ages in seconds: {ages}")

    def test_s06_a_chunk_that_is_not_whole_is_refused(self, new_subject: NewSubject) -> None:
        """Gone, of another size, or of an attempt that nobody knows."""
        world = new_subject()
        run = Query(world).start()
        [good] = staged(run, 0, run.stage(0, with_witness(["a", "b"]))).manifest.parts
        a_chunk_more = replace(good, rows=(*good.rows, 2), sizes=(*good.sizes, 9))
        another_size = replace(good, sizes=tuple(size + 1 for size in good.sizes))
        bad = [a_chunk_more, another_size, Part(1, new_token(), (1,), (9,))]
        for part in bad:
            receipts = [Receipt(replace(run.task(0), attempt=part.attempt), part.rows, part.sizes)]
            raises(StagedDataMissing, staged, run, 0, receipts)
        require(not world.took_effect(), "rows of a refused manifest took effect")

    def test_s07_publish_does_all_or_nothing(self, new_subject: NewSubject) -> None:
        """Over another record it does nothing; again it does nothing more."""
        world = new_subject()
        run = Query(world).start()
        run.write(0, with_witness(["a"]))
        receipts = run.stage(1, with_witness(["b", "c"]))
        good = staged(run, 1, receipts)
        stale = replace(good.decided, replaces="gone")
        answer = world.store.publish(stale, good.finished, good.manifest)
        if answer is None:
            return
        require(answer == world.observer.read(run.query.name), "it tells of another record")
        require(world.took_effect()["b"] == 0, "an epoch took effect over a record it did not know")
        done = world.store.publish(good.decided, good.finished, good.manifest)
        require(done == good.finished, f"published, but the record is {done}")
        require(world.store.publish(good.decided, good.finished, good.manifest) == done, "twice")
        require_witness(world)

    def test_s08_apply_takes_effect_once(self, new_subject: NewSubject) -> None:
        """Called again, and by two clients at once."""
        world = new_subject()
        run = Query(world).start()
        world.need("apply")
        rows = [f"a#{number}" for number in range(12)]
        manifest = decided(run, 0, with_witness(rows[:7]), with_witness(rows[7:])).manifest
        race([partial(world.connect().apply, manifest) for _ in range(2)])
        for store in (world.store, world.connect()):
            store.apply(manifest)
        require(set(rows) < set(world.took_effect()), "rows are missing")
        require_witness(world)

    def test_s09_a_superseded_apply_does_nothing(self, new_subject: NewSubject) -> None:
        """A driver decided and slept; its epoch was finished, and later ones were written."""
        world = new_subject()
        query = Query(world)
        world.need("apply")
        late = decided(query.start(), 0, with_witness(["a", "b"])).manifest
        run = query.start()
        run.write(0, with_witness(["x"]))
        for _ in range(2):
            world.connect().apply(late)
            require_witness(world)
            run.write(query.ledger.epoch + 1, with_witness([f"epoch {query.ledger.epoch + 1}"]))
        world.connect().apply(late)
        require_witness(world)

    def test_s10_a_decided_chunk_that_is_gone_is_an_error(self, new_subject: NewSubject) -> None:
        """It is neither skipped in silence nor taken for applied."""
        world = new_subject()
        run = Query(world).start()
        world.need("apply")
        manifest = decided(run, 0, with_witness(["a"]), with_witness(["b"])).manifest
        world.store.discard(run.query.name, [manifest.parts[1].attempt])
        raises(StoreLostData, world.store.apply, manifest)
        require(world.took_effect()["b"] == 0, "a row of a chunk that is gone took effect")

    def test_s11_discard_drops_what_it_names(self, new_subject: NewSubject) -> None:
        """Of this sink; the same attempt of another sink stays."""
        world = new_subject()
        mine, other = Query(world, id="mine").start(), Query(world, id="other").start()
        task, kept = mine.task(0), mine.task(0, 1)
        twin = replace(other.task(0), attempt=task.attempt)
        for each in (task, kept, twin):
            world.store.stage(Chunk(each, 0, 1, world.encode(batch(["a"]))))
        for attempts in ([], [new_token()], [task.attempt], [task.attempt]):
            world.store.discard(mine.query.name, attempts)
        world.settle()
        left = {name: _attempts(world, name) for name in (mine.query.name, other.query.name)}
        wanted = {mine.query.name: {kept.attempt}, other.query.name: {task.attempt}}
        require(left == wanted, f"left: {left}, not {wanted}")

    def test_s12_sinks_of_one_target_do_not_disturb_each_other(
        self, new_subject: NewSubject
    ) -> None:
        """Two queries write epochs in turns, with a row id in common."""
        world = new_subject()
        queries = [Query(world, id=name, checkpoint=f"/checkpoints/{name}") for name in "ab"]
        runs = [query.start() for query in queries]
        for epoch in range(3):
            both = [run.stage(epoch, with_witness([f"{run.query.id}{epoch}"])) for run in runs]
            for run, receipts in zip(runs, both, strict=True):
                run.commit(epoch, receipts)
        require_witness(world)
        held = world.took_effect()
        require(len(held) == 7, f"six rows and their witness were written: {held}")

    def test_s13_no_answer_is_unreachable(self, new_subject: NewSubject) -> None:
        """Every step of a store at a dead address raises `StoreUnreachable`."""
        world = new_subject()
        world.need("unreachable")
        run = Query(world).start()
        good = staged(run, 0, run.stage(0, with_witness(["a"])))
        world.store.swap(run.query.name, good.decided)
        for call in _every_step(world.unreachable(), good, run.task(0)):
            raises(StoreUnreachable, call)

    def test_s14_bytes_come_back_as_they_were(self, new_subject: NewSubject) -> None:
        """A record and a chunk of a megabyte, with odd characters, and odd names."""
        world = new_subject()
        body = "ä'\"\\`\n\t\N{PARTY POPPER}%s{}" * 60_000
        for name in (f"{ODD_NAME} {new_token()}", f"plain {new_token()}"):
            new = record(body)
            world.store.swap(name, new)
            require(world.observer.read(name) == new, f"record {name!r} came back otherwise")
        query = Query(world, sink_id=ODD_NAME)
        run = query.start()
        rows = [f"ä'\"\\`%s \N{PARTY POPPER} {number} {new_token()}" for number in range(12_000)]
        task, payload = run.task(0), world.encode(batch(rows))
        world.store.stage(Chunk(task, 0, len(rows), payload))
        run.commit(0, [Receipt(task, (len(rows),), (len(payload),))])
        require(world.took_effect() == Counter(rows), "rows came back otherwise")


def _attempts(world: Subject, name: str) -> set[str]:
    return {one.attempt for one in world.observer.staged(name)}


def _every_step(store: Store, good: Decision, task: Task) -> list[Callable[[], Any]]:
    name, manifest = good.manifest.sink, good.manifest
    return [
        store.check,
        partial(store.read, name),
        partial(store.swap, name, good.finished),
        store.names,
        partial(store.stage, Chunk(task, 0, 1, b"x")),
        partial(store.staged, name),
        partial(store.prepare, manifest),
        partial(store.apply, manifest),
        partial(store.discard, name, [task.attempt]),
    ]
