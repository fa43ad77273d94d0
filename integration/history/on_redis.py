"""Recordings of Redis: every key, as JSON."""

from __future__ import annotations

import json
from base64 import b64decode, b64encode
from collections import Counter

from integration.counters import COUNTER
from integration.epochs import DirectQuery
from integration.history.story import CHUNK, QUERY, tell
from integration.servers.redis import connect

PREFIX = "history"


def query(url: str) -> DirectQuery:
    made = DirectQuery(
        COUNTER,
        url=url,
        key=f"{PREFIX}:{{id}}",
        writeMode="increment",
        keyPrefix=PREFIX,
        chunkRows=CHUNK,
    )
    made.query_id = QUERY
    made.sink.store.small_cost = 0  # type: ignore[attr-defined]
    return made


def record(url: str) -> str:
    tell(query(url))
    with connect(url) as client:
        keys = {name: _read(client, name) for name in sorted(client.scan_iter("*"))}
    return json.dumps({name.decode(): value for name, value in keys.items()}, indent=1) + "\n"


def load(url: str, recording: str) -> None:
    with connect(url) as client:
        for name, value in json.loads(recording).items():
            if isinstance(value, dict):
                fields = {b64decode(field): b64decode(one) for field, one in value.items()}
                client.hset(name, mapping=fields)
            else:
                client.sadd(name, *map(b64decode, value))


def counts(url: str) -> Counter[int]:
    with connect(url) as client:
        names = list(client.scan_iter(f"{PREFIX}:*"))
        return Counter({int(one.split(b":")[1]): int(client.hget(one, "n")) for one in names})


def _read(client: object, name: bytes) -> object:
    if client.type(name) == b"set":  # type: ignore[attr-defined]
        return sorted(_text(one) for one in client.smembers(name))  # type: ignore[attr-defined]
    found = client.hgetall(name)  # type: ignore[attr-defined]
    return {_text(field): _text(one) for field, one in sorted(found.items())}


def _text(value: bytes) -> str:
    return b64encode(value).decode()
