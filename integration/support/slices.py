"""`make slow SLICE=3/19`: one part of the slow tests; all parts take equally long.

A test stays in its part when others are added or removed, so that no rotation skips it. The file of
durations alone divides measured tests; the name decides for each other test. Plugins that split
tests divide the collected ones, so that a new test moves most others.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from zlib import crc32

import pytest

MEASURED = Path(__file__).parents[1] / "durations.json"


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--slice", default="1/1", help="as 3/19, the third of nineteen parts")


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    number, of = (int(one) for one in config.getoption("slice").split("/"))
    if not 1 <= number <= of:
        raise pytest.UsageError(f"--slice {number}/{of}: write it as 3/19, the third of nineteen")
    if of == 1:
        return
    measured = divided(json.loads(MEASURED.read_text()), of)
    mine, others = list[pytest.Item](), list[pytest.Item]()
    for item in items:
        (mine if part_of(item, measured, of) == number - 1 else others).append(item)
    config.hook.pytest_deselected(items=others)
    items[:] = mine


def divided(seconds: Mapping[str, float], of: int) -> dict[str, int]:
    """The part of each measured test: the longest first, each into the shortest part so far."""
    long, parts = [0.0] * of, dict[str, int]()
    for name in sorted(seconds, key=lambda name: (-seconds[name], name)):
        part = long.index(min(long))
        parts[name] = part
        long[part] += seconds[name]
    return parts


def part_of(item: pytest.Item, measured: Mapping[str, int], of: int) -> int:
    """The part of a test; pytest-split appends the group to its name."""
    group = item.get_closest_marker("xdist_group")
    noted = f"{item.nodeid}@{group.args[0]}" if group else item.nodeid
    return measured.get(noted, crc32(item.nodeid.encode()) % of)
