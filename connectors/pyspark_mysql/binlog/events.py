"""Events of the binary log: decodes the body of each kind.

All numbers are little-endian, except the sizes of data that MariaDB compresses. See "Replication
Protocol" and "Binlog Event" in https://dev.mysql.com/doc/dev/mysql-server/latest/, with
libs/mysql/binlog/event in MySQL's source. For MariaDB's events see sql/log_event.h, and
https://mariadb.com/docs/server/reference/clientserver-protocol/replication-protocol.
"""

from __future__ import annotations

import struct
import zlib
from collections.abc import Callable, Iterator
from functools import lru_cache
from typing import Any, NamedTuple

import pyarrow as pa

from pyspark_mysql.binlog.gtids import DomainGtid, TaggedGtid

# The header of an event, in bytes: 4 time in seconds, 1 type, 4 server id, 4 size of header, body
# and checksum, 4 offset of its end in the file, 2 flags.
HEADER = 19
CHECKSUM = 4  # bytes behind the body, if there is a checksum

QUERY, ROTATE, FORMAT, XID, LOAD_DATA, TABLE_MAP, INCIDENT = 2, 4, 15, 16, 18, 19, 26
GTID, ANONYMOUS, XA_PREPARE, PARTIAL_UPDATE, PAYLOAD, GTID_TAGGED = 33, 34, 38, 39, 40, 42
MARIADB_GTID, MARIADB_QUERY = 162, 165

INSERT, UPDATE, DELETE = OPERATIONS = "c", "u", "d"

# By the type of an event, the operation of its rows, and the version of its form. MySQL has version
# 2 since 5.6; MariaDB also has compressed ones (log_bin_compress).
ROWS = {23 + at: (one, 1) for at, one in enumerate(OPERATIONS)}
ROWS |= {30 + at: (one, 2) for at, one in enumerate(OPERATIONS)}
COMPRESSED = {166 + at: (one, 1) for at, one in enumerate(OPERATIONS)}
COMPRESSED |= {169 + at: (one, 2) for at, one in enumerate(OPERATIONS)}

# Types outside transactions: the end of a server or a file, and heartbeats.
OUTSIDE = {3, ROTATE, 27, 41}
# Other types that change no row. They include the numbers and files that a statement uses: the
# statement itself follows.
WITHOUT_CHANGES = {5, 9, 11, 13, 14, 17, 28, 29, 35, 36, 37, 160, 161, 163, 164}

THREAD_SPECIFIC = 4  # LOG_EVENT_THREAD_SPECIFIC_F: the statement uses temporary tables
IGNORABLE = 0x80  # LOG_EVENT_IGNORABLE_F: a reader that does not know the event may skip it
STANDALONE, TRANSACTIONAL = 1, 4  # FL_STANDALONE, FL_TRANSACTIONAL of a Gtid_log_event
SQL_MODE, CLIENT_CHARSET = 1, 4
ZSTD = 0


class Event(NamedTuple):
    """An event, and its place in the received bytes."""

    kind: int
    data: bytes
    at: int  # where its body begins, after its header
    end: int  # where its body ends, before its checksum

    @property
    def size(self) -> int:
        """The number of its bytes in its file, with its checksum."""
        return len(self.data) - self.at + HEADER

    @property
    def server(self) -> int:
        """The id of the server that logged it first."""
        return int.from_bytes(self.data[self.at - 14 : self.at - 10], "little")

    @property
    def seconds(self) -> int:
        """The start of its statement, in seconds since 1970."""
        return int.from_bytes(self.data[self.at - 19 : self.at - 15], "little")

    @property
    def end_in_file(self) -> int:
        """The offset of its end in its file; in large files the low four bytes of it."""
        return int.from_bytes(self.data[self.at - 6 : self.at - 2], "little")

    @property
    def is_ignorable(self) -> bool:
        """Whether a reader that does not know the event may skip it."""
        return bool(self.data[self.at - 2] & IGNORABLE)


class LogFile(NamedTuple):
    """A file of a log. Time and server tell it from files of the same name on other servers."""

    name: str = ""
    made: int = 0  # when it was begun, in seconds since 1970
    server: int = 0  # the number of the server that began it

    def begun(self, event: Event) -> LogFile:
        """The file with the time and server of its FORMAT_DESCRIPTION_EVENT."""
        return LogFile(self.name, event.seconds, event.server)


