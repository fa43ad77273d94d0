"""Slices of the slow tests: of equal length, and each test stays in its own."""

from __future__ import annotations

import json
import re
from math import gcd
from pathlib import Path
from typing import cast

import pytest
from integration.support.slices import MEASURED, divided, part_of

ROOT = Path(__file__).parents[2]
OF = int(re.findall(r"SLICES:-(\d+)", (ROOT / ".ci/run").read_text())[0])


class Item:
    """A test, as far as slices look at it."""

    def __init__(self, nodeid: str) -> None:
        self.nodeid = nodeid

    def get_closest_marker(self, _: str) -> None:
        return None


def part(name: str, measured: dict[str, int]) -> int:
    return part_of(cast("pytest.Item", Item(name)), measured, OF)


def test_slices_take_equally_long() -> None:
    seconds: dict[str, float] = json.loads(MEASURED.read_text())
    long = [0.0] * OF
    for name, at in divided(seconds, OF).items():
        long[at] += seconds[name]
    assert max(long) - min(long) < 60


def test_a_test_that_comes_or_goes_moves_no_other() -> None:
    seconds = {f"test_{number}": float(number % 17) for number in range(500)}
    measured = divided(seconds, OF)
    names = [*seconds, *(f"new_{number}" for number in range(100))]
    before = {name: part(name, measured) for name in names}
    assert {name: part(name, measured) for name in names[3:]} == {
        name: at for name, at in before.items() if name in names[3:]
    }
    assert len(set(before.values())) == OF


def test_names_of_measured_tests_are_of_files_that_are_there() -> None:
    lost = {
        name
        for name in json.loads(MEASURED.read_text())
        if not (ROOT / name.split("::")[0]).exists()
    }
    assert lost == set()


def test_what_goes_round_in_ci_meets_all_of_the_rest() -> None:
    """Lists whose lengths share no factor, with each other and with small numbers of commits."""
    text = (ROOT / ".ci/run").read_text()
    lists = [one.split() for one in re.findall(r"\$\(turn ([^)]+)\)", text)]
    lengths = [OF, *(len(one) for one in lists)]
    assert len(lists) == 3
    assert all(gcd(a, b) == 1 for at, a in enumerate(lengths) for b in lengths[:at])
    assert all(length % few for length in lengths for few in (2, 3))
