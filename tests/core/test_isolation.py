"""What a test leaves behind is its own failure, and nothing of it reaches the next one."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parents[2]
TESTS = """
import socket

from sparkonce import connections


def test_a_leaves_a_socket_open():
    its = socket.socket()
    its_own_cycle = [its]
    its_own_cycle.append(its_own_cycle)
    connections.shared("key", lambda: "of a")


def test_b_is_not_told_of_it_and_makes_its_own():
    assert connections.shared("key", lambda: "of b") == "of b"
"""


def test_a_socket_is_told_of_at_the_test_that_left_it(tmp_path: Path) -> None:
    file = tmp_path / "test_two.py"
    file.write_text(TESTS)
    command = [sys.executable, "-m", "pytest", "-p", "conftest", "-p", "no:randomly"]
    options = ["-c", str(ROOT / "pyproject.toml"), "-p", "no:cacheprovider", str(file)]
    done = subprocess.run(
        [*command, *options], cwd=ROOT, capture_output=True, text=True, check=False
    )
    assert "ResourceWarning: unclosed <socket.socket" in done.stdout
    assert "ERROR" in done.stdout
    assert "test_a_leaves_a_socket_open - " in done.stdout
    assert "2 passed, 1 error" in done.stdout
