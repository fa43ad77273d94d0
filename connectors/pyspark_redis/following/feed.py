"""Streams as a feed: an epoch is what lies between two ids of each, and nothing of it is kept."""

from __future__ import annotations

import logging
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

import pyarrow as pa
import redis

from pyspark_redis.following.streams import Look, Mark, before, look, lost, walk
from pyspark_redis.reading.columns import Columns
from pyspark_redis.reading.forms import Rows
from pyspark_redis.reading.keys import Naming
from pyspark_redis.reading.places import Places
from pyspark_redis.reading.wire import Wire, command, good, is_other_type, opened
from pyspark_redis.server.failures import no_stream, translated
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

    unit = "rows"

    def __init__(self, places: Places, options: Options, wanted: Scan) -> None:
        self.places, self.options = places, options
        self.columns = Columns(wanted.schema, Naming(None, b""), "stream", "")

    def begin(self) -> Position:
        """See `Feed.begin`."""
        earliest = self.options[STARTS] == "earliest"
        looks = self._looks()
        return _position({key: one.earliest if earliest else one.end for key, one in looks.items()})

    def latest(self) -> Position:
        """See `Feed.latest`."""
        return _position({key: one.end for key, one in self._looks().items()})

    def advance(self, after: Position, goal: Position, most: int | None) -> Position:
        """See `Feed.advance`. Each stream has the share that it has of all that is not read."""
        if most is None:
            return goal
        begins, ends = self._begins(after, goal), _marks(goal)
        rows = {key: max(0, end.added - begins[key].added) for key, end in ends.items()}
        total = sum(rows.values())
        if total <= most:
            return goal
        with translated(READING):
            return _position(
                {
                    key: self._walk(key, begins[key], end, -(-most * rows[key] // total))
                    for key, end in ends.items()
                }
            )

    def between(self, after: Position, end: Position) -> Sequence[Range]:
        """See `Feed.between`."""
        begins = self._begins(after, end)
        with translated(READING):
            return [
                part
                for key, mark in _marks(end).items()
                for part in self._parts(key, begins[key], mark)
            ]

    def behind(self, after: Position, end: Position) -> int:
        """See `Feed.behind`."""
        begins = _marks(after)
        return sum(
            max(0, mark.added - begins.get(key, Mark()).added) for key, mark in _marks(end).items()
        )

    def read(self, split: Range) -> Iterator[pa.RecordBatch]:
        """See `Feed.read`."""
        found = 0
        with translated(READING), opened(self.places.holder(split.key.encode())) as wire:
            for rows in self._blocks(wire, split):
                found += len(rows.keys)
                yield self.columns.batch(rows)
        if split.many is not None and found != split.many:
            self._tell_loss(split.key, Mark(split.after), split.many - found)

    def _blocks(self, wire: Wire, split: Range) -> Iterator[Rows]:
        """The entries, in blocks; the next page is on its way while one is taken."""
        form, key = self.columns.form, split.key.encode()
        rows, began = Rows(form.columns), 0
        for reply in _pages(wire, key, split):
            form.take(key, reply, rows)
            if wire.received - began >= BLOCK:
                began = wire.received
                yield rows
                rows = Rows(form.columns)
        if rows.keys:
            yield rows

    def _looks(self) -> dict[str, Look]:
        with translated("looking at streams"):
            return {key: look(self._client(key), key) for key in self.options["streams"]}

    def _begins(self, after: Position, end: Position) -> dict[str, Mark]:
        """Where each stream is read on, where what lies behind that is there."""
        known, begins = _marks(after), {}
        with translated("looking at streams"):
            for key, mark in _marks(end).items():
                there = look(self._client(key), key)
                begin = known.get(key, there.earliest)
                gone = there.gone(begin)
                if before(mark.id, begin.id) or gone < 0:
                    gone = min(gone, -1)
                if gone:
                    self._tell_loss(key, begin, gone)
                    begin = there.earliest if gone < 0 else replace(begin, added=begin.added + gone)
                begins[key] = begin
        return begins

    def _walk(self, key: str, after: Mark, goal: Mark, most: int) -> Mark:
        return walk(self._client(key), key, after, goal, most) if most else after

    def _parts(self, key: str, begin: Mark, end: Mark) -> Iterator[Range]:
        """The splits of a stream, of about as many entries each."""
        rows = end.added - begin.added
        many = max(1, min(self.options["numPartitions"], rows // LARGE))
        while begin.id != end.id:
            to = end if many == 1 else self._walk(key, begin, end, -(-rows // many))
            yield Range(key, begin.id, to.id, to.added - begin.added)
            begin = to

    def _client(self, key: str) -> redis.Redis:
        return self.places.holder(key.encode())

    def _tell_loss(self, key: str, after: Mark, gone: int) -> None:
        """Raise or warn, as option ``failOnDataLoss`` says."""
        error = lost(key, after, gone)
        if self.options["failOnDataLoss"]:
            raise error
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
        ended = len(reply) < size
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
