"""Servers that were demoted, that evict rows, that hang up on large requests, or tell nothing."""

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
from integration.support.epochs import COUNTER, DirectQuery, ones
from integration.support.proxy import Proxy
from integration.support.redis import Keys, Private
from integration.support.servers.process import wait_until
from integration.support.servers.redis import RedisProcess, connect
from redis import Redis

from pyspark_redis.server import client as clients
from pyspark_redis.server.session import RedisSession
from sparkonce.errors import BadRow, StoreUnreachable, StoreUnsafe
from sparkonce.sink import _open

pytestmark = pytest.mark.variants
TEXTS = pa.schema([("id", pa.int64()), ("text", pa.string())])
VOLATILE = ["volatile-lru", "volatile-lfu", "volatile-random", "volatile-ttl"]


def counting(url: str, **options: str) -> DirectQuery:
    given = {"url": url, "key": "c:{id}", "writeMode": "increment", **options}
    return DirectQuery(COUNTER, **given)


def address(server: RedisProcess) -> tuple[str, str]:
    host, port = server.url.removeprefix("redis://").removesuffix("/0").split(":")
    return host, port


# -- a primary is demoted while a connection to it is kept


def fail_over(old: RedisProcess, new: RedisProcess) -> None:
    """Make the replica the primary, and the primary its replica. No client is disconnected."""
    with Redis.from_url(old.url) as was, Redis.from_url(new.url) as becomes:
        wait_until(lambda: becomes.info()["master_link_status"] == "up", 20, "no replication")
        wait_until(
            lambda: was.info()["master_repl_offset"] == becomes.info()["slave_repl_offset"],
            20,
            "the replica lags behind",
        )
        becomes.replicaof("NO", "ONE")
        was.replicaof(*address(new))


@pytest.fixture
def pair(private_redis: Private) -> tuple[RedisProcess, RedisProcess]:
    primary = private_redis("repl-diskless-sync-delay 0")
    return primary, private_redis("replicaof {} {}".format(*address(primary)))


@pytest.mark.parametrize("step", ["stage", "decide", "apply", "discard"])
def test_a_connection_to_a_demoted_primary_is_given_up(
    pair: tuple[RedisProcess, RedisProcess], step: str
) -> None:
    primary, replica = pair
    with Proxy(primary.url) as proxy:
        query = counting(proxy.url)
        query.run(0, ones(range(10)))
        store = query.sink.store
        store.small_cost = 0 if step == "apply" else 48_000
        receipts = query.stage(1, ones(range(20)))

        def demote() -> None:
            fail_over(primary, replica)
            proxy.lead_to(replica.url, keep=True)

        if step == "apply":
            moments, apply = iter([demote]), store.apply
            store.apply = lambda *args: [next(moments, int)(), apply(*args)][1]
        else:
            demote()
        if step == "discard":
            with pytest.raises(StoreUnreachable, match="is a replica"):
                store.discard(query.name, [receipts[0].task.attempt])
            store.discard(query.name, [receipts[0].task.attempt])
        if step in ("stage", "discard"):
            receipts = query.stage(1, ones(range(20)))
        query.commit(1, receipts)
    with Redis.from_url(replica.url, decode_responses=True) as client:
        counts = [int(client.hget(f"c:{i}", "n")) for i in range(20)]
        assert counts == [2] * 10 + [1] * 10


# -- rows that expire are rows that are evicted


EVICTING = [{}, {"ttl": "7d"}, {"ttlColumn": "n", "writeMode": "upsert"}]


@pytest.mark.parametrize("policy", [*VOLATILE, "allkeys-lru", "allkeys-lfu", "allkeys-random"])
def test_a_policy_that_evicts_the_ledger_or_rows_is_refused(
    private_redis: Private, policy: str
) -> None:
    server = private_redis(f"maxmemory-policy {policy}", "maxmemory 100mb")
    is_volatile = policy in VOLATILE
    if is_volatile:
        counting(server.url).sink.check()
    for options in EVICTING[is_volatile:]:
        said = f"{policy}, and keys of this sink expire" if is_volatile else policy
        with pytest.raises(StoreUnsafe, match=f"maxmemory-policy is {said}"):
            counting(server.url, **options).sink.check()


