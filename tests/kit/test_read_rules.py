"""The rules of reads over rows in memory: a right source passes, a planted fault is found."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from random import Random

import pyarrow as pa
import pyarrow.compute as pc
import pytest

from sparkonce.errors import StoreRefused, StoreUnreachable, ValueUnreadable
from sparkonce.reading import Compare, Filters, Like, Scan
from sparkonce.tck.read_contract import ReadContract, ReadSubject
from sparkonce.tck.reading import DRAWN, SCHEMA
from sparkonce.tck.rules.rule import RuleBroken

MANY, PART = 300, 40
"""Rows of a check, and of a batch."""


@dataclass
class Place:
    """Where rows lie, and what goes wrong there."""

    rows: pa.Table = field(default_factory=SCHEMA.empty_table)
    away: bool = False
    bad: bool = False
    late: bool = False
    running: int = 0
    held: list[pa.RecordBatch] = field(default_factory=list)


class MemorySource:
    """A right one."""

    def __init__(self, place: Place, scan: Scan) -> None:
        self.place, self.scan = place, scan

    def splits(self) -> Sequence[tuple[int, int]]:
        many = self.place.rows.num_rows
        half = many // 2
        return [(0, half), (half, many)] if half else [(0, many)]

    def read(self, split: tuple[int, int]) -> Iterator[pa.RecordBatch]:
        rows = self.narrowed(self.snapshot(split), self.scan.filters)
        for batch in rows.select(self.scan.schema.names).to_batches(PART):
            if self.place.away:
                raise StoreUnreachable("away")
            if self.place.bad:
                raise ValueUnreadable("a value of column 'n' is none")
            yield batch

    def snapshot(self, split: tuple[int, int]) -> pa.Table:
        ids = self.place.rows["id"]
        return self.place.rows.filter(
            pc.and_(pc.greater_equal(ids, split[0]), pc.less(ids, split[1]))
        )

    def narrowed(self, rows: pa.Table, filters: Filters) -> pa.Table:  # noqa: ARG002
        """All, which is never too few."""
        return rows


class Hole(MemorySource):
    def splits(self) -> Sequence[tuple[int, int]]:
        return [(first, last - (last > 5)) for first, last in super().splits()]


class Overlap(MemorySource):
    def splits(self) -> Sequence[tuple[int, int]]:
        return [(max(0, first - 1), last) for first, last in super().splits()]


class Whole(MemorySource):
    def splits(self) -> Sequence[tuple[int, int]]:
        return [(0, self.place.rows.num_rows)]


class Once(MemorySource):
    """What is read is gone, as from a queue."""

    def snapshot(self, split: tuple[int, int]) -> pa.Table:
        found = super().snapshot(split)
        if split[0]:
            self.place.rows = self.place.rows.filter(pc.less(self.place.rows["id"], split[0]))
        return found


class Exclusive(MemorySource):
    """`<=` that is asked as `<`."""

    def narrowed(self, rows: pa.Table, filters: Filters) -> pa.Table:
        for one in filters:
            if isinstance(one, Compare) and one.operator == "<=" and one.column == "n":
                rows = rows.filter(pc.less(rows["n"], one.value))
        return rows


class Wildcards(MemorySource):
    """`%` that finds itself alone, and no text that holds it."""

    def narrowed(self, rows: pa.Table, filters: Filters) -> pa.Table:
        for one in filters:
            if isinstance(one, Like):
                rows = rows.filter(pc.equal(rows["name"], one.text))
        return rows


class Years(MemorySource):
    """A number below 100 that is compared as a year is."""

    def narrowed(self, rows: pa.Table, filters: Filters) -> pa.Table:
        for one in filters:
            if isinstance(one, Compare) and one.operator == ">" and one.column == DRAWN:
                asked = one.value + 1900 if 0 <= one.value < 100 else one.value
                rows = rows.filter(pc.greater(rows[DRAWN], asked))
        return rows


class Alphabetic(MemorySource):
    def read(self, split: tuple[int, int]) -> Iterator[pa.RecordBatch]:
        for batch in super().read(split):
            yield batch.select(sorted(batch.schema.names))


class EmptyIsNull(MemorySource):
    def snapshot(self, split: tuple[int, int]) -> pa.Table:
        rows = super().snapshot(split)
        name = pc.if_else(pc.equal(rows["name"], ""), None, rows["name"])
        return rows.set_column(1, SCHEMA.field("name"), name)


class Lenient(MemorySource):
    def read(self, split: tuple[int, int]) -> Iterator[pa.RecordBatch]:
        self.place.bad = False
        yield from super().read(split)


class LeftOver(MemorySource):
    """What was not taken is given to the next reader."""

    def read(self, split: tuple[int, int]) -> Iterator[pa.RecordBatch]:
        batches = [*self.place.held, *super().read(split)]
        self.place.held = []
        for at, batch in enumerate(batches):
            try:
                yield batch
            except GeneratorExit:
                self.place.held = batches[at + 1 :]
                raise


class Silent(MemorySource):
    """A store that is away has no rows."""

    def read(self, split: tuple[int, int]) -> Iterator[pa.RecordBatch]:
        try:
            yield from super().read(split)
        except StoreUnreachable:
            return


class Pages(MemorySource):
    """Pages by number, which shift."""

    def read(self, split: tuple[int, int]) -> Iterator[pa.RecordBatch]:
        for at in range(split[0], split[1], PART):
            many = min(PART, split[1] - at)
            yield from self.place.rows.slice(at, many).select(self.scan.schema.names).to_batches()


class Slow(MemorySource):
    """What is given up is ended."""

    def read(self, split: tuple[int, int]) -> Iterator[pa.RecordBatch]:
        if self.place.late:
            self.place.running += 1
            self.end()
            raise StoreRefused("no answer within option timeout=1")
        yield from super().read(split)

    def end(self) -> None:
        self.place.running -= 1


class RunsOn(Slow):
    def end(self) -> None:
        """Nobody tells the store."""


class Beside(MemorySource):
    """Pages that go on behind the last value of a column of theirs."""

    def read(self, split: tuple[int, int]) -> Iterator[pa.RecordBatch]:
        rows, at = self.snapshot(split), 0
        while at < rows.num_rows:
            (page,) = rows.slice(at, PART).combine_chunks().to_batches()
            yield page.select(self.scan.schema.names)
            own = page.schema.get_field_index("sort")
            at += PART if own < 0 else max(1, page.column(own)[-1].as_py())


class MemoryReads(ReadSubject):
    many, words = MANY, ("sort",)

    def __init__(self, kind: type[MemorySource]) -> None:
        self.kind, self.place = kind, Place()

    def fill(self, table: pa.Table) -> None:
        self.place.rows = table

    def infer(self) -> pa.Schema:
        return self.place.rows.schema

    def draw(self, random: Random) -> str:
        values = random.choices([None, 0, 1, 50, 99, 100, 1901, 2155], k=MANY)
        self.place.rows = pa.table({"id": range(MANY), DRAWN: pa.array(values, pa.int64())})
        return "numbers"

    def source(self, scan: Scan) -> MemorySource:
        return self.kind(self.place, scan)

    def churn(self) -> None:
        new = pa.Table.from_pylist([{"id": -1}], SCHEMA)
        self.place.rows = pa.concat_tables([new, self.place.rows])

    def spoil(self) -> str:
        self.place.bad = True
        return "n"

    @contextmanager
    def outage(self) -> Iterator[Callable[[], None]]:
        def begin() -> None:
            self.place.away = True

        yield begin
        self.place.away = False

    @contextmanager
    def slow(self) -> Iterator[Callable[[], int]]:
        self.place.late = True
        yield lambda: self.place.running
        self.place.late = False


class TestMemoryReads(ReadContract):
    @pytest.fixture
    def reading(self) -> ReadSubject:
        return MemoryReads(Slow)


RULES = ReadContract()
MUTANTS: list[tuple[type[MemorySource], str, Callable[[ReadSubject], None]]] = [
    (Hole, "R01", lambda it: RULES.test_r01_each_row_is_in_one_split(it, None)),
    (Overlap, "R01", lambda it: RULES.test_r01_each_row_is_in_one_split(it, 7)),
    (Whole, "R01", lambda it: RULES.test_r01_each_row_is_in_one_split(it, None)),
    (Once, "R02", RULES.test_r02_a_split_that_is_read_again),
    (Exclusive, "R03", RULES.test_r03_conditions_that_are_pushed),
    (Wildcards, "R03", RULES.test_r03_conditions_that_are_pushed),
    (Years, "R03", lambda it: RULES.test_r03_conditions_drawn_at_random(it, 1)),
    (Alphabetic, "R04", RULES.test_r04_requested_columns),
    (EmptyIsNull, "R05", RULES.test_r05_values_are_unchanged),
    (Lenient, "R06", RULES.test_r06_a_value_of_another_type),
    (LeftOver, "R07", RULES.test_r07_an_abandoned_read),
    (Silent, "R07", RULES.test_r07_a_store_that_becomes_unreachable),
    (Pages, "R08", RULES.test_r08_rows_that_nobody_touches),
    (RunsOn, "R09", RULES.test_r09_a_reply_that_takes_too_long),
    (Beside, "R10", RULES.test_r10_names_of_fields_in_replies),
]


@pytest.mark.parametrize(
    ("kind", "rule", "check"), MUTANTS, ids=[one[0].__name__ for one in MUTANTS]
)
def test_a_planted_fault_is_found(
    kind: type[MemorySource], rule: str, check: Callable[[ReadSubject], None]
) -> None:
    with pytest.raises((RuleBroken, pytest.fail.Exception), match=f"{rule}|DID NOT RAISE"):
        check(MemoryReads(kind))
