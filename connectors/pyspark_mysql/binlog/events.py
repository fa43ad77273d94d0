"""Events of the binary log: out of a connection's bytes, and what the body of each kind says.

All numbers are little-endian, but for what MariaDB compresses. See "Replication Protocol" and
"Binlog Event" in https://dev.mysql.com/doc/dev/mysql-server/latest/, with libs/mysql/binlog/event
in MySQL's source; of MariaDB's own events sql/log_event.h, and
https://mariadb.com/docs/server/reference/clientserver-protocol/replication-protocol.
"""

from __future__ import annotations

import io
import zlib
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

import pyarrow as pa
import pymysql

from pyspark_mysql.binlog.gtids import DomainGtid, TaggedGtid

RECEIVED = 1024 * 1024
LONGEST_PACKET = 0xFFFFFF

# The header of an event: 4 time in seconds, 1 type, 4 server id, 4 size of header and body and
# checksum, 4 offset in the file where it ends, 2 flags.
HEADER = 19

QUERY, ROTATE, FORMAT, XID, LOAD_DATA, TABLE_MAP, INCIDENT = 2, 4, 15, 16, 18, 19, 26
GTID, ANONYMOUS, XA_PREPARE, PARTIAL_UPDATE, PAYLOAD, GTID_TAGGED = 33, 34, 38, 39, 40, 42
MARIADB_GTID, MARIADB_QUERY = 162, 165

INSERT, UPDATE, DELETE = OPERATIONS = "c", "u", "d"

# By the type of an event what its rows did, and the version of its form. Version 2 is MySQL's since
# 5.6; MariaDB has compressed ones (log_bin_compress), too.
ROWS = {23 + at: (one, 1) for at, one in enumerate(OPERATIONS)}
ROWS |= {30 + at: (one, 2) for at, one in enumerate(OPERATIONS)}
COMPRESSED = {166 + at: (one, 1) for at, one in enumerate(OPERATIONS)}
COMPRESSED |= {169 + at: (one, 2) for at, one in enumerate(OPERATIONS)}

# Types that are of no transaction: the end of a server or a file, and signs of life.
OUTSIDE = {3, ROTATE, 27, 41}
# Others that change no row. Numbers and files that a statement takes are among them: the statement
# follows, and counts.
WITHOUT_CHANGES = {5, 9, 11, 13, 14, 17, 28, 29, 35, 36, 37, 160, 161, 163, 164}

IGNORABLE = 0x80  # LOG_EVENT_IGNORABLE_F: who does not know the event may pass over it
STANDALONE, TRANSACTIONAL = 1, 4  # FL_STANDALONE, FL_TRANSACTIONAL of a Gtid_log_event
SQL_MODE, CLIENT_CHARSET = 1, 4
ZSTD = 0


class Event(NamedTuple):
    """An event, where it lies in what has come."""

    kind: int
    data: bytes
    at: int  # where its body begins; its header lies before that
    end: int

    @property
    def server(self) -> int:
        """The id of the server that logged it first."""
        return int.from_bytes(self.data[self.at - 14 : self.at - 10], "little")

    @property
    def seconds(self) -> int:
        """When its statement began, since 1970."""
        return int.from_bytes(self.data[self.at - 19 : self.at - 15], "little")

    @property
    def end_in_file(self) -> int:
        """Where it ends in its file; of large files the low four bytes of that."""
        return int.from_bytes(self.data[self.at - 6 : self.at - 2], "little")

    @property
    def is_ignorable(self) -> bool:
        """Whether a reader that does not know it may pass over it."""
        return bool(self.data[self.at - 2] & IGNORABLE)

    @property
    def is_whole(self) -> bool:
        """Whether it has the checksum that stands behind it: 4 bytes, CRC-32 of all before it."""
        _, data, at, end = self
        return zlib.crc32(data[at - 19 : end - 4]) == int.from_bytes(data[end - 4 : end], "little")