@pytest.mark.parametrize("policy", ["volatile-lru", "allkeys-lru"])
def test_a_policy_that_never_comes_to_evict_is_allowed(private_redis: Private, policy: str) -> None:
    """As long as there is no limit: it is looked at in each epoch."""
    server = private_redis(f"maxmemory-policy {policy}", "maxmemory 0")
    query = counting(server.url, ttl="7d")
    query.sink.check()
    with Redis.from_url(server.url) as client:
        client.config_set("maxmemory", "100mb")
    with pytest.raises(StoreUnsafe, match=policy):
        query.sink.check()


# -- a server that leaves its settings out of INFO


class Terse:
    """A client whose server's INFO lacks settings: no server to be had here is like that."""

    def __init__(self, client: Redis) -> None:
        self.client = client
        self.connection_pool = client.connection_pool

    def info(self) -> dict[str, Any]:
        told = self.client.info()
        return {name: told[name] for name in told if not name.startswith("maxmemory")}

    def config_get(self, name: str) -> dict[str, str]:
        return self.client.config_get(name)


@pytest.mark.parametrize("policy", ["allkeys-lru", "volatile-lru"])
def test_what_info_leaves_out_is_asked_of_config(private_redis: Private, policy: str) -> None:
    server = private_redis(f"maxmemory-policy {policy}", "maxmemory 100mb")
    sink = counting(server.url, ttl="7d").sink
    terse = Terse(sink.store.session.client)
    sink.store.session.find = lambda: terse
    with pytest.raises(StoreUnsafe, match=f"maxmemory-policy is {policy}"):
        sink.check()
    with Redis.from_url(server.url) as client:
        client.config_set("maxmemory-policy", "noeviction")
    sink.check()


def test_a_server_that_does_not_tell_its_policy_is_refused(private_redis: Private) -> None:
    server = private_redis()
    with Redis.from_url(server.url) as client:
        client.execute_command("ACL", "SETUSER", "app", "on", ">pw", "~*", "+@all", "-config")
    sink = counting(server.url, user="app", password="pw").sink
    sink.check()
    terse = Terse(sink.store.session.client)
    sink.store.session.find = lambda: terse
    with pytest.raises(StoreUnsafe, match=r"does not report its maxmemory-policy"):
        sink.check()


# -- a server that hangs up on large requests


@pytest.fixture(params=["proto-max-bulk-len", "client-query-buffer-limit"])
def narrow(private_redis: Private, request: pytest.FixtureRequest) -> Iterator[RedisProcess]:
    yield private_redis(f"{request.param} 1mb")
    _open.cache_clear()


def texts(url: str, **options: str) -> DirectQuery:
    return DirectQuery(TEXTS, url=url, key="t:{id}", maxRetries="0", **options)


def test_chunks_are_cut_to_what_the_server_takes(narrow: RedisProcess) -> None:
    query = texts(narrow.url)
    query.run(0, [{"id": i, "text": "x" * 300_000} for i in range(12)])
    with Redis.from_url(narrow.url) as client:
        assert sum(client.hstrlen(f"t:{i}", "text") for i in range(12)) == 12 * 300_000


def test_a_row_that_the_server_does_not_take_is_a_bad_row(narrow: RedisProcess) -> None:
    query = texts(narrow.url)
    with pytest.raises(BadRow, match="client-query-buffer-limit is 1,048,576"):
        query.run(0, [{"id": 1, "text": "x" * 1_040_000}])
    query.run(0, [{"id": 1, "text": "x" * 900_000}])


def test_a_server_that_hangs_up_and_does_not_tell_why_is_guessed_at(narrow: RedisProcess) -> None:
    rows = [{"id": i, "text": "x" * 300_000} for i in range(12)]
    with Redis.from_url(narrow.url) as client:
        client.execute_command("ACL", "SETUSER", "app", "on", ">pw", "~*", "+@all", "-config")
        query = texts(narrow.url, user="app", password="pw")
        told = "proto-max-bulk-len or client-query-buffer-limit is small"
        with pytest.raises(Exception, match=told):
            query.run(0, rows)
        client.execute_command("ACL", "SETUSER", "app", "+config|get")
    query.restart()
    query.run(0, rows)


def test_a_letter_is_cut_to_what_the_server_takes(narrow: RedisProcess) -> None:
    query = texts(narrow.url, onBadRow="deadLetter", deadLetter="bad")
    with Redis.from_url(narrow.url) as client:
        client.set("t:1", "mine")
        query.run(0, [{"id": 1, "text": "\x01" * 300_000}])  # six characters each, in JSON
    (letter,) = query.sink.store.letterboxes()[0].read(None, 9)
    assert "and cut" in letter.reason
    assert len(letter.row) == 1024 * 1024 - 64 * 1024


