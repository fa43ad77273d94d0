"""A network that fails at each request in turn, and servers that can't be trusted."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterator

import pytest
import redis
from click.testing import CliRunner
from integration.support.epochs import COUNTER, DirectQuery, dies, ones, until_committed
from integration.support.proxy import CUTS, Proxy
from integration.support.redis import Keys, Private
from integration.support.servers.redis import RedisProcess
from redis import Redis

from sparkonce.errors import (
    QueryRetired,
    SparkonceError,
    StoreRefused,
    StoreUnreachable,
)
from sparkonce.operate.cli import main
from sparkonce.protocol import Receipt

pytestmark = pytest.mark.variants
EVALSHA, MULTI, HMGET = (b"\r\n%s\r\n" % word for word in (b"EVALSHA", b"MULTI", b"HMGET"))


def counting(url: str, unique: str, **options: str) -> DirectQuery:
    return DirectQuery(COUNTER, url=url, key=f"{unique}:{{id}}", writeMode="increment", **options)


def counts(client: Redis, unique: str) -> Counter[int]:
    """How often each row took effect: a multiset."""
    keys = list(client.scan_iter(f"{unique}:*", count=10_000))
    return Counter({int(key.split(":")[1]): int(client.hget(key, "n")) for key in keys})


ONE_SCRIPT = (10, [(EVALSHA, 1), (MULTI, 1), (MULTI, 2), (HMGET, 1), (HMGET, 2)])
A_SCRIPT_A_CHUNK = (20_000, [(EVALSHA, nth) for nth in range(1, 9)])


@pytest.mark.parametrize(
    ("rows", "requests"), [ONE_SCRIPT, A_SCRIPT_A_CHUNK], ids=["one script", "a script a chunk"]
)
@pytest.mark.parametrize("fault", CUTS)
def test_rows_count_once_whichever_request_the_network_cuts(
    redis_proxy: Proxy, keys: Keys, fault: str, rows: int, requests: list[tuple[bytes, int]]
) -> None:
    query = counting(redis_proxy.url, keys, chunkRows="4000")
    until_committed(query, 0, range(rows))
    expected = Counter(list(range(rows)))
    for epoch, (request, nth) in enumerate(requests, start=1):
        cuts = redis_proxy.cuts
        getattr(redis_proxy, fault)(request, nth=nth)
        until_committed(query, epoch, range(rows))
        assert redis_proxy.cuts == cuts + 1, "the fault must really happen"
        expected.update(list(range(rows)))
    assert counts(keys.client, keys) == expected
    last = len(requests) + 1
    assert query.run(last).totals.rows == rows * last
    assert query.sink.store.staged(query.name) == []


def test_unreachable_server_is_named_with_what_to_do(unique: str) -> None:
    query = counting("redis://127.0.0.1:1/0", unique)
    with pytest.raises(StoreUnreachable, match="check option url and the server"):
        query.sink.check()


def test_wrong_password_is_refused_and_not_shown(private_redis: Private, unique: str) -> None:
    server = private_redis("requirepass right")
    with pytest.raises(StoreRefused, match="check options user, password") as refused:
        counting(server.url, unique, password="not-this-one").sink.check()
    assert "not-this-one" not in str(refused.value)
    with pytest.raises(StoreRefused, match="check options user, password"):
        counting(server.url, unique).sink.check()
    counting(server.url, unique, password="right").run(0, ones(range(3)))


def test_replica_is_refused(private_redis: Private, unique: str) -> None:
    primary = private_redis()
    port = primary.url.rpartition(":")[2].partition("/")[0]
    replica = private_redis(f"replicaof 127.0.0.1 {port}")
    with pytest.raises(StoreUnreachable, match="is a replica"):
        counting(replica.url, unique).sink.check()


def test_full_server_refuses_before_or_after_the_decision_and_goes_on_once_it_has_room(
    private_redis: Private, unique: str
) -> None:
    server = private_redis("maxmemory-policy noeviction")
    query = counting(server.url, unique)
    query.run(0, ones(range(10)))
    receipts = query.stage(1, ones(range(20_000)))
    with Redis.from_url(server.url, decode_responses=True) as client:
        client.config_set("maxmemory", "1")
        with pytest.raises(StoreRefused, match="maxmemory is reached"):
            query.commit(1, receipts)
        client.config_set("maxmemory", "0")
        query.commit(1, receipts)
        assert counts(client, unique) == Counter([*range(10), *range(20_000)])


def test_right_that_is_missing_in_mid_row_stops_there_and_goes_on_once_granted(
    private_redis: Private, unique: str
) -> None:
    server = private_redis()
    with Redis.from_url(server.url, decode_responses=True) as client:
        client.execute_command("ACL", "SETUSER", "app", "on", ">pw", "~*", "+@all", "-pexpire")
        query = counting(server.url, unique, user="app", password="pw", ttl="1h")
        with pytest.raises(SparkonceError, match="ACL does not allow the command"):
            query.run(0, ones(range(10)))
        assert counts(client, unique) == Counter()
        client.execute_command("ACL", "SETUSER", "app", "+pexpire")
        query.restart()
        query.run(0)
        assert counts(client, unique) == Counter(range(10))
        assert all(client.pttl(f"{unique}:{i}") > 0 for i in range(10))


@pytest.fixture
def crowded(private_redis: Private) -> RedisProcess:
    return private_redis("maxmemory-policy noeviction")


@pytest.fixture
def full(crowded: RedisProcess) -> Iterator[Redis]:
    with Redis.from_url(crowded.url, decode_responses=True) as full:
        yield full


@pytest.fixture
def filling(crowded: RedisProcess) -> DirectQuery:
    return DirectQuery(
        COUNTER, url=crowded.url, key="c:{id}", writeMode="increment", chunkRows="1000"
    )


def abort(filling: DirectQuery, epoch: int, receipts: list[Receipt]) -> None:
    driver = filling.driver(epoch)
    filling.committer().abort(driver, receipts)


def fill(full: Redis) -> None:
    full.config_set("maxmemory", "1")
    with pytest.raises(redis.exceptions.OutOfMemoryError):
        full.set("x", "y")


def logs(full: Redis) -> list[str]:
    return list(full.scan_iter("{sparkonce}:log:*"))


@pytest.mark.parametrize("epoch", [0, 1], ids=["no ledger yet", "a ledger"])
def test_an_abort_makes_room(full: Redis, filling: DirectQuery, epoch: int) -> None:
    if epoch:
        filling.run(0, ones(range(10)))
    receipts = filling.stage(epoch, ones(range(5000)), ones(range(5000)))
    fill(full)
    abort(filling, epoch, receipts)
    assert filling.sink.store.staged(filling.name) == []
    assert logs(full) == []
    full.config_set("maxmemory", "0")
    filling.run(epoch, ones(range(10)))
    assert full.hget("c:7", "n") == str(epoch + 1)


def test_an_abort_with_nothing_to_drop_asks_nothing_of_a_full_server(
    full: Redis, filling: DirectQuery
) -> None:
    fill(full)
    abort(filling, 0, [])


@pytest.mark.parametrize("epoch", [0, 1], ids=["no ledger yet", "a ledger"])
def test_forget_makes_room(
    crowded: RedisProcess, full: Redis, filling: DirectQuery, epoch: int
) -> None:
    if epoch:
        filling.run(0, ones(range(10)))
    filling.stage(epoch, ones(range(5000)))
    fill(full)
    asked = ["forget", crowded.url, filling.name, "--yes", "--json"]
    told = CliRunner().invoke(main, asked, catch_exceptions=False)
    assert told.exit_code == 0, told.output
    assert logs(full) == []
    full.config_set("maxmemory", "0")
    with pytest.raises(QueryRetired):
        filling.run(epoch, ones(range(10)))


@pytest.mark.parametrize("decided", [False, True], ids=["undecided", "over"])
def test_gc_makes_room(
    crowded: RedisProcess, full: Redis, filling: DirectQuery, decided: bool
) -> None:
    if decided:
        leftover = filling.stage(0, ones(range(5000)))
        filling.sink.store.discard = lambda *_: None
        filling.run(0, ones(range(10)))
        del filling.sink.store.discard
        assert len(leftover[0].rows) == 5
    else:
        filling.stage(0, ones(range(5000)))
    fill(full)
    told = CliRunner().invoke(
        main, ["gc", crowded.url, "--grace", "0s", "--yes", "--json"], catch_exceptions=False
    )
    assert json.loads(told.output)["dropped"] == 1 + decided
    assert logs(full) == []


def test_gc_spares_what_is_decided(
    crowded: RedisProcess, full: Redis, filling: DirectQuery
) -> None:
    receipts = filling.stage(0, ones(range(20_000)))
    filling.sink.store.apply = dies
    with pytest.raises(KeyboardInterrupt):
        filling.commit(0, receipts)
    del filling.sink.store.apply
    fill(full)
    told = CliRunner().invoke(
        main, ["gc", crowded.url, "--grace", "0s", "--yes", "--json"], catch_exceptions=False
    )
    assert json.loads(told.output) == {"found": 0, "dropped": 0}
    full.config_set("maxmemory", "0")
    filling.restart()
    assert filling.run(0).totals.rows == 20_000
    assert len(full.keys("c:*")) == 20_000


def test_a_restarted_query_is_told_of_gc_and_leaves_nothing_behind(
    full: Redis, filling: DirectQuery
) -> None:
    filling.run(0, ones(range(10)))
    fill(full)
    for _ in range(3):
        filling.restart()
        with pytest.raises(StoreRefused, match="`sparkonce gc` drops staged rows"):
            filling.run(1, ones(range(5000)))
    assert filling.sink.store.staged(filling.name) == []
    assert logs(full) == []


def test_a_task_that_finds_no_room_in_its_middle_drops_what_it_staged(
    full: Redis, filling: DirectQuery
) -> None:
    """Its supervisor starts it again and again: the store does not fill."""
    for _ in range(3):
        batches = query_batches(full)
        with pytest.raises(StoreRefused, match="maxmemory is reached"):
            filling.write(filling.task(0, 0), batches)
        assert logs(full) == []
        full.config_set("maxmemory", "0")
    filling.run(0, ones(range(10)))


def query_batches(full: Redis) -> Iterator[object]:
    import pyarrow as pa

    rows = pa.RecordBatch.from_pylist(ones(range(3000)), COUNTER)
    yield rows
    assert len(logs(full)) == 1
    fill(full)
    yield rows
