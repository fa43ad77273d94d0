"""Whether a server's log can be followed: its settings, and what it still has."""

from __future__ import annotations

from dataclasses import dataclass

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


@dataclass(frozen=True)
class Server:
    """A server, and which transactions it has.

    Attributes:
        executed: all that it ever had.
        purged: those that are no longer in its log.
    """

    mariadb: bool
    executed: str
    purged: str


def server(session: Session) -> Server:
    """Ask a server; one that can't be followed is refused.

    Raises:
        pymysql.MySQLError: it does not answer.
        StoreRefused: a setting is another one.
    """
    with session.connected() as live:
        _require_fit(live)
        executed, purged = _mariadb(live) if live.mariadb else _mysql(live)
        return Server(live.mariadb, "".join(executed.split()), "".join(purged.split()))


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


def _mysql(live: Live) -> tuple[str, str]:
    ((executed, purged),) = live.run("SELECT @@global.gtid_executed, @@global.gtid_purged")
    return executed, purged


def _mariadb(live: Live) -> tuple[str, str]:
    ((executed,),) = live.run("SELECT @@global.gtid_binlog_pos")
    first, *_ = live.run("SHOW BINARY LOGS")[0]
    ((purged,),) = live.run("SELECT BINLOG_GTID_POS(%s, 4)", first)
    return executed, purged or ""
