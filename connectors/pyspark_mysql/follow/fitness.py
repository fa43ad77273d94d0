"""Whether a server's log can be followed: its settings, and what it still has."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from pyspark_mysql.binlog.positions import GtidPosition, lacking, shared
from pyspark_mysql.binlog.sets import GtidSet
from pyspark_mysql.read.snapshot import end_of_log
from pyspark_mysql.server.client import Session
from pyspark_mysql.server.connection import Live
from sparkonce.errors import StoreRefused

WANTED = {
    "log_bin": "1",
    "binlog_format": "ROW",
    "binlog_row_image": "FULL",
}
OF_MYSQL = {"gtid_mode": "ON", "binlog_row_value_options": ""}
"""Settings by which the log tells of each row, whole, what it was and became."""


LOGS_REPLICATED = (
    "SHOW GLOBAL VARIABLES WHERE Variable_name IN ('log_replica_updates', 'log_slave_updates')"
)
"""The first name is MySQL's since 8.0.26."""


@dataclass(frozen=True)
class Server:
    """A server, and which transactions it has.

    Attributes:
        executed: all that it ever had, or how far it is in each domain.
        purged: those that are no longer in its log.
        state: of MariaDB, how far each server's are, which it has had.
    """

    mariadb: bool
    executed: str
    purged: str
    state: str = ""

    def lacks(self, read: str) -> str:
        """Those that it has never had."""
        if self.mariadb:
            return lacking(self.state, read)
        return GtidSet(self.executed).lacks(read)

    def shared(self, read: str) -> str | None:
        """Those of them that it has had; None where that can't be told."""
        if self.mariadb:
            return shared(self.state, read)
        return GtidSet(read).common(self.executed) or None


def server(session: Session) -> Server:
    """Ask a server; one that can't be followed is refused.

    Raises:
        pymysql.MySQLError: it does not answer.
        StoreRefused: a setting is another one.
    """
    with session.connected() as live:
        _require_fit(live)
        return _mariadb(live) if live.mariadb else _mysql(live)


def require_all_logged(session: Session) -> None:
    """Refuse a server whose log lacks changes, as far as the user may see that.

    Raises:
        pymysql.MySQLError: it does not answer.
        StoreRefused: it does.
    """
    with session.connected() as live:
        name, value = live.run(LOGS_REPLICATED)[0]
        replicated = live.mariadb and live.run("SELECT @@global.gtid_slave_pos")[0][0]
        if value != "ON" and (replicated or not live.mariadb):
            raise StoreRefused(
                f"The server's {name} is off",
                why="what it gets as a replica is not in its binary log",
                todo=f"start it with {name}, or follow another server",
            )
        for filtered in _filters(live):
            raise StoreRefused(
                f"The server's binary log leaves out databases: {filtered}",
                why="of what is left out nothing would be seen",
                todo="start it without binlog_do_db and binlog_ignore_db, or follow another server",
            )


def _filters(live: Live) -> Iterator[str]:
    """What the log has alone, or leaves out; nothing where the user may not see that."""
    yield from (str(one) for one in end_of_log(live)[2:4] if one)


def _require_fit(live: Live) -> None:
    wanted = WANTED if live.mariadb else WANTED | OF_MYSQL
    (found,) = live.run("SELECT " + ", ".join(f"@@global.{name}" for name in wanted))
    for (name, needed), value in zip(wanted.items(), map(str, found), strict=True):
        if value.upper() != needed:
            raise StoreRefused(
                f"The server's {name} is {value!r}",
                why="its binary log does not tell of each row what it was and became",
                todo=f"set {name} to {needed!r}; what was logged before stays as it is",
            )


def _mysql(live: Live) -> Server:
    ((executed, purged),) = live.run("SELECT @@global.gtid_executed, @@global.gtid_purged")
    return Server(False, _one_line(executed), _one_line(purged))


def _mariadb(live: Live) -> Server:
    asked = "SELECT @@global.gtid_binlog_pos, @@global.gtid_binlog_state"
    ((executed, state),) = live.run(asked)
    first, *_ = live.run("SHOW BINARY LOGS")[0]
    there = GtidPosition(executed).last
    gone = GtidPosition(gtids_at(live, first))  # domains that were deleted are none any more
    gone.last = {domain: one for domain, one in gone.last.items() if domain in there}
    return Server(True, _one_line(executed), str(gone), _one_line(state))


def gtids_at(server: Live | Session, file: str, at: str = "4") -> str:
    """How far MariaDB was at an offset of a file of its log; by default where the file begins."""
    ((found,),) = server.run("SELECT BINLOG_GTID_POS(%s, %s)", file, int(at))
    return _one_line(found or "")


def _one_line(gtids: str) -> str:
    return "".join(gtids.split())
