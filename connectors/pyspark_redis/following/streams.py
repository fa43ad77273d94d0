"""How far a stream was read, and whether what was not read is still there."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from functools import lru_cache
from importlib.resources import files
from typing import Any

import redis
from redis.exceptions import ResponseError

from pyspark_redis.server.failures import no_stream
from sparkonce.errors import StoreRefused, UnreadLost


@dataclass(frozen=True)
class Mark:
    """How far a stream was read.

    Attributes:
        id: of the last entry.
        added: how many entries had ever been added then, those included that are gone since.
    """

    id: str = "0-0"
    added: int = 0

    def to_json(self) -> dict[str, Any]:
        """As an offset has it."""
        return asdict(self)


@dataclass(frozen=True)
class Look:
    """What a server says of a stream, at one moment.

    See https://redis.io/docs/latest/commands/xinfo-stream/.

    Attributes:
        end: the last entry that was ever added, and how many were.
        first: the oldest entry that is there; None if there is none.
        length: how many are there.
    """

    end: Mark
    first: str | None
    length: int

    @property
    def earliest(self) -> Mark:
        """Before all that are there."""
        return Mark(added=self.end.added - self.length)

    def gone(self, after: Mark) -> int:
        """How many entries behind a mark are there no more, as far as one look can tell.

        Entries go from the beginning, so that nothing behind the mark is gone as long as what lies
        before it is there; others are noticed when they are counted. A negative number tells of
        entries that are not those of which the mark tells.
        """
        if before(self.end.id, after.id) or self.end.added < after.added:
            return min(-1, self.end.added - after.added)
        if self.first is not None and not before(after.id, self.first):
            return 0
        return self.end.added - after.added - self.length


def before(one: str, other: str) -> bool:
    """Whether an id is lower than another."""
    return _order(one) < _order(other)


def _order(entry: str) -> tuple[int, ...]:
    return tuple(map(int, entry.split("-")))


def look(client: redis.Redis, key: str) -> Look:
    """What the server says of a stream; one that is not there is empty.

    Raises:
        redis.RedisError: it can't be asked.
        StoreRefused: it is too old to tell.
    """
    try:
        told: dict[str, Any] = client.xinfo_stream(key)
    except ResponseError as error:
        if "no such key" in str(error):
            return Look(Mark(), None, 0)
        if "WRONGTYPE" in str(error):
            raise no_stream(key) from None
        raise
    if "entries-added" not in told:
        raise StoreRefused(
            "The server does not tell how many entries a stream ever had",
            why="only by that entries which are trimmed before they are read are noticed",
            todo="use Redis 7.0 or newer, or Valkey",
        )
    first = told["first-entry"]
    end = Mark(_text(told["last-generated-id"]), int(told["entries-added"]))
    return Look(end, _text(first[0]) if first else None, int(told["length"]))


def walk(client: redis.Redis, key: str, after: Mark, goal: Mark, most: int) -> Mark:
    """The mark behind at most so many entries, or `goal`.

    Raises:
        redis.RedisError: the server can't be asked.
    """
    at, found = after.id, 0
    while found < most:
        told: Any = client.eval(_walk(), 1, key, at, goal.id, str(most - found))
        if not told[1]:
            return goal
        at, found = _text(told[0]), found + int(told[1])
    return goal if at == goal.id else Mark(at, after.added + found)


def lost(key: str, after: Mark, gone: int) -> UnreadLost:
    """The error for entries that are gone, or are others."""
    todo = "look at what trims, deletes or restores the stream; failOnDataLoss=false goes on with"
    if gone < 0:
        return UnreadLost(
            f"Stream {key!r} is not the one that was read up to {after.id}",
            why="it was deleted and made anew, or a replica took over that lacked entries",
            todo=f"{todo} what is there now",
        )
    return UnreadLost(
        f"{gone} entries of stream {key!r} behind {after.id} are gone before they were read",
        why="the stream was trimmed (MAXLEN, MINID), or entries of it were deleted (XDEL)",
        todo=f"{todo}out them",
    )


@lru_cache
def _walk() -> str:
    return (files("pyspark_redis") / "following/walk.lua").read_text(encoding="utf-8")


def _text(value: Any) -> str:
    return value.decode() if isinstance(value, bytes) else str(value)
