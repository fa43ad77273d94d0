"""What others do to a server while an epoch commits: busy scripts, ended connections, restarts."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from itertools import count
from typing import Any

import pyarrow as pa
import pytest
import redis
from integration.support.epochs import DirectQuery
from integration.support.servers.process import wait_until
from integration.support.servers.redis import RedisProcess, connect

from pyspark_redis.server import client as clients
from pyspark_redis.server.session import RedisSession
from sparkonce.errors import StoreUnreachable

pytestmark = pytest.mark.variants

COUNTER = pa.schema([("id", pa.int64()), ("n", pa.int64())])
Private = Callable[..., RedisProcess]
ROWS = [{"id": at, "n": 1} for at in range(100)]
run_on = RedisSession.run_on


def counting(url: str, **options: str) -> DirectQuery:
    given = {"url": url, "key": "c:{id}", "writeMode": "increment", "chunkRows": "30"}
    query = DirectQuery(COUNTER, **given, **options)
    query.sink.store.small_cost = 0
    return query


def counts(url: str) -> Counter[int]:
    with connect(url) as client:
        return Counter({int(key[2:]): int(client.hget(key, "n")) for key in client.keys("c:*")})


def is_busy(client: redis.Redis) -> bool:
    """Whether the server tells that a script runs for longer than it may."""
    try:
        client.ping()
    except redis.ResponseError as error:
        return str(error).startswith("BUSY")
    return False


@contextmanager
def busy(url: str) -> Iterator[None]:
    """Another client's script runs, until the block ends."""
    endless = "local n = 0 while true do n = n + 1 end"
    with connect(url) as one, connect(url) as other, ThreadPoolExecutor(1) as pool:
        running = pool.submit(lambda: one.eval(endless, 0))
        wait_until(lambda: is_busy(other), 5, "no script runs")
        try:
            yield
        finally:
            other.script_kill()
        assert running.exception() is not None


def test_a_script_of_another_client_is_waited_for(private_redis: Private) -> None:
    server = private_redis("lua-time-limit 10")
    query, failures = counting(server.url), []
    for epoch in range(3):
        receipts = query.stage(epoch, ROWS)
        with busy(server.url), pytest.raises(StoreUnreachable, match="busy"):
            query.commit(epoch, receipts)
        failures += query.run_until_done(epoch, ROWS)
    assert counts(server.url) == Counter(dict.fromkeys(range(100), 3))


DISTURBANCES: dict[str, Callable[[redis.Redis], object]] = {
    "CLIENT KILL": lambda client: client.client_kill_filter(_type="normal", skipme=True),
    "SCRIPT FLUSH": lambda client: client.script_flush(),
}


@pytest.mark.parametrize("what", DISTURBANCES)
def test_what_is_done_before_each_script_changes_nothing(
    private_redis: Private, monkeypatch: pytest.MonkeyPatch, what: str
) -> None:
    server = private_redis()
    query, bad = counting(server.url, onBadRow="deadLetter", deadLetter="bad"), 7
    with connect(server.url) as operator:
        operator.set(f"c:{bad}", "mine")

        def disturbed(session: RedisSession, *given: Any) -> Any:
            DISTURBANCES[what](operator)
            return run_on(session, *given)

        monkeypatch.setattr(RedisSession, "run_on", disturbed)
        for epoch in range(3):
            assert query.run_until_done(epoch, ROWS) == []
        operator.delete(f"c:{bad}")
    assert counts(server.url) == Counter({at: 3 for at in range(100) if at != bad})
    (box,) = query.sink.store.letterboxes()
    assert len(box.read(None, 99)) == 3


@pytest.mark.parametrize("sync", ["always", "everysec"])
def test_a_server_that_is_killed_behind_any_script_goes_on(
    private_redis: Private, monkeypatch: pytest.MonkeyPatch, sync: str
) -> None:
    """What its process has written is in the file: only a machine that dies loses a second."""
    server = private_redis("appendonly yes", f"appendfsync {sync}")
    query, numbers = counting(server.url), count(1)

    def killed(session: RedisSession, *given: Any) -> Any:
        done = run_on(session, *given)
        if next(numbers) == number:
            server.kill()
            server.start()
            raise redis.ConnectionError("killed")
        return done

    monkeypatch.setattr(RedisSession, "run_on", killed)
    for epoch in count():
        number, numbers = epoch + 1, count(1)
        query.run_until_done(epoch, ROWS)
        if next(numbers) <= number:
            break
    assert epoch > 5
    assert counts(server.url) == Counter(dict.fromkeys(range(100), epoch + 1))


@pytest.mark.parametrize("model", ["hash", "zset", "stream"])
def test_resp3_is_understood(
    redis_url: str, unique: str, monkeypatch: pytest.MonkeyPatch, model: str
) -> None:
    """By the client of tomorrow, or a server that wants it; answers have other types there."""
    monkeypatch.setattr(clients, "PROTOCOL", 3)
    given = {"model": model, "key": f"{unique}:{{id}}", "onBadRow": "deadLetter"}
    more = {"scoreColumn": "n"} if model == "zset" else {}
    schema = COUNTER.append(pa.field("v", pa.string()))
    query = DirectQuery(schema, url=redis_url, **given, **more, deadLetter=unique, timeout="29")
    with redis.Redis.from_url(redis_url) as client:
        client.set(f"{unique}:3", "mine")
        query.sink.check()
        for epoch in range(2):
            query.run(epoch, [{**row, "v": "a"} for row in ROWS])
        assert client.type(f"{unique}:4") == model.encode()
        assert client.info("server")["redis_version"]
    assert query.name in query.sink.store.names()
    assert query.sink.store.staged(query.name) == []
    (box,) = query.sink.store.letterboxes()
    assert [letter.key for letter in box.read(None, 99)] == ['{"id": 3}'] * 2
    assert list(query.sink.store.examine())
