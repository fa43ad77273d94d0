"""A Docker engine: the one that answers, or one of our own."""

from __future__ import annotations

import os
import shutil
import subprocess
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from integration.support.servers.finder import UnavailableError
from integration.support.servers.port import HOST
from integration.support.servers.process import wait_until

START, STOP = 60.0, 30.0


@contextmanager
def engine() -> Iterator[dict[str, str]]:
    """The environment of clients, for as long as the context lasts.

    Raises:
        UnavailableError: there is no engine, and none can be started.
    """
    if not answers({}):
        _bring()
    if answers({}):  # Debian starts it where it has an init
        yield {}
        return
    with tempfile.TemporaryDirectory(prefix="docker-", ignore_cleanup_errors=True) as home:
        env = {"DOCKER_HOST": f"unix://{home}/docker.sock"}
        with (Path(home) / "log").open("wb") as log:
            process = subprocess.Popen(
                _command(home), stdout=log, stderr=log, start_new_session=True
            )
        try:
            wait_until(lambda: _came_up(process, env, home), START, "dockerd did not answer")
            yield env
        finally:
            _stop(process)


def _stop(process: subprocess.Popen[bytes]) -> None:
    """End it in good order, and its containers with it; or by force if it takes too long."""
    process.terminate()
    try:
        process.wait(STOP)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait()


def answers(env: dict[str, str]) -> bool:
    if not shutil.which("docker"):
        return False
    asked = ["docker", "info", "--format", "{{.ServerVersion}}"]
    told = subprocess.run(asked, env={**os.environ, **env}, capture_output=True, check=False)
    return told.returncode == 0


def _bring() -> None:
    if shutil.which("dockerd") and shutil.which("docker"):
        return
    if os.geteuid() or not shutil.which("apt-get"):
        raise UnavailableError("no Docker engine answers, and only root can bring Debian's")
    env = {**os.environ, "DEBIAN_FRONTEND": "noninteractive"}
    for command in (["update", "-qq"], ["install", "-y", "-qq", "docker.io"]):
        done = subprocess.run(["apt-get", *command], env=env, capture_output=True, check=False)
        if done.returncode:
            raise UnavailableError(f"apt-get {command[0]} failed: {done.stderr[-200:]!r}")


def _command(home: str) -> list[str]:
    return [
        *("dockerd", "--storage-driver", "overlay2", "--ip", HOST),
        *("--host", f"unix://{home}/docker.sock"),
        *("--data-root", f"{home}/data", "--exec-root", f"{home}/exec", "--pidfile", f"{home}/pid"),
    ]


def _came_up(process: subprocess.Popen[bytes], env: dict[str, str], home: str) -> bool:
    if process.poll() is not None:
        words = (Path(home) / "log").read_text(errors="replace").splitlines()[-3:]
        raise UnavailableError(f"dockerd ended at once: {' | '.join(words)}")
    return answers(env)
