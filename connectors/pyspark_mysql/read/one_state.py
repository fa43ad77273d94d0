"""Whether all splits see one state of the server: each begins a snapshot, and compares its state.

MySQL has a transaction in its binary log before readers see it, for as long as a replica takes to
acknowledge it (semi-synchronous replication). So a state is known only where the log ends at one
place and the same GTIDs are executed before and behind the begin of the snapshot, and no GTID is
owned by a session that commits. MariaDB gives the place in the log that a snapshot stands for.

What nothing tells: changes of a session with ``sql_log_bin=0``.
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
"""By whether it is MariaDB; the last word of MySQL since 8.2."""

SNAPSHOTS = ("InnoDB", "ROCKSDB")
ENGINE = """
SELECT engine FROM information_schema.tables
WHERE table_schema = %s AND table_name = %s AND table_type <> 'VIEW'
"""

NO_LOG = "the server has no binary log, or the user may not see where it ends"
BEING_WRITTEN = "transactions are being committed"


@dataclass(frozen=True)
class SnapshotState:
    """What a snapshot sees."""

    place: str  # which transactions have been, for comparing; empty where nothing tells
    doubt: str = ""  # why equal places may be different states; empty where they are the same


@contextmanager
def begun(live: LiveConnection) -> Iterator[None]:
    """Read one state of the server for the time of the block."""
    try:
        # At the level of our sessions, READ COMMITTED, the server takes no snapshot here.
        live.run("SET TRANSACTION ISOLATION LEVEL REPEATABLE READ")
        live.run("START TRANSACTION WITH CONSISTENT SNAPSHOT, READ ONLY")
        yield
    finally:
        live.roll_back()


@contextmanager
def opened(live: LiveConnection) -> Iterator[SnapshotState]:
    """The same, and say which state. Raises as `begun`."""
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
    filtered = "binlog_do_db or binlog_ignore_db leaves transactions out of the binary log"
    doubt = filtered if any(filters) else _doubt(live, there)
    return SnapshotState("".join(place.split("\n")), doubt)


def _doubt(live: LiveConnection, there: Mapping[str, str]) -> str:
    if not live.mariadb and there["gtid_mode"] != "ON":
        return "gtid_mode is not ON, so nothing tells which logged transactions readers see"
    if not live.mariadb:
        return BEING_WRITTEN if there["gtid_owned"] else ""
    if there["log_slave_updates"] == "ON":
        return ""
    ((_, running),) = live.run("SHOW GLOBAL STATUS LIKE 'slaves\\_running'")
    replicates = int(running) > 0 or there.get("wsrep_on") == "ON"
    return "the server replicates and has log_slave_updates=OFF" if replicates else ""


def end_of_log(live: LiveConnection) -> Sequence[Any]:
    """Its file and position, and the databases that are logged and those that are not.

    Empty where the user may not see that, or there is no log.
    """
    for asked in STATUS[live.mariadb]:
        try:
            found = live.run(asked)
        except pymysql.MySQLError:  # a right is lacking, or another release has the word
            continue
        return found[0] if found else ()
    return ()


def place_in_log(live: LiveConnection) -> tuple[str, str]:
    """The file and the offset up to which MariaDB's snapshot has what was logged.

    A transaction is in the log before readers see it. See
    https://mariadb.com/docs/server/server-usage/storage-engines/myrocks/start-transaction-with-consistent-snapshot.
    """
    status = dict(live.run("SHOW STATUS LIKE 'binlog\\_snapshot\\_%'"))
    return status["Binlog_snapshot_file"], status["Binlog_snapshot_position"]


def planned(session: MySqlSession, table: Sequence[str], *, demanded: bool) -> str:
    """The place of the state that all splits should see; empty where nothing tells.

    Args:
        session: asks.
        table: database and name of what is read; empty of a query.
        demanded: whether option ``consistency=snapshot`` demands that they do: then an error says
            that the server is being written to, or that nothing tells.
    """
    with session.connected() as live, opened(live) as state:
        if demanded:
            _require_engine(session, table)
            _require_known(state)
        return state.place


@contextmanager
def held(live: LiveConnection, place: str, *, demanded: bool) -> Iterator[None]:
    """Read one state for the time of the block, and tell whether it is the one of the plan.

    Args:
        live: reads.
        place: see `planned`; empty where it does not matter.
        demanded: as of `planned`.
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
    """Refuse a table without snapshots, and a query or a view, as what these read may be one."""
    found = session.run(ENGINE, *table) if table else ()
    engine = found[0][0] if found else None
    if engine in SNAPSHOTS:
        return
    what, why = (
        "it is no table",
        "nothing tells whether all that a query or a view reads has snapshots",
    )
    if engine:
        what, why = f"table {'.'.join(table)} has engine {engine}", "no snapshot fixes its rows"
    raise StoreRefused(
        f"Option consistency=snapshot can't be kept: {what}",
        why=why,
        todo="read a table with ENGINE=InnoDB; or leave the option out and set numPartitions=1,"
        " which reads one state of all such tables",
    )


def _require_known(state: SnapshotState) -> None:
    if state.doubt == BEING_WRITTEN:
        _report_change(demanded=True)
    if state.doubt:
        raise StoreRefused(
            "Option consistency=snapshot can't be kept",
            why=f"{state.doubt}: nothing tells whether two splits see the same state",
            todo="use a server with a binary log and gtid_mode=ON (MariaDB replica: with"
            " log_slave_updates), and grant REPLICATION CLIENT (MariaDB: BINLOG MONITOR); or leave"
            " the option out and set numPartitions=1, which reads one state",
        )


def _report_change(*, demanded: bool) -> None:
    if demanded:
        raise SnapshotBroken(
            "The server was written to between the plan of a read and one of its splits",
            why="consistency=snapshot demands that all splits see one state",
            todo="read again, from load() on, as Spark plans a DataFrame once: while nobody writes,"
            " from a replica whose SQL thread is stopped, or with numPartitions=1",
        )
    log.warning(
        "Splits of this read saw different states of the server: it was written to meanwhile."
        " Why: each split is one snapshot, and they began at different times. What to do:"
        " set option consistency=snapshot, which fails instead, or numPartitions=1"
    )
