"""The demo's comparison finds what it is there to find. No server runs here."""

from __future__ import annotations

from collections.abc import Sequence

import pandas as pd
import pytest
from demo.check import Figures, Target, Verdict, as_stored, compare, count

FLIGHTS = pd.DataFrame(
    {
        "dep_delay": [2, None, -4, 7],
        "tailnum": ["N1", "N2", None, "N4"],
        "origin": ["EWR", "EWR", "JFK", "LGA"],
        "distance": [1400, 700, 100, 5],
        "time_hour": ["2013-01-01T10:00:00Z"] * 4,
    }
).convert_dtypes()


class Fake(Target):
    """What a faultless demo puts into Redis, for the tests to spoil."""

    def __init__(self) -> None:
        self.rows: dict[str, dict[str, str | None]] = {}
        for number, texts in as_stored(FLIGHTS).items():
            fields = dict(zip(FLIGHTS.columns, texts, strict=True))
            self.rows[number] = {**fields, "id": number, "load_id": "random"}
        self.counters = count(FLIGHTS)

    def flight_ids(self) -> set[str]:
        return set(self.rows)

    def flights(self, ids: Sequence[str], fields: Sequence[str]) -> list[list[str | None]]:
        return [[self.rows[number].get(field) for field in fields] for number in ids]

    def airports(self) -> dict[str, Figures]:
        return self.counters

    def verdict(self) -> Verdict:
        return compare(FLIGHTS, self)


@pytest.fixture
def fake() -> Fake:
    return Fake()


def figures(verdict: Verdict) -> tuple[int, int, int, int]:
    return verdict.rows, verdict.lost, verdict.duplicated, verdict.wrong


def test_what_should_be_there_is_exact(fake: Fake) -> None:
    assert figures(fake.verdict()) == (4, 0, 0, 0)
    assert fake.verdict().exact


def test_a_flight_that_is_not_there_is_lost_and_a_key_that_is_none_a_duplicate(fake: Fake) -> None:
    fake.rows["4"] = fake.rows.pop("2")
    assert figures(fake.verdict()) == (3, 1, 1, 0)
    assert not fake.verdict().exact


@pytest.mark.parametrize(
    ("counters", "lost", "duplicated"),
    [
        ({"EWR": (3, 2800, 2)}, 0, 1),
        ({"LGA": (0, 0, 0)}, 1, 0),
        ({"EWR": (3, 2800, 2), "JFK": (0, 0, 0)}, 1, 1),
        ({"EWR": (2, 2800, 4)}, 0, 0),
    ],
    ids=["twice", "never", "one lost, one doubled", "one row instead of another"],
)
def test_counters_that_are_not_those_of_the_file_are_seen(
    fake: Fake, counters: dict[str, Figures], lost: int, duplicated: int
) -> None:
    fake.counters.update(counters)
    assert figures(fake.verdict()) == (4, lost, duplicated, 0)
    assert not fake.verdict().exact


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("distance", "701"),
        ("distance", "700.0"),
        ("tailnum", ""),
        ("tailnum", None),
        ("dep_delay", "0"),
        ("id", "2"),
        ("load_id", None),
        ("time_hour", "2013-01-01T11:00:00.000000Z"),
    ],
)
def test_a_field_that_differs_makes_a_wrong_row(fake: Fake, field: str, value: str | None) -> None:
    fake.rows["1"][field] = value
    assert figures(fake.verdict()) == (4, 0, 0, 1)
    assert not fake.verdict().exact
