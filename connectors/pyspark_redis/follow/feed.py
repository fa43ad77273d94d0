"""Streams as a feed: an epoch is what lies between two ids of each, and nothing of it is kept."""

from __future__ import annotations

import logging
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import pyarrow as pa
import redis

from pyspark_redis.follow.streams import (
    NOTHING,
    Look,
    Mark,
    before,
    later,
    look,
    loss,
    lost,
    rest,
    walk,
)
from pyspark_redis.read.columns import Columns
from pyspark_redis.read.forms import Rows
from pyspark_redis.read.keys import Naming, require_no_pattern
from pyspark_redis.read.places import Places
from pyspark_redis.read.wire import Wire, command, good, is_other_type, opened
from pyspark_redis.server.failures import no_stream, translated
from sparkonce.errors import UnreadLost
from sparkonce.feeds import STARTS, Position
from sparkonce.options import Options
from sparkonce.reading import Scan

log = logging.getLogger("sparkonce")

READING = "reading a stream"

BLOCK = 4 * 1024 * 1024
"""Bytes of replies that a batch is made of."""

PAGE = 1000
"""Most entries that are asked for at once: about a millisecond of the server's time."""

LARGE = 50_000
"""Entries that are worth several splits."""


@dataclass(frozen=True)
class Range:
    """A split: the entries of a stream behind one id, up to another.

    Attributes:
        many: how many there were; None if it is not known.
    """

    key: str
    after: str
    end: str
    many: int | None


