"""The reference store keeps to each step of the protocol."""

from __future__ import annotations

import pytest
from tests.worlds import MemoryWorld

from sparkonce.errors import StagedDataMissing, StoreLostData
from sparkonce.protocol import Chunk, Manifest, Part, Proposal, Record, Task


def task(attempt: str, *, sink: str = "s", epoch: int = 0) -> Task:
    return Task("q", "r", epoch, sink, 0, attempt)


def chunk(attempt: str, seq: int, *rows: str, sink: str = "s") -> Chunk:
    text = str(list(rows)).replace("'", '"')
    return Chunk(task(attempt, sink=sink), seq, len(rows), text.encode())


def manifest(*parts: Part, token: str = "t") -> Manifest:
    return Manifest("s", 1, "q", 0, token, "target", {}, parts)


def record(revision: int, token: str = "") -> Record:
    """A record whose stamp is named by its revision."""
    return Record(revision, stamp(revision), token, "{}")


def stamp(revision: int) -> str:
    return f"stamp-{revision}" if revision else ""


def decision(revision: int, *parts: Part, over: int = 0) -> Proposal:
    return Proposal(record(revision, "t"), stamp(over), manifest(*parts))


ONE = Part(0, "a", (2, 1), (10, 5))


@pytest.fixture
def staged(world: MemoryWorld) -> MemoryWorld:
    world.memory.stage(chunk("a", 0, "1", "2"))
    world.memory.stage(chunk("a", 1, "3"))
    return world


def test_a_record_that_is_not_there_has_revision_0(world: MemoryWorld) -> None:
    assert world.memory.read("s") == Record()
    assert world.memory.names() == []


def test_swap_writes_only_over_what_it_replaces(world: MemoryWorld) -> None:
    swap = world.memory.swap
    assert swap("s", record(1), stamp(0)) == record(1)
    assert swap("s", record(7), stamp(0)) == record(1)
    assert swap("s", record(3), stamp(2)) == record(1)
    assert swap("s", record(2), stamp(1)) == record(2)
    assert world.memory.read("s") == record(2)


def test_swap_compares_stamps_and_not_revisions(world: MemoryWorld) -> None:
    world.memory.swap("s", record(1), stamp(0))
    other = Record(2, "other", "", "{}")
    assert world.memory.swap("s", other, "another stamp of revision 1") == record(1)


def test_swap_of_a_record_that_vanished_shows_that_it_did(world: MemoryWorld) -> None:
    assert world.memory.swap("s", record(5), stamp(4)) == Record()
    assert world.memory.read("s") == Record()


def test_staging_again_changes_nothing(staged: MemoryWorld) -> None:
    staged.memory.stage(chunk("a", 1, "3"))
    [found] = staged.memory.staged("s")
    assert (found.attempt, found.query_id, found.epoch, found.chunks) == ("a", "q", 0, 2)
    assert found.age >= 0


def test_the_log_of_a_sink_holds_its_own_attempts_only(staged: MemoryWorld) -> None:
    staged.memory.stage(chunk("b", 0, "x", sink="other"))
    assert [found.attempt for found in staged.memory.staged("s")] == ["a"]
    assert staged.memory.names() == ["other", "s"]


def test_discard_drops_the_named_attempts_and_knows_no_others(staged: MemoryWorld) -> None:
    staged.memory.stage(chunk("b", 0, "x"))
    staged.memory.discard("s", ["a", "unknown"])
    staged.memory.discard("s", [])
    staged.memory.discard("other", ["b"])
    assert [found.attempt for found in staged.memory.staged("s")] == ["b"]


@pytest.mark.parametrize(
    "part",
    [Part(0, "b", (1,), (1,)), Part(0, "a", (2, 1, 1), (1, 1, 1)), Part(0, "a", (2, 2), (1, 1))],
    ids=["attempt", "chunk", "row count"],
)
def test_no_epoch_is_decided_whose_chunks_are_not_there_whole(
    staged: MemoryWorld, part: Part
) -> None:
    with pytest.raises(StagedDataMissing):
        staged.memory.decide(decision(1, part))
    assert staged.memory.read("s") == Record()


def test_apply_takes_each_chunk_once_however_often_it_is_called(staged: MemoryWorld) -> None:
    staged.memory.swap("s", record(1, "t"), stamp(0))
    for _ in range(3):
        staged.memory.apply(manifest(ONE))
    assert staged.rows == ["1", "2", "3"]
    assert staged.staged() == 0


def test_apply_of_another_decision_does_nothing(staged: MemoryWorld) -> None:
    staged.memory.swap("s", record(1, "newer"), stamp(0))
    staged.memory.apply(manifest(ONE))
    assert staged.rows == []
    assert staged.staged() == 2


def test_apply_without_its_chunk_is_an_error(staged: MemoryWorld) -> None:
    staged.memory.swap("s", record(1, "t"), stamp(0))
    staged.memory.discard("s", ["a"])
    with pytest.raises(StoreLostData):
        staged.memory.apply(manifest(ONE))


def test_apply_tells_how_many_rows_it_has_applied(staged: MemoryWorld) -> None:
    staged.memory.swap("s", record(1, "t"), stamp(0))
    told: list[int] = []
    staged.memory.apply(manifest(ONE), told.append)
    assert told == [2, 1]


def test_publish_is_one_step_or_none(staged: MemoryWorld) -> None:
    found = staged.memory.publish(decision(1, ONE), lambda _: record(2, "t"))
    if staged.memory.whole_epochs:
        assert found == record(2, "t")
        assert staged.rows == ["1", "2", "3"]
    else:
        assert found is None
        assert staged.rows == []


def test_publish_over_anything_else_does_nothing(staged: MemoryWorld) -> None:
    staged.memory.swap("s", record(1), stamp(0))
    staged.memory.publish(decision(2, ONE), lambda _: record(3, "t"))
    assert staged.rows == []
    assert staged.memory.read("s") == record(1)
