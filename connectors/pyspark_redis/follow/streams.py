"""The position of a query in a stream, and whether the unread entries still exist."""

from __future__ import annotations

from dataclasses import dataclass, replace
from hashlib import blake2b
from typing import Any

import redis
from redis.exceptions import ResponseError

from pyspark_redis.server.failures import no_stream
from sparkonce.errors import StoreRefused, StoreUnreachable, UnreadLost

LOOK = "find out what trims, deletes or restores the stream; failOnDataLoss=false"

STEP = 1000
"""Entries that one script counts: it blocks the server for about a millisecond.

The script can't check the time, because newer servers stop the clock in scripts.
"""

WALK = """
local some = redis.call('XRANGE', KEYS[1], '(' .. ARGV[1], ARGV[2], 'COUNT', ARGV[3])
return {#some > 0 and some[#some][1] or ARGV[1], #some}
"""
"""Of at most ARGV[3] entries after id ARGV[1], up to ARGV[2]: the last id, and their number."""


@dataclass(frozen=True)
class Mark:
    """A position in a stream."""

    id: str = "0-0"  # the id of the last entry that was read
    added: int = 0  # entries ever added up to that id, including removed ones
    hash: str = ""  # the hash of that entry's fields; empty if unknown, because it was removed

    def may_be(self, other: Mark) -> bool:
        """Whether the two marks may be the same position."""
        known = self.hash and other.hash
        return (self.id, self.added) == (other.id, other.added) and (
            not known or self.hash == other.hash
        )

    def later(self, other: Mark) -> Mark:
        """This mark, with the id of `other` if that is higher, so that no entry is read again."""
        if self.may_be(other):
            return other
        return Mark(other.id, self.added) if before(self.id, other.id) else self


@dataclass(frozen=True)
class Look:
    """The state of a stream at one moment.

    See https://redis.io/docs/latest/commands/xinfo-stream/.
    """

    end: Mark  # the last entry ever added, and the number of entries ever added
    first: str | None  # the oldest entry that exists; None if the stream is empty
    length: int  # the number of entries that exist
    deleted: str  # the highest id that XDEL ever deleted

    @property
    def earliest(self) -> Mark:
        """The position right before the oldest entry."""
        if self.first is None:
            return self.end
        return Mark(_right_before(self.first), self.end.added - self.length)


NOTHING = Look(Mark(), None, 0, "0-0")  # the state of a stream that does not exist


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
    """A stream, on the server that holds it. Methods raise errors of redis-py."""

    client: redis.Redis
    key: str

    def look(self) -> Look:
        """The state of the stream; `NOTHING` if the stream does not exist."""
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
                "The server does not report how many entries a stream ever had",
                why="without that number the connector cannot detect entries that were trimmed"
                " before it read them",
                todo="use Redis 7.0 or newer, or Valkey",
            )
        first, last = info["first-entry"], info["last-entry"]
        end = Mark(_text(info["last-generated-id"]), int(info["entries-added"]))
        if last and _text(last[0]) == end.id:
            end = replace(end, hash=_hash(last[1]))
        deleted = _text(info["max-deleted-entry-id"])
        return Look(end, _text(first[0]) if first else None, int(info["length"]), deleted)

    def loss(self, there: Look, after: Mark) -> UnreadLost | StoreUnreachable | None:
        """The error if entries after a mark may be missing; None if all of them exist.

        The server trims a stream from its beginning. So no entry after the mark was trimmed if the
        mark's entry still exists, or if XDEL deleted that entry last. The read counts the entries,
        and so detects an XDEL after the mark.
        """
        new = there.end.added - after.added
        if there.end.may_be(after):
            return None
        if new <= 0 or not before(after.id, there.end.id):
            ends_before = there.end.added and before(there.end.id, after.id)
            return _behind(self.key, there, after) if ends_before else lost(self.key, after, -1)
        if there.first is None or before(after.id, there.first):
            gone = new - there.length
            if gone:
                return lost(self.key, after, gone)
            is_first = there.first is not None and _right_before(there.first) == after.id
            known = is_first or after.added == 0  # then every entry ever added exists
        else:
            hash_ = self._hash_of(after.id)
            if hash_ and after.hash and hash_ != after.hash:
                return lost(self.key, after, -1)
            known = bool(hash_)
        return None if known or there.deleted == after.id else _uncertain(self.key, after)

    def rest(self, there: Look, after: Mark) -> Mark:
        """The mark of the same id whose `added` counts only the entries that still follow it."""
        found = there.length
        if there.first is None or not before(after.id, there.first):
            _, found = self._walked(after.id, there.end.id, there.length)
        return Mark(after.id, there.end.added - found)

    def walk(self, after: Mark, goal: Mark, most: int) -> Mark:
        """The mark at most `most` entries after `after`, or `goal`."""
        if not most:
            return after
        at, found = self._walked(after.id, goal.id, most)
        if found < most or at == goal.id:
            return goal
        return Mark(at, after.added + found, self._hash_of(at))

    def _hash_of(self, entry: str) -> str:
        """The hash of an entry; empty if the entry does not exist."""
        found: Any = self.client.xrange(self.key, entry, entry)
        return _hash(found[0][1]) if found else ""

    def _walked(self, at: str, goal: str, most: int) -> tuple[str, int]:
        """The last id of at most `most` entries after `at`, and the number of those entries."""
        found, some = 0, 1
        while some and found < most and before(at, goal):
            count = str(min(STEP, most - found))
            last, some = self.client.eval(WALK, 1, self.key, at, goal, count)
            at, found = _text(last), found + some
        return at, found


def _hash(fields: dict[Any, Any]) -> str:
    """A short hash that distinguishes entries with the same id."""
    made = blake2b(digest_size=6)
    for name, value in fields.items():
        made.update(b"%d %b %d %b" % (len(name), name, len(value), value))
    return made.hexdigest()


def lost(key: str, after: Mark, gone: int) -> UnreadLost:
    """The error for `gone` missing entries; if `gone` is negative, for another stream."""
    if gone < 0:
        return UnreadLost(
            f"Stream {key!r} is not the one that was read up to {after.id}",
            why="a client deleted and recreated or copied the stream, or a replica that lacked"
            " entries took over",
            todo=f"{LOOK} continues after that id; a new query also reads the entries up to it",
        )
    return UnreadLost(
        f"{gone} entries of stream {key!r} after {after.id} were removed before the query read"
        " them",
        why="a client trimmed the stream (MAXLEN, MINID) or deleted entries (XDEL)",
        todo=f"{LOOK} continues without them",
    )


def _behind(key: str, there: Look, after: Mark) -> StoreUnreachable:
    """The error for a server that does not have what the query has read."""
    return StoreUnreachable(
        f"Stream {key!r} ends with entry {there.end.id} on this server, and the query has read up"
        f" to {after.id}",
        why="the server lags, or a new primary replaced it; or it lost entries in a failover",
        todo=f"wait for the server; if the entries are lost, {LOOK} continues after that id",
    )


def _uncertain(key: str, after: Mark) -> UnreadLost:
    """The error for a stream that may be another one."""
    return UnreadLost(
        f"Stream {key!r} no longer has entry {after.id}, the last one that the query read, and"
        " later entries may be missing, too",
        why="a stream trimmed exactly up to that entry looks like one that was recreated, or that"
        " lost entries in a failover",
        todo=f"configure the trimming to keep that entry (XTRIM MINID {after.id} does); {LOOK}"
        " continues after that id",
    )


def _text(value: Any) -> str:
    return value.decode() if isinstance(value, bytes) else str(value)
