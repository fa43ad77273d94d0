"""Rows as lines of CSV: reads them from the packets of a connection, and parses them to Arrow.

Of each row only its line becomes a Python object. See "Text Resultset" in
https://dev.mysql.com/doc/dev/mysql-server/latest/page_protocol_com_query_response.html
"""

from __future__ import annotations

import re
from collections.abc import Generator, Iterable, Iterator, Sequence
from contextlib import closing
from typing import Any

import pyarrow as pa
import pymysql
from pyarrow import csv
from pymysql.constants import COMMAND

from pyspark_mysql.read.columns import WireForm
from pyspark_mysql.server.client import MySqlSession
from pyspark_mysql.server.failures import failure_of, is_late, too_slow
from sparkonce.errors import FailureKind, ValueUnreadable
from sparkonce.values.spark_types import spark_type

BLOCK = 4 * 1024 * 1024
"""Bytes of text in a block, unless a single row has more."""

WRITE_SECONDS = 3600
"""How long the server keeps rows, or events, for a task that does not read them."""

RECEIVED = 256 * 1024
LONGEST_PACKET = 0xFFFFFF
NULL, EOF, ERROR = 0xFB, 0xFE, 0xFF
BEFORE = {0xFC: 3, 0xFD: 4, 0xFE: 9}
"""Bytes before a text of 251 bytes or more, by its first byte; one byte before a shorter text."""

WHERE = re.compile(r"CSV column #(\d+)")
"""Arrow's name of the column of a value, counted from 0."""


def rows(
    session: MySqlSession, forms: Sequence[WireForm], relation: str, where: str, schema: pa.Schema
) -> Generator[pa.RecordBatch, None, None]:
    """The rows of a relation as batches of a schema, on the connection of the block.

    Raises:
        StoreRefused: no row arrived within option ``timeout``.
        ValueUnreadable: a row is longer than the server sends, or a value is invalid for its type.
    """
    # Closed here, or the connection would return to its pool in the middle of a reply.
    with closing(_lines(session, _select(forms, relation, where))) as blocks:
        yield from _batches(blocks, forms, schema)


def _select(forms: Sequence[WireForm], relation: str, where: str) -> str:
    """A statement that returns each row as one text: its line."""
    # A null is the empty string, and a text is in quotes. The server replaces a value that is too
    # long by null, which makes the line null: so nothing else may be null.
    texts = ", ',', ".join(f"IF({one.column} IS NULL, '', CONCAT({one.sql}))" for one in forms)
    return f"SELECT CONCAT({texts}) FROM {relation}{where}"


def _lines(session: MySqlSession, sql: str) -> Generator[bytes, None, None]:
    """The rows of a statement of one column, as blocks of lines.

    If the reader stops early, the server ends the statement.
    """
    with session.connected() as live:
        live.run(f"SET SESSION net_write_timeout={WRITE_SECONDS}")
        try:
            yield from _blocks(live.connection, sql)
        except pymysql.MySQLError as error:
            if failure_of(error).kind is not FailureKind.LOST:  # the statement has ended
                live.drop()
                raise
            if session.give_up(live) and is_late(error):
                raise too_slow(session.access.timeout) from None
            raise
        except BaseException:  # rows may still be in flight
            session.give_up(live)
            raise


def _blocks(connection: Any, sql: str) -> Iterator[bytes]:
    connection._execute_command(COMMAND.COM_QUERY, sql)
    columns = connection._read_packet().read_length_encoded_integer()
    for _ in range(columns + 1):  # the descriptions of columns, and an end
        connection._read_packet()
    packets = _PacketWalk()
    while not packets.ended:
        try:
            data = connection._rfile.read1(RECEIVED)
        except OSError as error:
            raise pymysql.OperationalError(2013, f"no reply: {error}") from error
        if not data:
            raise pymysql.OperationalError(2013, "the server closed the connection")
        packets.take(data)
        if packets.size > BLOCK:
            yield packets.block()
    if packets.size:
        yield packets.block()
    if packets.error:
        pymysql.err.raise_mysql_exception(packets.error)


class _PacketWalk:
    """Cuts the texts of rows out of arriving packets: 3 bytes of length, 1 of number, a row.

    A packet of the largest length continues in the next one.
    """

    def __init__(self) -> None:
        self.ended, self.size, self.error = False, 0, b""
        self._rest, self._texts = b"", list[bytes]()
        self._long: list[bytes] = []  # pieces of a row of several packets

    def take(self, data: bytes) -> None:
        data = self._rest + data
        at, end, texts = 0, len(data), self._texts
        while at + 4 < end:
            length = data[at] | data[at + 1] << 8 | data[at + 2] << 16
            start, stop = at + 4, at + 4 + length
            if stop > end:
                break
            first = data[start]
            if length == LONGEST_PACKET or self._long or first > 250:
                self._take_other(data[start:stop])
                if self.ended:
                    break
            else:
                texts.append(data[start + 1 : stop])
                self.size += length
            at = stop
        self._rest = data[at:]

    def block(self) -> bytes:
        found = b"\n".join(self._texts) + b"\n"
        self._texts.clear()
        self.size = 0
        return found

    def _take_other(self, packet: bytes) -> None:
        """Take a long text, an error or the end."""
        if self._long or len(packet) == LONGEST_PACKET:
            self._long.append(packet)
            if len(packet) == LONGEST_PACKET:
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
            # The server replaces a text that is longer than that by null.
            raise ValueUnreadable(
                "A row is longer than the server can send",
                why="its text exceeds max_allowed_packet",
                todo="raise max_allowed_packet on the server, or read fewer columns with"
                " option columns",
            )
        self._texts.append(packet[BEFORE.get(packet[0], 1) :])
        self.size += len(packet)


def _batches(
    blocks: Iterable[bytes], forms: Sequence[WireForm], schema: pa.Schema
) -> Iterator[pa.RecordBatch]:
    """The rows of blocks of lines."""
    carriers = {str(at): form.carrier for at, form in enumerate(forms)}
    how = (
        csv.ReadOptions(use_threads=False, column_names=[*carriers], block_size=2**30),
        csv.ParseOptions(newlines_in_values=True, ignore_empty_lines=False),
        csv.ConvertOptions(
            column_types=carriers,
            null_values=[""],
            true_values=["1"],
            false_values=["0"],
            strings_can_be_null=True,
            quoted_strings_can_be_null=False,
        ),
    )
    for block in blocks:
        try:
            table = csv.read_csv(pa.py_buffer(block), *how)
        except pa.ArrowInvalid as error:
            found = WHERE.search(str(error))
            raise unreadable(error, schema.field(int(found[1]) if found else 0)) from None
        for batch in table.to_batches():
            columns = map(_finished, forms, batch.columns, schema)
            yield pa.RecordBatch.from_arrays([*columns], names=schema.names)


def _finished(form: WireForm, column: pa.Array, field: pa.Field) -> pa.Array:
    try:
        return form.finish(column)
    except (pa.ArrowInvalid, ValueError) as error:
        raise unreadable(error, field) from None


def unreadable(error: Exception, field: pa.Field, logged: str = "") -> ValueUnreadable:
    """The error for a value that is invalid for its type; `logged` names its transaction."""
    larger = "a larger type" if logged else "a string or a larger type"
    return ValueUnreadable(
        f"A value of column {field.name!r}{logged} can't be read as {spark_type(field)}: {error}",
        why="the stored value is not valid for that type, for example a zero date, a number out of"
        " range, or a TINYINT(1) that is neither 0 nor 1",
        todo=f"read that column as {larger} with .schema(...), exclude it, or correct the value",
    )
