"""Keys as a source: splits by slots, and the rows of each."""

from __future__ import annotations

import logging
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from itertools import accumulate

import pyarrow as pa
import redis

from pyspark_redis.read.columns import Columns
from pyspark_redis.read.forms import BEGIN, Form, Rows
from pyspark_redis.read.keys import fitted, naming
from pyspark_redis.read.places import READING, Places
from pyspark_redis.read.scan import ALL, Part, Scan
from pyspark_redis.read.wire import Wire, command, good, is_other_type, is_refusal, opened
from pyspark_redis.server.failures import translated
from sparkonce.errors import StoreRefused
from sparkonce.options import Options
from sparkonce.reading import Scan as Wanted

log = logging.getLogger("sparkonce")

AT_ONCE = 500
"""Keys that are asked for at once, if what lies under them is small."""

BLOCK = 4 * 1024 * 1024
"""Bytes of replies that are asked for at once, by what those before had; and of a batch."""

ROWS = 10_000
"""Rows of a batch."""

ELEMENTS = 20_000
"""Most elements that are asked for at once, of several keys: some milliseconds of the server.

It finishes all that it was asked for, also where nobody waits any more.
"""


class RedisSource:
    """See `sparkonce.reading.Source`.

    Args:
        places: where the keys lie.
        options: as parsed.
        wanted: what is asked for.
        own: what the connector's own keys begin with.
    """

    def __init__(
        self, places: Places, options: Options, wanted: Wanted, own: Sequence[bytes]
    ) -> None:
        self.places, self.options, self.wanted = places, options, wanted
        self.naming = fitted(naming(options), wanted.schema)
        score = options["scoreColumn"]
        self.columns = Columns(wanted.schema, self.naming, options["model"], score)
        self.scan = Scan(self.naming.pattern, own, places.place)

    def splits(self) -> Sequence[Part]:
        """See `Source.splits`. By slots, or one of the keys that conditions name."""
        named = self.naming.named(self.wanted.filters, self.wanted.schema)
        if named is not None:
            return [Part(ALL, tuple(key for key in named if not self.scan.is_own(key)))]
        with translated("planning a read"):
            return [*self.places.splits(self.options["numPartitions"])]

    def read(self, split: Part) -> Iterator[pa.RecordBatch]:
        """See `Source.read`. What is of another type, or goes away meanwhile, gives no row."""
        with translated(READING):
            for client, part in self.places.servers(split):
                with opened(client) as wire:
                    yield from self._read(wire, part)

    def _read(self, wire: Wire, part: Part) -> Iterator[pa.RecordBatch]:
        fetch = _Fetch(wire, self.columns.form)
        blocks = self.scan.keys(wire, part.ranges) if part.keys is None else [[*part.keys]]
        for keys in blocks:
            for rows in fetch.all(keys):
                yield from map(self.columns.batch, rows.pieces(ROWS))
        yield from map(self.columns.batch, fetch.rows.pieces(ROWS))
        if fetch.others:
            log.warning(
                "%d keys that match %s hold another type than a %s, and are passed over",
                *(fetch.others, self.scan.pattern.decode(), self.options["model"]),
            )


class _Fetch:
    """Asks for what lies under keys.

    Attributes:
        rows: that came, and are no batch yet.
        others: keys of another type.
    """

    def __init__(self, wire: Wire, form: Form) -> None:
        self.wire, self.form = wire, form
        self.rows, self.others = Rows(form.columns), 0
        self._began, self._size = 0, AT_ONCE // 10

    def all(self, keys: Sequence[bytes]) -> Iterator[Rows]:
        """Ask for keys, block by block; give rows whenever they are enough for a batch."""
        pending = [(key, BEGIN) for key in keys]
        while pending:
            many, elements = self._fitting([key for key, _ in pending[: self._size]])
            block, pending = pending[:many], pending[many:]
            with _not_again(block[0][0], elements):
                pending += self._block(block)
            if len(self.rows.keys) >= ROWS or self.wire.received - self._began >= BLOCK:
                full, self.rows = self.rows, Rows(self.form.columns)
                self._began = self.wire.received
                yield full

    def _fitting(self, keys: Sequence[bytes]) -> tuple[int, int]:
        """How many of these keys have few enough elements for one block, and those of the first.

        It is at least one.
        """
        if not self.form.count:
            return len(keys), 0
        asked = b"".join([command(self.form.count, key) for key in keys])
        told = self.wire.ask(asked, len(keys))
        counts = [one if isinstance(one, int) else 0 for one in told]
        return max(1, sum(so_far <= ELEMENTS for so_far in accumulate(counts))), counts[0]

    def _block(self, block: Sequence[tuple[bytes, bytes]]) -> list[tuple[bytes, bytes]]:
        """Take the rows of some keys; gives those of which there is more to ask for."""
        before = self.wire.received
        asked = b"".join([self.form.ask(key, begin) for key, begin in block])
        replies = self.wire.ask(asked, len(block))
        keys = [key for key, _ in block]
        if any(map(is_refusal, replies)):
            others = [is_other_type(reply) for reply in replies]
            keys = [key for key, other in zip(keys, others, strict=True) if not other]
            replies = [good(one) for one, other in zip(replies, others, strict=True) if not other]
            self.others += sum(others)
        more = [*self.form.take_all(keys, replies, self.rows)]
        self._settle()
        fitting = BLOCK * len(block) // max(self.wire.received - before, 1)
        self._size = max(1, min(fitting, self._size * 2, AT_ONCE))
        return more

    def _settle(self) -> None:
        """A hash of which no field was found is a row, if it is still there."""
        doubtful, rows = self.rows.doubtful, self.rows
        if not doubtful:
            return
        asked = b"".join(command(b"TYPE", key) for key in doubtful)
        for key, kind in zip(doubtful, self.wire.ask(asked, len(doubtful)), strict=True):
            if good(kind) == self.form.kind:
                rows.keys.append(key)
                for values in rows.columns.values():
                    values.append(None)
        doubtful.clear()


@contextmanager
def _not_again(key: bytes, elements: int) -> Iterator[None]:
    """Ask no more for a key that takes too long: the server would read it each time, to the end.

    Raises:
        StoreRefused: it has many elements, and they have not come in time.
    """
    try:
        yield
    except redis.TimeoutError:
        if elements <= ELEMENTS:
            raise
        raise StoreRefused(
            f"Key {key!r} has {elements} elements, which have not come within option timeout",
            why="one command gives all of them, in which the server does nothing else",
            todo="raise option timeout, or leave the key out by option key or keyPattern",
        ) from None
