"""What partition runs are made of: faults from a seed, links that they cut, losses with a name."""

from __future__ import annotations

import json
import random
import re
from dataclasses import replace
from itertools import permutations
from pathlib import Path
from typing import Any

import pytest
from tools.chaos.oracle import Named, Verdict, compare
from tools.chaos.target import BOTH, Counts, Witness
from tools.chaos.topic import Event
from tools.partitions import plan
from tools.partitions.cluster import CLUSTERS, maker
from tools.partitions.plan import Fault
from tools.partitions.run import PartitionResult
from tools.partitions.source_run import SourceResult
from tools.partitions.world import BEHIND, Loss

from sparkonce.exactly_once.conflicts import sink_behind
from sparkonce.exactly_once.driver import Driver, Policy
from sparkonce.exactly_once.ledger import Ledger

MACHINES = ("n1", "n2", "n3", "n4", "n5", "n6")
EVENTS = [Event(0, 0, bucket=1, amount=5), Event(0, 1, 1, 7), Event(2, 0, 3, 9)]
ROWS = [Witness(event.partition, event.offset, 1, event.amount) for event in EVENTS]
RIGHT: Counts = {at: {1: (2, 12), 3: (1, 9)}.get(at[1], (0, 0)) for at in BOTH}
LOST = Named(frozenset({(0, 1)}), frozenset({(0, 1)}))
LESS: Counts = RIGHT | {("left", 1): (1, 5), ("right", 1): (1, 5)}


def fault(kind: str, driver: str = plan.BOTH) -> Fault:
    return Fault(kind, plan.LEADER, driver, plan.ANY, 4.0)


def cut(kind: str, driver: str, seed: int, machines: tuple[str, ...]) -> set[tuple[str, str]]:
    chance = random.Random(seed)
    return {*plan.links(fault(kind, driver), "n1", machines, "driver", chance)}


def test_a_seed_draws_the_same_faults_of_each_kind_that_is_possible() -> None:
    drawn = plan.draw(7, 64, "some", [plan.CLOCK])
    assert drawn == plan.draw(7, 64, "some", [plan.CLOCK]) != plan.draw(8, 64, "some", [plan.CLOCK])
    assert {one.kind for one in drawn} == {*plan.DECK} - {plan.CLOCK}
    assert {one.moment for one in drawn} == {*plan.MOMENTS}
    alone = plan.draw(7, 16, "some", [], [plan.ANY])
    assert {one.moment for one in alone} == {plan.ANY}


@pytest.mark.parametrize("machines", [MACHINES[:3], MACHINES])
@pytest.mark.parametrize("seed", range(20))
def test_cut_links_divide_the_machines_as_the_fault_says(
    seed: int, machines: tuple[str, ...]
) -> None:
    alone = cut(plan.ALONE, plan.BOTH, seed, machines)
    assert alone == {(a, b) for a, b in permutations(machines, 2) if "n1" in (a, b)}
    halves = cut(plan.HALVES, plan.BOTH, seed, machines)
    sides = {
        frozenset(b for b in machines if b != a and (a, b) not in halves) | {a} for a in machines
    }
    small, large = sorted(map(len, sides))
    assert (small + large, large - small) in {(len(machines), 0), (len(machines), 1), (6, 2)}
    bridge = cut(plan.BRIDGE, plan.BOTH, seed, machines)
    sees = [a for a in machines if all((a, b) not in bridge for b in machines)]
    assert len(sees) == 1
    assert all((b, a) in bridge for a, b in bridge)
    assert cut(plan.MUTE, plan.BOTH, seed, machines) == {("n1", one) for one in machines[1:]}
    assert cut(plan.DEAF, plan.BOTH, seed, machines) == {(one, "n1") for one in machines[1:]}


@pytest.mark.parametrize(
    ("driver", "reaches"),
    [(plan.NEAR, {"n1"}), (plan.AWAY, {"n2", "n3"}), (plan.BOTH, {*MACHINES[:3]})],
)
def test_the_driver_is_on_the_side_that_the_fault_says(driver: str, reaches: set[str]) -> None:
    links = cut(plan.ALONE, driver, 1, MACHINES[:3])
    assert {one for one in MACHINES[:3] if ("driver", one) not in links} == reaches


