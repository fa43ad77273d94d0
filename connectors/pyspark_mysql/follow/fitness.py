"""Whether a server's log can be followed: its settings, and whether it has what a query read."""

from __future__ import annotations

import logging
from dataclasses import dataclass

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

# Settings by which the log tells of each row, whole, what it was and became.
WANTED = {"log_bin": "1", "binlog_format": "ROW", "binlog_row_image": "FULL"}
OF_MYSQL = {"gtid_mode": "ON", "binlog_row_value_options": ""}

LOGS_REPLICATED = ("log_replica_updates", "log_slave_updates")
"""The first name is MySQL's since 8.0.26."""

FORMS = {"MySQL": "3e11fa47-71ca-11e1-9e33-c80aa9429562:1-100", "MariaDB": "0-1-100"}


@dataclass(frozen=True)
class LogServer:
    """A server, and which transactions it has."""

    mariadb: bool
    executed: str  # all that it ever had, or how far it is in each domain
    purged: str  # those that are no longer in its log
    state: str = ""  # of MariaDB, how far each server's are, which it has had

    @property
    def name(self) -> str:
        """What it is."""
        return "MariaDB" if self.mariadb else "MySQL"

    @property
    def had(self) -> GtidSet | GtidState:
        """All that it has ever had."""
        return GtidState(self.state) if self.mariadb else GtidSet(self.executed)


def log_server(session: MySqlSession) -> LogServer:
    """Ask a server; one whose settings don't let it be followed is refused (`StoreRefused`)."""
    with session.connected() as live:
        wanted = WANTED if live.mariadb else WANTED | OF_MYSQL
        (found,) = live.run("SELECT " + ", ".join(f"@@global.{name}" for name in wanted))
        for (name, needed), value in zip(wanted.items(), map(str, found), strict=True):
            if value.upper() != needed:
                raise StoreRefused(
                    f"The server's {name} is {value!r}",
                    why="its binary log does not tell of each row what it was and became",
                    todo=f"set {name} to {needed!r}; what was logged before stays as it is",
                )
        if live.mariadb:
            return _mariadb(live)
        ((executed, purged),) = live.run("SELECT @@global.gtid_executed, @@global.gtid_purged")
        return LogServer(False, _one_line(executed), _one_line(purged))


def _mariadb(live: LiveConnection) -> LogServer:
    asked = "SELECT @@global.gtid_binlog_pos, @@global.gtid_binlog_state"
    ((executed, state),) = live.run(asked)
    first, *_ = live.run("SHOW BINARY LOGS")[0]
    there = GtidPosition(executed).last  # domains that were deleted are none any more
    gone = {at: one for at, one in GtidPosition(gtids_at(live, first)).last.items() if at in there}
    return LogServer(True, _one_line(executed), position_text(gone), _one_line(state))


def gtids_at(server: LiveConnection | MySqlSession, file: str, at: str = "4") -> str:
    """How far MariaDB was at an offset of a file of its log; by default where the file begins."""
    ((found,),) = server.run("SELECT BINLOG_GTID_POS(%s, %s)", file, int(at))
    return _one_line(found or "")


def _one_line(gtids: str) -> str:
    return "".join(gtids.split())


def require_all_logged(session: MySqlSession) -> None:
    """Refuse a server whose log lacks changes, as far as the user may see that."""
    with session.connected() as live:
        ((name, value), *_) = session.variables(*LOGS_REPLICATED).items()
        replicated = live.mariadb and live.run("SELECT @@global.gtid_slave_pos")[0][0]
        if value != "ON" and (replicated or not live.mariadb):
            raise StoreRefused(
                f"The server's {name} is off",
                why="what it gets as a replica is not in its binary log",
                todo=f"start it with {name}, or follow another server",
            )
        for filtered in filter(None, end_of_log(live)[2:4]):
            raise StoreRefused(
                f"The server's binary log leaves out databases: {filtered}",
                why="of what is left out nothing would be seen",
                todo="start it without binlog_do_db and binlog_ignore_db, or follow another server",
            )


def require_dialect(starts: str, server: LogServer) -> None:
    """Refuse an option's GTIDs that are written as another kind of server writes them."""
    if not is_written_by(starts, mariadb=server.mariadb):
        raise OptionError(
            f"Option {STARTS} is {starts!r}, which is no set of GTIDs of the server",
            why=f"it is a {server.name}",
            todo=f"write it as the server does: {FORMS[server.name]}",
        )


def executed(read: str, server: LogServer, *, fails: bool) -> str:
    """What the server has of transactions that were read; an error, or a warning, if not all.

    What was read of another kind of server is refused: none of it means anything to this one.
    """
    if not is_written_by(read, mariadb=server.mariadb):
        raise StoreRefused(
            f"The checkpoint says that {read} was read, which is no set of GTIDs of the server",
            why=f"it is a {server.name}, and the query read another kind of server before",
            todo="let option url lead to that one; or bring the target in line with the table, and"
            " begin a new query with a new checkpointLocation",
        )
    lacking = server.had.lacks(read)
    if not lacking:
        return read
    error = StoreUnreachable(
        f"The server has never had transactions {lacking}, which the query has read, or is to begin"
        " behind",
        why="it is a replica that is behind, or it lost them in a failover",
        todo="wait for it; if they are lost, bring the target in line with the table:"
        " failOnDataLoss=false goes on without them",
    )
    if fails:
        raise error
    log.warning("%s", error)
    shared = server.had.common(read)
    if shared is None:
        raise StoreRefused(
            f"Up to where the server has what was read before transactions {lacking} can't be told",
            why="the server that gave these gave none that this one has",
            todo="bring the target in line with the table, and begin a new query with a new"
            " checkpointLocation",
        )
    return shared


def require_all_read(behind: str, wanted: GtidRange) -> None:
    """Refuse an end of the log before all was read: a replica may get the rest."""
    if missing := wanted.missing():
        raise StoreUnreachable(
            f"The server's log ends without transactions {missing}",
            why=f"they were there when an epoch was planned behind {behind}",
            todo="look whether option url leads to another server now, and at its replication",
        )


def purged(gone: str, table: str, *, in_snapshot: bool) -> UnreadLost:
    """The error for transactions that are no longer in the log."""
    todo = "bring the target in line with the table; failOnDataLoss=false goes on without them"
    if in_snapshot:
        todo = "begin a new query, and let the server keep its log for as long as a snapshot takes"
    return UnreadLost(
        f"Transactions {gone} were purged before they were read: what they did to"
        f" {table} is not known",
        why="the server keeps its binary log for a time (binlog_expire_logs_seconds), and the query"
        " was down or behind for longer",
        todo=todo,
    )
