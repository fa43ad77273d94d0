"""What is said where a server does not have what a query has read, or is to read."""

from __future__ import annotations

from pyspark_mysql.binlog.gtids import is_of
from pyspark_mysql.binlog.log import Refusal
from pyspark_mysql.binlog.transactions import Stretch
from pyspark_mysql.follow.fitness import Server
from sparkonce.errors import OptionError, StoreRefused, StoreUnreachable, UnreadLost
from sparkonce.feeds import STARTS


def require_dialect(starts: str, server: Server) -> None:
    """Refuse GTIDs that are written as another kind of server writes them.

    Raises:
        OptionError: they are.
    """
    if not is_of(starts, mariadb=server.mariadb):
        name = "MariaDB" if server.mariadb else "MySQL"
        form = "0-1-100" if server.mariadb else "3e11fa47-71ca-11e1-9e33-c80aa9429562:1-100"
        raise OptionError(
            f"Option {STARTS} is {starts!r}, which is no set of GTIDs of the server",
            why=f"it is a {name}",
            todo=f"write it as the server does: {form}",
        )


def require_same_kind(read: str, server: Server) -> None:
    """Refuse what was read of another kind of server: none of it means anything to this one.

    Raises:
        StoreRefused: it was.
    """
    if not is_of(read, mariadb=server.mariadb):
        name = "MariaDB" if server.mariadb else "MySQL"
        raise StoreRefused(
            f"The checkpoint says that {read} was read, which is no set of GTIDs of the server",
            why=f"it is a {name}, and the query read another kind of server before",
            todo="let option url lead to that one; or bring the target in line with the table, and"
            " begin a new query with a new checkpointLocation",
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


def strange(gtids: str) -> StoreUnreachable:
    """The error for transactions that a server has never had."""
    return StoreUnreachable(
        f"The server has never had transactions {gtids}, which the query has read, or is to begin"
        " behind",
        why="it is a replica that is behind, or it lost them in a failover",
        todo="wait for it; if they are lost, bring the target in line with the table:"
        " failOnDataLoss=false goes on without them",
    )


def untold(gtids: str) -> StoreRefused:
    """The error for a server of which nobody knows up to where it has what was read."""
    return StoreRefused(
        f"Up to where the server has what was read before transactions {gtids} can't be told",
        why="the server that gave these gave none that this one has",
        todo="bring the target in line with the table, and begin a new query with a new"
        " checkpointLocation",
    )


def require_all(behind: str, stretch: Stretch) -> None:
    """Refuse an end of the log before all was read.

    Raises:
        StoreUnreachable: it may be a replica, which gets the rest.
    """
    if missing := stretch.missing():
        raise StoreUnreachable(
            f"The server's log ends without transactions {missing}",
            why=f"they were there when an epoch was planned behind {behind}",
            todo="look whether option url leads to another server now, and at its replication",
        )


def refused(by: Refusal, *, in_snapshot: bool) -> StoreRefused:
    """The error for a transaction whose rows can't be told."""
    passed = f"; the stream can go on behind it with skipTransactions={by.gtid}, without its rows"
    begun = ", and begin a new query: this one's snapshot can't be made any more"
    return StoreRefused(
        f"Transaction {by.gtid} {by.what}", by.why, by.todo + (begun if in_snapshot else passed)
    )


def altered(table: str, by: Refusal) -> StoreRefused:
    """The error for rows without names of columns, behind which their table was altered."""
    return StoreRefused(
        f"Rows of {table} can't be told that were logged before transaction {by.gtid}, which"
        f" {by.what}",
        why="the table may have other columns since, and the log has no names of them"
        " (binlog_row_metadata)",
        todo="bring the target in line with the table, SET GLOBAL binlog_row_metadata=FULL, and"
        " begin a new query behind that transaction",
    )
