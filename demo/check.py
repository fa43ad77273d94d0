"""Compare what is in Redis with a count made straight from the package's own file.

Nothing here goes through Spark or the connector: pandas reads the file, redis-py reads Redis.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol

from sparkonce.protocol import no_progress

if TYPE_CHECKING:
    import pandas as pd

FIGURES = ("flights", "miles", "delay_minutes")
STEP = 10_000

Figures = tuple[int, ...]
"""What is counted for an airport, in the order of `FIGURES`."""


class Stored(Protocol):
    """What the demo has put into Redis; see `demo.target`."""

    def flight_ids(self) -> set[str]:
        """The ids of all flights that have a key."""

    def flights(self, ids: Sequence[str], fields: Sequence[str]) -> list[list[str | None]]:
        """These fields of these flights."""

    def airports(self) -> dict[str, Figures]:
        """The counters of every airport."""


@dataclass(frozen=True)
class Verdict:
    """What the comparison found.

    Attributes:
        rows: flights that are in Redis.
        missing: flights that are not.
        unknown: keys in Redis that are no flight's.
        wrong: flights in Redis of which some field is not what it should be.
        expected: the figures of each airport, by the file.
        counted: the same, by Redis.
    """

    rows: int
    missing: int
    unknown: int
    wrong: int
    expected: dict[str, Figures]
    counted: dict[str, Figures]

    @property
    def lost(self) -> int:
        """Flights without a key, and flights that an airport did not count."""
        return self.missing + sum(max(0, -gap) for gap in self._gaps())

    @property
    def duplicated(self) -> int:
        """Keys without a flight, and flights that an airport counted once more."""
        return self.unknown + sum(max(0, gap) for gap in self._gaps())

    @property
    def exact(self) -> bool:
        """Whether each row took effect once, with its own values."""
        return not (self.lost or self.duplicated or self.wrong) and self.expected == self.counted

    def _gaps(self) -> list[int]:
        names = self.expected.keys() | self.counted.keys()
        nothing = (0,) * len(FIGURES)
        pairs = [(self.counted.get(n, nothing), self.expected.get(n, nothing)) for n in names]
        return [counted[0] - expected[0] for counted, expected in pairs]


def compare(
    flights: pd.DataFrame, stored: Stored, advance: Callable[[int], object] = no_progress
) -> Verdict:
    """Compare every field of every row, and every counter; `advance` hears how many rows more."""
    ids, found = {str(number) for number in flights.index}, stored.flight_ids()
    wrong = 0
    for start in range(0, len(flights), STEP):
        part = flights.iloc[start : start + STEP]
        wrong += _wrong(part, stored, found)
        advance(len(part))
    return Verdict(
        rows=len(ids & found),
        missing=len(ids - found),
        unknown=len(found - ids),
        wrong=wrong,
        expected=count(flights),
        counted=stored.airports(),
    )


def count(flights: pd.DataFrame) -> dict[str, Figures]:
    """The figures of each airport. A delay that is not known adds nothing."""
    figures = flights.groupby("origin").agg(
        flights=("origin", "size"), miles=("distance", "sum"), delay_minutes=("dep_delay", "sum")
    )
    return {
        airport: tuple(int(value) for value in row)
        for airport, *row in figures[list(FIGURES)].itertuples()
    }


def as_stored(flights: pd.DataFrame) -> dict[str, list[str | None]]:
    """The texts that the fields of each flight must have, by id; None where there is no field."""
    texts = flights.astype("string")
    texts["time_hour"] = texts["time_hour"].str.replace("Z", ".000000Z")
    rows = texts.astype(object).where(texts.notna(), None).itertuples(name=None)
    return {str(number): list(row) for number, *row in rows}


def _wrong(flights: pd.DataFrame, stored: Stored, found: set[str]) -> int:
    expected = {number: row for number, row in as_stored(flights).items() if number in found}
    fields = [*flights.columns, "id", "load_id"]
    rows = stored.flights(list(expected), fields)
    return sum(
        row[:-1] != [*texts, number] or not row[-1]
        for (number, texts), row in zip(expected.items(), rows, strict=True)
    )
