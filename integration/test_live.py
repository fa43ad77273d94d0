"""The page of `make live` shows in a browser what is in Redis."""

from __future__ import annotations

import io
import re
import shutil
import subprocess
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path

import pyarrow as pa
import pytest
import redis
from demo.ledgers import KEY_PREFIX, Caught, Ledgers
from demo.live import LiveBoard
from integration.support.epochs import DirectQuery
from integration.support.servers.finder import NoServerError, installing, or_skip
from integration.support.servers.redis import RedisProcess
from rich.console import Console

COUNTERS = pa.schema([("origin", pa.string()), ("flights", pa.int64())])
OFFLINE = (
    *("--headless", "--no-sandbox", "--disable-gpu", "--no-first-run"),
    *("--disable-background-networking", "--disable-component-update", "--disable-sync"),
)
GIVEN = [{"origin": "EWR", "flights": 1}] * 1200 + [{"origin": "JFK", "flights": 1}] * 34


def chromium() -> str:
    names = ("chromium", "chromium-browser", "google-chrome", "chrome")
    found = next(filter(None, map(shutil.which, names)), None)
    if found is None:
        why = {"native": "no chromium on PATH"}
        raise NoServerError("chromium", why, installing("chromium"))
    return found


def text_of(url: str) -> str:
    """A page as Chromium has it after its scripts had time."""
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as home:
        own = (f"--user-data-dir={home}", "--virtual-time-budget=1500", "--dump-dom")
        command = [chromium(), *OFFLINE, *own, url]
        return subprocess.run(
            command, capture_output=True, check=True, text=True, timeout=60
        ).stdout


@pytest.fixture
def server(private_redis: Callable[..., RedisProcess]) -> RedisProcess:
    or_skip(chromium)
    return private_redis()


@pytest.fixture
def board(server: RedisProcess, tmp_path: Path) -> Iterator[LiveBoard]:
    """A board over one epoch of counters."""
    where = {"url": server.url, "keyPrefix": KEY_PREFIX, "writeMode": "increment"}
    query = DirectQuery(COUNTERS, key=f"{KEY_PREFIX}:airport:{{origin}}", **where)
    query.run(0, GIVEN)
    checkpoint = tmp_path / "airports"
    checkpoint.mkdir()
    (checkpoint / "metadata").write_text(f'{{"id":"{query.query_id}"}}')
    ledgers = Ledgers(server.url, tmp_path)
    console = Console(file=io.StringIO())
    with LiveBoard(console, {"EWR": 1300, "JFK": 34}, server.url, ledgers, port=0) as board:
        yield board
        board.server.shutdown()
        board.server.server_close()


def figures(board: LiveBoard) -> tuple[str, dict[str, str]]:
    """The text of the page, and its figures by name."""
    page = text_of(board.page)
    found = re.findall(r'<b id="(\w+)"[^>]*>([^<]*)</b>', page)
    return re.sub(r"<[^>]*>", " ", page), dict(found)


def test_the_page_shows_counters_and_what_happened(board: LiveBoard) -> None:
    caught = {"airports": Caught(1234, 7, ""), "flights": Caught(0, None, "")}
    board.event("kill -9: 7 processes gone", caught)
    text, shown = figures(board)
    assert "1,200 of 1,300" in text
    assert "34 of 34" in text
    assert "kill -9: 7 processes gone" in text
    assert shown == {"rows": "1,234", "kills": "1", "replayed": "1", "twice": "0"}


def test_a_row_that_counts_twice_is_shown(board: LiveBoard, server: RedisProcess) -> None:
    with redis.Redis.from_url(server.url) as client:
        client.hincrby(f"{KEY_PREFIX}:airport:EWR", "flights", 3)
    assert figures(board)[1]["twice"] == "3"
