"""What stands before rows and transactions: the bodies of events, but for the rows themselves.

See "Binlog Event" in https://dev.mysql.com/doc/dev/mysql-server/latest/, and for MariaDB's own
https://mariadb.com/docs/server/reference/clientserver-protocol/replication-protocol.
"""

from __future__ import annotations

import zlib
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

import pyarrow as pa

from pyspark_mysql.binlog.packets import Event, inner
from pyspark_mysql.binlog.tables import length
from pyspark_mysql.binlog.transactions import Domained, Tagged

QUERY, ROTATE, FORMAT, XID, TABLE_MAP, INCIDENT = 2, 4, 15, 16, 19, 26
GTID, ANONYMOUS, XA_PREPARE, PARTIAL_UPDATE, PAYLOAD, GTID_TAGGED = 33, 34, 38, 39, 40, 42
MARIADB_GTID, MARIADB_QUERY = 162, 165

INSERT, UPDATE, DELETE = "c", "u", "d"
OPERATIONS = (INSERT, UPDATE, DELETE)
ROWS = {23 + at: (one, 1) for at, one in enumerate(OPERATIONS)}
ROWS |= {30 + at: (one, 2) for at, one in enumerate(OPERATIONS)}
COMPRESSED = {166 + at: (one, 1) for at, one in enumerate(OPERATIONS)}
COMPRESSED |= {169 + at: (one, 2) for at, one in enumerate(OPERATIONS)}
"""By the type of an event: what its rows did, and the version of its form; the last of MariaDB."""

OUTSIDE = {3, ROTATE, 27, 41}
"""Types that are of no transaction: the end of a file or a server, and signs of life."""

WITHOUT_CHANGES = {5, 9, 11, 13, 14, 17, 28, 29, 35, 36, 37, 160, 161, 163, 164}
"""Other types that change no row. Of numbers and files that a statement takes, that one tells."""

IGNORABLE = 0x80
"""The flag of an event that a reader may pass over who does not know it."""

STANDALONE, TRANSACTIONAL = 1, 4
"""Of a transaction of MariaDB's: it is one statement; a crash in its midst takes it back."""

LOAD_DATA = 18
QUERY_HEADER, LOAD_HEADER = 13, 13
SQL_MODE, CLIENT_CHARSET = 1, 4
STATUS_SIZES = {0: 4, SQL_MODE: 8, 3: 4, CLIENT_CHARSET: 6}
"""Bytes of what a statement was run with: flags, SQL mode, increments, character sets."""

MICROS = (1 << 55) - 1
ZSTD = 0


class Begin(NamedTuple):
    """The beginning of a transaction.

    Attributes:
        micros: when it was committed, since 1970.
        size: bytes of all its events; 0 where the log does not tell (MariaDB).
        alone: it is one statement, without an end of its own (MariaDB).
        transactional: a crash in its midst takes it back.
    """

    gtid: Tagged | Domained
    micros: int
    size: int = 0
    alone: bool = False
    transactional: bool = True


class Query(NamedTuple):
    """A statement, and what it was read by.

    Attributes:
        database: the default one.
        mode: ``sql_mode``, as bits.
        collation: the number of one of the client's character set; 0 where the log does not tell.
    """

    database: str
    text: bytes
    mode: int = 0
    collation: int = 0


class Body(NamedTuple):
    """The rows of an event.

    Attributes:
        present: a bit for each column that they have; of updates before and after it.
    """

    operation: str
    present: tuple[bytes, bytes]
    columns: int
    data: bytes


def checksum(event: Event) -> int:
    """Bytes behind each event, as a FORMAT_DESCRIPTION_EVENT says."""
    return 4 * (event.data[event.end - 5] == 1)


def is_whole(event: Event) -> bool:
    """Whether an event has the checksum that stands behind it."""
    _, data, at, end = event
    return zlib.crc32(data[at - 19 : end - 4]) == int.from_bytes(data[end - 4 : end], "little")


def end_in_file(event: Event) -> int:
    """Where an event ends in its file; of large files the low four bytes of that."""
    return int.from_bytes(event.data[event.at - 6 : event.at - 2], "little")


def is_ignorable(event: Event) -> bool:
    """Whether a reader may pass over an event that it does not know."""
    return bool(event.data[event.at - 2] & IGNORABLE)


def file_name(event: Event) -> str:
    """The file that a ROTATE_EVENT says that the next events are of."""
    end = event.end - 4 * is_whole(event)  # the first one comes before it is known
    return event.data[event.at + 8 : end].decode()


def begin(event: Event) -> Begin:
    """A transaction of MySQL's: a GTID_LOG_EVENT."""
    data, at = event.data, event.at
    number = int.from_bytes(data[at + 17 : at + 25], "little", signed=True)
    micros = int.from_bytes(data[at + 42 : at + 49], "little")
    sizes = at + 49
    if micros >> 55:  # that of the server where it was committed first follows, if it told
        micros = int.from_bytes(data[sizes : sizes + 7], "little") or micros
        sizes += 7
    gtid = Tagged(data[at + 1 : at + 17], "", number)
    return Begin(gtid, micros & MICROS, length(data, sizes)[0])


