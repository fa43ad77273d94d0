"""Checks that a server's log can be followed: its settings, and the transactions that it has."""

from __future__ import annotations

import logging
from collections.abc import Mapping
from dataclasses import dataclass
from itertools import chain

from pyspark_mysql.binlog.gtids import (
    GtidPosition,
    GtidRange,
    GtidSet,
    GtidState,
    is_written_by,
    position_text,
)
from pyspark_mysql.read.one_state import end_of_log
from pyspark_mysql.server.client import MySqlSession
from pyspark_mysql.server.connection import LiveConnection
from sparkonce.errors import OptionError, StoreRefused, StoreUnreachable, UnreadLost
from sparkonce.reading import STARTS

log = logging.getLogger("sparkonce")

NEEDED = {"log_bin": "ON", "binlog_format": "ROW", "binlog_row_image": "FULL"}
NEEDED_OF_MYSQL = {"gtid_mode": "ON", "binlog_row_value_options": ""}
"""Settings with which the log has each changed row in full, before and after the change."""

LINES = {
    "log_bin": ("log_bin = binlog", "sync_binlog = 1"),
    "gtid_mode": ("gtid_mode = ON", "enforce_gtid_consistency = ON"),
}
"""What a configuration file has for a setting, where that is not the setting with its value."""

LOGS_REPLICATED = ("log_replica_updates", "log_slave_updates")
"""The first name is MySQL's since 8.0.26."""

FORMS = {"MySQL": "3e11fa47-71ca-11e1-9e33-c80aa9429562:1-100", "MariaDB": "0-1-100"}


@dataclass(frozen=True)
class LogServer:
    """A server, and the transactions that it has."""

    mariadb: bool
    executed: str  # all transactions ever executed, or the position in each domain
    purged: str  # transactions that are no longer in its log
    state: str = ""  # MariaDB: the last transaction of each server whose transactions it has had

    @property
    def name(self) -> str:
        """The product."""
        return "MariaDB" if self.mariadb else "MySQL"

    @property
    def had(self) -> GtidSet | GtidState:
        """All transactions that the server has ever had."""
        return GtidState(self.state) if self.mariadb else GtidSet(self.executed)


def log_server(session: MySqlSession) -> LogServer:
    """Query a server.

    Raises:
        StoreRefused: its settings do not allow to follow it.
    """
    with session.connected() as live:
        wanted = NEEDED if live.mariadb else NEEDED | NEEDED_OF_MYSQL
        (found,) = live.run("SELECT " + ", ".join(f"@@global.{name}" for name in wanted))
        given = dict(zip(wanted, (SWITCH.get(str(one), str(one)) for one in found), strict=True))
        _require(given, wanted)
        if live.mariadb:
            return _mariadb(live)
        ((executed, purged),) = live.run("SELECT @@global.gtid_executed, @@global.gtid_purged")
        return LogServer(False, _one_line(executed), _one_line(purged))


SWITCH = {"0": "OFF", "1": "ON"}


def _require(given: Mapping[str, str], wanted: Mapping[str, str]) -> None:
    wrong = {name: given[name] for name in wanted if given[name].upper() != wanted[name]}
    if not wrong:
        return
    lines = (LINES.get(name, (f"{name} = {wanted[name]}",)) for name in wrong)
    raise StoreRefused(
        "A stream can't follow a server with "
        + ", ".join(f"{name} = {value}" for name, value in wrong.items()),
        why="its binary log lacks changes, values of changed rows, or the GTIDs of transactions",
        todo=f"append to its configuration file: [mysqld], {', '.join(chain(*lines))}, each on a"
        " line of its own; restart the server. Transactions logged before stay unchanged",
    )


def _mariadb(live: LiveConnection) -> LogServer:
    asked = "SELECT @@global.gtid_binlog_pos, @@global.gtid_binlog_state"
    ((executed, state),) = live.run(asked)
    first, *_ = live.run("SHOW BINARY LOGS")[0]
    there = GtidPosition(executed).last  # without deleted domains
    gone = {at: one for at, one in GtidPosition(gtids_at(live, first)).last.items() if at in there}
    return LogServer(True, _one_line(executed), position_text(gone), _one_line(state))


