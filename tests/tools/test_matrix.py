"""`make matrix`: its cells, their Pythons, and what its page tells. No cell runs here."""

from __future__ import annotations

import re
from pathlib import Path
from subprocess import TimeoutExpired

import pytest
from integration.support.servers.finder import UnavailableError
from tools.matrix import pythons, report
from tools.matrix.__main__ import _recorded
from tools.matrix.cells import PYTHONS, RELEASES, Cell, every_cell, slug
from tools.matrix.environment import BrokenError
from tools.matrix.outcomes import FAILED, NOT_RUN, PASSED, outcome, told
from tools.matrix.platforms import PLATFORMS

ROOT = Path(__file__).parents[2]
HELD = {"store": "redis", "rule": "Q02", "outcome": "held"}


def python(path: Path, says: str) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(f"#!/bin/sh\n{says}\n")
    path.chmod(0o755)
    return path


@pytest.fixture
def machine(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A machine without any Python: `bin` is its PATH, `pyenv` the root of its pyenv."""
    monkeypatch.setenv("PATH", f"{tmp_path / 'bin'}")
    monkeypatch.setenv("PYENV_ROOT", str(tmp_path / "pyenv"))
    return tmp_path


@pytest.mark.parametrize("name", [one for one in every_cell() if one not in ("chain", "sail")])
def test_the_name_of_a_cell_says_all_of_it(name: str) -> None:
    assert str(Cell.named(name)) == name


@pytest.mark.parametrize("name", ["4.0.2", "4.0/3.12", "4.0.2/3.12.1", "chains/x", "/"])
def test_what_is_no_cell_is_refused(name: str) -> None:
    with pytest.raises(ValueError, match="write it as"):
        Cell.named(name)


def test_no_two_cells_share_their_files() -> None:
    assert len({slug(name) for name in every_cell()}) == len(every_cell())


def test_the_cells_of_ci_have_each_release_and_each_python() -> None:
    """Python 3.11 is that of the machine, with which everything else runs."""
    line = re.search(r"^CELL=\$\{CELL:-\$\(turn ([^)]+)\)\}$", (ROOT / ".ci/run").read_text(), re.M)
    assert line
    cells = [Cell.named(name) for name in line[1].split()]
    assert {cell.spark for cell in cells} >= set(RELEASES)
    assert {cell.python for cell in cells} >= {*PYTHONS} - {"3.11"}


def test_cells_next_to_a_platform_are_cells() -> None:
    assert {name for one in PLATFORMS for name in one.cells} <= set(every_cell())


def test_a_stub_on_the_path_is_passed_over_for_the_python_of_pyenv(machine: Path) -> None:
    python(machine / "bin" / "python3.12", "exit 127")
    found = python(machine / "pyenv/versions/3.12.1/bin/python", "echo 3.12")
    assert pythons.python("3.12") == found


def test_a_python_that_cannot_be_had_is_named(machine: Path) -> None:
    python(machine / "bin" / "python3.12", "echo 3.11")
    with pytest.raises(UnavailableError, match=r"no python3\.12 on PATH, nor in pyenv, nor in D"):
        pythons.python("3.12")


@pytest.mark.parametrize(
    ("made", "became"),
    [
        ({"findings": [HELD]}, PASSED),
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


def test_what_could_not_run_is_on_record_with_its_reason(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def run() -> dict[str, object]:
        raise UnavailableError("no python3.12 on PATH")

    monkeypatch.setattr(report, "RECORDS", tmp_path)
    assert told(_recorded("4.0.2/3.12", run)) == "not run: no python3.12 on PATH"
    kept = report.records(tmp_path)["4.0.2/3.12"]
    assert kept["outcome"] == NOT_RUN
    assert "\n3.12 | not run: no python3.12 on PATH |" in report.page({"4.0.2/3.12": kept})


@pytest.mark.parametrize(
    ("error", "why"),
    [
        (BrokenError("PySpark 4.0.2 was replaced by 4.3.0"), "PySpark 4.0.2 was replaced by 4.3.0"),
        (TimeoutExpired("program", 900), "Command 'program' timed out after 900 seconds"),
    ],
)
def test_a_cell_that_breaks_has_failed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, error: Exception, why: str
) -> None:
    def run() -> dict[str, object]:
        raise error

    monkeypatch.setattr(report, "RECORDS", tmp_path)
    assert told(_recorded("4.0.2/3.12", run)) == f"failed: {why}"


def test_the_page_is_made_from_the_records() -> None:
    assert report.PAGE.read_text() == report.page(report.records()), "run `make matrix`"