class LogPlace(NamedTuple):
    """The place of a transaction that was read, as were all transactions before it in this log.

    It is a hint: a later file of that name may have another transaction at this place.
    """

    file: LogFile
    at: int  # the offset in the file
    gtid: str


class TransactionBegin(NamedTuple):
    """The beginning of a transaction."""

    gtid: TaggedGtid | DomainGtid
    micros: int  # the time of its commit, in microseconds since 1970
    size: int = 0  # bytes of all its events; 0 if the log lacks the number (MariaDB)
    alone: bool = False  # it is a single statement, without an event at its end (MariaDB)
    transactional: bool = True  # the server rolls it back after a crash


class LoggedStatement(NamedTuple):
    """A statement, and the settings by which the server parsed it."""

    database: str  # the default database
    text: bytes
    mode: int = 0  # the bits of ``sql_mode``
    collation: int = 0  # the number of the client's collation; 0 if the log lacks it
    of_session: bool = False  # it uses temporary tables, whose names hide those of others


class LengthEncoded:
    """A sequence of numbers and bytes, with "Length-Encoded Integers"."""

    def __init__(self, data: bytes, at: int = 0) -> None:
        self.data, self.at = data, at

    def __bool__(self) -> bool:
        return self.at < len(self.data)

    def number(self) -> int:
        """The next number."""
        found, self.at = length(self.data, self.at)
        return found

    def value(self) -> bytes:
        """The next bytes, which follow their length."""
        return self.take(self.number())

    def take(self, size: int) -> bytes:
        """The next `size` bytes."""
        self.at += size
        return self.data[self.at - size : self.at]


def length(data: bytes, at: int) -> tuple[int, int]:
    """A "Length-Encoded Integer" of the protocol, and the place after it."""
    # Below 251 the byte is the number. After 252, 253 and 254 a number of 2, 3 or 8 bytes follows.
    first = data[at]
    if first < 0xFB:
        return first, at + 1
    size = {0xFC: 2, 0xFD: 3, 0xFE: 8}[first]
    return int.from_bytes(data[at + 1 : at + 1 + size], "little"), at + 1 + size


def checksum_size(data: bytes) -> int:
    """The size of the checksum of later events, from a FORMAT_DESCRIPTION_EVENT."""
    # In bytes: 2 version, 50 the server's version, 4 time, 1 size of headers, for each type of
    # event 1 with its least size, 1 the algorithm. This event always has 4 bytes of checksum.
    return CHECKSUM * (data[-5] == 1)


def is_whole(data: bytes, end: int) -> bool:
    """Whether the 4 bytes from `end` on are the CRC-32 of the event before them."""
    return zlib.crc32(data[1:end]) == int.from_bytes(data[end:], "little")


def file_name(event: Event) -> str:
    """The file of the next events, from a ROTATE_EVENT."""
    # 8 bytes offset of its first event, then the name. The server sends a made-up event of this
    # type before all others, when the reader does not yet know whether events have checksums.
    end = event.end - CHECKSUM
    end = end if is_whole(event.data, end) else event.end
    return event.data[event.at + 8 : end].decode()


def _begin(event: Event) -> TransactionBegin:
    """A GTID_LOG_EVENT of MySQL."""
    # In bytes: 1 flags, 16 UUID, 8 number, 1 with the value 2, 8 last committed, 8 sequence number,
    # 7 time of the commit here, the size of the transaction with this event, 4 version. If the
    # highest bit of the time is set, 7 bytes follow: time of the commit on the first server, or 0.
    _, data, at, _ = event
    uuid, number, micros = _GTID.unpack_from(data, at + 1)
    micros &= (1 << 56) - 1
    sizes = at + 49
    if micros >> 55:
        micros = int.from_bytes(data[sizes : sizes + 7], "little") or micros
        sizes += 7
    size = data[sizes] if data[sizes] < 0xFB else length(data, sizes)[0]
    new = tuple.__new__  # the constructors of named tuples take longer
    gtid = new(TaggedGtid, (uuid, "", number))
    return new(TransactionBegin, (gtid, micros & ((1 << 55) - 1), size, False, True))


_GTID = struct.Struct("<16sq17xQ")
"""UUID, number, and time with a byte of the next field, behind the flags of a GTID_LOG_EVENT."""


