"""Checks that all splits see one state of the server: each begins a snapshot and compares states.

MySQL logs a transaction before readers see it; with semi-synchronous replication the delay lasts
until a replica acknowledges it. So a state is certain only under two conditions. End of the log and
executed GTIDs must be equal before and after the start of the snapshot, and no committing session
may own a GTID. MariaDB reports the place in the log that matches a snapshot.

The check misses changes of sessions with ``sql_log_bin=0``.
"""

from __future__ import annotations

import logging
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import Any

import pymysql

from pyspark_mysql.server.client import MySqlSession
from pyspark_mysql.server.connection import LiveConnection
from sparkonce.errors import SnapshotBroken, StoreRefused

log = logging.getLogger("sparkonce")

VARIABLES = """
SHOW GLOBAL VARIABLES WHERE variable_name IN ('server_id', 'server_uuid', 'gtid_mode',
  'gtid_executed', 'gtid_owned', 'gtid_slave_pos', 'log_slave_updates', 'wsrep_on')
"""
STATUS = {True: ("SHOW MASTER STATUS",), False: ("SHOW BINARY LOG STATUS", "SHOW MASTER STATUS")}
"""The statements by whether the server is a MariaDB; MySQL renamed its own in 8.2."""

SNAPSHOTS = ("InnoDB", "ROCKSDB")
ENGINE = """
SELECT engine FROM information_schema.tables
WHERE table_schema = %s AND table_name = %s AND table_type <> 'VIEW'
"""

NO_LOG = "the server has no binary log, or the user has no right to see its end"
BEING_WRITTEN = "transactions are being committed"


@dataclass(frozen=True)
class SnapshotState:
    """The state that a snapshot sees."""

    place: str  # the executed transactions, for comparison; empty if unknown
    doubt: str = ""  # why equal places may be different states; empty if they are equal states


@contextmanager
def begun(live: LiveConnection) -> Iterator[None]:
    """Read one state of the server during the block."""
    try:
        # At READ COMMITTED, the level of the connector's sessions, the server takes no snapshot.
        live.run("SET TRANSACTION ISOLATION LEVEL REPEATABLE READ")
        live.run("START TRANSACTION WITH CONSISTENT SNAPSHOT, READ ONLY")
        yield
    finally:
        live.roll_back()


@contextmanager
def opened(live: LiveConnection) -> Iterator[SnapshotState]:
    """See `begun`; also returns the state."""
    before = _state_now(live)
    with begun(live):
        if live.mariadb and before.place:
            server = before.place.split(" ")[:-2]
            yield replace(before, place=" ".join([*server, *place_in_log(live)]))
        elif live.mariadb or _state_now(live) == before:
            yield before
        else:
            yield replace(before, doubt=BEING_WRITTEN)


def _state_now(live: LiveConnection) -> SnapshotState:
    there = dict(live.run(VARIABLES))
    end = end_of_log(live)
    if not end:
        return SnapshotState("", NO_LOG)
    file, position, filters = end[0], end[1], end[2:4]
    names = ("server_id", "server_uuid", "gtid_executed", "gtid_slave_pos")
    place = " ".join([*(there.get(name, "") for name in names), str(file), str(position)])
    filtered = "binlog_do_db or binlog_ignore_db excludes transactions from the binary log"
    doubt = filtered if any(filters) else _doubt(live, there)
    return SnapshotState("".join(place.split("\n")), doubt)


def _doubt(live: LiveConnection, there: Mapping[str, str]) -> str:
    if not live.mariadb and there["gtid_mode"] != "ON":
        return "gtid_mode is not ON, so it is unknown which logged transactions readers see"
    if not live.mariadb:
        return BEING_WRITTEN if there["gtid_owned"] else ""
    if there["log_slave_updates"] == "ON":
        return ""
    ((_, running),) = live.run("SHOW GLOBAL STATUS LIKE 'slaves\\_running'")
    replicates = int(running) > 0 or there.get("wsrep_on") == "ON"
    return "the server replicates and has log_slave_updates=OFF" if replicates else ""


