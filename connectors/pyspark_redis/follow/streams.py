"""How far a stream was read, and whether what was not read is still there."""

from __future__ import annotations

from dataclasses import dataclass, replace
from hashlib import blake2b
from typing import Any

import redis
from redis.exceptions import ResponseError

from pyspark_redis.server.failures import no_stream
from sparkonce.errors import StoreRefused, UnreadLost

LOOK = "look at what trims, deletes or restores the stream; failOnDataLoss=false"

STEP = 1000
"""Entries that a script counts: about a millisecond, in which the server does nothing else.

It can't look at a clock: that stands still in scripts of newer servers.
"""

WALK = """
local some = redis.call('XRANGE', KEYS[1], '(' .. ARGV[1], ARGV[2], 'COUNT', ARGV[3])
return {#some > 0 and some[#some][1] or ARGV[1], #some}
"""
"""The last of at most so many entries of a stream behind one id and up to another; and how many."""


@dataclass(frozen=True)
class Mark:
    """How far a stream was read."""

    id: str = "0-0"  # of the last entry
    added: int = 0  # how many entries had ever been added then, those included that are gone since
    hash: str = ""  # of that entry's fields; empty if it is not known, as the entry is gone

    def may_be(self, other: Mark) -> bool:
        """Whether nothing tells it from another mark."""
        known = self.hash and other.hash
        return (self.id, self.added) == (other.id, other.added) and (
            not known or self.hash == other.hash
        )

    def later(self, other: Mark) -> Mark:
        """This mark; with the id of the other one if that is higher: nothing is read again."""
        if self.may_be(other):
            return other
        return Mark(other.id, self.added) if before(self.id, other.id) else self


@dataclass(frozen=True)
class Look:
    """What a server says of a stream, at one moment.

    See https://redis.io/docs/latest/commands/xinfo-stream/.
    """

    end: Mark  # the last entry that was ever added, and how many were
    first: str | None  # the oldest entry that is there; None if there is none
    length: int  # how many are there
    deleted: str  # the highest id that was ever deleted by XDEL

    @property
    def earliest(self) -> Mark:
        """Right before all that are there."""
        if self.first is None:
            return self.end
        return Mark(_right_before(self.first), self.end.added - self.length)


NOTHING = Look(Mark(), None, 0, "0-0")  # what is said of a stream that is not there


def before(one: str, other: str) -> bool:
    """Whether an id is lower than another."""
    return _order(one) < _order(other)


def _order(entry: str) -> tuple[int, ...]:
    return tuple(map(int, entry.split("-")))


def _right_before(entry: str) -> str:
    """The next lower id, whether an entry has it or not."""
    time, number = _order(entry)
    return f"{time}-{number - 1}" if number else f"{time - 1}-{2**64 - 1}"


@dataclass(frozen=True)
class FollowedStream:
    """A stream, on the server that has it. All raise redis-py's errors."""

    client: redis.Redis
    key: str

    def look(self) -> Look:
        """What the server says of it; one that is not there is empty."""
        try:
            info: dict[str, Any] = self.client.xinfo_stream(self.key)
        except ResponseError as error:
            if "no such key" in str(error):
                return NOTHING
            if "WRONGTYPE" in str(error):
                raise no_stream(self.key) from None
            raise
        if "entries-added" not in info:
            raise StoreRefused(
                "The server does not tell how many entries a stream ever had",
                why="only by that entries which are trimmed before they are read are noticed",
                todo="use Redis 7.0 or newer, or Valkey",
            )
        first, last = info["first-entry"], info["last-entry"]
        end = Mark(_text(info["last-generated-id"]), int(info["entries-added"]))
        if last and _text(last[0]) == end.id:
            end = replace(end, hash=_hash(last[1]))
        deleted = _text(info["max-deleted-entry-id"])
        return Look(end, _text(first[0]) if first else None, int(info["length"]), deleted)

    def loss(self, there: Look, after: Mark) -> UnreadLost | None:
        """The error for what is not known to be there behind a mark; None if all of it is.

        Entries go from the beginning. So nothing behind the mark was trimmed as long as its own
        entry is there, or was deleted as the last one. Whether one behind it was deleted by XDEL
        is noticed when they are counted.
        """
        new = there.end.added - after.added
        if there.end.may_be(after):
            return None
        if new <= 0 or not before(after.id, there.end.id):
            return lost(self.key, after, -1)
        if there.first is None or before(after.id, there.first):
            gone = new - there.length
            if gone:
                return lost(self.key, after, gone)
            is_first = there.first is not None and _right_before(there.first) == after.id
            known = is_first or after.added == 0  # then all that were ever added are there
        else:
            hash_ = self._hash_of(after.id)
            if hash_ and after.hash and hash_ != after.hash:
                return lost(self.key, after, -1)
            known = bool(hash_)
        return None if known or there.deleted == after.id else _uncertain(self.key, after)

    def rest(self, there: Look, after: Mark) -> Mark:
        """A mark behind the same id, by the number of entries that are there behind it."""
        found = there.length
        if there.first is None or not before(after.id, there.first):
            _, found = self._walked(after.id, there.end.id, there.length)
        return Mark(after.id, there.end.added - found)

    def walk(self, after: Mark, goal: Mark, most: int) -> Mark:
        """The mark behind at most so many entries, or `goal`."""
        if not most:
            return after
        at, found = self._walked(after.id, goal.id, most)
        if found < most or at == goal.id:
            return goal
        return Mark(at, after.added + found, self._hash_of(at))

    def _hash_of(self, entry: str) -> str:
        """The hash of an entry; empty if it is not there."""
        found: Any = self.client.xrange(self.key, entry, entry)
        return _hash(found[0][1]) if found else ""

    def _walked(self, at: str, goal: str, most: int) -> tuple[str, int]:
        """The last of at most so many entries behind one id, and how many they are."""
        found, some = 0, 1
        while some and found < most and before(at, goal):
            count = str(min(STEP, most - found))
            last, some = self.client.eval(WALK, 1, self.key, at, goal, count)
            at, found = _text(last), found + some
        return at, found


def _hash(fields: dict[Any, Any]) -> str:
    """A few letters by which entries are told from others that have the same id."""
    made = blake2b(digest_size=6)
    for name, value in fields.items():
        made.update(b"%d %b %d %b" % (len(name), name, len(value), value))
    return made.hexdigest()


def lost(key: str, after: Mark, gone: int) -> UnreadLost:
    """The error for entries that are gone, or are others: then `gone` is negative."""
    if gone < 0:
        return UnreadLost(
            f"Stream {key!r} is not the one that was read up to {after.id}",
            why="it was deleted and made anew, or copied, or a replica took over that lacked"
            " entries",
            todo=f"{LOOK} goes on behind that id; a new query reads those up to it, too",
        )
    return UnreadLost(
        f"{gone} entries of stream {key!r} behind {after.id} are gone before they were read",
        why="the stream was trimmed (MAXLEN, MINID), or entries of it were deleted (XDEL)",
        todo=f"{LOOK} goes on without them",
    )


def _uncertain(key: str, after: Mark) -> UnreadLost:
    """The error for a stream that may be another one."""
    return UnreadLost(
        f"Stream {key!r} does not have entry {after.id} any more, the last one that was read, and"
        " entries behind it may be gone, too",
        why="one that was trimmed up to just there looks like one that was made anew, or that lost"
        " entries in a failover",
        todo=f"let what trims the stream keep that entry (XTRIM MINID {after.id} does); {LOOK} goes"
        " on behind that id",
    )


def _text(value: Any) -> str:
    return value.decode() if isinstance(value, bytes) else str(value)
