"""The checks of the rules of reads."""

from __future__ import annotations

import pickle
import time
from collections import Counter
from collections.abc import Iterator, Sequence
from random import Random
from typing import Any

import pyarrow as pa
import pytest

from sparkonce.errors import StoreError, StoreUnreachable, ValueUnreadable
from sparkonce.reading import Compare, Filter, Scan, Source
from sparkonce.tck.conditions import drawn, holds
from sparkonce.tck.reading import DRAWN, FILTERS, SCHEMA, ReadSubject, rows
from sparkonce.tck.simulation.oracles import require
from sparkonce.tck.suites.suite import Contract

Row = tuple[Any, ...]
ENDS = 3.0
"""Seconds within which a store must have cancelled the work of a read."""

DRAWS = 4
"""Checks of random columns."""


class ReadRules(Contract):
    """Rules R01 to R10."""

    @pytest.fixture
    def reading(self) -> ReadSubject:
        """The connector under test; a subclass must override this fixture."""
        raise NotImplementedError("a subclass of ReadContract needs a fixture `reading`")

    @pytest.mark.parametrize("many", [0, 1, 2, 7, None])
    def test_r01_each_row_is_in_one_split(self, reading: ReadSubject, many: int | None) -> None:
        """Checks R01."""
        table = rows(reading.many if many is None else many)
        reading.fill(table)
        assert_same(found(reading, SCHEMA), table)
        splits = reading.source(Scan(SCHEMA)).splits()
        require(many is not None or len(splits) > 1, "many rows belong to one split")

    def test_r02_a_split_that_is_read_again(self, reading: ReadSubject) -> None:
        """Checks R02. Their order is the store's."""
        reading.fill(rows(reading.many))
        for split in reading.source(Scan(SCHEMA)).splits():
            first = sorted(_rows(reading.source(Scan(SCHEMA)).read(split)), key=_id)
            copy = pickle.loads(pickle.dumps(split))  # noqa: S301 (made right here)
            again = sorted(_rows(reading.source(Scan(SCHEMA)).read(copy)), key=_id)
            require(again == first, f"{len(first)} rows were {len(again)} others in split {split}")

    def test_r03_conditions_that_are_pushed(self, reading: ReadSubject) -> None:
        """Checks R03, one by one and together."""
        table = rows(1000)
        reading.fill(table)
        everything = _rows(table.to_batches())
        for one in [
            *((each,) for each in FILTERS),
            FILTERS[1:3],
            (FILTERS[1], Compare("n", ">", 0)),
        ]:
            wanted = [row for row in everything if all(_matches(row, each) for each in one)]
            came = _rows(found(reading, SCHEMA, one))
            require(set(came) <= set(everything), f"{one} changes values")
            require(len(came) == len(set(came)), f"{one} duplicates rows")
            missing = [row for row in wanted if row not in set(came)]
            require(not missing, f"{one} removes {missing[:3]}")

    @pytest.mark.parametrize("seed", range(DRAWS))
    def test_r03_conditions_drawn_at_random(self, reading: ReadSubject, seed: int) -> None:
        """Checks R03, for columns whose type, index and values the subject draws."""
        reading.need("draw")
        random = Random(seed)  # noqa: S311
        for _ in range(reading.columns):
            drew = reading.draw(random)
            field = reading.infer().field(DRAWN)
            everything = _values(reading, field)
            stored = [one for one in everything if one is not None]
            for one in drawn(random, field, stored):
                wanted = Counter(value for value in everything if holds(value, one))
                missing = wanted - Counter(_values(reading, field, [one]))
                require(not missing, f"{one} removes {[*missing][:3]} from {drew}")

    def test_r04_requested_columns(self, reading: ReadSubject) -> None:
        """Checks R04."""
        table = rows(100)
        reading.fill(table)
        for names in (["x"], ["n", "id"], [*reversed(SCHEMA.names)]):
            schema = pa.schema([SCHEMA.field(name) for name in names])
            batches = found(reading, schema)
            for batch in batches:
                require(batch.schema.names == names, f"{batch.schema.names} arrived for {names}")
                require(batch.schema.types == schema.types, f"{batch.schema} arrived for {schema}")
            came, stored = _rows(batches), _rows(table.select(names).to_batches())
            require(sorted(came, key=repr) == sorted(stored, key=repr), f"other values of {names}")

    def test_r05_values_are_unchanged(self, reading: ReadSubject) -> None:
        """Checks R05, with the schema that the connector infers."""
        table = rows(500)
        reading.fill(table)
        known = reading.infer()
        schema = pa.schema([known.field(name) for name in SCHEMA.names])
        require(schema.types == SCHEMA.types, f"the connector inferred {schema}")
        assert_same(found(reading, schema), table)

    def test_r06_a_value_of_another_type(self, reading: ReadSubject) -> None:
        """Checks R06."""
        reading.need("spoil")
        reading.fill(rows(10))
        column = reading.spoil()
        with pytest.raises(ValueUnreadable, match=column):
            found(reading, SCHEMA)

    def test_r07_an_abandoned_read(self, reading: ReadSubject) -> None:
        """Checks R07: after the first batch of each split."""
        table = rows(reading.many)
        reading.fill(table)
        source = reading.source(Scan(SCHEMA))
        for split in source.splits():
            batches = source.read(split)
            next(batches, None)
            batches.close()  # type: ignore[attr-defined]
        assert_same(found(reading, SCHEMA), table)

    def test_r07_a_store_that_becomes_unreachable(self, reading: ReadSubject) -> None:
        """Checks R07."""
        reading.need("outage")
        table = rows(reading.many)
        reading.fill(table)
        source = reading.source(Scan(SCHEMA))
        splits = source.splits()
        with reading.outage() as goes_away:
            batches = source.read(splits[-1])
            next(batches, None)
            goes_away()
            with pytest.raises(StoreUnreachable):
                _read_all(source, splits)
        assert_same(found(reading, SCHEMA), table)

    def test_r08_rows_that_nobody_touches(self, reading: ReadSubject) -> None:
        """Checks R08."""
        table = rows(reading.many)
        reading.fill(table)
        source = reading.source(Scan(SCHEMA))
        came: list[Row] = []
        for split in source.splits():
            for batch in source.read(split):
                reading.churn()
                came += [row for row in _rows([batch]) if row[0] >= 0]
        stored = _rows(table.to_batches())
        require(sorted(came, key=_id) == sorted(stored, key=_id), f"{len(came)} rows arrived")

    def test_r09_a_reply_that_takes_too_long(self, reading: ReadSubject) -> None:
        """Checks R09."""
        reading.need("slow")
        reading.fill(rows(3))
        with reading.slow() as running:
            source = reading.source(Scan(SCHEMA))
            with pytest.raises(StoreError, match="option timeout"):
                _read_all(source, source.splits())
            until = time.monotonic() + ENDS
            while running() and time.monotonic() < until:
                time.sleep(0.05)
            require(not running(), "the store keeps working on abandoned requests")

    def test_r10_names_of_fields_in_replies(self, reading: ReadSubject) -> None:
        """Checks R10."""
        table = rows(reading.many)
        for at, name in enumerate(reading.words):
            numbers = pa.array([number * (at + 1) % 7 for number in range(len(table))], pa.int64())
            table = table.append_column(name, numbers)
        reading.fill(table)
        assert_same(found(reading, table.schema), table)