def _begin_tagged(event: Event) -> TransactionBegin:
    """A GTID_TAGGED_LOG_EVENT of MySQL since 8.3: the same, as numbered fields."""
    # See "MySQL Serialization Library": version, size, last field that can't be skipped; then the
    # number and value of each field. 1: UUID in 16 numbers, 2: number, 3: tag, 6: time of the
    # commit here, 7: the one on the first server, if that differs, 8: size. From 2 on, numbers
    # other than sizes of texts are signed if MySQL's are: of 2 the lowest bit is the sign.
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
    """A number, and the place after it. Its low ones count the bytes that follow the first."""
    more = 8 if data[at] == 0xFF else (~data[at] & data[at] + 1).bit_length() - 1
    raw = int.from_bytes(data[at : at + more + 1], "little")
    return raw >> min(more + 1, 8), at + more + 1


def begin_in_domain(event: Event) -> TransactionBegin:
    """A Gtid_log_event of MariaDB."""
    # 8 bytes number, 4 domain, 1 flags; the header has the server.
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

# Types that the reader can decode or skip.
KNOWN = {*WITHOUT_CHANGES, *BEGINS, QUERY, XID, TABLE_MAP, LOAD_DATA, XA_PREPARE, PARTIAL_UPDATE}
KNOWN |= {PAYLOAD, MARIADB_QUERY, *ROWS, *COMPRESSED}


def statement(event: Event) -> LoggedStatement:
    """The statement of a QUERY_EVENT, or of an EXECUTE_LOAD_QUERY_EVENT (LOAD DATA)."""
    # In bytes: 4 thread, 4 duration in seconds, 1 size of the database's name, 2 error, 2 size of
    # the variables; of LOAD DATA 4 file, 4 and 4 place of the file's name in the text, 1 handling
    # of duplicates; then the variables, the database, a zero, and the text.
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
    of_session = bool(event.data[event.at - 2] & THREAD_SPECIFIC)
    return LoggedStatement(database, text, found.get(SQL_MODE, 0), charset, of_session)


def is_begin(event: Event) -> bool:
    """Whether a QUERY_EVENT is the BEGIN of a transaction, which does nothing else."""
    data, at = event.data, event.at
    text = at + 14 + data[at + 8] + (data[at + 11] | data[at + 12] << 8)  # see `statement`
    return event.end - text == 5 and data[text : event.end] == b"BEGIN"


def _variables(status: bytes) -> dict[int, int]:
    """The first "Query event status variables": the number of each, and its value."""
    # 0 flags: 4 bytes; 1 SQL mode: 8; 3 increment and offset: 2 and 2; 4 collations of client,
    # connection and server: 2 each. A catalog's name (2, 6) follows its size; in 2 a zero follows
    # the name. The order is 0, 1, 6 or 2, 3, 4; later variables are not needed.
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
    """The operation of a rows event, its rows, and whether they have all columns."""
    # In bytes: 6 table, 2 flags; in version 2 a size of 2 bytes, which includes itself, and data of
    # that size; the number of columns, a bit for each column of the rows, for updates twice; then
    # the rows.
    kind, data, at, end = event
    at += 8
    operation, version = _FORMS[kind]
    if version == 2:
        at += data[at] | data[at + 1] << 8
    columns, at = (data[at], at + 1) if data[at] < 0xFB else length(data, at)
    start = at + (columns + 7) // 8 * (2 if operation == UPDATE else 1)
    body = data[start:end]
    is_whole = _are_all(data[at:start], columns)
    return operation, _inflated(body) if kind in COMPRESSED else body, is_whole


_FORMS = ROWS | COMPRESSED


@lru_cache
def _are_all(bits: bytes, columns: int) -> bool:
    """Whether the bits of all columns are set; of an update those of both rows."""
    width, every = (columns + 7) // 8, (1 << columns) - 1
    parts = (bits[at : at + width] for at in range(0, len(bits), width))
    return all(int.from_bytes(one, "little") & every == every for one in parts)


def payload(event: Event) -> Iterator[Event]:
    """The events of a compressed transaction (TRANSACTION_PAYLOAD_EVENT)."""
    # Fields, each a type, a size and a value: 1 the compressed size, 2 the algorithm, 3 the
    # uncompressed size, 0 the end of the fields. Then events without checksums.
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
    """Decompress data of MariaDB."""
    # 1 byte, whose lowest 3 bits are the number of bytes of the size, big-endian; then zlib data.
    width = body[0] & 7
    size = int.from_bytes(body[1 : 1 + width], "big")
    return zlib.decompress(body[1 + width :], bufsize=size)
