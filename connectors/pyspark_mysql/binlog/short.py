"""Decodes short transactions, which have one event of rows, many together.

Applications write mostly these. A server sends each as five packets (MySQL) or four (MariaDB), and
to decode them one by one takes most of the time of a read. numpy decodes those of a whole block.
See `events` for the layouts.
"""

from __future__ import annotations

import zlib
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import repeat
from typing import NamedTuple

import numpy as np

from pyspark_mysql.binlog import events
from pyspark_mysql.binlog.events import HEADER, Event, TransactionBegin
from pyspark_mysql.binlog.gtids import DomainGtid, TaggedGtid
from pyspark_mysql.binlog.images import ByteBuffer, Numbers

FEWEST = 40
"""The number of packets of a block for which numpy is faster."""

OF_MYSQL = (events.GTID, events.QUERY, events.TABLE_MAP, (30, 32), events.XID)
OF_MARIADB = (events.MARIADB_GTID, events.TABLE_MAP, (23, 25), events.XID)
"""The kinds of a transaction's events; those of rows from the first to the last."""

BODY = 1 + HEADER  # behind a zero and the header
BEGIN = np.frombuffer(b"BEGIN", np.uint8)


class ShortTransaction(NamedTuple):
    """A transaction whose rows all belong to one table and have one operation."""

    begin: TransactionBegin
    at: int  # its offset in its file
    table: bytes  # the body of its TABLE_MAP_EVENT, behind the table's number and flags
    rows: Event


def runs(block: bytes, bounds: Sequence[int], checksum: int) -> dict[int, ShortRun]:
    """The short transactions of a block of packets, by the number of the first packet of each run.

    Args:
        block: whole packets, one after the other.
        bounds: where the payload of each begins, and where that of a further one would.
        checksum: the number of bytes behind each event's body.
    """
    if len(bounds) <= FEWEST:
        return {}
    packets = _Packets(block, np.array(bounds), checksum)
    if (packets.kinds == events.FORMAT).any():  # checksums may change with it
        return {}
    found = dict[int, ShortRun]()
    for form, fits, transactions in FORMS:
        first = packets.sequences(form)
        first = first[fits(packets, first) & packets.same_table(first + len(form) - 3)]
        breaks = np.nonzero(np.diff(first) != len(form))[0] + 1
        for run in np.split(first, breaks) if len(first) else ():
            found[int(run[0])] = ShortRun(packets, run, len(form) * len(run), transactions)
    return found


@dataclass
class _Packets:
    """The packets of a block, and the kinds of their events."""

    block: bytes
    bounds: Numbers
    checksum: int

    def __post_init__(self) -> None:
        self.buffer = ByteBuffer(self.block)
        self.at, self.end = self.bounds[:-1], self.bounds[1:] - 4
        # The first byte is 0 before an event; an error or the end may be shorter.
        is_event = self.end - self.at >= BODY + self.checksum
        is_event &= self.buffer.little(self.at, 1) == 0
        self.kinds = np.where(is_event, self.buffer.little(self.at + 5 * is_event, 1), -1)

    def sequences(self, form: Sequence[int | tuple[int, int]]) -> Numbers:
        """The first packets of transactions of a form that match their checksums."""
        last = max(len(self.kinds) - len(form) + 1, 0)
        fits = np.ones(last, bool)
        for place, kind in enumerate(form):
            low, high = kind if isinstance(kind, tuple) else (kind, kind)
            found = self.kinds[place : place + last]
            fits &= (found >= low) & (found <= high)
        first = np.nonzero(fits)[0]
        return first[self._are_whole(first, len(form))] if self.checksum else first

    def _are_whole(self, first: Numbers, count: int) -> Numbers:
        which = (first[:, None] + np.arange(count)).ravel()
        at, end = self.at[which] + 1, self.end[which] - self.checksum
        block, crc = self.block, zlib.crc32
        spans = zip(at.tolist(), end.tolist(), strict=True)
        made = np.array([crc(block[low:high]) for low, high in spans], np.int64)
        differs = made != self.buffer.little(end, 4)
        whole: Numbers = ~differs.reshape(-1, count).any(axis=1)
        return whole

    def same_table(self, which: Numbers) -> Numbers:
        """Whether rows name the table of the TABLE_MAP_EVENT before them."""
        tables, rows = (self.buffer.little(self.at[one] + BODY, 6) for one in (which, which + 1))
        same: Numbers = tables == rows
        return same

    def bodies(self, which: Numbers) -> Iterable[tuple[int, int]]:
        """Where the body of each event begins, and where it ends."""
        at, end = self.at[which] + BODY, self.end[which] - self.checksum
        return zip(at.tolist(), end.tolist(), strict=True)