class RedisFeed:
    """See `sparkonce.feeds.Feed`."""

    unit, of = "rows", "streams of Redis"

    def __init__(self, places: Places, options: Options, wanted: Scan) -> None:
        self.places, self.options = places, options
        self.columns = Columns(wanted.schema, Naming(None, b""), "stream", "")
        self._told = set[str]()

    def begin(self) -> Position:
        """See `Feed.begin`."""
        earliest = self.options[STARTS] == "earliest"
        looks = self._looks()
        for key, one in looks.items():
            if one is NOTHING:
                log.warning("Stream %r is not there yet; the query waits for it", key)
        return _position({key: one.earliest if earliest else one.end for key, one in looks.items()})

    def latest(self) -> Position:
        """See `Feed.latest`."""
        return _position({key: one.end for key, one in self._looks().items()})

    def advance(self, after: Position, goal: Position, most: int | None) -> Position:
        """See `Feed.advance`. Each stream has the share that it has of all that is not read.

        A stream that is named for the first time gets its place alone: what is there behind it, now
        or in a replay, is compared with that.
        """
        known, looks = _marks(after), dict[str, Look]()
        if any(key not in known for key in goal):
            looks = self._looks()
        for key in goal.keys() - known.keys():
            known[key] = looks[key].earliest
        if looks:
            return _position(known)
        if most is None:
            return self.passed(after, goal)
        begins = self._begins(after, goal)
        ends = {key: later(end, begins[key]) for key, end in _marks(goal).items()}
        rows = {key: max(0, end.added - begins[key].added) for key, end in ends.items()}
        total = sum(rows.values())
        if total > most:
            with translated(READING):
                ends = {
                    key: self._walk(key, begins[key], end, -(-most * rows[key] // total))
                    for key, end in ends.items()
                }
        return {**after, **_position(ends)}

    def passed(self, after: Position, goal: Position) -> Position:
        """See `Feed.passed`. Streams that are not named now keep their places."""
        known = _marks(after)
        ends = {key: later(end, known.get(key, end)) for key, end in _marks(goal).items()}
        return {**after, **_position(ends)}

    def between(self, after: Position, end: Position) -> Sequence[Range]:
        """See `Feed.between`."""
        for key in after.keys() - end.keys():
            log.warning(
                "Stream %r is not followed any more, and is read from its beginning if it is named"
                " again. Why: a Spark before 4.2 does not tell where a query is, so that its place"
                " is not kept. What to do: leave it in option streams, or use Spark 4.2",
                key,
            )
        begins = self._begins(after, end)
        with translated(READING):
            return [
                part
                for key, begin in begins.items()
                for part in self._parts(key, begin, Mark(**end[key]))
            ]

    def behind(self, after: Position, end: Position) -> int:
        """See `Feed.behind`."""
        begins = _marks(after)
        return sum(
            max(0, mark.added - begins.get(key, Mark()).added) for key, mark in _marks(end).items()
        )

    def read(self, split: Range) -> Iterator[pa.RecordBatch]:
        """See `Feed.read`."""
        found = Mark(split.after)
        with translated(READING), opened(self.places.holder(split.key.encode())) as wire:
            for upto, rows in self._blocks(wire, split):
                found = upto
                yield self.columns.batch(rows)
        if split.many is not None and found != Mark(split.end, split.many):
            self._tell_loss(lost(split.key, Mark(split.after), split.many - found.added or -1))

    def _blocks(self, wire: Wire, split: Range) -> Iterator[tuple[Mark, Rows]]:
        """The entries, in blocks, each with its last id, and how many there were up to that.

        The next page is on its way while one is taken.
        """
        form, key = self.columns.form, split.key.encode()
        rows, began, found = Rows(form.columns), 0, Mark(split.after)
        skipped = {id_ for stream, id_ in self.options["skipEntries"] or () if stream == key}
        for reply in _pages(wire, key, split):
            found = Mark(reply[-1][0].decode(), found.added + len(reply))
            form.take(key, [one for one in reply if one[0] not in skipped], rows)
            if wire.received - began >= BLOCK:
                began = wire.received
                yield found, rows
                rows = Rows(form.columns)
        yield found, rows

    def _looks(self) -> dict[str, Look]:
        with translated("looking at streams"):
            looks = {key: look(self._client(key), key) for key in self.options["streams"]}
        for key, one in looks.items():
            if one is NOTHING:
                require_no_pattern(key)
        return looks

    def _begins(self, after: Position, end: Position) -> dict[str, Mark]:
        """Where each stream is read on, where what lies behind that is there."""
        known, begins = _marks(after), {}
        with translated("looking at streams"):
            for key, mark in _marks(end).items():
                begins[key] = mark if known.get(key) == mark else self._begin(key, known.get(key))
        return begins

    def _begin(self, key: str, after: Mark | None) -> Mark:
        client = self._client(key)
        there = look(client, key)
        if after is None:  # a Spark before 4.2, which does not tell from where it asks for an end
            return there.earliest
        if error := loss(client, key, there, after):
            self._tell_loss(error)
            return rest(client, key, there, after)
        return after

    def _walk(self, key: str, after: Mark, goal: Mark, most: int) -> Mark:
        return walk(self._client(key), key, after, goal, most) if most else after

    def _parts(self, key: str, begin: Mark, end: Mark) -> Iterator[Range]:
        """The splits of a stream, of about as many entries each."""
        rows = end.added - begin.added
        many = max(1, min(self.options["numPartitions"], rows // LARGE))
        while before(begin.id, end.id):
            to = end if many == 1 else self._walk(key, begin, end, -(-rows // many))
            yield Range(key, begin.id, to.id, to.added - begin.added)
            begin = to

    def _client(self, key: str) -> redis.Redis:
        return self.places.holder(key.encode())

    def _tell_loss(self, error: UnreadLost) -> None:
        """Raise, or warn once, as option ``failOnDataLoss`` says."""
        if self.options["failOnDataLoss"]:
            raise error
        if str(error) not in self._told:
            self._told.add(str(error))
            log.warning("%s", error)


def _pages(wire: Wire, key: bytes, split: Range) -> Iterator[list[tuple[bytes, list[bytes]]]]:
    end, size = split.end.encode(), PAGE // 10
    wire.send(_ask(key, split.after.encode(), end, size))
    while True:
        before_it = wire.received
        (told,) = wire.receive(1)
        if is_other_type(told):
            raise no_stream(key.decode())
        reply: list[tuple[bytes, list[bytes]]] = good(told)
        ended = len(reply) < size or reply[-1][0] == end
        if not ended:
            fitting = BLOCK * size // max(wire.received - before_it, 1)
            size = max(1, min(fitting, size * 2, PAGE))
            wire.send(_ask(key, reply[-1][0], end, size))
        if reply:
            yield reply
        if ended:
            return


def _ask(key: bytes, after: bytes, end: bytes, size: int) -> bytes:
    return command(b"XRANGE", key, b"(" + after, end, b"COUNT", b"%d" % size)


def _marks(position: Position) -> dict[str, Mark]:
    return {key: Mark(**one) for key, one in position.items()}


def _position(marks: dict[str, Mark]) -> Position:
    return {key: mark.to_json() for key, mark in marks.items()}
