"""The connector of docs/writing-a-connector.md under real queries; the rules that are quick."""

from __future__ import annotations

from pathlib import Path

import pytest
from demo.java import java_home
from tests.kit.test_tutorial import run


@pytest.mark.conformance
def test_the_streaming_half_of_the_kit_is_green(tmp_path: Path) -> None:
    scratch = tmp_path / "java"
    scratch.mkdir()
    home = tmp_path / "tutorial"
    home.mkdir()
    tests = ["test_sqlite_streaming.py", "-k", "q01 or q02 or q03 or q08"]
    done = run(home, *tests, JAVA_HOME=str(java_home(scratch)))
    assert done.returncode == 0, done.stdout[-5000:]
    assert "4 passed" in done.stdout
