"""Keys as a source: splits by slots, and the rows of each."""

from __future__ import annotations

import logging
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from itertools import accumulate, compress

import pyarrow as pa
import redis

from pyspark_redis.read.columns import Columns
from pyspark_redis.read.keys import key_pattern
from pyspark_redis.read.models import BEGIN, KeyRows, ModelReader
from pyspark_redis.read.servers import ALL, READING, KeyScan, KeySplit, Servers
from pyspark_redis.read.wire import Wire, command, good, is_other_type, is_refusal, opened
from pyspark_redis.server.failures import translated
from pyspark_redis.target.keys import begins
from sparkonce.errors import StoreRefused
from sparkonce.options import Options
from sparkonce.reading import Scan

log = logging.getLogger("sparkonce")

AT_ONCE = 500  # the most keys in one round trip, if their values are small

BLOCK = 4 * 1024 * 1024
"""Bytes of replies in one round trip, estimated from earlier replies; also bytes of a batch."""

ROWS = 10_000  # rows of a batch

ELEMENTS = 20_000
"""The most elements of several keys in one round trip: some milliseconds of the server.

The server completes each command, even if the client has stopped waiting.
"""


class RedisSource:
    """See `sparkonce.reading.Source`."""

    def __init__(self, servers: Servers, options: Options, wanted: Scan) -> None:
        self.servers, self.options, self.wanted = servers, options, wanted
        self.pattern = key_pattern(options).fitted(wanted.schema)
        score = options["scoreColumn"]
        self.columns = Columns(wanted.schema, self.pattern, options["model"], score)
        own = begins(options["keyPrefix"])
        self.scan = KeyScan(self.pattern.pattern, own, servers.place)

    def splits(self) -> Sequence[KeySplit]:
        """See `Source.splits`. Ranges of slots, or one split of the keys that conditions name."""
        named = self.pattern.named(self.wanted.filters, self.wanted.schema)
        if named is not None:
            return [KeySplit(ALL, tuple(key for key in named if not self.scan.is_own(key)))]
        with translated("planning a read"):
            return [*self.servers.splits(self.options["numPartitions"])]

    def read(self, split: KeySplit) -> Iterator[pa.RecordBatch]:
        """See `Source.read`. Keys of another type, and keys removed meanwhile, yield no row."""
        with translated(READING):
            for client, part in self.servers.of(split):
                with opened(client) as wire:
                    yield from self._read(wire, part)

    def _read(self, wire: Wire, part: KeySplit) -> Iterator[pa.RecordBatch]:
        fetch = _Fetch(wire, self.columns.reader)
        blocks = self.scan.keys(wire, part.ranges) if part.keys is None else [[*part.keys]]
        for keys in blocks:
            for rows in fetch.all(keys):
                yield from map(self.columns.batch, rows.pieces(ROWS))
        yield from map(self.columns.batch, fetch.rows.pieces(ROWS))
        if fetch.others:
            log.warning(
                "Skipped %d keys that match %s and hold another type than a %s",
                *(fetch.others, self.scan.pattern.decode(), self.columns.reader.kind.decode()),
            )


class _Fetch:
    """Reads the values of keys."""

    def __init__(self, wire: Wire, reader: ModelReader) -> None:
        self.wire, self.reader = wire, reader
        self.rows = KeyRows(reader.columns)  # received rows that are not in a batch yet
        self.others = 0  # keys of another type
        self._began, self._size = 0, AT_ONCE // 10

    def all(self, keys: Sequence[bytes]) -> Iterator[KeyRows]:
        """Read keys, block by block; yield rows whenever they fill a batch."""
        pending = [(key, BEGIN) for key in keys]
        while pending:
            many, elements = self._fitting([key for key, _ in pending[: self._size]])
            block, pending = pending[:many], pending[many:]
            with _not_again(block[0][0], elements):
                pending += self._block(block)
            if len(self.rows.keys) >= ROWS or self.wire.received - self._began >= BLOCK:
                full, self.rows = self.rows, KeyRows(self.reader.columns)
                self._began = self.wire.received
                yield full

    def _fitting(self, keys: Sequence[bytes]) -> tuple[int, int]:
        """The number of keys in the next block, at least one; the elements of the first key."""
        if not self.reader.count:
            return len(keys), 0
        replies = self.wire.ask([command(self.reader.count, key) for key in keys])
        counts = [one if isinstance(one, int) else 0 for one in replies]
        return max(1, sum(so_far <= ELEMENTS for so_far in accumulate(counts))), counts[0]

    def _block(self, block: Sequence[tuple[bytes, bytes]]) -> list[tuple[bytes, bytes]]:
        """Read the rows of a block of keys; return the keys with more rows."""
        before = self.wire.received
        replies = self.wire.ask([self.reader.ask(key, begin) for key, begin in block])
        keys = [key for key, _ in block]
        if any(map(is_refusal, replies)):
            fit = [not is_other_type(reply) for reply in replies]
            keys, replies = [*compress(keys, fit)], [*map(good, compress(replies, fit))]
            self.others += fit.count(False)
        more = [*self.reader.take_all(keys, replies, self.rows)]
        self._settle()
        fitting = BLOCK * len(block) // max(self.wire.received - before, 1)
        self._size = max(1, min(fitting, self._size * 2, AT_ONCE))
        return more

    def _settle(self) -> None:
        """Add a row of nulls for each hash that exists but has none of the fields."""
        rows = self.rows
        if rows.doubtful:
            kinds = self.wire.ask([command(b"TYPE", key) for key in rows.doubtful])
            there = [good(kind) == self.reader.kind for kind in kinds]
            rows.keys += compress(rows.doubtful, there)
            for values in rows.columns.values():
                values.extend([None] * sum(there))
            rows.doubtful.clear()


@contextmanager
def _not_again(key: bytes, elements: int) -> Iterator[None]:
    """Do not retry a key that takes too long: the server would read all of it each time."""
    try:
        yield
    except redis.TimeoutError:
        if elements <= ELEMENTS:
            raise
        raise StoreRefused(
            f"Key {key!r} has {elements} elements, which did not arrive within option timeout",
            why="one command returns all of them, and blocks the server meanwhile",
            todo="raise option timeout, or exclude the key by option key or keyPattern",
        ) from None
