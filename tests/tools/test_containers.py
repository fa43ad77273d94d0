"""`make test-containers`: its exit status, its engine, its images. No engine runs here."""

from __future__ import annotations

import os
import signal
import subprocess
from contextlib import contextmanager
from typing import TYPE_CHECKING

import pytest
from integration.support.servers.finder import UnavailableError
from integration.support.servers.process import tidy_when_terminated
from tools.containers import __main__ as program
from tools.containers import engine as engines
from tools.containers.images import Image

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path


@pytest.fixture(autouse=True)
def handler() -> Iterator[None]:
    before = signal.getsignal(signal.SIGTERM)
    yield
    signal.signal(signal.SIGTERM, before)


@contextmanager
def no_engine() -> Iterator[dict[str, str]]:
    yield {}


@pytest.mark.parametrize(
    ("statuses", "status"), [([0, 0], 0), ([1, 0], 1), ([0, -9], 1), ([-9, 0], 1)], ids=str
)
def test_every_suite_must_pass(
    statuses: list[int], status: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Of a suite that is killed the status is below 0."""
    left = iter(statuses)
    monkeypatch.setattr(program, "engine", no_engine)
    monkeypatch.setattr(program, "_test", lambda *_: next(left))
    assert program.main(["redis", "mysql"]) == status


def test_an_engine_of_our_own_publishes_ports_on_this_machine_alone() -> None:
    command = " ".join(engines._command("/home"))
    assert "--ip 127.0.0.1" in command


def test_an_engine_that_is_there_once_it_is_installed_is_used(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    brought: list[bool] = []
    monkeypatch.setattr(engines, "answers", lambda _: bool(brought))
    monkeypatch.setattr(engines, "_bring", lambda: brought.append(True))
    with engines.engine() as env:
        assert env == {}


def test_an_engine_that_does_not_stop_is_killed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(engines, "STOP", 0.2)
    deaf = ["sh", "-c", "trap '' TERM; echo; read -r _"]
    with subprocess.Popen(deaf, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as process:
        assert process.stdout
        process.stdout.readline()
        engines._stop(process)
        assert process.returncode == -signal.SIGKILL


def test_image_that_the_engine_does_not_take(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    docker = tmp_path / "bin" / "docker"
    docker.parent.mkdir()
    docker.write_text("#!/bin/sh\necho no room >&2; exit 1\n")
    docker.chmod(0o755)
    (tmp_path / "files").mkdir()
    (tmp_path / "files" / "large").write_bytes(bytes(1 << 20))
    monkeypatch.setenv("PATH", f"{docker.parent}:{os.environ['PATH']}")
    with pytest.raises(UnavailableError, match="no room"):
        Image("some", tmp_path / "files", ["true"]).build({})


def test_terminated_program_is_left_as_by_an_exit() -> None:
    tidy_when_terminated()
    with pytest.raises(SystemExit):
        signal.raise_signal(signal.SIGTERM)
