"""What stands before rows and transactions: the bodies of events, but for the rows themselves.

See "Binlog Event" in https://dev.mysql.com/doc/dev/mysql-server/latest/, and for MariaDB's own
https://mariadb.com/docs/server/reference/clientserver-protocol/replication-protocol.
"""

from __future__ import annotations

import zlib
from collections.abc import Iterator
from typing import Any, NamedTuple

import pyarrow as pa
import pymysql

from pyspark_mysql.binlog.packets import Event, inner
from pyspark_mysql.binlog.tables import length
from pyspark_mysql.binlog.transactions import Domained, Tagged

QUERY, FORMAT, XID, TABLE_MAP, INCIDENT = 2, 15, 16, 19, 26
GTID, ANONYMOUS, XA_PREPARE, PARTIAL_UPDATE, PAYLOAD, GTID_TAGGED = 33, 34, 38, 39, 40, 42
MARIADB_GTID, MARIADB_QUERY = 162, 165

INSERT, UPDATE, DELETE = "c", "u", "d"
OPERATIONS = (INSERT, UPDATE, DELETE)
ROWS = {23 + at: (one, 1) for at, one in enumerate(OPERATIONS)}
ROWS |= {30 + at: (one, 2) for at, one in enumerate(OPERATIONS)}
COMPRESSED = {166 + at: (one, 1) for at, one in enumerate(OPERATIONS)}
COMPRESSED |= {169 + at: (one, 2) for at, one in enumerate(OPERATIONS)}
"""By the type of an event: what its rows did, and the version of its form; the last of MariaDB."""

STANDALONE, PREPARED = 1, 64
"""Of a transaction of MariaDB's: it is one statement; it is prepared, and decided later."""

LOAD_DATA = 18
QUERY_HEADER, LOAD_HEADER = 13, 13
CLIENT_CHARSET = 4
STATUS_SIZES = {0: 4, 1: 8, 3: 4}
"""Bytes of what stands before that: flags, SQL mode, increments."""

MICROS = (1 << 55) - 1
ZSTD = 0


class Begin(NamedTuple):
    """The beginning of a transaction.

    Attributes:
        micros: when it was committed, since 1970.
        alone: it is one statement, without an end of its own.
        prepared: it is prepared, and decided later (XA).
    """

    gtid: Tagged | Domained
    micros: int
    alone: bool = False
    prepared: bool = False


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


def begin(event: Event) -> Begin:
    """A transaction of MySQL's: a GTID_LOG_EVENT."""
    data, at = event.data, event.at
    number = int.from_bytes(data[at + 17 : at + 25], "little", signed=True)
    micros = int.from_bytes(data[at + 42 : at + 49], "little")
    if micros >> 55:  # that of the server where it was committed first follows, if it told
        micros = int.from_bytes(data[at + 49 : at + 56], "little") or micros
    return Begin(Tagged(data[at + 1 : at + 17], "", number), micros & MICROS)


def begin_tagged(event: Event) -> Begin:
    """The same with a tag: a GTID_TAGGED_LOG_EVENT, a message of fields with numbers.

    See "MySQL serialization framework": a number has as many ones at its low end as bytes follow.
    """
    data = event.data
    _, at = _varlen(data, event.at + 1)
    _, at = _varlen(data, at)
    found: dict[int, Any] = {}
    while at < event.end and len(found) < 8:
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
        elif field < 8:
            found[field], at = _varlen(data, at)
        else:
            break
    # Numbers 2 and up are signed, the sign in the lowest bit; 7 is there where it differs from 6.
    return Begin(Tagged(found[1], found.get(3, ""), found[2] >> 1), found.get(7) or found.get(6, 0))


def begin_in_domain(event: Event) -> Begin:
    """A transaction of MariaDB's."""
    data, at = event.data, event.at
    number, domain = (
        int.from_bytes(data[a:b], "little") for a, b in ((at, at + 8), (at + 8, at + 12))
    )
    flags = data[at + 12]
    gtid = Domained(domain, event.server, number)
    return Begin(gtid, event.seconds * 1_000_000, bool(flags & STANDALONE), bool(flags & PREPARED))


def statement(event: Event) -> tuple[str, str]:
    """The default database of a statement, and its text."""
    data, at = event.data, event.at
    name, status = data[at + 8], int.from_bytes(data[at + 11 : at + 13], "little")
    # A statement of LOAD DATA has more before that: of its file.
    at += QUERY_HEADER + (LOAD_HEADER if event.kind == LOAD_DATA else 0)
    start = at + status
    text = data[start + name + 1 : event.end]
    if event.kind == MARIADB_QUERY:
        text = _inflated(text)
    codec = _client_codec(data[at:start])
    return data[start : start + name].decode(), text.decode(codec, errors="replace")


def _client_codec(status: bytes) -> str:
    """In which character set a client wrote its statement, by "Query event status variables"."""
    at = 0
    while at < len(status) and status[at] != CLIENT_CHARSET:
        if status[at] in (2, 6):  # the name of a catalog
            at += 2 + status[at + 1] + (status[at] == 2)
        elif status[at] in STATUS_SIZES:
            at += 1 + STATUS_SIZES[status[at]]
        else:
            return "utf-8"
    try:
        number = int.from_bytes(status[at + 1 : at + 3], "little")
        return str(pymysql.charset.charset_by_id(number).encoding)
    except KeyError:  # newer than the client's list: of utf8mb4
        return "utf-8"


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