@pytest.mark.parametrize(("kind", "silent"), [(plan.MUTE, "n1"), (plan.DEAF, "driver")])
def test_the_driver_takes_part_in_a_link_of_one_direction(kind: str, silent: str) -> None:
    three = MACHINES[:3]
    assert cut(kind, plan.BOTH, 1, three) == {
        link for link in cut(kind, plan.AWAY, 1, three) if "driver" not in link
    }
    (link,) = (link for link in cut(kind, plan.AWAY, 1, three) if "driver" in link)
    assert link == (silent, {"n1": "driver", "driver": "n1"}[silent])
    near = cut(kind, plan.NEAR, 1, three)
    assert {link for link in near if "driver" in link} == {
        *(("driver", one) for one in three[1:]),
        *((one, "driver") for one in three[1:]),
    }


# -- losses


@pytest.mark.parametrize(
    ("rows", "counters", "lost", "duplicated", "excused"),
    [
        ([ROWS[0], ROWS[2]], LESS, 0, 0, 1),
        (ROWS, LESS, 0, 1, 1),
        ([ROWS[0]], LESS, 1, 0, 1),
        ([ROWS[0], ROWS[2]], LESS | {("left", 1): (2, 12)}, 0, 1, 1),
        ([ROWS[0], ROWS[2]], LESS | {("left", 1): (1, 999)}, 1, 0, 1),
        ([ROWS[0], ROWS[2]], LESS | {("left", 1): (0, 0)}, 1, 0, 1),
        ([ROWS[0], ROWS[2]], LESS | {("left", 3): (0, 0)}, 1, 0, 1),
    ],
)
def test_what_a_query_named_as_lost_is_absent_and_nothing_else(
    rows: list[Witness], counters: Counts, lost: int, duplicated: int, excused: int
) -> None:
    assert compare(EVENTS, rows, counters, LOST) == Verdict(3, lost, duplicated, excused)


def test_the_error_of_a_query_names_the_epochs_that_are_lost() -> None:
    driver = Driver("q", "run", 7, "s@1", "t")
    for last, first in ((4, "5"), (-1, "0")):
        ledger = Ledger.unwritten("s@1", "q", target="t")
        ledger = replace(ledger, decision=replace(ledger.decision, epoch=last))
        error = sink_behind(ledger, driver, Policy(repeatable=False))
        said_by_spark = f"sparkonce.errors.{type(error).__name__}: {error}"
        assert BEHIND.findall(said_by_spark) == [("q", f"continue@{first}-6", first, "6")]


def test_a_loss_has_the_events_of_its_epochs() -> None:
    loss = Loss("rows", 3, 4, begin={0: 10}, end={0: 20, 1: 5})
    assert [loss.has(0, 9), loss.has(0, 10), loss.has(0, 20)] == [False, True, False]
    assert [loss.has(1, 0), loss.has(2, 0)] == [True, False]
    assert str(loss) == "epochs 3 to 4 of rows"


@pytest.mark.parametrize("name", CLUSTERS)
def test_each_kind_has_a_class_of_its_name_and_runs_each_night(name: str) -> None:
    made = maker(name)
    assert made.name == name
    assert len(made.machines) >= 3
    workflow = (Path(__file__).parents[2] / ".github/workflows/nightly.yml").read_text()
    assert f"          - {name}\n" in workflow


# -- results


@pytest.mark.parametrize("kind", [PartitionResult, SourceResult])
@pytest.mark.parametrize(
    "harm",
    [
        {"lost": 1},
        {"duplicated": 1},
        {"rows": 0},
        {"struck": []},
        {"missed": {"1: paused": "no query commits"}},
        {"alarms": ["TypeError, once"]},
        {"broken": ["rows lacks epochs 1 to 2: nothing may be lost"]},
    ],
    ids=str,
)
def test_a_result_is_not_good_with_any_harm(kind: Any, harm: dict[str, Any]) -> None:
    reads = {"reads": 9} if kind is PartitionResult else {}
    struck = [fault(plan.ALONE)] * 3
    made = kind(store="galera", seed=1, planned=3, versions={}, rows=5, struck=struck, **reads)
    assert made.good
    assert not replace(made, **harm).good
    assert made.made["commit"]


def test_a_record_names_commit_date_and_machine(tmp_path: Path) -> None:
    made = SourceResult(store="galera", seed=1, planned=3, versions={}, rows=5)
    made.write(tmp_path / "one.json")
    found = json.loads((tmp_path / "one.json").read_text())["made"]
    assert {*found} == {"commit", "date", "machine"}
    assert re.fullmatch(r"\d{4}-\d\d-\d\d", found["date"])
    assert re.match(r"\d+ cores, \d+ GiB, ", found["machine"])