class LogFile(NamedTuple):
    """A file of a log. Those of one name that other servers have, or had, begin otherwise."""

    name: str = ""
    made: int = 0  # when it was begun, in seconds since 1970
    server: int = 0  # the number of the server that began it

    def begun(self, event: Event) -> LogFile:
        """The same, as its FORMAT_DESCRIPTION_EVENT says."""
        return LogFile(self.name, event.seconds, event.server)


class LogPlace(NamedTuple):
    """Where a transaction begins that was read, as were all before it in this log.

    It is a hint: a file of that name may come to hold another transaction there.
    """

    file: LogFile
    at: int  # the offset in the file
    gtid: str


class TransactionBegin(NamedTuple):
    """The beginning of a transaction."""

    gtid: TaggedGtid | DomainGtid
    micros: int  # when it was committed, since 1970
    size: int = 0  # bytes of all its events; 0 where the log does not tell (MariaDB)
    alone: bool = False  # it is one statement, without an end of its own (MariaDB)
    transactional: bool = True  # a crash in its midst takes it back


class LoggedStatement(NamedTuple):
    """A statement, and how the server was to read it."""

    database: str  # the default one
    text: bytes
    mode: int = 0  # ``sql_mode``, as bits
    collation: int = 0  # a number of the client's character set; 0 where the log does not tell


class LengthEncoded:
    """Numbers and bytes one behind the other, each told by a "Length-Encoded Integer"."""

    def __init__(self, data: bytes, at: int = 0) -> None:
        self.data, self.at = data, at

    def __bool__(self) -> bool:
        return self.at < len(self.data)

    def number(self) -> int:
        """The next number."""
        found, self.at = length(self.data, self.at)
        return found

    def value(self) -> bytes:
        """The next bytes, which stand behind their number."""
        return self.take(self.number())

    def take(self, size: int) -> bytes:
        """So many bytes."""
        self.at += size
        return self.data[self.at - size : self.at]


def length(data: bytes, at: int) -> tuple[int, int]:
    """A "Length-Encoded Integer" of the protocol, and where it ends."""
    # Below 251 the byte is the number. 252, 253 and 254 say that 2, 3 and 8 bytes of it follow.
    first = data[at]
    if first < 0xFB:
        return first, at + 1
    size = {0xFC: 2, 0xFD: 3, 0xFE: 8}[first]
    return int.from_bytes(data[at + 1 : at + 1 + size], "little"), at + 1 + size


def events(connection: Any) -> Iterator[Event]:
    """The events that a server sends, until it says that there are no more, or raises an error."""
    try:
        for data in _payloads(connection._rfile.raw):
            # The first byte is 0 before an event, 255 before an error, and 254 at the end.
            if data[0] == 0:
                yield Event(data[5], data, 1 + HEADER, len(data))
            elif data[0] == 0xFE and len(data) < 9:
                return
            elif data[0] == 0xFF:
                pymysql.err.raise_mysql_exception(data)
    except OSError as error:
        raise pymysql.OperationalError(2013, f"no answer: {error}") from None


def _payloads(stream: io.RawIOBase) -> Iterator[bytes]:
    """What packets hold: 3 bytes of length, 1 of number, the payload.

    A payload of the largest length goes on in the next packet.
    """
    # The client's own buffer has 8 KiB; it is empty, as the answers to all else were read.
    read = io.BufferedReader(stream, RECEIVED).read
    while True:
        parts, size = list[bytes](), LONGEST_PACKET
        while size == LONGEST_PACKET:
            size = int.from_bytes(_require(read(4), 4)[:3], "little")
            parts.append(_require(read(size), size))
        yield parts[0] if len(parts) == 1 else b"".join(parts)


def _require(found: bytes, size: int) -> bytes:
    if len(found) < size:
        raise pymysql.OperationalError(2013, "the server closed the connection")
    return found


def checksum_size(event: Event) -> int:
    """Bytes behind each event from now on, as a FORMAT_DESCRIPTION_EVENT says."""
    # 2 version, 50 the server's, 4 time, 1 size of headers, 1 for each type of event its least
    # size, then 1 the algorithm, and always 4 of a checksum, with which this event comes here.
    return 4 * (event.data[event.end - 5] == 1)


