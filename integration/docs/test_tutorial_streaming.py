"""The connector of docs/writing-a-connector.md under real queries; the rules that are quick."""

from __future__ import annotations

from pathlib import Path

import pytest
from demo.java import java_home
from tests.kit.tutorial import run


@pytest.mark.slow
def test_the_streaming_half_of_the_kit_is_green(tmp_path: Path) -> None:
    scratch = tmp_path / "java"
    scratch.mkdir()
    home = tmp_path / "tutorial"
    home.mkdir()
    tests = ["test_sqlite_streaming.py", "-k", "q01 or q02 or q03 or q08"]
    done = run(home, *tests, JAVA_HOME=str(java_home(scratch)))
    assert done.returncode == 0, done.stdout[-5000:]
    assert "4 passed" in done.stdout


@pytest.mark.slow
def test_the_source_of_the_page_is_checked(tmp_path: Path) -> None:
    (tmp_path / "java").mkdir()
    (tmp_path / "home").mkdir()
    tests = ["test_files.py", "-k", "f01 or f02 or f05 or f12"]
    done = run(tmp_path / "home", *tests, JAVA_HOME=str(java_home(tmp_path / "java")))
    assert done.returncode == 0, done.stdout[-5000:]
    assert "3 passed, 1 skipped" in done.stdout
    assert "it tells no latestOffset" in done.stdout
