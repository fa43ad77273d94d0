"""How a server is asked for its binary log: as a replica would ask."""

from __future__ import annotations

import random
import struct
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from pyspark_mysql.binlog.packets import Event, events
from pyspark_mysql.binlog.positions import GtidPosition
from pyspark_mysql.binlog.sets import GtidSet
from pyspark_mysql.reading.source import WRITE_SECONDS
from pyspark_mysql.server.client import Session
from pyspark_mysql.server.connection import Live

NON_BLOCK, THROUGH_GTID = 1, 4
COM_BINLOG_DUMP, COM_BINLOG_DUMP_GTID = 0x12, 0x1E


@contextmanager
def log_behind(session: Session, after: str) -> Iterator[Iterator[Event]]:
    """The events of all transactions that are none of `after`, up to the end of the log.

    Whatever a reader of tables can see is in it: a transaction is logged before it is visible.

    Raises:
        pymysql.MySQLError: the server does not send them.
    """
    with session.pool.lend() as live:
        try:
            _ask(live, after, int(session.access.timeout * 1e9 / 3))
            yield events(live.connection)
        finally:
            live.drop()  # it sends events, and answers nothing else


def _ask(live: Live, after: str, heartbeat: int) -> None:
    """Ask; a server that looks for its place in the log says after nanoseconds that it is there."""
    # Two replicas of one number would end each other's connection.
    number = random.randrange(2**31, 2**32)  # noqa: S311 (no secret)
    connection: Any = live.connection
    live.run(f"SET SESSION net_write_timeout={WRITE_SECONDS}")
    live.run(f"SET @master_heartbeat_period={heartbeat}, @source_heartbeat_period={heartbeat}")
    live.run("SET @master_binlog_checksum='CRC32', @source_binlog_checksum='CRC32'")
    if live.mariadb:
        live.run("SET @mariadb_slave_capability=4, @slave_gtid_strict_mode=0")
        live.run("SET @slave_gtid_ignore_duplicates=0")
        live.run(f"SET @slave_connect_state='{GtidPosition(after)}'")
        connection._execute_command(COM_BINLOG_DUMP, struct.pack("<IHI", 4, NON_BLOCK, number))
        return
    encoded = GtidSet(after).encoded()
    head = struct.pack("<HIIQI", NON_BLOCK | THROUGH_GTID, number, 0, 4, len(encoded))
    connection._execute_command(COM_BINLOG_DUMP_GTID, head + encoded)