def file_name(event: Event) -> str:
    """The file that a ROTATE_EVENT says that the next events are of."""
    # 8 offset of the first event in it, then the name. The server makes up such an event before all
    # others; whether it has a checksum is not known then.
    end = event.end - 4 * event.is_whole
    return event.data[event.at + 8 : end].decode()


def _begin(event: Event) -> TransactionBegin:
    """A GTID_LOG_EVENT of MySQL's."""
    # 1 flags, 16 UUID, 8 number, 1 that is 2, 8 last committed, 8 sequence number, 7 when it was
    # committed here, a size of the transaction with this event, 4 version. The highest bit of the
    # time says that 7 bytes follow: when it was committed on the first server, or 0.
    data, at = event.data, event.at
    number = int.from_bytes(data[at + 17 : at + 25], "little", signed=True)
    micros = int.from_bytes(data[at + 42 : at + 49], "little")
    sizes = at + 49
    if micros >> 55:
        micros = int.from_bytes(data[sizes : sizes + 7], "little") or micros
        sizes += 7
    gtid = TaggedGtid(data[at + 1 : at + 17], "", number)
    return TransactionBegin(gtid, micros & ((1 << 55) - 1), length(data, sizes)[0])


def _begin_tagged(event: Event) -> TransactionBegin:
    """A GTID_TAGGED_LOG_EVENT of MySQL's since 8.3: the same, as fields with numbers."""
    # See "MySQL Serialization Library": version, size, last field that can't be passed over; then
    # each field's number and value: 1 UUID in 16 numbers, 2 number, 3 tag, 6 when it was committed
    # here, 7 and on the first server, if that differs, 8 size. From 2 on, numbers but the sizes of
    # texts are signed where MySQL's are: of 2 the sign is the lowest bit.
    data = event.data
    _, at = _varlen(data, event.at + 1)
    _, at = _varlen(data, at)
    found: dict[int, Any] = {}
    while at < event.end and 8 not in found:
        field, at = _varlen(data, at)
        if field == 1:
            digits = bytearray()
            for _ in range(16):
                one, at = _varlen(data, at)
                digits.append(one)
            found[field] = bytes(digits)
        elif field == 3:
            size, at = _varlen(data, at)
            found[field], at = data[at : at + size].decode(), at + size
        else:
            found[field], at = _varlen(data, at)
    gtid = TaggedGtid(found[1], found.get(3, ""), found[2] >> 1)
    return TransactionBegin(gtid, found.get(7) or found.get(6, 0), found.get(8, 0))


def _varlen(data: bytes, at: int) -> tuple[int, int]:
    """A number that has as many ones at its low end as bytes follow the first, and its end."""
    more = 8 if data[at] == 0xFF else (~data[at] & data[at] + 1).bit_length() - 1
    raw = int.from_bytes(data[at : at + more + 1], "little")
    return raw >> min(more + 1, 8), at + more + 1


def begin_in_domain(event: Event) -> TransactionBegin:
    """A Gtid_log_event of MariaDB's."""
    # 8 number, 4 domain, 1 flags; the server stands in the header.
    data, at = event.data, event.at
    number = int.from_bytes(data[at : at + 8], "little")
    domain = int.from_bytes(data[at + 8 : at + 12], "little")
    flags = data[at + 12]
    return TransactionBegin(
        DomainGtid(domain, event.server, number),
        event.seconds * 1_000_000,
        alone=bool(flags & STANDALONE),
        transactional=bool(flags & TRANSACTIONAL),
    )


BEGINS: dict[int, Callable[[Event], TransactionBegin]] = {
    GTID: _begin,
    GTID_TAGGED: _begin_tagged,
    MARIADB_GTID: begin_in_domain,
}

# Types of which it is known what they tell.
KNOWN = {*WITHOUT_CHANGES, *BEGINS, QUERY, XID, TABLE_MAP, LOAD_DATA, XA_PREPARE, PARTIAL_UPDATE}
KNOWN |= {PAYLOAD, MARIADB_QUERY, *ROWS, *COMPRESSED}


