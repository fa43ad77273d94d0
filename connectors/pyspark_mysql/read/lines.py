"""Rows of one text each, from the wire, without a Python object for a row.

A packet has three bytes of length and one of number; a text of less than 251 bytes has one byte of
length before it, and a longer one three, four or nine. See "Text Resultset" in
https://dev.mysql.com/doc/dev/mysql-server/latest/page_protocol_com_query_response.html
"""

from __future__ import annotations

from collections.abc import Generator, Iterator
from typing import Any

import pymysql
from pymysql.constants import COMMAND

from pyspark_mysql.server.client import Session
from pyspark_mysql.server.failures import Kind, is_late, known, too_slow

BLOCK = 4 * 1024 * 1024
"""Bytes of text that are given at a time, if no row has more."""

READ = 256 * 1024
LONGEST = 0xFFFFFF
"""Bytes of a packet behind which the row goes on."""

NULL, EOF, ERROR = 0xFB, 0xFE, 0xFF
BEFORE = {0xFC: 3, 0xFD: 4, 0xFE: 9}
"""Bytes before a text, by its first byte."""


class TooLongError(Exception):
    """The server makes null of a text that is longer than its ``max_allowed_packet``."""


def lines(session: Session, sql: str) -> Generator[bytes, None, None]:
    """The rows of a statement of one column, as blocks of lines.

    Where they are not wanted any more the server ends the statement.

    Args:
        session: sends it, within a block of `Session.connected`.
        sql: the statement.

    Raises:
        pymysql.MySQLError: the statement failed, or the connection broke.
        StoreRefused: no row came within option ``timeout``.
        TooLongError: a row is longer than the server sends.
    """
    with session.connected() as live:
        try:
            _send(live.connection, sql)
            yield from _blocks(live.connection)
        except pymysql.MySQLError as error:
            if known(error).kind is not Kind.LOST:  # the statement is over
                live.drop()
                raise
            if session.give_up(live) and is_late(error):
                raise too_slow(session.access.timeout) from None
            raise
        except BaseException:  # rows may be on their way still
            session.give_up(live)
            raise


def _send(connection: Any, sql: str) -> None:
    connection._execute_command(COMMAND.COM_QUERY, sql)
    columns = connection._read_packet().read_length_encoded_integer()
    for _ in range(columns + 1):  # what describes them, and an end
        connection._read_packet()


def _blocks(connection: Any) -> Iterator[bytes]:
    walk = _Walk()
    while not walk.ended:
        try:
            data = connection._rfile.read1(READ)
        except OSError as error:
            raise pymysql.OperationalError(2013, f"no answer: {error}") from error
        if not data:
            raise pymysql.OperationalError(2013, "the server closed the connection")
        walk.take(data)
        if walk.size > BLOCK:
            yield walk.block()
    if walk.size:
        yield walk.block()
    if walk.error:
        pymysql.err.raise_mysql_exception(walk.error)


class _Walk:
    """Texts of rows, cut out of packets as these come in."""

    def __init__(self) -> None:
        self.ended, self.size, self.error = False, 0, b""
        self._rest, self._texts = b"", list[bytes]()
        self._long: list[bytes] = []  # pieces of a row of several packets

    def take(self, data: bytes) -> None:
        """Take what has come."""
        data = self._rest + data
        at, end, texts = 0, len(data), self._texts
        while at + 4 < end:
            length = data[at] | data[at + 1] << 8 | data[at + 2] << 16
            start, stop = at + 4, at + 4 + length
            if stop > end:
                break
            first = data[start]
            if length == LONGEST or self._long or first > 250:
                self._odd(data[start:stop])
                if self.ended:
                    break
            else:
                texts.append(data[start + 1 : stop])
                self.size += length
            at = stop
        self._rest = data[at:]

    def block(self) -> bytes:
        """All lines so far."""
        found = b"\n".join(self._texts) + b"\n"
        self._texts.clear()
        self.size = 0
        return found

    def _odd(self, packet: bytes) -> None:
        if self._long or len(packet) == LONGEST:
            self._long.append(packet)
            if len(packet) == LONGEST:
                return
            packet = b"".join(self._long)
            self._long.clear()
        elif packet[0] == ERROR:
            self.ended, self.error = True, packet
            return
        elif packet[0] == EOF and len(packet) < 9:
            self.ended = True
            return
        elif packet[0] == NULL:
            raise TooLongError
        self._texts.append(packet[BEFORE.get(packet[0], 1) :])
        self.size += len(packet)
