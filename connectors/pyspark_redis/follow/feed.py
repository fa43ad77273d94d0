"""Streams as a feed: an epoch is a range of ids in each stream; the source keeps no entries."""

from __future__ import annotations

import logging
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass

import pyarrow as pa

from pyspark_redis.follow.streams import NOTHING, FollowedStream, Look, Mark, before, lost
from pyspark_redis.read.columns import Columns
from pyspark_redis.read.keys import KeyPattern, require_no_pattern
from pyspark_redis.read.models import KeyRows
from pyspark_redis.read.servers import Servers
from pyspark_redis.read.wire import Wire, command, good, is_other_type, opened
from pyspark_redis.server.failures import no_stream, translated
from sparkonce.errors import StoreUnreachable, UnreadLost
from sparkonce.options import Options
from sparkonce.reading import STARTS, Position, Scan

log = logging.getLogger("sparkonce")

READING = "reading a stream"

BLOCK = 4 * 1024 * 1024  # bytes of replies in a batch
PAGE = 1000  # the most entries in one command: about a millisecond of the server's time
LARGE = 50_000  # entries of a split, if the stream has more than one


@dataclass(frozen=True)
class EntryRange:
    """A split: the entries of a stream after one id, up to another."""

    key: str
    after: str
    end: str
    many: int  # the number of entries when the split was planned


class RedisFeed:
    """See `sparkonce.reading.Feed`."""

    unit, of = "rows", "streams of Redis"

    def __init__(self, servers: Servers, options: Options, wanted: Scan) -> None:
        self.servers, self.options = servers, options
        self.columns = Columns(wanted.schema, KeyPattern(None, b""), "stream", "")
        self._warned = set[str]()

    def begin(self) -> Position:
        """See `Feed.begin`."""
        earliest = self.options[STARTS] == "earliest"
        looks = self._looks()
        for key, one in looks.items():
            if one is NOTHING:
                log.warning("Stream %r does not exist yet; the query waits for it", key)
        return _position({key: one.earliest if earliest else one.end for key, one in looks.items()})

    def latest(self) -> Position:
        """See `Feed.latest`."""
        return _position({key: one.end for key, one in self._looks().items()})

    def advance(self, after: Position, goal: Position, most: int | None) -> Position:
        """See `Feed.advance`. Each stream's share of `most` is its share of the unread entries.

        If option ``streams`` names a new stream, this epoch only records the stream's position.
        Later epochs and replays compare the stream with that position.
        """
        known = _marks(after)
        if new := goal.keys() - known.keys():
            looks = self._looks()
            return _position({**known, **{key: looks[key].earliest for key in new}})
        if most is None:
            return self.passed(after, goal)
        begins = self._begins(after, goal)
        ends = {key: end.later(begins[key]) for key, end in _marks(goal).items()}
        rows = {key: max(0, end.added - begins[key].added) for key, end in ends.items()}
        total = sum(rows.values())
        if total > most:
            with translated(READING):
                for key, end in ends.items():
                    share = -(-most * rows[key] // total)
                    ends[key] = self._stream(key).walk(begins[key], end, share)
        return {**after, **_position(ends)}

    def passed(self, after: Position, goal: Position) -> Position:
        """See `Feed.passed`. Streams that are no longer named keep their position."""
        known = _marks(after)
        ends = {key: end.later(known.get(key, end)) for key, end in _marks(goal).items()}
        return {**after, **_position(ends)}

    def between(self, after: Position, end: Position) -> Sequence[EntryRange]:
        """See `Feed.between`."""
        for key in after.keys() - end.keys():
            log.warning(
                "Option streams no longer names stream %r. If it names the stream again, the query"
                " reads it from its beginning. Why: Spark before 4.2 does not report the position"
                " of a query, so the position is lost. What to do: keep the stream in option"
                " streams, or use Spark 4.2",
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

    def read(self, split: EntryRange) -> Iterator[pa.RecordBatch]:
        """See `Feed.read`."""
        found = Mark(split.after)
        with translated(READING), opened(self.servers.holder(split.key.encode())) as wire:
            for upto, rows in self._blocks(wire, split):
                found = upto
                yield self.columns.batch(rows)
        if found != Mark(split.end, split.many):
            self._report_loss(lost(split.key, Mark(split.after), split.many - found.added or -1))

    def _blocks(self, wire: Wire, split: EntryRange) -> Iterator[tuple[Mark, KeyRows]]:
        """The entries in blocks, each with its last id and the number of entries up to that id.

        The next page is in flight while the caller takes one.
        """
        reader, key = self.columns.reader, split.key.encode()
        rows, began, found = KeyRows(reader.columns), 0, Mark(split.after)
        skipped = {id_ for stream, id_ in self.options["skipEntries"] or () if stream == key}
        for reply in _pages(wire, key, split):
            found = Mark(reply[-1][0].decode(), found.added + len(reply))
            reader.take(key, [one for one in reply if one[0] not in skipped], rows)
            if wire.received - began >= BLOCK:
                began = wire.received
                yield found, rows
                rows = KeyRows(reader.columns)
        yield found, rows

    def _looks(self) -> dict[str, Look]:
        with translated("reading the state of streams"):
            looks = {key: self._stream(key).look() for key in self.options["streams"]}
        for key, one in looks.items():
            if one is NOTHING:
                require_no_pattern(key)
        return looks

    def _begins(self, after: Position, end: Position) -> dict[str, Mark]:
        """Where each stream continues; reports the loss of entries after that position."""
        known, begins = _marks(after), {}
        with translated("reading the state of streams"):
            for key, mark in _marks(end).items():
                begins[key] = mark if known.get(key) == mark else self._begin(key, known.get(key))
        return begins

    def _begin(self, key: str, after: Mark | None) -> Mark:
        stream = self._stream(key)
        there = stream.look()
        if after is None:  # Spark before 4.2 does not report the start of the range
            return there.earliest
        if error := stream.loss(there, after):
            self._report_loss(error)
            return stream.rest(there, after)
        return after

    def _parts(self, key: str, begin: Mark, end: Mark) -> Iterator[EntryRange]:
        """The splits of a stream, each with about the same number of entries."""
        rows = end.added - begin.added
        many = max(1, min(self.options["numPartitions"], rows // LARGE))
        while before(begin.id, end.id):
            to = end if many == 1 else self._stream(key).walk(begin, end, -(-rows // many))
            yield EntryRange(key, begin.id, to.id, to.added - begin.added)
            begin = to

    def _stream(self, key: str) -> FollowedStream:
        return FollowedStream(self.servers.holder(key.encode()), key)

    def _report_loss(self, error: UnreadLost | StoreUnreachable) -> None:
        """Raise, or warn once, as option ``failOnDataLoss`` says."""
        if self.options["failOnDataLoss"]:
            raise error
        if str(error) not in self._warned:
            self._warned.add(str(error))
            log.warning("%s", error)


def _pages(wire: Wire, key: bytes, split: EntryRange) -> Iterator[list[tuple[bytes, list[bytes]]]]:
    end, size = split.end.encode(), PAGE // 10
    wire.send(_ask(key, split.after.encode(), end, size))
    while True:
        began = wire.received
        (answer,) = wire.receive(1)
        if is_other_type(answer):
            raise no_stream(key.decode())
        reply: list[tuple[bytes, list[bytes]]] = good(answer)
        ended = len(reply) < size or reply[-1][0] == end
        if not ended:
            fitting = BLOCK * size // max(wire.received - began, 1)
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
    return {key: asdict(mark) for key, mark in marks.items()}
