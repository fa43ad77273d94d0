"""Whether all splits saw one state of the server: where its binary log ended when each began."""

from __future__ import annotations

import logging
from collections.abc import Iterator
from contextlib import contextmanager

import pymysql

from pyspark_mysql.server.connection import Live
from sparkonce.errors import SnapshotBroken, StoreRefused

log = logging.getLogger("sparkonce")

ASKED = {True: "SELECT @@gtid_binlog_pos", False: "SELECT @@global.gtid_executed"}
STATUS = {True: ("SHOW MASTER STATUS",), False: ("SHOW BINARY LOG STATUS", "SHOW MASTER STATUS")}
"""By whether it is MariaDB; the last word of MySQL since 8.2."""


def position(live: Live) -> str:
    """All transactions that the server has logged; empty where it does not tell.

    The end of its binary log, too: without GTIDs that alone moves.
    """
    ((gtids,),) = live.run(ASKED[live.mariadb])
    for asked in STATUS[live.mariadb]:
        try:
            found = live.run(asked)
        except pymysql.MySQLError:  # a right is lacking, or another release has the word
            continue
        return " ".join(map(str, found[0][:2])) if found else ""
    return str(gtids).replace("\n", "")


@contextmanager
def held(live: Live, planned: str, *, demanded: bool) -> Iterator[None]:
    """Read one state for the time of the block, and tell whether it is the one of the plan.

    Raises:
        SnapshotBroken: it is not, and option ``consistency=snapshot`` demands it.
    """
    try:
        before = position(live)
        # At the level of our sessions, READ COMMITTED, the server takes no snapshot here.
        live.run("SET TRANSACTION ISOLATION LEVEL REPEATABLE READ")
        live.run("START TRANSACTION WITH CONSISTENT SNAPSHOT, READ ONLY")
        _compare(planned, before if position(live) == before else "", demanded=demanded)
        yield
    finally:
        live.roll_back()


def require_known(known: str) -> None:
    """Refuse ``consistency=snapshot`` where nothing tells whether it is one.

    Raises:
        StoreRefused: the server has no binary log, or does not show where it ends.
    """
    if not known:
        raise StoreRefused(
            "Option consistency=snapshot can't be kept",
            why="the server has no binary log, or the user may not see where it ends",
            todo="grant REPLICATION CLIENT (MariaDB: BINLOG MONITOR), or leave the option out and"
            " set numPartitions=1, which reads one state",
        )


def _compare(planned: str, found: str, *, demanded: bool) -> None:
    """Tell whether a split saw the state that the read was planned at.

    Raises:
        SnapshotBroken: it did not, and option ``consistency=snapshot`` demands it.
    """
    if not planned or planned == found:
        return
    if demanded:
        raise SnapshotBroken(
            "The server was written to between the plan of a read and one of its splits",
            why="consistency=snapshot demands that all splits see one state",
            todo="read again while nobody writes, from a replica whose SQL thread is stopped, or"
            " with numPartitions=1",
        )
    log.warning(
        "Splits of this read saw different states of the server: it was written to meanwhile."
        " Why: each split is one snapshot, and they began at different times. What to do:"
        " set option consistency=snapshot, which fails instead, or numPartitions=1"
    )