def found(
    reading: ReadSubject, schema: pa.Schema, filters: Sequence[Filter] = ()
) -> list[pa.RecordBatch]:
    """All rows, split by split."""
    source = reading.source(Scan(schema, tuple(filters)))
    return [batch for split in source.splits() for batch in source.read(split)]


def _values(reading: ReadSubject, field: pa.Field, filters: Sequence[Filter] = ()) -> list[Any]:
    """All values of a random column."""
    return [row[0] for row in _rows(found(reading, pa.schema([field]), filters), exact=False)]


def assert_same(batches: Sequence[pa.RecordBatch], table: pa.Table) -> None:
    """Each row arrives once, with the same values."""
    came, stored = _rows(batches), _rows(table.to_batches())
    require(len(came) == len(stored), f"{len(came)} rows arrived of {len(stored)}")
    for one, other in zip(sorted(came, key=_id), sorted(stored, key=_id), strict=True):
        require(one == other, f"{one} arrived for {other}")


def _read_all(source: Source, splits: Sequence[Any]) -> None:
    for split in splits:
        for _ in source.read(split):
            pass


def _id(row: Row) -> Any:
    return row[0]


def _rows(
    batches: Sequence[pa.RecordBatch] | Iterator[pa.RecordBatch], *, exact: bool = True
) -> list[Row]:
    """Rows with comparable values; `exact`: a double as its text, so -0.0 is not 0.0."""
    return [
        tuple(repr(one) if isinstance(one, float) and exact else one for one in row.values())
        for batch in batches
        for row in batch.to_pylist()
    ]


def _matches(row: Row, condition: Filter) -> bool:
    value: Any = row[SCHEMA.names.index(condition.column)]
    return holds(float(value) if condition.column == "x" and value else value, condition)