def statement(event: Event) -> LoggedStatement:
    """What a QUERY_EVENT, or an EXECUTE_LOAD_QUERY_EVENT of LOAD DATA, says."""
    # 4 thread, 4 seconds it took, 1 size of the database's name, 2 error, 2 size of the variables;
    # of LOAD DATA 4 file, 4 and 4 where the file's name stands in the text, 1 what it does with
    # duplicates; then the variables, the database, a zero, and the text.
    data, at = event.data, event.at
    name, status = data[at + 8], int.from_bytes(data[at + 11 : at + 13], "little")
    at += 26 if event.kind == LOAD_DATA else 13
    start = at + status
    text = data[start + name + 1 : event.end]
    if event.kind == MARIADB_QUERY:
        text = _inflated(text)
    found = _variables(data[at:start])
    database = data[start : start + name].decode()
    charset = found.get(CLIENT_CHARSET, 0) & 0xFFFF
    return LoggedStatement(database, text, found.get(SQL_MODE, 0), charset)


def _variables(status: bytes) -> dict[int, int]:
    """The first of the "Query event status variables": each a number, and what belongs to it."""
    # 0 flags: 4; 1 SQL mode: 8; 3 increment and offset: 2 and 2; 4 collations of client,
    # connection and server: 2 each. A catalog's name has its size before it, of 2 a zero behind it.
    # They come in the order 0, 1, 6 or 2, 3, 4; nothing behind them is needed.
    at, found = 0, dict[int, int]()
    while at < len(status) and CLIENT_CHARSET not in found:
        kind = status[at]
        if kind in (2, 6):
            at += 2 + status[at + 1] + (kind == 2)
        elif size := {0: 4, SQL_MODE: 8, 3: 4, CLIENT_CHARSET: 6}.get(kind):
            found[kind] = int.from_bytes(status[at + 1 : at + 1 + size], "little")
            at += 1 + size
        else:
            break
    return found


def rows(event: Event) -> tuple[str, bytes, bool]:
    """What a WRITE_ROWS, UPDATE_ROWS or DELETE_ROWS_EVENT did, its rows, and if they are whole."""
    # 6 table, 2 flags; in version 2 a size of 2, itself included, and so much more; the number of
    # columns, a bit for each that the rows have, of updates two times; then the rows.
    data, at = event.data, event.at + 8
    operation, version = ROWS.get(event.kind) or COMPRESSED[event.kind]
    if version == 2:
        at += int.from_bytes(data[at : at + 2], "little")
    columns, at = length(data, at)
    width, every, is_whole = (columns + 7) // 8, (1 << columns) - 1, True
    for _ in range(2 if operation == UPDATE else 1):
        is_whole &= int.from_bytes(data[at : at + width], "little") & every == every
        at += width
    body = data[at : event.end]
    return operation, _inflated(body) if event.kind in COMPRESSED else body, is_whole


def payload(event: Event) -> Iterator[Event]:
    """The events of a compressed transaction (TRANSACTION_PAYLOAD_EVENT)."""
    # Fields, each a type, a size and a value: 1 the size of what is compressed, 2 how it is, 3 the
    # size before that, 0 the end of them. Then events without checksums.
    fields, found = LengthEncoded(event.data, event.at), dict[int, int]()
    while kind := fields.number():
        found[kind] = LengthEncoded(fields.value()).number()
    body = fields.take(found[1])
    if found[2] == ZSTD:
        body = pa.Codec("zstd").decompress(body, found[3], asbytes=True)
    at = 0
    while at < len(body):
        size = int.from_bytes(body[at + 9 : at + 13], "little")
        yield Event(body[at + 4], body, at + HEADER, at + size)
        at += size


def _inflated(body: bytes) -> bytes:
    """What MariaDB has compressed."""
    # 1 whose lowest 3 bits say how many bytes of a size follow, big-endian; then zlib's format.
    width = body[0] & 7
    size = int.from_bytes(body[1 : 1 + width], "big")
    return zlib.decompress(body[1 + width :], bufsize=size)