HUNDRED = [{"id": at, "n": 1} for at in range(100)]
run_on = RedisSession.run_on


def chunked(url: str, **options: str) -> DirectQuery:
    given = {"url": url, "key": "c:{id}", "writeMode": "increment", "chunkRows": "30"}
    query = DirectQuery(COUNTER, **given, **options)
    query.sink.store.small_cost = 0
    return query


def counts_at(url: str) -> Counter[int]:
    with connect(url) as client:
        return Counter({int(key[2:]): int(client.hget(key, "n")) for key in client.keys("c:*")})


def is_busy(client: Redis) -> bool:
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
    query, failures = chunked(server.url), []
    for epoch in range(3):
        receipts = query.stage(epoch, HUNDRED)
        with busy(server.url), pytest.raises(StoreUnreachable, match="busy"):
            query.commit(epoch, receipts)
        failures += query.run_until_done(epoch, HUNDRED)
    assert counts_at(server.url) == Counter(dict.fromkeys(range(100), 3))


DISTURBANCES: dict[str, Callable[[Redis], object]] = {
    "CLIENT KILL": lambda client: client.client_kill_filter(_type="normal", skipme=True),
    "SCRIPT FLUSH": lambda client: client.script_flush(),
}


@pytest.mark.parametrize("what", DISTURBANCES)
def test_what_is_done_before_each_script_changes_nothing(
    private_redis: Private, monkeypatch: pytest.MonkeyPatch, what: str
) -> None:
    server = private_redis()
    query, bad = chunked(server.url, onBadRow="deadLetter", deadLetter="bad"), 7
    with connect(server.url) as operator:
        operator.set(f"c:{bad}", "mine")

        def disturbed(session: RedisSession, *given: Any) -> Any:
            DISTURBANCES[what](operator)
            return run_on(session, *given)

        monkeypatch.setattr(RedisSession, "run_on", disturbed)
        for epoch in range(3):
            assert query.run_until_done(epoch, HUNDRED) == []
        operator.delete(f"c:{bad}")
    assert counts_at(server.url) == Counter({at: 3 for at in range(100) if at != bad})
    (box,) = query.sink.store.letterboxes()
    assert len(box.read(None, 99)) == 3


@pytest.mark.parametrize("sync", ["always", "everysec"])
def test_a_server_that_is_killed_behind_any_script_goes_on(
    private_redis: Private, monkeypatch: pytest.MonkeyPatch, sync: str
) -> None:
    """What its process has written is in the file: only a machine that dies loses a second."""
    server = private_redis("appendonly yes", f"appendfsync {sync}")
    query, numbers = chunked(server.url), count(1)

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
        query.run_until_done(epoch, HUNDRED)
        if next(numbers) <= number:
            break
    assert epoch > 5
    assert counts_at(server.url) == Counter(dict.fromkeys(range(100), epoch + 1))


@pytest.mark.parametrize("model", ["hash", "zset", "stream"])
def test_resp3_is_understood(keys: Keys, monkeypatch: pytest.MonkeyPatch, model: str) -> None:
    """By the client of tomorrow, or a server that wants it; answers have other types there."""
    monkeypatch.setattr(clients, "PROTOCOL", 3)
    given = {"model": model, "key": f"{keys}:{{id}}", "onBadRow": "deadLetter"}
    more = {"scoreColumn": "n"} if model == "zset" else {}
    schema = COUNTER.append(pa.field("v", pa.string()))
    query = DirectQuery(schema, url=keys.url, **given, **more, deadLetter=keys, timeout="29")
    with Redis.from_url(keys.url) as client:
        client.set(f"{keys}:3", "mine")
        query.sink.check()
        for epoch in range(2):
            query.run(epoch, [{**row, "v": "a"} for row in HUNDRED])
        assert client.type(f"{keys}:4") == model.encode()
        assert client.info("server")["redis_version"]
    assert query.name in query.sink.store.names()
    assert query.sink.store.staged(query.name) == []
    (box,) = query.sink.store.letterboxes()
    assert [letter.key for letter in box.read(None, 99)] == ['{"id": 3}'] * 2
    assert list(query.sink.store.examine())
