"""The code of docs/writing-a-connector.md makes a connector, and the kit is green."""

from __future__ import annotations

import re
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.kit.tutorial import files, run

LONGEST = 150


@pytest.fixture
def fast() -> Iterator[Path]:
    """A directory in memory, if there is one: the kit commits ten thousand times."""
    memory = Path("/dev/shm")
    with tempfile.TemporaryDirectory(dir=memory if memory.is_dir() else None) as home:
        yield Path(home)


def test_the_connector_is_short() -> None:
    lines = [line for line in files()["pyspark_sqlite.py"].splitlines() if line.strip()]
    assert len(lines) < LONGEST


def test_a_rule_of_the_kit_holds(fast: Path) -> None:
    done = run(fast, "test_sqlite.py", "-k", "c01")
    assert done.returncode == 0, done.stdout[-5000:]


@pytest.mark.slow
def test_the_kit_is_green(fast: Path) -> None:
    done = run(fast, "test_sqlite.py")
    assert done.returncode == 0, done.stdout[-5000:]
    passed = re.search(r"(\d+) passed", done.stdout)
    assert passed is not None
    assert int(passed[1]) > 40, done.stdout
    assert "apply: every epoch is published in one transaction" in done.stdout


@pytest.mark.slow
def test_a_commit_in_the_middle_of_publish_is_found(fast: Path) -> None:
    """What the end of the page says."""
    end = "            return self._swap(db, manifest.sink, finish(ALL_STORED), proposal.over)"
    assert end in files()["pyspark_sqlite.py"]
    two = f'            db.execute("COMMIT")\n            db.execute("BEGIN")\n{end}'
    line = ("-k", "c01_a_crash_at_any_line")
    done = run(fast, "test_sqlite.py", *line, broken=(end, two), SPARKONCE_TCK_PACE="1")
    assert done.returncode == 1
    assert "rule C01" in done.stdout
    assert re.search(r"died at line \d+ of (publish|_swap)", done.stdout)