def end_of_log(live: LiveConnection) -> Sequence[Any]:
    """The file and position at the end of the log, the logged databases, and the excluded ones.

    Empty if the user has no right to see them, or if the server has no log.
    """
    for asked in STATUS[live.mariadb]:
        try:
            found = live.run(asked)
        except pymysql.MySQLError:  # a right is missing, or the release has another statement
            continue
        return found[0] if found else ()
    return ()


def place_in_log(live: LiveConnection) -> tuple[str, str]:
    """The file and the offset up to which MariaDB's snapshot includes the log.

    MariaDB logs a transaction before readers see it. See
    https://mariadb.com/docs/server/server-usage/storage-engines/myrocks/start-transaction-with-consistent-snapshot.
    """
    status = dict(live.run("SHOW STATUS LIKE 'binlog\\_snapshot\\_%'"))
    return status["Binlog_snapshot_file"], status["Binlog_snapshot_position"]


def planned(session: MySqlSession, table: Sequence[str], *, demanded: bool) -> str:
    """The place of the state that all splits should see; empty if unknown.

    Args:
        session: the session that queries the server.
        table: database and name of the table; empty for a query.
        demanded: whether option ``consistency=snapshot`` demands one state: then an error reports
            a server with concurrent writes, or one that cannot verify the state.
    """
    with session.connected() as live, opened(live) as state:
        if demanded:
            _require_engine(session, table)
            _require_known(state)
        return state.place


@contextmanager
def held(live: LiveConnection, place: str, *, demanded: bool) -> Iterator[None]:
    """Read one state during the block, and report if it is not the state of the plan.

    Args:
        live: the connection that reads.
        place: see `planned`; empty if any state will do.
        demanded: see `planned`.
    """
    if not place:
        with begun(live):
            yield
        return
    with opened(live) as state:
        if demanded:
            _require_known(state)
        if state.place != place or state.doubt == BEING_WRITTEN:
            _report_change(demanded=demanded)
        yield


def _require_engine(session: MySqlSession, table: Sequence[str]) -> None:
    """Reject a table without snapshots, and a query or a view, which may read such a table."""
    found = session.run(ENGINE, *table) if table else ()
    engine = found[0][0] if found else None
    if engine in SNAPSHOTS:
        return
    what, why = (
        "the relation is not a table",
        "the connector can't know whether all tables of a query or a view have snapshots",
    )
    if engine:
        what, why = f"table {'.'.join(table)} has engine {engine}", "the engine has no snapshots"
    raise StoreRefused(
        f"Option consistency=snapshot can't be satisfied: {what}",
        why=why,
        todo="read a table with ENGINE=InnoDB; or omit the option and set numPartitions=1, which"
        " reads one state of all InnoDB tables",
    )


def _require_known(state: SnapshotState) -> None:
    if state.doubt == BEING_WRITTEN:
        _report_change(demanded=True)
    if state.doubt:
        raise StoreRefused(
            "Option consistency=snapshot can't be satisfied",
            why=f"{state.doubt}: the server can't show whether two splits see the same state",
            todo="use a server with a binary log and gtid_mode=ON (MariaDB replica: with"
            " log_slave_updates), and grant REPLICATION CLIENT (MariaDB: BINLOG MONITOR). Or omit"
            " the option and set numPartitions=1, which reads one state",
        )


def _report_change(*, demanded: bool) -> None:
    if demanded:
        raise SnapshotBroken(
            "Others wrote to the server between the plan of a read and one of its splits",
            why="consistency=snapshot demands that all splits see one state",
            todo="read again, beginning with load(), because Spark plans a DataFrame once: while"
            " nobody writes, from a replica whose SQL thread is stopped, or with numPartitions=1",
        )
    log.warning(
        "Splits of this read saw different states of the server: others wrote to it meanwhile."
        " Why: each split is one snapshot, and the snapshots began at different times. What to do:"
        " set option consistency=snapshot, which fails instead, or numPartitions=1"
    )