def begin_tagged(event: Event) -> Begin:
    """The same with a tag: a GTID_TAGGED_LOG_EVENT, a message of fields with numbers.

    See "MySQL serialization framework": a number has as many ones at its low end as bytes follow.
    """
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
    # Numbers 2 and up are signed, the sign in the lowest bit; 7 is there where it differs from 6.
    gtid = Tagged(found[1], found.get(3, ""), found[2] >> 1)
    return Begin(gtid, found.get(7) or found.get(6, 0), found.get(8, 0))


def begin_in_domain(event: Event) -> Begin:
    """A transaction of MariaDB's."""
    data, at = event.data, event.at
    number, domain = (
        int.from_bytes(data[a:b], "little") for a, b in ((at, at + 8), (at + 8, at + 12))
    )
    flags = data[at + 12]
    return Begin(
        Domained(domain, event.server, number),
        event.seconds * 1_000_000,
        alone=bool(flags & STANDALONE),
        transactional=bool(flags & TRANSACTIONAL),
    )


BEGINS: dict[int, Callable[[Event], Begin]] = {
    GTID: begin,
    GTID_TAGGED: begin_tagged,
    MARIADB_GTID: begin_in_domain,
}


KNOWN = {*WITHOUT_CHANGES, *BEGINS, QUERY, XID, TABLE_MAP, LOAD_DATA, XA_PREPARE, PARTIAL_UPDATE}
KNOWN |= {PAYLOAD, MARIADB_QUERY, *ROWS, *COMPRESSED}
"""Types of which it is known what they tell."""


def is_one_phase(event: Event) -> bool:
    """Whether an XA_PREPARE_LOG_EVENT commits, too: ``XA COMMIT ... ONE PHASE``."""
    return event.data[event.at] != 0


def statement(event: Event) -> Query:
    """A statement."""
    data, at = event.data, event.at
    name, status = data[at + 8], int.from_bytes(data[at + 11 : at + 13], "little")
    # A statement of LOAD DATA has more before that: of its file.
    at += QUERY_HEADER + (LOAD_HEADER if event.kind == LOAD_DATA else 0)
    start = at + status
    text = data[start + name + 1 : event.end]
    if event.kind == MARIADB_QUERY:
        text = _inflated(text)
    found = _status(data[at:start])
    database = data[start : start + name].decode()
    return Query(database, text, found.get(SQL_MODE, 0), found.get(CLIENT_CHARSET, 0) & 0xFFFF)


def _status(status: bytes) -> dict[int, int]:
    """The first of the "Query event status variables"."""
    at, found = 0, dict[int, int]()
    while at < len(status) and CLIENT_CHARSET not in found:
        kind = status[at]
        if kind in (2, 6):  # the name of a catalog
            at += 2 + status[at + 1] + (kind == 2)
        elif kind in STATUS_SIZES:
            end = at + 1 + STATUS_SIZES[kind]
            found[kind] = int.from_bytes(status[at + 1 : end], "little")
            at = end
        else:
            break
    return found


def rows(event: Event) -> Body:
    """The rows of an event."""
    data, at = event.data, event.at + 8
    operation, version = ROWS.get(event.kind) or COMPRESSED[event.kind]
    if version == 2:
        at += int.from_bytes(data[at : at + 2], "little")
    columns, at = length(data, at)
    width = (columns + 7) // 8
    before = after = data[at : at + width]
    at += width
    if operation == UPDATE:
        after = data[at : at + width]
        at += width
    body = data[at : event.end]
    if event.kind in COMPRESSED:
        body = _inflated(body)
    return Body(operation, (before, after), columns, body)


def payload(event: Event) -> Iterator[Event]:
    """The events of a compressed transaction, which have no checksums.

    It begins with fields, each of a type, a size and a value: 1 is the size of what is compressed,
    2 how it is, 3 the size before that, and 0 the end of them.
    """
    data, at, found = event.data, event.at, dict[int, int]()
    while data[at]:
        field, at = length(data, at)
        size, at = length(data, at)
        found[field], _ = length(data, at)
        at += size
    body = data[at + 1 : at + 1 + found[1]]
    if found[2] == ZSTD:
        body = pa.Codec("zstd").decompress(body, found[3], asbytes=True)
    return inner(body)


def _varlen(data: bytes, at: int) -> tuple[int, int]:
    more = 8 if data[at] == 0xFF else (~data[at] & data[at] + 1).bit_length() - 1
    raw = int.from_bytes(data[at : at + more + 1], "little")
    return raw >> min(more + 1, 8), at + more + 1


def _inflated(body: bytes) -> bytes:
    """What MariaDB has compressed (``log_bin_compress``): bytes of its size, its size, zlib."""
    width = body[0] & 7
    size = int.from_bytes(body[1 : 1 + width], "big")
    return zlib.decompress(body[1 + width :], bufsize=size)
