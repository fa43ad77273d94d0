"""What a row becomes by each model, beside the hashes of `test_redis_apply`."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import pyarrow as pa
import pytest
import redis
from integration.epochs import DirectQuery

from sparkonce.errors import RowRefused

SCHEMA = pa.schema([("id", pa.int64()), ("v", pa.string())])
WAYS = {"one script": 48_000, "a script a chunk": 0}


@pytest.fixture
def client(redis_url: str) -> Iterator[redis.Redis]:
    with redis.Redis.from_url(redis_url, decode_responses=True) as client:
        yield client


@pytest.fixture(params=WAYS.values(), ids=list(WAYS))
def strings(
    redis_url: str, unique: str, request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch
) -> Callable[..., DirectQuery]:
    """Give queries into strings; an epoch is applied by one script, or by a script a chunk."""

    def make(**options: str) -> DirectQuery:
        query = DirectQuery(
            SCHEMA, url=redis_url, model="string", key=f"{unique}:{{id}}", **options
        )
        monkeypatch.setattr(query.sink.store, "small_cost", request.param)
        return query

    return make


def rows(*values: str | None) -> list[dict[str, Any]]:
    return [{"id": at, "v": value} for at, value in enumerate(values)]


def test_the_last_row_of_a_key_is_its_string(
    strings: Callable[..., DirectQuery], client: redis.Redis, unique: str
) -> None:
    strings().run(0, rows("a", "b"), [{"id": 1, "v": "né\0w"}])
    assert client.mget(f"{unique}:0", f"{unique}:1") == ["a", "né\0w"]


def test_a_null_deletes_the_string_or_keeps_it_as_told(
    strings: Callable[..., DirectQuery], client: redis.Redis, unique: str
) -> None:
    strings().run(0, rows("a", "b"))
    strings(nulls="keep").run(0, rows(None, "c"))
    assert client.mget(f"{unique}:0", f"{unique}:1") == ["a", "c"]
    strings().run(0, rows(None, "d"))
    assert client.mget(f"{unique}:0", f"{unique}:1") == [None, "d"]


def test_a_string_expires_so_long_after_its_last_write(
    strings: Callable[..., DirectQuery], client: redis.Redis, unique: str
) -> None:
    strings(ttl="1h").run(0, rows("a"))
    assert 3_590 < client.ttl(f"{unique}:0") <= 3_600
    strings().run(0, rows("a"))
    assert client.ttl(f"{unique}:0") == -1


def test_strings_are_deleted(
    strings: Callable[..., DirectQuery], client: redis.Redis, unique: str
) -> None:
    strings().run(0, rows("a", "", "c"))
    strings(writeMode="delete").run(0, rows("", "")[:2])
    assert client.mget(*(f"{unique}:{at}" for at in range(3))) == [None, None, "c"]


@pytest.mark.parametrize("mode", ["upsert", "delete"])
def test_a_key_of_another_type_stops_the_query_and_is_left_alone(
    strings: Callable[..., DirectQuery], client: redis.Redis, unique: str, mode: str
) -> None:
    """SET and UNLINK would take it, whatever it holds."""
    client.hset(f"{unique}:1", "f", "mine")
    client.set(f"{unique}:2", "there")
    query = strings(writeMode=mode)
    with pytest.raises(RowRefused, match="another Redis type"):
        query.run(0, rows("a", "b", "c"))
    assert (client.hgetall(f"{unique}:1"), client.get(f"{unique}:2")) == ({"f": "mine"}, "there")
    client.delete(f"{unique}:1")
    query.run(0, rows("a", "b", "c"))
    written = ["a", "b", "c"] if mode == "upsert" else [None] * 3
    assert client.mget(*(f"{unique}:{at}" for at in range(3))) == written
