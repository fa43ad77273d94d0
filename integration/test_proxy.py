"""The proxy: each fault happens where it was asked for, and the server did what it promises."""

from __future__ import annotations

import os
import socket
import time
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

import pytest
from integration.support.proxy import SILENCE, Proxy
from integration.support.servers.process import HOST, wait_until
from integration.support.servers.redis import connect
from redis.exceptions import ConnectionError, TimeoutError  # noqa: A004

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from integration.support.servers.redis import RedisProcess
    from redis import Redis
    from redis.client import Pipeline

# Not only b"SET": a client that connects says CLIENT SETINFO first.
SET = b"\r\nSET\r\n"


@pytest.fixture
def direct(redis_url: str) -> Iterator[Redis]:
    """Reach the server past the proxy, to see what it really did."""
    with connect(redis_url) as client:
        yield client


@pytest.fixture
def client(redis_proxy: Proxy) -> Iterator[Redis]:
    """Reach the server through the proxy, connected before anything fails."""
    with connect(redis_proxy.url) as client:
        client.ping()
        yield client


def test_without_faults_the_proxy_passes_everything_on(
    client: Redis, redis_proxy: Proxy, unique: str
) -> None:
    large = os.urandom(3_000_000)
    client.set(unique, large, ex=60)
    assert client.get(unique) == large
    assert redis_proxy.cuts == 0


def test_a_request_that_was_cut_is_not_executed(
    client: Redis, direct: Redis, redis_proxy: Proxy, unique: str
) -> None:
    redis_proxy.cut_request(SET)
    with pytest.raises(ConnectionError):
        client.set(unique, "lost", ex=60)
    assert direct.get(unique) is None
    assert redis_proxy.cuts == 1


def test_a_request_whose_reply_was_cut_is_executed(
    client: Redis, direct: Redis, redis_proxy: Proxy, unique: str
) -> None:
    redis_proxy.cut_reply(SET)
    with pytest.raises(ConnectionError):
        client.set(unique, "kept", ex=60)
    assert direct.get(unique) == b"kept"
    assert redis_proxy.cuts == 1


@pytest.fixture
def large_transaction(client: Redis, unique: str) -> Iterator[Pipeline]:
    """A transaction that reaches the proxy in many pieces."""
    with client.pipeline() as transaction:
        for field in range(2000):
            transaction.hset(unique, str(field), "x" * 1000)
        transaction.expire(unique, 60)
        yield transaction


def test_a_large_transaction_whose_reply_was_cut_is_executed_whole(
    large_transaction: Pipeline, direct: Redis, redis_proxy: Proxy, unique: str
) -> None:
    redis_proxy.cut_reply(b"MULTI")
    with pytest.raises(ConnectionError):
        large_transaction.execute()
    assert direct.hlen(unique) == 2000
    assert redis_proxy.cuts == 1


SET_ONE = "*3\r\n$3\r\nSET\r\n$11\r\n{}\r\n$1\r\nx\r\n"
SLOW_REQUESTS = {
    "transaction": ("*1\r\n$5\r\nMULTI\r\n", SET_ONE, "*1\r\n$4\r\nEXEC\r\n"),
    "command": ("*1\r\n$4\r\nPING\r\n" + SET_ONE[:10], SET_ONE[10:25], SET_ONE[25:]),
}


@pytest.mark.parametrize("pieces", SLOW_REQUESTS.values(), ids=SLOW_REQUESTS)
def test_a_slow_request_whose_reply_was_cut_is_executed_whole(
    pieces: tuple[str, ...], direct: Redis, redis_proxy: Proxy, unique: str
) -> None:
    redis_proxy.cut_reply()
    with raw_connection(redis_proxy) as connection:
        for piece in pieces:
            connection.sendall(piece.format(unique).encode())
            time.sleep(3 * SILENCE)
        assert connection.recv(64) == b""
    assert direct.getdel(unique) == b"x"
    assert redis_proxy.cuts == 1


def test_a_large_transaction_that_was_cut_at_its_end_is_not_executed_at_all(
    large_transaction: Pipeline, direct: Redis, redis_proxy: Proxy, unique: str
) -> None:
    redis_proxy.cut_request(b"EXEC")
    with pytest.raises(ConnectionError):
        large_transaction.execute()
    assert direct.exists(unique) == 0
    assert redis_proxy.cuts == 1


