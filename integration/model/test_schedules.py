"""What the code did in a schedule is allowed by docs/model; and what it may not do is not."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from copy import deepcopy

import pytest
from tools.model.schedules import Scene, Schedule, stopped, taped

pytestmark = [pytest.mark.slow, pytest.mark.xdist_group("model")]
SEEDS = range(300, 540)


@pytest.fixture(scope="module")
def schedules() -> Mapping[Scene, list[Schedule]]:
    return taped(SEEDS)


def test_the_model_allows_what_the_code_does(schedules: Mapping[Scene, list[Schedule]]) -> None:
    refused = [one for scene, played in schedules.items() for one in stopped(scene, played)]
    assert not refused
    profiles = Counter(scene.profile for scene, played in schedules.items() for _ in played)
    assert min(profiles.values()) == len(SEEDS) // 3


def test_a_line_that_the_code_never_wrote_is_refused(
    schedules: Mapping[Scene, list[Schedule]],
) -> None:
    """The store is another than it was: what has taken effect last has done so once more."""
    scene, played = deepcopy(max(schedules.items(), key=lambda item: len(item[1])))
    changed = set()
    for one in played:
        for line in reversed(one.lines):
            if line["saw"].get("rows"):
                line["saw"]["rows"] = (*line["saw"]["rows"], line["saw"]["rows"][-1])
                changed.add(one.seed)
                break
    assert changed
    assert {one.seed for one in stopped(scene, played)} == changed
