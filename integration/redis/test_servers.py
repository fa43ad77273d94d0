"""The test servers themselves: they start, keep, lose and end as tests rely on them to do."""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import sys
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import psutil
import pytest
from integration.support.marks import slow_cases
from integration.support.servers.finder import Server, UnavailableError, or_skip
from integration.support.servers.process import HOST, Port, wait_until
from integration.support.servers.redis import REDIS, RedisProcess, connect, version_at
from redis.exceptions import AuthenticationError, ConnectionError, TimeoutError  # noqa: A004

PrivateRedis = Callable[..., RedisProcess]

pytestmark = pytest.mark.variants


@pytest.mark.parametrize("how", ["native", "embedded", *slow_cases("valkey", "redis8")])
def test_each_binary_gives_a_server_that_answers(how: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SPARKONCE_TEST_REDIS", how)
    finder = replace(REDIS)  # which has found nothing yet
    binary = or_skip(finder.program)
    try:
        server = finder.find()
        assert how in server.how
        assert version_at(server.url) == server.version == binary.version
    finally:
        finder.close()
    with pytest.raises(ConnectionError):
        version_at(server.url)


def test_a_url_that_answers_is_used(redis_server: Server, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("SPARKONCE_TEST_REDIS", raising=False)
    monkeypatch.setenv("SPARKONCE_TEST_REDIS_URL", redis_server.url)
    found = replace(REDIS).find()
    assert str(found) == f"redis: {redis_server.version} (at SPARKONCE_TEST_REDIS_URL)"


@pytest.mark.parametrize("end", ["stop", "kill"])
def test_a_restarted_server_keeps_its_port_and_what_it_persisted(
    private_redis: PrivateRedis, end: str
) -> None:
    server = private_redis("appendonly yes", "appendfsync always")
    url = server.url
    with connect(url) as client:
        client.set("kept", "yes")
    getattr(server, end)()
    server.start()
    with connect(url) as client:
        assert client.get("kept") == b"yes"


def test_a_restarted_server_without_persistence_is_empty(private_redis: PrivateRedis) -> None:
    server = private_redis()
    with connect(server.url) as client:
        client.set("kept", "no")
    server.restart()
    with connect(server.url) as client:
        assert client.dbsize() == 0


def test_a_paused_server_stays_connected_and_answers_once_resumed(
    private_redis: PrivateRedis,
) -> None:
    server = private_redis()
    with connect(f"{server.url}?socket_timeout=0.5") as client:
        client.ping()
        server.pause()
        with pytest.raises(TimeoutError):
            client.ping()
        server.resume()
        assert client.ping()


def test_a_paused_server_can_be_stopped(private_redis: PrivateRedis) -> None:
    server = private_redis()
    server.pause()
    server.stop()
    server.start()


def test_a_server_that_wants_a_password_counts_as_ready(private_redis: PrivateRedis) -> None:
    server = private_redis("requirepass secret", "maxmemory-policy allkeys-lru")
    with connect(server.url) as client, pytest.raises(AuthenticationError):
        client.ping()
    with connect(server.url.replace("//", "//:secret@")) as client:
        assert client.config_get("maxmemory-policy") == {"maxmemory-policy": "allkeys-lru"}


def test_a_replica_follows_its_master(private_redis: PrivateRedis) -> None:
    master = private_redis("repl-diskless-sync-delay 0")
    replica = private_redis(f"replicaof {HOST} {master.port}")
    with connect(master.url) as writer, connect(replica.url) as reader:
        wait_until(lambda: writer.info("replication")["connected_slaves"] == 1, 5, "no replica")
        writer.set("copied", "yes")
        assert writer.wait(1, 5000) == 1
        assert reader.get("copied") == b"yes"


def test_a_server_that_cannot_start_tells_why_and_leaves_nothing_behind() -> None:
    server = or_skip(lambda: RedisProcess("no-such-setting 1"))
    with pytest.raises(UnavailableError, match="no-such-setting"), server:
        pass
    assert not server.directory.exists()
    with pytest.raises(RuntimeError, match="not running"):
        _ = server.pid


def test_a_port_is_kept_while_its_server_is_down() -> None:
    port = Port()
    with socket.socket() as other, pytest.raises(OSError, match="in use"):
        other.bind((HOST, port.number))
    port.release()


# Prints the server's pid, then dies as badly as a process can.
DYING_TESTS = """
import os, signal
from integration.support.servers.redis import RedisProcess
server = RedisProcess().start()
print(server.pid, flush=True)
os.kill(os.getpid(), signal.SIGKILL)
"""


def test_the_server_dies_with_the_tests_even_if_they_are_killed(
    pytestconfig: pytest.Config, tmp_path: Path
) -> None:
    tests = subprocess.run(
        [sys.executable, "-c", DYING_TESTS],
        cwd=pytestconfig.rootpath,
        env={**os.environ, "TMPDIR": str(tmp_path)},
        capture_output=True,
        text=True,
        check=False,
    )
    assert tests.returncode == -signal.SIGKILL, tests.stderr
    server = int(tests.stdout)
    wait_until(lambda: gone(server), 5, "the server did not die")


def gone(pid: int) -> bool:
    """Whether the process has ended; where nobody adopts orphans it stays as a zombie."""
    try:
        return psutil.Process(pid).status() == psutil.STATUS_ZOMBIE
    except psutil.NoSuchProcess:
        return True
