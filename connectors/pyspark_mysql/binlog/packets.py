"""Receives the events that a server sends on a connection."""

from __future__ import annotations

import io
from collections.abc import Iterator, Sequence
from typing import Any, TypeAlias

import pymysql

from pyspark_mysql.binlog import short
from pyspark_mysql.binlog.events import (
    CHECKSUM,
    FORMAT,
    HEADER,
    OUTSIDE,
    Event,
    checksum_size,
    is_whole,
)
from pyspark_mysql.binlog.short import ShortRun
from sparkonce.errors import StoreRefused

RECEIVED = 256 * 1024
LONGEST_PACKET = 0xFFFFFF
"""The length of a packet whose payload continues in the next one."""

Received: TypeAlias = Event | ShortRun


def events(connection: Any) -> Iterator[Event]:
    """The events that a server sends, without checksums, until it ends the log or sends an error.

    Raises:
        StoreRefused: an event does not match its checksum.
    """
    return (one for one in received(connection, decode=False) if isinstance(one, Event))


def received(connection: Any, *, decode: bool = True) -> Iterator[Received]:
    """The same, or with `decode` runs of short transactions in place of their events.

    Raises:
        StoreRefused: an event does not match its checksum.
    """
    new, body, checksum = tuple.__new__, 1 + HEADER, 0
    try:
        for block, bounds in _blocks(connection._rfile.raw):
            runs = short.runs(block, bounds, checksum) if decode else {}
            number = 0
            while number < len(bounds) - 1:
                if run := runs.get(number):
                    yield run
                    number += run.packets
                    continue
                data = block[bounds[number] : bounds[number + 1] - 4]
                number += 1
                # The first byte is 0 before an event, 255 before an error, and 254 at the end.
                if data[0] == 0:
                    kind, end = data[5], len(data)
                    if kind == FORMAT:
                        checksum = checksum_size(data)
                    elif checksum and kind not in OUTSIDE:
                        end = _end_of_whole(data)
                    yield new(Event, (kind, data, body, end))
                elif data[0] == 0xFE and len(data) < 9:
                    return
                elif data[0] == 0xFF:
                    pymysql.err.raise_mysql_exception(data)
    except OSError as error:
        raise pymysql.OperationalError(2013, f"no reply: {error}") from None


def _blocks(stream: io.RawIOBase) -> Iterator[tuple[bytes, Sequence[int]]]:
    """Whole packets, where the payload of each begins, and where that of a further one would.

    A packet has 3 bytes of length, 1 of number, and the payload. A payload of the largest length
    continues in the next packet; such a payload is a block of its own, without these bytes.
    """
    # The client's buffer has 8 KiB; it is empty, because all other replies have been read.
    found = b""
    while True:
        bounds = _bounds(found)
        if len(bounds) > 1:
            yield found, bounds
            found = found[bounds[-1] - 4 :]
        elif _length(found) == LONGEST_PACKET:
            payload, found = _joined(stream, found)
            yield payload, (0, len(payload) + 4)
        else:
            found = _with_packet(stream, found)


def _bounds(found: bytes) -> list[int]:
    """The bounds of the whole packets at the start of these bytes, up to one of largest length."""
    at, size, bounds = 0, len(found), [4]
    while at + 4 <= size:
        length = found[at] | found[at + 1] << 8 | found[at + 2] << 16
        at += 4 + length
        if at > size or length == LONGEST_PACKET:
            break
        bounds.append(at + 4)
    return bounds


def _joined(stream: io.RawIOBase, found: bytes) -> tuple[bytes, bytes]:
    """The payload of several packets, and the bytes behind it."""
    parts, is_last = list[bytes](), False
    while not is_last:
        found = _with_packet(stream, found)
        is_last = _length(found) != LONGEST_PACKET
        end = 4 + _length(found)
        parts.append(found[4:end])
        found = found[end:]
    return b"".join(parts), found


def _length(found: bytes) -> int:
    """The length of the payload of the first packet."""
    return int.from_bytes(found[:3], "little")


def _with_packet(stream: io.RawIOBase, found: bytes) -> bytes:
    """These bytes and what has arrived since, so that they begin with a whole packet.

    Never waits for more than that.
    """
    if len(found) < 4:
        found += _received(stream, 4 - len(found))
    missing = 4 + _length(found) - len(found)
    return found + _received(stream, missing) if missing > 0 else found


def _received(stream: io.RawIOBase, least: int) -> bytes:
    """What has arrived, at least this many bytes. Never waits for more than these."""
    found = bytearray()
    while len(found) < least:
        more = stream.read(max(RECEIVED, least - len(found)))
        if not more:
            raise pymysql.OperationalError(2013, "the server closed the connection")
        found += more
    return bytes(found)


def _end_of_whole(data: bytes) -> int:
    """The end of an event's body; raises `StoreRefused` if it does not match its checksum."""
    end = len(data) - CHECKSUM
    if not is_whole(data, end):
        raise StoreRefused(
            "An event of the binary log does not match its checksum",
            why="the event was damaged on the server's disk or on the network",
            todo="check the log with mysqlbinlog --verify-binlog-checksum, or try again",
        )
    return end
