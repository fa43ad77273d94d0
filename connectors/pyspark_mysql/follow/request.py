"""Requests the binary log from a server, as a replica does."""

from __future__ import annotations

import random
import struct
from collections.abc import Generator, Iterable, Iterator
from contextlib import closing, contextmanager
from itertools import chain, pairwise
from typing import Any, TypeAlias

import pymysql

from pyspark_mysql.binlog import events, packets
from pyspark_mysql.binlog.events import Event, LogPlace
from pyspark_mysql.binlog.gtids import GtidPosition, GtidSet
from pyspark_mysql.binlog.packets import Received
from pyspark_mysql.binlog.short import ShortRun
from pyspark_mysql.follow.fitness import gtids_at
from pyspark_mysql.read.rows import WRITE_SECONDS
from pyspark_mysql.server.client import MySqlSession
from pyspark_mysql.server.connection import LiveConnection
from pyspark_mysql.server.failures import number

EventStream: TypeAlias = Generator[Received, None, None]
"""The events of a connection; closing the stream closes the connection."""

NON_BLOCK, THROUGH_GTID = 1, 4
COM_BINLOG_DUMP, COM_BINLOG_DUMP_GTID = 0x12, 0x1E
BEGINNING = 4
"""The offset of the first event of a file."""

NOT_THERE = 1236
"""The number of the error for a position that the log lacks, or that the server can't read."""


@contextmanager
def log_behind(
    session: MySqlSession, after: str, place: LogPlace | None = None, *, mariadb: bool
) -> Iterator[Iterator[Received]]:
    """The events of all transactions that are not in `after`, up to the end of the log.

    They include every transaction that a reader of tables can see, because the server logs a
    transaction before it is visible.

    If the last read transaction is still at `place`, its events are returned again, and the server
    need not search its log for the next one.
    """
    found = _begun(session, after, place, mariadb=mariadb)
    with closing(_past_crashes(session, after, found) if mariadb else found) as found:
        yield found


def files_up_to(session: MySqlSession, place: LogPlace | None) -> list[str]:
    """The files of the log up to that of a place; none if the log no longer has it."""
    names = [str(name) for name, *_ in session.run("SHOW BINARY LOGS")]
    file = place.file.name if place else ""
    return names[: names.index(file) + 1] if file in names else []


def log_between(
    session: MySqlSession, begin: str, place: LogPlace | None
) -> Generator[Event, None, None]:
    """The events from the start of a file up to the transaction at a place."""
    file = ""
    with _sending(session, "", begin) as connection:
        for event in packets.events(connection):
            if event.kind == events.ROTATE:
                file = events.file_name(event)
            elif event.kind in events.BEGINS and place and file == place.file.name:
                reached = event.end_in_file - event.size >= place.at
                if reached:
                    return
            yield event


def _begun(
    session: MySqlSession, after: str, place: LogPlace | None, *, mariadb: bool
) -> EventStream:
    head, found = list[Received](), _sent(session, after)
    if place:
        # MySQL omits transactions even with a place; the one at the place must be sent.
        others = after if mariadb else GtidSet(place.gtid).lacks(after)
        near = _sent(session, others, place.file.name, place.at)
        try:
            known = _up_to(place, near)
        except pymysql.MySQLError:  # another file, or another server
            known = []
        if known:
            head, found = known, near
        else:
            near.close()
    with closing(found):
        yield from chain(head, found)


def _up_to(place: LogPlace, found: Iterable[Received]) -> list[Received]:
    """The events from a place up to the start of its transaction; empty if it is not there."""
    head = list[Received]()
    for event in found:
        head.append(event)
        if isinstance(event, ShortRun):
            return head if str(next(iter(event)).begin.gtid) == place.gtid else []
        if event.kind == events.FORMAT and place.file.begun(event) != place.file:
            break
        if begin := events.BEGINS.get(event.kind):
            return head if str(begin(event).gtid) == place.gtid else []
    return []


def _sent(session: MySqlSession, after: str, file: str = "", at: int = BEGINNING) -> EventStream:
    """The events from a place; without a file, those after the transactions `after`."""
    with _sending(session, after, file, at) as connection:
        yield from packets.received(connection)


@contextmanager
def _sending(session: MySqlSession, after: str, file: str, at: int = BEGINNING) -> Iterator[Any]:
    """A connection whose server sends its log."""
    with session.pool.lend() as live:
        try:
            _prepare(live, int(session.access.timeout * 1e9 / 3))
            _ask(live, after, file, at)
            yield live.connection
        finally:
            live.drop()  # it sends events, and replies to nothing else


def _prepare(live: LiveConnection, heartbeat: int) -> None:
    """Set up the session. `heartbeat` is in nanoseconds: it keeps a searching server audible."""
    live.run(f"SET SESSION net_write_timeout={WRITE_SECONDS}")
    live.run(f"SET @master_heartbeat_period={heartbeat}, @source_heartbeat_period={heartbeat}")
    live.run("SET @master_binlog_checksum='CRC32', @source_binlog_checksum='CRC32'")
    if live.mariadb:
        live.run("SET @mariadb_slave_capability=4, @slave_gtid_strict_mode=0")
        live.run("SET @slave_gtid_ignore_duplicates=0")


def _ask(live: LiveConnection, after: str, file: str, at: int) -> None:
    connection: Any = live.connection
    # Two replicas with the same number would end each other's connection.
    replica, name = random.randrange(2**31, 2**32), file.encode()  # noqa: S311 (no secret)
    if live.mariadb:
        # 4 bytes offset, 2 flags, 4 number of the replica, the file's name.
        if not file:
            live.run(f"SET @slave_connect_state='{GtidPosition(after)}'")
        asked = struct.pack("<IHI", at, NON_BLOCK, replica) + name
        connection._execute_command(COM_BINLOG_DUMP, asked)
        return
    # 2 bytes flags, 4 number of the replica, 4 size of the file's name, the name, 8 offset, 4 size
    # of the set of transactions to omit, the set.
    encoded = GtidSet(after).encoded()
    asked = struct.pack("<HII", NON_BLOCK | THROUGH_GTID, replica, len(name)) + name
    asked += struct.pack("<QI", at, len(encoded)) + encoded
    connection._execute_command(COM_BINLOG_DUMP_GTID, asked)


def _past_crashes(session: MySqlSession, after: str, found: EventStream) -> EventStream:
    """The same events, also after files that end within an event, as a crash of MariaDB leaves.

    The server's position at the start of the next file proves that nothing else is lost.
    """
    file, now = "", GtidPosition(after).last
    before = now
    while True:
        try:
            with closing(found):
                for event in found:
                    if isinstance(event, ShortRun):
                        before = now = now | event.last()
                    elif event.kind == events.ROTATE:
                        file = events.file_name(event)
                    elif event.kind == events.MARIADB_GTID:
                        gtid = events.begin_in_domain(event).gtid
                        before, now = now, now | GtidPosition(str(gtid)).last
                    yield event
            return
        except pymysql.MySQLError as error:
            following = _next(session, file) if number(error) == NOT_THERE else ""
            begun = following and GtidPosition(gtids_at(session, following)).last
            if begun not in (now, before):
                raise
            found = _sent(session, after, following)


def _next(session: MySqlSession, file: str) -> str:
    """The file that follows another one in the log."""
    names = [str(name) for name, *_ in session.run("SHOW BINARY LOGS")]
    return dict(pairwise(names)).get(file, "")
