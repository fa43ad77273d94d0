"""Events, cut out of the bytes of a connection as these come, in large pieces.

A packet has three bytes of length and one of number; then there is a zero before an event, or an
error, or an end. See "Basic Packets" and "Binlog Event" in
https://dev.mysql.com/doc/dev/mysql-server/latest/.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, NamedTuple

import pymysql

READ = 1024 * 1024
LONGEST = 0xFFFFFF
"""Bytes of a packet behind which the event goes on."""

HEADER = 19
"""Bytes before an event's body: time, type, server, size, end, flags."""

EOF, ERROR = 0xFE, 0xFF


class Event(NamedTuple):
    """An event, where it lies in what has come.

    Attributes:
        kind: its type.
        at: where its body begins; its header lies before that.
        end: where it ends.
    """

    kind: int
    data: bytes
    at: int
    end: int

    @property
    def server(self) -> int:
        """The id of the server that logged it first."""
        return int.from_bytes(self.data[self.at - 14 : self.at - 10], "little")

    @property
    def seconds(self) -> int:
        """When its statement began, since 1970."""
        return int.from_bytes(self.data[self.at - 19 : self.at - 15], "little")


def events(connection: Any) -> Iterator[Event]:
    """The events that a server sends, until it says that there are no more.

    Raises:
        pymysql.MySQLError: the server says no, or the connection broke.
    """
    for data, start, stop in _packets(connection._rfile):
        first = data[start]
        if first == 0:
            yield Event(data[start + 5], data, start + 1 + HEADER, stop)
        elif first == EOF and stop - start < 9:
            return
        elif first == ERROR:
            pymysql.err.raise_mysql_exception(data[start:stop])


def inner(data: bytes) -> Iterator[Event]:
    """The events that lie one behind the other, as in a compressed transaction."""
    at = 0
    while at < len(data):
        size = int.from_bytes(data[at + 9 : at + 13], "little")
        yield Event(data[at + 4], data, at + HEADER, at + size)
        at += size


def _packets(stream: Any) -> Iterator[tuple[bytes, int, int]]:
    """Payloads: bytes, and where in them it begins and ends."""
    data, at = b"", 0
    while True:
        while at + 4 <= len(data):
            stop = at + 4 + int.from_bytes(data[at : at + 3], "little")
            if stop > len(data):
                data, at, stop = data[at:] + _exactly(stream, stop - len(data)), 0, stop - at
            if stop - at - 4 == LONGEST:
                data, at, stop = _whole(stream, data[at:])
            yield data, at + 4, stop
            at = stop
        data, at = data[at:] + _some(stream), 0


def _whole(stream: Any, data: bytes) -> tuple[bytes, int, int]:
    """A payload of several packets as if it were one: the bytes, and where it begins and ends."""
    parts, at, length = [data[: 4 + LONGEST]], 4 + LONGEST, LONGEST
    while length == LONGEST:
        data = _at_least(stream, data, at + 4)
        length = int.from_bytes(data[at : at + 3], "little")
        data = _at_least(stream, data, at + 4 + length)
        parts.append(data[at + 4 : at + 4 + length])
        at += 4 + length
    payload = b"".join(parts)
    return payload + data[at:], 0, len(payload)


def _at_least(stream: Any, data: bytes, size: int) -> bytes:
    return data + _exactly(stream, size - len(data)) if size > len(data) else data


def _some(stream: Any) -> bytes:
    try:
        found: bytes = stream.read1(READ)
    except OSError as error:
        raise pymysql.OperationalError(2013, f"no answer: {error}") from None
    return _require(found, 1)


def _exactly(stream: Any, size: int) -> bytes:
    try:
        found: bytes = stream.read(size)
    except OSError as error:
        raise pymysql.OperationalError(2013, f"no answer: {error}") from None
    return _require(found, size)


def _require(found: bytes, size: int) -> bytes:
    if len(found) < size:
        raise pymysql.OperationalError(2013, "the server closed the connection")
    return found
