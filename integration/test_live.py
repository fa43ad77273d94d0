"""The page of `make live` shows in a browser what is in Redis."""

from __future__ import annotations

import io
import re
from collections.abc import Callable, Iterator
from pathlib import Path

import pyarrow as pa
import pytest
import redis
from demo.ledgers import KEY_PREFIX, Caught, Ledgers, admin_of
from demo.live import LiveBoard
from integration.support.epochs import DirectQuery
from integration.support.servers.finder import NoServerError, installing, or_skip
from integration.support.servers.redis import RedisProcess
from rich.console import Console
from tools.animation import chromium, seen

COUNTERS = pa.schema([("origin", pa.string()), ("flights", pa.int64())])
GIVEN = [{"origin": "EWR", "flights": 1}] * 1200 + [{"origin": "JFK", "flights": 1}] * 34


def browser() -> str:
    found = chromium()
    if found is None:
        why = {"native": "no chromium on PATH"}
        raise NoServerError("chromium", why, installing("chromium"))
    return found


@pytest.fixture
def server(private_redis: Callable[..., RedisProcess]) -> RedisProcess:
    or_skip(browser)
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
    ledgers = Ledgers(admin_of(server.url), tmp_path)
    console = Console(file=io.StringIO())
    with LiveBoard(console, {"EWR": 1300, "JFK": 34}, server.url, ledgers, port=0) as board:
        yield board
        board.server.shutdown()
        board.server.server_close()


def figures(board: LiveBoard) -> tuple[str, dict[str, str]]:
    """The text of the page, and its figures by name."""
    page = seen(board.page, "--dump-dom").decode()
    found = re.findall(r'<b id="(\w+)"[^>]*>([^<]*)</b>', page)
    return re.sub(r"<[^>]*>", " ", page), dict(found)


def test_the_page_shows_counters_and_what_happened(board: LiveBoard) -> None:
    board.event("kill -9: 7 processes gone")
    board.killed({"airports": Caught(1234, 7, ""), "flights": Caught(0, None, "")})
    text, shown = figures(board)
    assert "1,200 of 1,300" in text
    assert "34 of 34" in text
    assert "kill -9: 7 processes gone" in text
    assert shown == {"rows": "1,234", "kills": "1", "replayed": "1", "twice": "0"}


def test_a_row_that_counts_twice_is_shown(board: LiveBoard, server: RedisProcess) -> None:
    with redis.Redis.from_url(server.url) as client:
        client.hincrby(f"{KEY_PREFIX}:airport:EWR", "flights", 3)
    assert figures(board)[1]["twice"] == "3"
