"""Who a connection is, and into which database it writes, whatever failed while it was opened."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pyarrow as pa
import pytest
import redis
from integration.support.epochs import DirectQuery
from integration.support.servers.redis import RedisProcess

from sparkonce.errors import OptionError

SCHEMA = pa.schema([("id", pa.int64()), ("n", pa.int64())])


@pytest.fixture
def secret(tmp_path: Path) -> Path:
    """The file that holds the password of user `app`."""
    file = tmp_path / "secret"
    file.write_text("right\n")
    return file


@pytest.fixture
def server(private_redis: Callable[..., RedisProcess]) -> RedisProcess:
    """A server that lets anybody in as user `default`, too."""
    return private_redis("user app on >right ~* &* +@all")


def query(server: RedisProcess, secret: Path, **options: str) -> DirectQuery:
    url = server.url.replace("redis://", "redis://app@").removesuffix("/0") + "/5"
    return DirectQuery(SCHEMA, url=url, key="t:{id}", passwordFile=str(secret), **options)


def rows(epoch: int) -> list[dict[str, int]]:
    return [{"id": epoch, "n": 1}]


def sizes(server: RedisProcess) -> dict[int, int]:
    """How many rows are in each database that has any keys."""
    found = {}
    for number in (0, 5):
        with redis.Redis.from_url(server.url.removesuffix("/0") + f"/{number}") as client:
            found[number] = len(client.keys("t:*"))
            assert number == 5 or not client.dbsize(), client.keys("*")
    return found


def test_a_user_in_the_url_has_the_password_of_a_file(server: RedisProcess, secret: Path) -> None:
    with redis.Redis.from_url(server.url) as client:
        client.execute_command("ACL", "SETUSER", "default", "resetpass", ">other")
        query(server, secret).run(0, rows(0))


@pytest.mark.parametrize("wrong", ["", "deleted"])
def test_a_password_that_can_not_be_read_for_a_moment_lets_no_row_into_another_database(
    server: RedisProcess, secret: Path, wrong: str
) -> None:
    first, second = query(server, secret), query(server, secret, sinkId="second")
    first.run(0, rows(0))
    first.sink.store.session.client.connection_pool.disconnect()
    secret.unlink()
    if wrong == "":
        secret.write_bytes(b"\xff")  # no text
    with pytest.raises(OptionError, match="passwordFile"):
        first.run(1, rows(1))
    secret.write_text("right")
    for epoch in range(3):
        second.run(epoch, rows(10 + epoch))
    first.restart()
    first.run(1, rows(1))
    assert sizes(server) == {0: 0, 5: 5}