def gtids_at(server: LiveConnection | MySqlSession, file: str, at: str = "4") -> str:
    """MariaDB's position at an offset of a file of its log; by default at the file's beginning."""
    ((found,),) = server.run("SELECT BINLOG_GTID_POS(%s, %s)", file, int(at))
    return _one_line(found or "")


def _one_line(gtids: str) -> str:
    return "".join(gtids.split())


def require_all_logged(session: MySqlSession) -> None:
    """Reject a server whose log lacks changes, as far as the user may see its settings."""
    with session.connected() as live:
        ((name, value), *_) = session.variables(*LOGS_REPLICATED).items()
        replicated = live.mariadb and live.run("SELECT @@global.gtid_slave_pos")[0][0]
        if value != "ON" and (replicated or not live.mariadb):
            raise StoreRefused(
                f"The server's {name} is off",
                why="its binary log lacks the changes that it receives as a replica",
                todo=f"start it with {name}, or follow another server",
            )
        for filtered in filter(None, end_of_log(live)[2:4]):
            raise StoreRefused(
                f"The server's binary log excludes databases: {filtered}",
                why="the stream would miss the excluded changes",
                todo="start it without binlog_do_db and binlog_ignore_db, or follow another server",
            )


def require_dialect(starts: str, server: LogServer) -> None:
    """Reject GTIDs of an option that have the form of the other kind of server."""
    if not is_written_by(starts, mariadb=server.mariadb):
        raise OptionError(
            f"Option {STARTS} is {starts!r}, which is not a GTID set of the server",
            why=f"the server is a {server.name}",
            todo=f"write the set as the server does: {FORMS[server.name]}",
        )


def executed(read: str, server: LogServer, *, fails: bool) -> str:
    """The transactions among those read that the server has; an error or a warning if it lacks any.

    Transactions of the other kind of server are rejected: this server does not know their GTIDs.
    """
    if not is_written_by(read, mariadb=server.mariadb):
        raise StoreRefused(
            f"The checkpoint has {read} as read, which is not a GTID set of the server",
            why=f"the server is a {server.name}, and the query read another kind of server before",
            todo="point option url at that server; or reconcile the target with the table, and"
            " start a new query with a new checkpointLocation",
        )
    lacking = server.had.lacks(read)
    if not lacking:
        return read
    error = StoreUnreachable(
        f"The server has never had transactions {lacking}, which the query has read or that"
        " startingPosition names",
        why="the server is a replica that lags, or it lost them in a failover",
        todo="wait for the replica; if they are lost, reconcile the target with the table:"
        " failOnDataLoss=false continues without them",
    )
    if fails:
        raise error
    log.warning("%s", error)
    shared = server.had.common(read)
    if shared is None:
        raise StoreRefused(
            f"The last transaction that the server shares with the query before {lacking} is"
            " unknown",
            why="this server has no transaction of the server that executed those",
            todo="reconcile the target with the table, and start a new query with a new"
            " checkpointLocation",
        )
    return shared


def require_all_read(behind: str, wanted: GtidRange) -> None:
    """Reject a log that ends before the wanted transactions: a replica may receive them later."""
    if missing := wanted.missing():
        raise StoreUnreachable(
            f"The server's log ends without transactions {missing}",
            why=f"the server had them when it planned an epoch after {behind}",
            todo="check whether option url leads to another server now, and check its replication",
        )


def purged(gone: str, table: str, *, in_snapshot: bool) -> UnreadLost:
    """The error for transactions that are no longer in the log."""
    todo = "reconcile the target with the table; failOnDataLoss=false continues without them"
    if in_snapshot:
        todo = "start a new query, and let the server keep its log for as long as a snapshot takes"
    return UnreadLost(
        f"The server purged transactions {gone} before the query read them: their changes to"
        f" {table} are unknown",
        why="the server keeps its binary log for a limited time (binlog_expire_logs_seconds), and"
        " the query was down or behind for longer",
        todo=todo,
    )
