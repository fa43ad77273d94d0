"""Slices of the slow tests: of equal length, and each test stays in its own."""

from __future__ import annotations

import json
import re
from math import gcd
from pathlib import Path
from types import SimpleNamespace
from typing import Any

from integration.support.slices import MEASURED, divided, part_of

ROOT = Path(__file__).parents[2]
RUN = (ROOT / ".ci/run").read_text()
OF = int(re.findall(r"SLICES:-(\d+)", RUN)[0])


def part(name: str, measured: dict[str, int]) -> int:
    item: Any = SimpleNamespace(nodeid=name, get_closest_marker=lambda _: None)
    return part_of(item, measured, OF)


def test_slices_take_equally_long_and_name_files_that_are_there() -> None:
    seconds: dict[str, float] = json.loads(MEASURED.read_text())
    long = [0.0] * OF
    for name, at in divided(seconds, OF).items():
        long[at] += seconds[name]
    assert max(long) - min(long) < 60
    assert {name for name in seconds if not (ROOT / name.split("::")[0]).exists()} == set()


def test_a_test_that_comes_or_goes_moves_no_other() -> None:
    seconds = {f"test_{number}": float(number % 17) for number in range(500)}
    measured = divided(seconds, OF)
    names = [*seconds, *(f"new_{number}" for number in range(100))]
    before = [part(name, measured) for name in names]
    assert [part(name, measured) for name in names[3:]] == before[3:]
    assert len(set(before)) == OF


def test_what_goes_round_in_ci_meets_all_of_the_rest() -> None:
    """Lists whose lengths share no factor, with each other and with small numbers of commits."""
    lists = [one.split() for one in re.findall(r"\$\(turn ([^)]+)\)", RUN)]
    lengths = [OF, *(len(one) for one in lists)]
    assert len(lists) == 3
    assert all(gcd(a, b) == 1 for at, a in enumerate(lengths) for b in lengths[:at])
    assert all(length % few for length in lengths for few in (2, 3))