def test_only_the_nth_matching_request_fails(
    client: Redis, direct: Redis, redis_proxy: Proxy, unique: str
) -> None:
    redis_proxy.cut_request(lambda request: request.startswith(b"*3\r\n$6\r\nINCRBY"), nth=3)
    client.incr(unique)
    client.get(unique)
    client.incr(unique)
    assert redis_proxy.cuts == 0
    with pytest.raises(ConnectionError):
        client.incr(unique)
    assert redis_proxy.cuts == 1
    client.expire(unique, 60)
    assert direct.get(unique) == b"2"


def test_faults_happen_one_after_the_other(
    client: Redis, direct: Redis, redis_proxy: Proxy, unique: str
) -> None:
    redis_proxy.cut_reply(b"INCR")
    redis_proxy.reset(b"INCR")
    for happened in (1, 2):
        with pytest.raises(ConnectionError):
            client.incr(unique)
        assert redis_proxy.cuts == happened
    assert direct.get(unique) == b"1"
    assert client.expire(unique, 60)


def test_a_reset_is_seen_as_one(client: Redis, redis_proxy: Proxy, unique: str) -> None:
    redis_proxy.reset(SET)
    with pytest.raises(ConnectionError, match="reset by peer"):
        client.set(unique, "lost")
    assert redis_proxy.cuts == 1


def test_a_stalled_request_arrives_after_its_client_gave_up(
    direct: Redis, redis_proxy: Proxy, unique: str
) -> None:
    redis_proxy.stall(SET)
    with connect(f"{redis_proxy.url}?socket_timeout=0.5") as client:
        with pytest.raises(TimeoutError):
            client.set(unique, "late", ex=60)
        assert redis_proxy.wait(cuts=1)
        assert direct.get(unique) is None
    redis_proxy.restore()
    wait_until(lambda: direct.get(unique) == b"late", 5, "the request never arrived")


def test_new_connections_are_refused_until_restored(client: Redis, redis_proxy: Proxy) -> None:
    redis_proxy.refuse()
    assert client.ping(), "a connection that was there goes on"
    with connect(redis_proxy.url) as other:
        with pytest.raises(ConnectionError, match="refused"):
            other.ping()
        redis_proxy.restore()
        assert other.ping()


def raw_connection(proxy: Proxy) -> socket.socket:
    return socket.create_connection((HOST, urlsplit(proxy.url).port or 0), timeout=5)


def test_all_connections_can_be_closed_at_once(redis_proxy: Proxy) -> None:
    with raw_connection(redis_proxy) as connection:
        connection.sendall(b"PING\r\n")
        assert connection.recv(64) == b"+PONG\r\n"
        redis_proxy.disconnect()
        assert connection.recv(64) == b""


def test_a_server_that_is_down_looks_down_through_the_proxy(
    private_redis: Callable[..., RedisProcess],
) -> None:
    server = private_redis()
    with Proxy(server.url) as proxy, connect(proxy.url) as client:
        client.ping()
        server.kill()
        for _ in range(2):
            with pytest.raises(ConnectionError):
                client.ping()
        server.start()
        assert client.ping()


def test_a_hit_names_the_port_of_its_client(client: Redis, redis_proxy: Proxy, unique: str) -> None:
    redis_proxy.cut_reply(SET)
    connection = client.connection_pool.get_connection()
    connection.connect()
    port = connection._sock.getsockname()[1]
    connection.send_command("SET", unique, "1", "EX", 60)
    assert redis_proxy.wait()
    assert redis_proxy.hits == [port]
    connection.disconnect()
    client.connection_pool.release(connection)


def test_new_connections_can_be_led_to_another_server(
    redis_proxy: Proxy, private_redis: Callable[..., RedisProcess], unique: str
) -> None:
    other = private_redis()
    redis_proxy.lead_to(other.url)
    with connect(redis_proxy.url) as client, connect(other.url) as there:
        client.set(unique, "there", ex=60)
        assert there.get(unique) == b"there"
