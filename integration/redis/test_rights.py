"""The rights that docs/permissions.md gives to queries and to operators suffice."""

from __future__ import annotations

import re
import shutil
from collections.abc import Callable
from pathlib import Path

import pyarrow as pa
import pytest
from click.testing import CliRunner
from integration.support.environments import make_certificate
from integration.support.epochs import COUNTER, DirectQuery, ones
from integration.support.redis import Private, feed, numbers
from integration.support.servers.finder import UnavailableError
from integration.support.servers.process import Port
from integration.support.servers.redis import RedisProcess
from integration.support.servers.redis_cluster import RedisCluster
from redis import Redis

from pyspark_redis.connector import RedisConnector
from pyspark_redis.server.nodes import slot_of
from sparkonce import options
from sparkonce.errors import OptionError, StoreUnreachable
from sparkonce.operate.cli import main
from sparkonce.protocol import Chunk
from sparkonce.reading import Scan

pytestmark = pytest.mark.variants
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
    private_redis: Private, unique: str, options: dict[str, str], named: tuple[str, ...]
) -> None:
    server = private_redis()
    rights = [right for what in named for right in beside(what)]
    with Redis.from_url(server.url) as client:
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


MODELS: dict[str, Callable[[Redis, str], object]] = {
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
def test_a_reader_needs_no_more(private_redis: Private, unique: str, model: str) -> None:
    server = private_redis()
    with Redis.from_url(server.url) as client:
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
    private_redis: Private, cluster: RedisCluster, unique: str, where: str
) -> None:
    key = f"{unique}:1"
    if where == "cluster":
        for node in cluster.nodes:
            node.ask("ACL", "SETUSER", "follower", "reset", *documented("follower", unique))
        url, ask = cluster.url, cluster.owner(slot_of(key.encode())).ask
    else:
        server = private_redis()
        url, client = server.url, Redis.from_url(server.url)
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


def test_an_operator_needs_no_more(private_redis: Private, unique: str) -> None:
    server = private_redis()
    query = DirectQuery(COUNTER, url=server.url, key=f"{unique}:{{id}}", writeMode="increment")
    query.run(0, ones(range(10)))
    query.sink.store.stage(Chunk(query.task(0, 0), 0, 1, b"of a task that comes late"))
    with Redis.from_url(server.url) as client:
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


@pytest.fixture
def secret(tmp_path: Path) -> Path:
    """The file that holds the password of user `app`."""
    file = tmp_path / "secret"
    file.write_text("right\n")
    return file


@pytest.fixture
def open_server(private_redis: Private) -> RedisProcess:
    """A server that lets anybody in as user `default`, too."""
    return private_redis("user app on >right ~* &* +@all")


def logged_in(open_server: RedisProcess, secret: Path, **options: str) -> DirectQuery:
    url = open_server.url.replace("redis://", "redis://app@").removesuffix("/0") + "/5"
    return DirectQuery(COUNTER, url=url, key="t:{id}", passwordFile=str(secret), **options)


def one_row(epoch: int) -> list[dict[str, int]]:
    return [{"id": epoch, "n": 1}]


def sizes(open_server: RedisProcess) -> dict[int, int]:
    """How many rows are in each database that has any keys."""
    found = {}
    for number in (0, 5):
        with Redis.from_url(open_server.url.removesuffix("/0") + f"/{number}") as client:
            found[number] = len(client.keys("t:*"))
            assert number == 5 or not client.dbsize(), client.keys("*")
    return found


def test_a_user_in_the_url_has_the_password_of_a_file(
    open_server: RedisProcess, secret: Path
) -> None:
    with Redis.from_url(open_server.url) as client:
        client.execute_command("ACL", "SETUSER", "default", "resetpass", ">other")
        logged_in(open_server, secret).run(0, one_row(0))


@pytest.mark.parametrize("wrong", ["", "deleted"])
def test_a_password_that_can_not_be_read_for_a_moment_lets_no_row_into_another_database(
    open_server: RedisProcess, secret: Path, wrong: str
) -> None:
    first, second = logged_in(open_server, secret), logged_in(open_server, secret, sinkId="second")
    first.run(0, one_row(0))
    first.sink.store.session.client.connection_pool.disconnect()
    secret.unlink()
    if wrong == "":
        secret.write_bytes(b"\xff")  # no text
    with pytest.raises(OptionError, match="passwordFile"):
        first.run(1, one_row(1))
    secret.write_text("right")
    for epoch in range(3):
        second.run(epoch, one_row(10 + epoch))
    first.restart()
    first.run(1, one_row(1))
    assert sizes(open_server) == {0: 0, 5: 5}


IDS = pa.schema([("id", pa.int64())])
Secure = tuple[str, Path]


@pytest.fixture
def secure(private_redis: Private, tmp_path: Path) -> Secure:
    """The address of a server that speaks TLS only, and the folder of the certificates."""
    if not shutil.which("openssl"):
        pytest.skip("openssl makes the certificates, and there is none")
    for name in ("server", "client"):
        make_certificate(tmp_path, name)
    port = Port()
    port.release()
    try:
        private_redis(
            f"tls-port {port.number}",
            f"tls-cert-file {tmp_path}/server.crt",
            f"tls-key-file {tmp_path}/server.key",
            f"tls-ca-cert-file {tmp_path}/client.crt",
        )
    except UnavailableError as error:
        pytest.skip(f"this redis-server was built without TLS: {error}")
    return f"rediss://127.0.0.1:{port.number}/0", tmp_path


def test_server_is_verified_and_the_client_shows_its_certificate(secure: Secure) -> None:
    url, home = secure
    client = {"tlsCertFile": f"{home}/client.crt", "tlsKeyFile": f"{home}/client.key"}
    query = DirectQuery(IDS, url=url, key="tls:{id}", tlsCaFile=f"{home}/server.crt", **client)
    assert query.run(0, [{"id": 1}]).totals.rows == 1
    raw = {"url": url, "key": "tls:{id}", "tlsCaFile": f"{home}/server.crt", **client}
    source = RedisConnector().source(options.parse(RedisConnector.reads, raw), Scan(IDS))
    found = [batch for split in source.splits() for batch in source.read(split)]
    assert [batch.to_pylist() for batch in found] == [[{"id": 1}]]

    stranger = DirectQuery(IDS, url=url, key="tls:{id}", **client)
    with pytest.raises(StoreUnreachable, match=r"(?i)certificate verify failed"):
        stranger.sink.check()
    silent = DirectQuery(IDS, url=url, key="tls:{id}", tlsCaFile=f"{home}/server.crt")
    with pytest.raises(StoreUnreachable):
        silent.sink.check()
