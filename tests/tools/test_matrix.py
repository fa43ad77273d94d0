"""`make matrix`: its cells, their Pythons, and what its page tells. No cell runs here."""

from __future__ import annotations

import re
from pathlib import Path
from subprocess import TimeoutExpired

import pytest
from integration.support.servers.finder import UnavailableError
from tools.matrix import (
    FAILED,
    PASSED,
    PYTHONS,
    RELEASES,
    Cell,
    every_cell,
    outcome,
    report,
    slug,
    summary,
)
from tools.matrix import __main__ as program

ROOT = Path(__file__).parents[2]
HELD = {"store": "redis", "rule": "Q02", "outcome": "held"}


def test_names_of_cells_say_all_of_them_and_no_two_share_their_files() -> None:
    cells = [one for one in every_cell() if one not in ("chain", "sail")]
    assert [str(Cell.named(name)) for name in cells] == cells
    assert len({slug(name) for name in every_cell()}) == len(every_cell())
    with pytest.raises(ValueError, match="write it as"):
        Cell.named("4.0/3.12")


def test_the_cells_of_ci_have_each_release_and_each_python() -> None:
    """Python 3.11 is that of the machine, with which everything else runs."""
    line = re.search(r"^CELL=\$\{CELL:-\$\(turn ([^)]+)\)\}$", (ROOT / ".ci/run").read_text(), re.M)
    assert line
    cells = [Cell.named(name) for name in line[1].split()]
    assert {cell.spark for cell in cells} >= set(RELEASES)
    assert {cell.python for cell in cells} >= {*PYTHONS} - {"3.11"}


@pytest.mark.parametrize(
    ("made", "became"),
    [
        ({"findings": [HELD, {**HELD, "rule": "Q10", "outcome": "not given"}]}, PASSED),
        ({"findings": [HELD, {**HELD, "outcome": "broken"}]}, FAILED),
        ({"findings": [HELD, {**HELD, "outcome": "not reached"}]}, FAILED),
        ({"findings": []}, FAILED),
        ({"error": "Traceback"}, FAILED),
        ({"refused": "Spark 3.5.9 has no Python data sources"}, PASSED),
        ({"refused": ""}, FAILED),
        ({"steps": [{"exact": True}]}, PASSED),
        ({"steps": [{"exact": True}, {"exact": False}]}, FAILED),
    ],
)
def test_a_cell_passes_if_all_of_it_held(made: dict[str, object], became: str) -> None:
    assert outcome(made) == became


@pytest.mark.parametrize(
    ("error", "why"),
    [
        (UnavailableError("no python3.12 on PATH"), "not run: no python3.12 on PATH"),
        (program.BrokenError("PySpark was replaced"), "failed: PySpark was replaced"),
        (TimeoutExpired("x", 900), "failed: Command 'x' timed out after 900 seconds"),
    ],
)
def test_a_cell_that_can_not_run_is_on_record_with_its_reason(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, error: Exception, why: str
) -> None:
    def run() -> dict[str, object]:
        raise error

    monkeypatch.setattr(report, "RECORDS", tmp_path)
    assert summary(program.recorded("4.0.2/3.12", run)) == why
    assert f"\n3.12 | {why} |" in report.page(report.records(tmp_path))


def test_the_page_is_made_from_the_records() -> None:
    assert report.PAGE.read_text() == report.page(report.records()), "run `make matrix`"
