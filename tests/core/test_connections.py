"""What sinks of one process share: made once a key, closed while idle, and never over a fork."""

from __future__ import annotations

import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from sparkonce import connections


class Connections:
    """Counts how often it was closed."""

    def __init__(self) -> None:
        self.closed = 0

    def close_idle(self) -> None:
        self.closed += 1


BEFORE: set[threading.Thread] = set()
"""Threads of earlier tests, which may end at any time."""


def closers() -> int:
    new = {*threading.enumerate()} - BEFORE
    return sum(thread.name == "sparkonce-idle" for thread in new)


@pytest.fixture
def idle(monkeypatch: pytest.MonkeyPatch) -> Iterator[float]:
    """Seconds without use, of a process that has used nothing yet."""
    BEFORE.update(threading.enumerate())
    monkeypatch.setattr(connections, "_processes", {})
    monkeypatch.setattr(connections, "IDLE", 0.2)
    yield 0.2
    connections.forget()


def until(happened: object, seconds: float = 5) -> None:
    ends = time.monotonic() + seconds
    while not happened() and time.monotonic() < ends:  # type: ignore[operator]
        time.sleep(0.01)


@pytest.mark.usefixtures("idle")
def test_one_is_made_for_each_key() -> None:
    made = [connections.shared(key, Connections) for key in ("a", "b", "a")]
    assert made[0] is made[2]
    assert made[0] is not made[1]


@pytest.mark.usefixtures("idle")
def test_what_can_not_be_made_is_tried_anew() -> None:
    with pytest.raises(ZeroDivisionError):
        connections.shared("a", lambda: 1 / 0)
    assert connections.shared("a", Connections).closed == 0


def test_it_is_closed_once_nobody_has_used_it_for_a_while(idle: float) -> None:
    before, busy, quiet = closers(), Connections(), Connections()
    connections.used(quiet)
    for _ in range(20):
        connections.used(busy)
        time.sleep(idle / 10)
    assert (quiet.closed, busy.closed) == (1, 0)
    assert closers() == before + 1
    until(lambda: busy.closed)
    until(lambda: closers() == before)
    assert (quiet.closed, busy.closed, closers()) == (1, 1, before)


def test_it_is_closed_again_after_it_was_used_again(idle: float) -> None:
    it = Connections()
    for times in (1, 2, 3):
        connections.used(it)
        until(lambda times=times: it.closed == times)
        assert it.closed == times
        time.sleep(idle / 4)


def test_what_is_forgotten_is_closed_and_made_anew(idle: float) -> None:
    before, first = closers(), connections.shared("a", Connections)
    connections.used(first)
    connections.forget()
    assert first.closed == 1
    assert connections.shared("a", Connections) is not first
    until(lambda: closers() == before)
    assert (first.closed, closers()) == (1, before)
    assert idle


def test_one_that_can_not_be_closed_keeps_none_of_the_others_open(
    idle: float, caplog: pytest.LogCaptureFixture
) -> None:
    class Broken(Connections):
        def close_idle(self) -> None:
            super().close_idle()
            raise OSError("no way")

    first, second, third = Broken(), Connections(), Connections()
    for one in (first, second):
        connections.used(one)
    until(lambda: second.closed)
    assert (first.closed, second.closed) == (1, 1)
    assert "could not be closed: OSError: no way" in caplog.text
    connections.used(third)
    until(lambda: third.closed)
    assert third.closed == 1
    assert idle


def test_what_was_closed_is_forgotten_with_the_secret_in_its_key(idle: float) -> None:
    first = connections.shared(("server", "old password"), Connections)
    kept = connections.shared(("server", "new password"), Connections)
    connections.used(first)
    for _ in range(6):
        connections.used(kept)
        time.sleep(idle / 3)
    assert first.closed
    assert [*connections._here().made] == [("server", "new password")]
    assert connections.shared(("server", "new password"), Connections) is kept


@pytest.mark.usefixtures("idle")
def test_what_could_not_connect_is_forgotten_with_the_secret_in_its_key() -> None:
    """Nobody has used it."""
    first = connections.shared(("server", "password"), Connections)
    until(lambda: first.closed)
    assert connections.shared(("server", "password"), Connections) is not first


def test_use_is_no_failure_where_no_thread_can_start_and_the_next_use_tries_again(
    idle: float, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fails(_: threading.Thread) -> None:
        raise RuntimeError("can't start new thread")

    it = Connections()
    with monkeypatch.context() as patch:
        patch.setattr(threading.Thread, "start", fails)
        connections.used(it)
    time.sleep(idle)
    connections.used(it)
    until(lambda: it.closed)
    assert it.closed == 1


FORK = """
import os
from sparkonce import connections

first = connections.shared("a", object)
child = os.fork()
if child == 0:
    os._exit(17 if connections.shared("a", object) is first else 0)
assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
assert connections.shared("a", object) is first
"""


def test_a_forked_process_has_its_own() -> None:
    subprocess.run([sys.executable, "-c", FORK], check=True)


# -- what a test leaves behind is its own failure, and nothing of it reaches the next one


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
