"""The core walks the paths of docs/model, and leaves those of its mutants."""

from __future__ import annotations

from collections.abc import Sequence

import pytest
from tests.kit.explorer_bugs import BUGS
from tools.model import paths
from tools.model.mutants import ALL, IN_MODEL, KIT, walked
from tools.model.paths import COVERED, memory_of, mixes
from tools.model.scopes import INVARIANTS, Scope, search
from tools.model.walker import play

pytestmark = pytest.mark.xdist_group("model")
WALKS, DEPTH, SEED = 40, 100, 2
MIXES = list(mixes())
SOON = [name for name, mutant in IN_MODEL.items() if mutant.soon]


def require_walked(found: Sequence[paths.Path], scope: Scope) -> None:
    parted = [play(path, scope, memory_of(scope)).parted for path in found]
    assert not list(filter(None, parted))


@pytest.mark.slow
@pytest.mark.parametrize("scope", COVERED, ids=[one.name for one in COVERED])
def test_the_core_comes_wherever_the_model_does(scope: Scope) -> None:
    found = paths.covering(scope)
    assert len(found) > 10
    require_walked(found, scope)


@pytest.mark.slow
@pytest.mark.parametrize("scope", COVERED[2:5], ids=[one.name for one in COVERED[2:5]])
def test_walks_go_wherever_the_model_does(scope: Scope) -> None:
    """And nowhere else: TLC sees on each walk that its steps are those of the model (`IsNext`)."""
    assert paths.states(scope) == search(scope, seconds=60.0).states


@pytest.mark.slow
@pytest.mark.parametrize("scope", MIXES, ids=[one.name for one in MIXES])
def test_the_core_walks_along_by_chance(scope: Scope) -> None:
    found = paths.random(scope, walks=WALKS, depth=DEPTH, seed=SEED)
    steps = [step for path in found for step in path if step["act"] == "asks" and step["does"]]
    assert sum(step["m"]["kind"] == "decide" for step in steps) > 10, "they show little"
    require_walked(found, scope)


@pytest.mark.slow
@pytest.mark.parametrize("name", SOON)
def test_a_mutant_of_the_model_breaks_a_promise_and_the_core_leaves_its_path(name: str) -> None:
    """`python -m tools.model --mutants` walks all, some of which take TLC minutes."""
    found = walked(name, quick=True)
    assert found.is_told_apart(IN_MODEL[name].leaves), found


def test_the_list_of_mutants_has_all_of_them_and_who_finds_each() -> None:
    by_kit = {name: mutant.kit for name, mutant in ALL.items() if len(mutant.kit) == 3}
    assert by_kit == {name: mutant.breaks for name, mutant in KIT.items()}
    assert {name for name, mutant in ALL.items() if mutant.explorer} == BUGS.keys()
    assert all(mutant.breaks in INVARIANTS for mutant in IN_MODEL.values())
