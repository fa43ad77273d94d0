"""A task stages its rows in chunks, one after the other, or skips an epoch that is decided."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import cast
from unittest.mock import Mock

import pyarrow as pa
import pytest
from tests.scenarios import encode

from sparkonce.errors import BadRow, ChunkTooLarge, StoreRefused, StoreUnreachable
from sparkonce.exactly_once.staging import ChunkSize, stage
from sparkonce.protocol import Chunk, Receipt
from sparkonce.store import Store
from sparkonce.tck.simulation.actors import QUICK, Query
from sparkonce.tck.simulation.faults import REQUEST_LOST
from sparkonce.tck.subject import batch
from sparkonce.values.rows import naming_rows

ROOMY = 1 << 20


class Log:
    """Remembers what happened, in order: a batch read, a chunk encoded, a chunk staged."""

    def __init__(self, query: Query) -> None:
        self.query = query
        self.events: list[str] = []
        self.chunks: list[Chunk] = []
        self.most = ROOMY
        self.store = cast("Store", self)
        self.read = query.world.memory.read
        self.discard = query.world.memory.discard

    def stage(self, chunk: Chunk) -> None:
        if len(chunk.payload) > self.most:
            raise ChunkTooLarge(f"{len(chunk.payload)} bytes")
        self.events.append("stage")
        self.chunks.append(chunk)

    def batches(self, *lengths: int) -> Iterator[pa.RecordBatch]:
        for number, length in enumerate(lengths):
            self.events.append("read")
            yield batch([f"{number}.{row}" for row in range(length)])

    def encode(self, rows: pa.RecordBatch) -> bytes:
        self.events.append("encode")
        return encode(rows)

    def run(self, size: ChunkSize, *lengths: int) -> Receipt:
        task = self.query.start().task(0)
        return stage(self.store, task, self.batches(*lengths), self.encode, size, QUICK)


@pytest.fixture
def log(query: Query) -> Log:
    return Log(query)


def test_one_chunk_at_a_time_is_in_memory(log: Log) -> None:
    log.run(ChunkSize(2, ROOMY), 3, 1)
    chunk = ["encode", "stage"]
    assert log.events == ["read", *chunk, "read", *chunk]


def test_small_batches_make_one_chunk(log: Log) -> None:
    """A source of many small files gives many small batches."""
    receipt = log.run(ChunkSize(5, ROOMY), *[1] * 12)
    assert receipt.rows == (5, 5, 2)


@pytest.mark.parametrize(
    ("rows", "lengths", "expected"),
    [
        (10, [3], (3,)),
        (3, [3], (3,)),
        (2, [3], (2, 1)),
        (1, [3], (1, 1, 1)),
        (2, [4, 5], (2, 2, 2, 2, 1)),
        (3, [4, 5], (3, 3, 3)),
        (4, [], ()),
        (4, [0], ()),
        (4, [0, 2, 0], (2,)),
    ],
)
def test_no_chunk_has_more_rows_than_allowed(
    log: Log, rows: int, lengths: list[int], expected: tuple[int, ...]
) -> None:
    receipt = log.run(ChunkSize(rows, ROOMY), *lengths)
    assert receipt.rows == expected == tuple(chunk.rows for chunk in log.chunks)
    assert receipt.sizes == tuple(len(chunk.payload) for chunk in log.chunks)
    assert receipt.skipped is None


@pytest.mark.parametrize("rows", [1, 2, 3, 7, 100])
@pytest.mark.parametrize("most_bytes", [1, 50, 100, 1000, ROOMY])
def test_every_row_is_staged_once_and_in_order(log: Log, rows: int, most_bytes: int) -> None:
    log.run(ChunkSize(rows, most_bytes), 7, 1, 5)
    staged = [row for chunk in log.chunks for row in json.loads(chunk.payload)]
    assert staged == [f"{n}.{row}" for n, length in enumerate((7, 1, 5)) for row in range(length)]
    assert [chunk.seq for chunk in log.chunks] == list(range(len(log.chunks)))


def test_a_large_batch_is_not_joined_to_a_small_one(query: Query) -> None:
    """A column of Arrow holds 2 GiB: of what is joined beyond that rows might be left out."""
    log, joined = Log(query), []

    def measure(rows: pa.RecordBatch) -> bytes:
        joined.append((rows.num_rows, rows.nbytes))
        return b"x"

    batches = [batch(["x"] * 3), batch(["x" * 970]), batch(["x"] * 2)]
    receipt = stage(log.store, query.start().task(0), batches, measure, ChunkSize(100, 1000), QUICK)
    assert receipt.rows == (3, 1, 2) == tuple(rows for rows, _ in joined)


@pytest.mark.parametrize("most_bytes", [60, 120, 500])
def test_no_chunk_has_more_bytes_than_allowed_unless_one_row_has(
    query: Query, most_bytes: int
) -> None:
    log, sizes = Log(query), []

    def measure(rows: pa.RecordBatch) -> bytes:
        sizes.append((rows.num_rows, rows.nbytes))
        return b"x"

    rows = batch(["x" * width for width in (5, 30, 200, 1, 1, 90, 10, 10, 10)])
    stage(log.store, query.start().task(0), [rows], measure, ChunkSize(100, most_bytes), QUICK)
    assert sum(number for number, _ in sizes) == 9
    assert all(number == 1 or size <= most_bytes for number, size in sizes)
    assert len(sizes) < 9 or most_bytes == 60, "small rows are staged together"


def test_a_slice_of_a_large_batch_counts_only_its_own_bytes(query: Query) -> None:
    log = Log(query)
    rows = batch(["x" * 100] * 1000).slice(500, 4)
    size = ChunkSize(100, 1000)
    receipt = stage(log.store, query.start().task(0), [rows], encode, size, QUICK)
    assert receipt.rows == (4,)


def test_a_row_that_is_too_large_for_any_chunk_is_a_bad_row(
    log: Log, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("sparkonce.exactly_once.staging.LARGEST_ROW", 5)
    with pytest.raises(BadRow, match="bytes"):
        log.run(ChunkSize(1, 1), 3)
    assert log.chunks == []


@pytest.mark.parametrize("most", [8, 20, 50])
def test_a_chunk_that_the_store_finds_too_large_is_cut_until_it_fits(log: Log, most: int) -> None:
    log.most = most
    receipt = log.run(ChunkSize(100, ROOMY), 7, 1, 5)
    staged = [row for chunk in log.chunks for row in json.loads(chunk.payload)]
    assert staged == [f"{n}.{row}" for n, length in enumerate((7, 1, 5)) for row in range(length)]
    assert [chunk.seq for chunk in log.chunks] == list(range(len(log.chunks)))
    assert receipt.rows == tuple(chunk.rows for chunk in log.chunks)
    assert receipt.sizes == tuple(len(chunk.payload) for chunk in log.chunks)
    assert max(receipt.sizes) <= most
    assert most == 8 or len(log.chunks) < 13


def test_later_chunks_of_a_task_are_not_refused_as_the_first_was(log: Log) -> None:
    log.most = 60
    log.run(ChunkSize(10, ROOMY), 10, 10, 10)
    first = log.events.index("read", 1)
    assert log.events[:first].count("encode") > log.events[:first].count("stage")
    assert log.events[first:].count("encode") == log.events[first:].count("stage")


def test_a_row_that_is_too_large_for_the_store_is_a_bad_row(log: Log) -> None:
    log.most = 5
    with pytest.raises(ChunkTooLarge, match="7 bytes") as found:
        log.run(ChunkSize(100, ROOMY), 3)
    assert isinstance(found.value, BadRow)
    assert log.chunks == []


def test_a_value_that_has_no_form_in_the_store_is_a_bad_row(query: Query) -> None:
    refuse = Mock(side_effect=ValueError("timestamp out of range"))
    run, encoder = query.start(), naming_rows(refuse, ["id"])
    with pytest.raises(BadRow, match=r"timestamp out of range; the row: id='a'"):
        stage(query.store, run.task(0), [batch(["a"])], encoder, ChunkSize(9, ROOMY), QUICK)
    assert query.world.staged() == 0


@pytest.mark.parametrize("culprit", ["encoder", "rows", "store"])
def test_a_task_that_raises_drops_its_own_chunks_and_no_others(query: Query, culprit: str) -> None:
    run = query.start()
    [other] = run.stage(0, ["kept"])

    def rows() -> Iterator[pa.RecordBatch]:
        yield batch(["a", "b"])
        if culprit == "store":
            store.before("stage", Mock(side_effect=StoreRefused("culprit")))
        if culprit == "rows":
            raise RuntimeError("culprit")
        yield batch(["bad"])

    def refuse(rows: pa.RecordBatch) -> bytes:
        if culprit == "encoder" and rows.column("id")[0].as_py() == "bad":
            raise BadRow("culprit")
        return encode(rows)

    store = query.faulty()
    with pytest.raises((BadRow, RuntimeError, StoreRefused), match="culprit"):
        stage(store, run.task(0), rows(), refuse, ChunkSize(1, ROOMY), QUICK)
    [left] = query.world.memory.staged(query.name)
    assert left.attempt == other.task.attempt


# -- skipping


def test_an_epoch_that_is_decided_is_skipped_and_the_rows_are_read_all_the_same(
    query: Query,
) -> None:
    decided = query.start().write(0, ["a"])
    log = Log(query)
    receipt = log.run(ChunkSize(2, ROOMY), 3, 0, 4)
    assert log.events == ["read", "read", "read"]
    assert (receipt.skipped, receipt.rows, receipt.sizes) == (decided.decision.token, (), ())


def test_an_earlier_epoch_is_skipped_too(query: Query) -> None:
    run = query.start()
    run.write(0, ["a"])
    ledger = run.write(1, ["b"])
    assert query.start().stage(0, ["x"])[0].skipped == ledger.decision.token
    assert query.start().stage(1, ["x"])[0].skipped == ledger.decision.token


# -- failures


def test_a_store_that_stays_away_fails_the_task_after_the_retries(query: Query) -> None:
    store = query.faulty()
    for call in range(1, 9):
        store.fail_at(call, REQUEST_LOST)
    with pytest.raises(StoreUnreachable):
        query.start().stage(0, ["a"])
    assert store.calls == ["read"] + ["stage"] * (QUICK.max_retries + 1) + ["discard"]


def test_two_attempts_of_one_task_never_share_a_name(query: Query) -> None:
    run = query.start()
    attempts = {run.stage(0, ["a"])[0].task.attempt for _ in range(50)}
    assert len(attempts) == 50


def test_memory_does_not_grow_with_the_number_of_chunks(query: Query) -> None:
    alive, most = 0, 0

    class Payload(bytes):
        def __new__(cls, text: bytes) -> Payload:
            nonlocal alive, most
            alive += 1
            most = max(most, alive)
            return super().__new__(cls, text)

        def __del__(self) -> None:
            nonlocal alive
            alive -= 1

    class Forgetful:
        read = query.world.memory.read

        def stage(self, chunk: Chunk) -> None:
            assert chunk.payload

    batches = (batch(["a", "b", "c"]) for _ in range(50))
    store = cast("Store", Forgetful())
    task = query.start().task(0)
    stage(store, task, batches, lambda rows: Payload(encode(rows)), ChunkSize(2, ROOMY), QUICK)
    assert most <= 2
    assert alive == 0