@dataclass(frozen=True)
class ShortRun:
    """Short transactions that follow each other. Each iteration decodes them anew."""

    block: _Packets
    first: Numbers  # the number of the first packet of each
    packets: int
    decode: Callable[[_Packets, Numbers], Iterator[ShortTransaction]]

    def __iter__(self) -> Iterator[ShortTransaction]:
        # Not a list: the garbage collector would visit each of its elements, many times.
        return self.decode(self.block, self.first)

    def last(self) -> dict[int, str]:
        """The last transaction of each domain (MariaDB)."""
        first = self.first[::-1]
        domains = self.block.buffer.little(self.block.at[first] + BODY + 8, 4)
        _, places = np.unique(domains, return_index=True)
        last = (one.begin.gtid for one in self.decode(self.block, first[places]))
        return {one.domain: str(one) for one in last if isinstance(one, DomainGtid)}


def _fits_mysql(packets: _Packets, first: Numbers) -> Numbers:
    """Whether the packets are all of the transaction, and its statement is BEGIN."""
    count = len(OF_MYSQL)
    _, size = _times_and_sizes(packets.buffer, packets.at[first] + BODY)
    # Each packet has 4 bytes before its payload, and a zero before the event.
    fits = size == packets.bounds[first + count] - packets.bounds[first] - 5 * count
    which = first + 1  # see `events.is_begin`
    buffer, at = packets.buffer, packets.at[which] + BODY
    text = at + 14 + buffer.little(at + 8, 1) + buffer.little(at + 11, 2)
    fits &= packets.end[which] - packets.checksum - text == len(BEGIN)
    differs = buffer.bytes_at(np.where(fits, text, at), len(BEGIN)) != BEGIN
    whole: Numbers = fits & ~differs.any(axis=1)
    return whole


def _times_and_sizes(buffer: ByteBuffer, begin: Numbers) -> tuple[Numbers, Numbers]:
    """The time of each transaction, and its number of bytes. See `events.BEGINS`."""
    micros, given = buffer.little(begin + 42, 7), buffer.little(begin + 49, 7)
    has_given = micros >> 55
    micros = np.where(has_given & (given > 0), given, micros) & ((1 << 55) - 1)
    at = begin + 49 + 7 * has_given
    code = buffer.little(at, 1)
    longer = [code == 0xFC, code == 0xFD, code > 0xFA]
    sizes = np.select(longer, [buffer.little(at + 1, 2), buffer.little(at + 1, 3), 0], code)
    return micros, sizes


def _of_mysql(packets: _Packets, first: Numbers) -> Iterator[ShortTransaction]:
    buffer, begin = packets.buffer, packets.at[first] + BODY
    numbers, (micros, sizes) = buffer.little(begin + 17, 8), _times_and_sizes(buffer, begin)
    new, block = tuple.__new__, packets.block
    gtids = (
        new(TaggedGtid, (block[at + 1 : at + 17], "", number))
        for at, number in zip(begin.tolist(), numbers.tolist(), strict=True)
    )
    found = zip(gtids, micros.tolist(), sizes.tolist(), repeat(False), repeat(True))
    return _transactions(packets, first, (new(TransactionBegin, one) for one in found), 2)


def _fits_mariadb(packets: _Packets, first: Numbers) -> Numbers:
    flags = packets.buffer.little(packets.at[first] + BODY + 12, 1)
    fits: Numbers = flags & events.STANDALONE == 0
    return fits


def _of_mariadb(packets: _Packets, first: Numbers) -> Iterator[ShortTransaction]:
    buffer, begin = packets.buffer, packets.at[first] + BODY
    domains, servers = buffer.little(begin + 8, 4), buffer.little(begin - 14, 4)
    numbers, seconds = buffer.exact(begin, "<u8"), buffer.little(begin - 19, 4)
    gtids = map(DomainGtid, domains.tolist(), servers.tolist(), numbers.tolist())
    undone = (buffer.little(begin + 12, 1) & events.TRANSACTIONAL > 0).tolist()
    times = (seconds * 1_000_000).tolist()
    begins = map(TransactionBegin, gtids, times, repeat(0), repeat(False), undone)
    return _transactions(packets, first, begins, 1)


def _transactions(
    packets: _Packets, first: Numbers, begins: Iterable[TransactionBegin], table: int
) -> Iterator[ShortTransaction]:
    """The transactions, whose table map is packet number `table`, and whose rows are the next."""
    new, block, at = tuple.__new__, packets.block, packets.at[first]
    offsets = packets.buffer.little(at + BODY - 6, 4) - (packets.end[first] - at - 1)
    kinds = packets.kinds[first + table + 1].tolist()
    tables, rows = packets.bodies(first + table), packets.bodies(first + table + 1)
    each = zip(begins, offsets.tolist(), tables, kinds, rows, strict=True)
    for begin, offset, (low, high), kind, (start, end) in each:
        event = new(Event, (kind, block, start, end))
        yield new(ShortTransaction, (begin, offset, block[low + 8 : high], event))


FORMS = ((OF_MYSQL, _fits_mysql, _of_mysql), (OF_MARIADB, _fits_mariadb, _of_mariadb))
