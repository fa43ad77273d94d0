"""The rights that docs/permissions.md gives to queries and to operators suffice."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path

import pyarrow as pa
import pytest
import redis
from click.testing import CliRunner
from integration.support.counters import ones
from integration.support.epochs import DirectQuery
from integration.support.redis_following import feed, numbers
from integration.support.servers.redis import RedisProcess
from integration.support.servers.redis_cluster import RedisCluster

from pyspark_redis.connector import RedisConnector
from pyspark_redis.server.nodes import slot_of
from sparkonce import options
from sparkonce.operate.cli import main
from sparkonce.protocol import Chunk
from sparkonce.reading import Scan

pytestmark = pytest.mark.variants

COUNTER = pa.schema([("id", pa.int64()), ("n", pa.int64())])
PAGE = (Path(__file__).parents[2] / "docs" / "permissions.md").read_text()


def documented(user: str, unique: str) -> list[str]:
    """The words of the page that make this user."""
    lines = re.findall(rf"^ACL SETUSER {user} (.*)$", PAGE, re.M)
    return " ".join(lines).replace("~user:*", f"~{unique}:*").split()


def beside(what: str) -> list[str]:
    """The rights that the page adds for something."""
    (rights,) = re.findall(rf"{re.escape(what)}: `([^`]*)`", PAGE)
    return str(rights).split()


ASIDE = {"onBadRow": "deadLetter", "deadLetter": "bad", "maxBadRows": "100%"}
CASES: list[tuple[dict[str, str], tuple[str, ...]]] = [
    ({"writeMode": "increment", "ttl": "1h"}, ("`writeMode=increment`", "`ttl`")),
    ({"writeMode": "upsert"}, ()),
    ({"writeMode": "delete"}, ()),
    ({"writeMode": "upsert", "model": "string"}, ("`model=string`",)),
    ({"model": "counter"}, ("`model=counter`",)),
    ({"model": "list", "maxLength": "5"}, ("`model=list`",)),
    ({"model": "set", "ttl": "1h"}, ("`model=set`", "`ttl`")),
    ({"model": "stream"}, ("`model=stream`",)),
    ({"model": "zset", "scoreColumn": "n"}, ("`model=zset`",)),
    (
        {"model": "zset", "scoreColumn": "n", "writeMode": "increment"},
        ("`model=zset`", "for `increment`"),
    ),
    ({**ASIDE, "ttlColumn": "n"}, ("`onBadRow=deadLetter`", "`ttlColumn`")),
]


@pytest.mark.parametrize(("options", "named"), CASES, ids=str)
def test_a_query_needs_no_more(
    private_redis: Callable[..., RedisProcess],
    unique: str,
    options: dict[str, str],
    named: tuple[str, ...],
) -> None:
    server = private_redis()
    rights = [right for what in named for right in beside(what)]
    with redis.Redis.from_url(server.url) as client:
        client.execute_command("ACL", "SETUSER", "app", *documented("app", unique), *rights)
    named = "n" if "scoreColumn" in options else "id"  # then the id is the member
    key = f"{unique}:{{{named}}}"
    query = DirectQuery(COUNTER, url=server.url, key=key, user="app", **options)
    query.options["password"] = "secret"
    query.sink.check()
    query.run(0, ones(range(10)))
    query.run(1, ones(range(20_000)))
    abandoned = query.stage(2, ones(range(10)))
    driver = query.driver(2)
    query.committer().abort(driver, abandoned)
    assert query.sink.store.staged(query.name) == []


MODELS: dict[str, Callable[[redis.Redis, str], object]] = {
    "hash": lambda client, key: client.hset(key, "n", 1),
    "string": lambda client, key: client.set(key, "a"),
    "list": lambda client, key: client.rpush(key, "a"),
    "set": lambda client, key: client.sadd(key, "a"),
    "zset": lambda client, key: client.zadd(key, {"a": 1}),
    "stream": lambda client, key: client.xadd(key, {"n": 1}),
}


def read(url: str, **raw: str) -> int:
    """How many rows there are, by guessed types; and by keys alone."""
    given = {"url": url, "user": "reader", "password": "secret", **raw}
    parsed = options.parse(RedisConnector.reads, given)
    many = 0
    for schema in (RedisConnector().infer(parsed), pa.schema([("id", pa.int64())])):
        source = RedisConnector().source(parsed, Scan(schema))
        many += sum(one.num_rows for split in source.splits() for one in source.read(split))
    return many


@pytest.mark.parametrize("model", MODELS)
def test_a_reader_needs_no_more(
    private_redis: Callable[..., RedisProcess], unique: str, model: str
) -> None:
    server = private_redis()
    with redis.Redis.from_url(server.url) as client:
        client.execute_command("ACL", "SETUSER", "reader", *documented("reader", unique))
        MODELS[model](client, f"{unique}:1")
    assert read(server.url, key=f"{unique}:{{id}}", model=model) == 2


def test_a_reader_of_a_cluster_needs_no_more(cluster: RedisCluster, unique: str) -> None:
    for node in cluster.nodes:
        node.ask("ACL", "SETUSER", "reader", "reset", *documented("reader", unique))
    for at in range(20):
        cluster.owner(slot_of(f"{unique}:{at}".encode())).ask("HSET", f"{unique}:{at}", "n", at)
    assert read(cluster.url, key=f"{unique}:{{id}}") == 40


@pytest.mark.parametrize("where", ["server", "cluster"])
def test_a_follower_needs_no_more(
    private_redis: Callable[..., RedisProcess], cluster: RedisCluster, unique: str, where: str
) -> None:
    key = f"{unique}:1"
    if where == "cluster":
        for node in cluster.nodes:
            node.ask("ACL", "SETUSER", "follower", "reset", *documented("follower", unique))
        url, ask = cluster.url, cluster.owner(slot_of(key.encode())).ask
    else:
        server = private_redis()
        url, client = server.url, redis.Redis.from_url(server.url)
        ask = client.execute_command
        ask("ACL", "SETUSER", "follower", *documented("follower", unique))
    for at in range(50):
        ask("XADD", key, "*", "n", str(at))
    if b"entries-added" not in ask("XINFO", "STREAM", key):
        pytest.skip("streams are followed on Redis 7.0 or newer")
    made = feed(url, key, user="follower", password="secret")
    begin, goal = made.begin(), made.latest()
    some = made.advance(begin, goal, 20)
    found = numbers(made, begin, some) + numbers(made, some, goal)
    assert found == [*range(50)]


def test_an_operator_needs_no_more(private_redis: Callable[..., RedisProcess], unique: str) -> None:
    server = private_redis()
    query = DirectQuery(COUNTER, url=server.url, key=f"{unique}:{{id}}", writeMode="increment")
    query.run(0, ones(range(10)))
    query.sink.store.stage(Chunk(query.task(0, 0), 0, 1, b"of a task that comes late"))
    with redis.Redis.from_url(server.url) as client:
        client.execute_command("ACL", "SETUSER", "ops", *documented("ops", unique))

        def runs(command: str, *rest: str, more: tuple[str, ...] = ()) -> bool:
            client.execute_command("ACL", "SETUSER", "ops", *more)
            given = ("-o", "user=ops", "-o", "password=secret")
            return CliRunner().invoke(main, [command, server.url, *rest, *given]).exit_code == 0

        assert runs("status")
        assert runs("metrics")
        assert not runs("doctor")
        assert not runs("gc", "--yes", "--grace", "0s")
        assert runs("gc", "--yes", "--grace", "0s", more=(*beside("`gc`, `forget`"),))
        assert runs("forget", query.name, "--yes")


def test_a_cluster_asks_for_more_on_each_node(cluster: RedisCluster, unique: str) -> None:
    app = [*beside("`redis+cluster://`, on each node"), *beside("`writeMode=increment`")]
    ops = [*beside("all of a cluster, on each node"), *beside("`gc`, `forget`")]
    for node in cluster.nodes:
        for user, more in {"app": app, "ops": ops}.items():
            node.ask("ACL", "SETUSER", user, "reset", *documented(user, unique), *more)
    query = DirectQuery(
        COUNTER, url=cluster.url, key=f"{unique}:{{id}}", writeMode="increment", user="app"
    )
    query.options["password"] = "secret"
    query.sink.check()
    query.run(0, ones(range(1000)))
    given = ("-o", "user=ops", "-o", "password=secret")
    for command, *rest in (["status"], ["gc", "--yes"], ["forget", query.name, "--yes"]):
        done = CliRunner().invoke(main, [command, cluster.url, *rest, *given])
        assert done.exit_code == 0, (command, done.output)
