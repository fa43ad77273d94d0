"""A Redis at its maxmemory: what can't take effect any more can still be dropped."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator

import pytest
import redis
from click.testing import CliRunner
from integration.support.counters import COUNTER, ones
from integration.support.epochs import DirectQuery
from integration.support.redis_deaths import dies
from integration.support.servers.redis import RedisProcess

from sparkonce.errors import QueryRetired, StoreRefused
from sparkonce.operate.cli import main
from sparkonce.protocol import Receipt

pytestmark = pytest.mark.variants


@pytest.fixture
def server(private_redis: Callable[..., RedisProcess]) -> RedisProcess:
    return private_redis("maxmemory-policy noeviction")


@pytest.fixture
def client(server: RedisProcess) -> Iterator[redis.Redis]:
    with redis.Redis.from_url(server.url, decode_responses=True) as client:
        yield client


@pytest.fixture
def query(server: RedisProcess) -> DirectQuery:
    return DirectQuery(
        COUNTER, url=server.url, key="c:{id}", writeMode="increment", chunkRows="1000"
    )


def abort(query: DirectQuery, epoch: int, receipts: list[Receipt]) -> None:
    driver = query.driver(epoch)
    query.committer().abort(driver, receipts)


def fill(client: redis.Redis) -> None:
    client.config_set("maxmemory", "1")
    with pytest.raises(redis.exceptions.OutOfMemoryError):
        client.set("x", "y")


def logs(client: redis.Redis) -> list[str]:
    return list(client.scan_iter("{sparkonce}:log:*"))


@pytest.mark.parametrize("epoch", [0, 1], ids=["no ledger yet", "a ledger"])
def test_an_abort_makes_room(client: redis.Redis, query: DirectQuery, epoch: int) -> None:
    if epoch:
        query.run(0, ones(range(10)))
    receipts = query.stage(epoch, ones(range(5000)), ones(range(5000)))
    fill(client)
    abort(query, epoch, receipts)
    assert query.sink.store.staged(query.name) == []
    assert logs(client) == []
    client.config_set("maxmemory", "0")
    query.run(epoch, ones(range(10)))
    assert client.hget("c:7", "n") == str(epoch + 1)


def test_an_abort_with_nothing_to_drop_asks_nothing_of_a_full_server(
    client: redis.Redis, query: DirectQuery
) -> None:
    fill(client)
    abort(query, 0, [])


@pytest.mark.parametrize("epoch", [0, 1], ids=["no ledger yet", "a ledger"])
def test_forget_makes_room(
    server: RedisProcess, client: redis.Redis, query: DirectQuery, epoch: int
) -> None:
    if epoch:
        query.run(0, ones(range(10)))
    query.stage(epoch, ones(range(5000)))
    fill(client)
    asked = ["forget", server.url, query.name, "--yes", "--json"]
    told = CliRunner().invoke(main, asked, catch_exceptions=False)
    assert told.exit_code == 0, told.output
    assert logs(client) == []
    client.config_set("maxmemory", "0")
    with pytest.raises(QueryRetired):
        query.run(epoch, ones(range(10)))


@pytest.mark.parametrize("decided", [False, True], ids=["undecided", "over"])
def test_gc_makes_room(
    server: RedisProcess, client: redis.Redis, query: DirectQuery, decided: bool
) -> None:
    if decided:
        leftover = query.stage(0, ones(range(5000)))
        query.sink.store.discard = lambda *_: None
        query.run(0, ones(range(10)))
        del query.sink.store.discard
        assert len(leftover[0].rows) == 5
    else:
        query.stage(0, ones(range(5000)))
    fill(client)
    told = CliRunner().invoke(
        main, ["gc", server.url, "--grace", "0s", "--yes", "--json"], catch_exceptions=False
    )
    assert json.loads(told.output)["dropped"] == 1 + decided
    assert logs(client) == []


def test_gc_spares_what_is_decided(
    server: RedisProcess, client: redis.Redis, query: DirectQuery
) -> None:
    receipts = query.stage(0, ones(range(20_000)))
    query.sink.store.apply = dies
    with pytest.raises(KeyboardInterrupt):
        query.commit(0, receipts)
    del query.sink.store.apply
    fill(client)
    told = CliRunner().invoke(
        main, ["gc", server.url, "--grace", "0s", "--yes", "--json"], catch_exceptions=False
    )
    assert json.loads(told.output) == {"found": 0, "dropped": 0}
    client.config_set("maxmemory", "0")
    query.restart()
    assert query.run(0).totals.rows == 20_000
    assert len(client.keys("c:*")) == 20_000


def test_a_restarted_query_is_told_of_gc_and_leaves_nothing_behind(
    client: redis.Redis, query: DirectQuery
) -> None:
    query.run(0, ones(range(10)))
    fill(client)
    for _ in range(3):
        query.restart()
        with pytest.raises(StoreRefused, match="`sparkonce gc` drops staged rows"):
            query.run(1, ones(range(5000)))
    assert query.sink.store.staged(query.name) == []
    assert logs(client) == []


def test_a_task_that_finds_no_room_in_its_middle_drops_what_it_staged(
    client: redis.Redis, query: DirectQuery
) -> None:
    """Its supervisor starts it again and again: the store does not fill."""
    for _ in range(3):
        batches = query_batches(client)
        with pytest.raises(StoreRefused, match="maxmemory is reached"):
            query.write(query.task(0, 0), batches)
        assert logs(client) == []
        client.config_set("maxmemory", "0")
    query.run(0, ones(range(10)))


def query_batches(client: redis.Redis) -> Iterator[object]:
    import pyarrow as pa

    rows = pa.RecordBatch.from_pylist(ones(range(3000)), COUNTER)
    yield rows
    assert len(logs(client)) == 1
    fill(client)
    yield rows
