"""The server's errors as ours: one table by number, one place."""

from __future__ import annotations

import enum
from collections.abc import Iterator
from contextlib import contextmanager
from typing import NamedTuple

import pymysql

from sparkonce.errors import StoreError, StoreRefused, StoreUnreachable


class Kind(enum.Enum):
    """What an error asks for."""

    LOST = "the connection is gone: the outcome may be unknown"
    PASSING = "nothing was done; the same may work in a moment"
    ROW = "a row can't be stored"
    REFUSED = "someone must change something"


class Known(NamedTuple):
    """What is known of an error number."""

    kind: Kind
    why: str
    todo: str


AGAIN = "check option url and the server; what is started again loses and doubles nothing"
MENDED = "then restart the query; it goes on where it stopped"
_NULL = "mend the row before the sink, or let the column take it"


def _lost(why: str) -> Known:
    return Known(Kind.LOST, why, AGAIN)


def _passing(why: str, todo: str = AGAIN) -> Known:
    return Known(Kind.PASSING, why, todo)


def _row(why: str, todo: str = _NULL) -> Known:
    return Known(Kind.ROW, why, todo)


def _refused(why: str, todo: str) -> Known:
    return Known(Kind.REFUSED, why, f"{todo}, {MENDED}")


_PASSWORD = _refused(
    "the server does not take this user and password from this host",
    "check options user, password and passwordFile, or the URL",
)
GRANT = "grant it as docs/permissions.md lists"
_RIGHTS = _refused("the user lacks a right", GRANT)
_ALTERED = _refused(
    "the table was dropped, renamed or altered since it was checked",
    "bring the table and the query's columns together again",
)
_READ_ONLY = _passing("the server is read-only, as a replica is", "point option url at the primary")
_FULL = _refused("the server has no room left", "free disk space on the server")
_PACKET = _refused("max_allowed_packet of the server is too small", "raise it")
_LARGE = _refused(
    "the epoch is larger than the server lets a transaction be",
    "raise that limit, or, unless it overwrites, set option atomicity=chunk, which takes several",
)
_BUSY = _passing("the server has no connection left for this user")
_LOCK = "another session locked the same rows; all of the transaction was rolled back"

DEMOTED = {1290, 1792, 1836}
"""Numbers of a server that takes no writes: after a failover the name may lead to another one."""

_BY_NUMBERS = {
    # The connection.
    (2006, 1152, 1184): _lost("the connection was closed"),
    (2013,): _lost("the connection was lost, or no answer came within option timeout"),
    (2055,): _lost("the connection was lost"),
    (1053, 1077, 1079): _lost("the server shuts down"),
    (1158, 1160): _lost("the network failed"),
    (1159, 1161): _lost("the network was too slow"),
    (1317,): _lost("someone ended the statement (KILL)"),
    (1927,): _lost("someone ended the connection (KILL), or it was idle too long"),
    (4031,): _lost("the connection was idle too long"),
    (2003,): _passing("the server is down, or the network or option url is wrong"),
    (2005,): _passing("the host's name is not known"),
    (1040, 1203, 1226): _BUSY,
    (1129,): _refused("the server blocks this host after many failures", "FLUSH HOSTS there"),
    (1205,): _passing(
        _LOCK, "look for a long transaction on the target, or raise option maxRetries"
    ),
    (1213,): _passing(_LOCK, "look at what else writes to the target, or raise option maxRetries"),
    (1412,): _passing("the table was altered in the same moment"),
    (3032,): _passing("the server is in offline mode"),
    (1637,): _passing("the server has too many transactions at once"),
    (3101,): _passing("another member of the group wrote the same rows"),
    (1047,): _passing("the node does not belong to its cluster now"),
    (9001,): _passing("ProxySQL reached no server of its group"),
    (1290, 1792, 1836): _READ_ONLY,
    # Rows.
    (1022,): _row("the key is there already"),
    (1048, 1263): _row("the column can't be null"),
    (1364,): _row(
        "a column that can't be null got no value, from the query or from a trigger",
        "add the column to the query, or let the trigger fill it in each row",
    ),
    (1062,): _row(
        "a row with this key is there already",
        "use writeMode=upsert, drop the duplicates before the sink, or delete the stored row",
    ),
    (1169,): _row("a unique key has this value already"),
    (1216, 1452): _row("a foreign key finds no such row"),
    (1217, 1451): _row("other rows point to this one"),
    (1264,): _row("the number does not fit the column"),
    (1265,): _row("the column would keep only a part of the value"),
    (1267, 1270, 1271, 3854): _row("the key's column can't hold all characters of the text"),
    (1292, 1367, 1411): _row("the value is none of the column's type"),
    (1365,): _row("an expression of the table divides by zero"),
    (1366,): _row("the value is none of the column's type or character set"),
    (1406,): _row("the value is longer than the column"),
    (1441,): _row("the date leaves its range"),
    (1526,): _row("the table has no partition for it"),
    (1644,): _row("a trigger refused it"),
    (1690,): _row("the sum leaves the column's range"),
    (1748,): _row("the row belongs to another partition"),
    (1761, 1762): _row("a foreign key would make a duplicate"),
    (3140, 3141): _row("the text is no JSON"),
    (3751, 3903, 3907): _row("the value does not fit an index of the table"),
    (3156,): _row("the JSON is not of the type asked for"),
    (3157,): _row("the JSON is nested too deeply"),
    (3819, 4025): _row("a CHECK constraint refused it"),
    (1118,): _row("the row is too large for the table"),
    # Someone must change something.
    (1044,): _refused("the user has no right to this database", GRANT),
    (1045, 1698): _PASSWORD,
    (1820,): _refused("the user's password is to be changed", "change it"),
    (1862,): _refused("the user's password has expired", "change it"),
    (3118, 4151): _refused("the user's account is locked", "unlock it"),
    (2059,): _refused(
        "the client does not know the user's way to log in",
        "give the user caching_sha2_password or mysql_native_password",
    ),
    (1251,): _refused("the client does not know the user's way to log in", "give the user another"),
    (3159,): _refused("the server takes connections with TLS only", "set option tlsMode=verify"),
    (1142, 1143, 1227, 1370): _RIGHTS,
    (1049,): _refused("there is no such database", "create it, or mend option url or dbtable"),
    (1046,): _refused("no database is named", "name one in option url or dbtable"),
    (1146, 1051, 1052, 1054, 1136, 3105, 1906): _ALTERED,
    (1288, 1471): _refused("the target can't be written", "name a base table in option dbtable"),
    (1021, 1114, 1041, 1037): _FULL,
    (1206,): _refused("InnoDB has no memory for so many locks", "raise innodb_buffer_pool_size"),
    (1153, 1301): _PACKET,
    (1197, 1180, 3100): _LARGE,
    (1665,): _refused(
        "binlog_format=STATEMENT can't log what this isolation level changes",
        "set binlog_format to ROW or MIXED",
    ),
    (1969,): _refused(
        "a limit of the server on the time of a statement", "raise max_statement_time"
    ),
    (3024,): _refused(
        "a limit of the server on the time of a statement", "raise max_execution_time"
    ),
    (1236,): _refused(
        "the server can't send its binary log from there on",
        "look whether it still has those transactions, or begin with a new checkpointLocation",
    ),
    (1030,): _refused("the storage engine failed", "look into the server's log"),
}
KNOWN = {number: known for numbers, known in _BY_NUMBERS.items() for number in numbers}

OTHER = Known(
    Kind.REFUSED,
    "the server gave this answer to a statement of the connector",
    f"look it up by its number, {MENDED}",
)
OF_STATES = {
    "22": _row("the server says that the value is at fault"),
    "23": _row("a constraint refused it"),
    "45": _row("a trigger refused it"),
}
"""What the class of an SQLSTATE says of other numbers. 45 is that of a trigger's SIGNAL."""
OF_CLIENT = _lost("the client could not read the answer, or lost the connection")


def number(error: pymysql.MySQLError) -> int:
    """The number of an error; 0 where the client has none."""
    first = error.args[0] if error.args else 0
    return first if isinstance(first, int) else 0


def known(error: pymysql.MySQLError) -> Known:
    """What is known of an error."""
    code, state = number(error), getattr(error, "sqlstate", None) or ""
    found = KNOWN.get(code) or OF_STATES.get(state[:2])
    if found:
        return found
    # Numbers from 2000 to 2999 are the client's own.
    return OF_CLIENT if code == 0 or 2000 <= code < 3000 else OTHER


def message(error: pymysql.MySQLError) -> str:
    """The server's own words."""
    return " ".join(str(part) for part in error.args) or type(error).__name__


@contextmanager
def translated(doing: str) -> Iterator[None]:
    """Raise what pymysql raises as one of our errors; `doing` says what was tried."""
    try:
        yield
    except pymysql.MySQLError as error:
        raise translate(error, doing) from None


@contextmanager
def translated_read(doing: str) -> Iterator[None]:
    """The same for a batch read: what is refused is what options name, and nothing goes on."""
    try:
        yield
    except pymysql.MySQLError as error:
        found = translate(error, doing)
        if not isinstance(found, StoreRefused):
            raise found from None
        why, todo = found.why, found.todo.removesuffix(f", {MENDED}")
        if known(error) in (OTHER, _ALTERED) or known(error).kind is Kind.ROW:
            why = "the server can't read what options dbtable, query and columns say"
            todo = "mend them as its answer says, or the table"
        raise StoreRefused(found.what, why, f"{todo}, and read again") from None


def translate(error: pymysql.MySQLError, doing: str) -> StoreError:
    """Our error for one of pymysql's."""
    found = known(error)
    # Where a row was sent, it was looked for: this statement has none, it makes a table perhaps.
    kind, why, todo = OTHER if found.kind is Kind.ROW else found
    if kind in (Kind.LOST, Kind.PASSING):
        return StoreUnreachable(f"MySQL failed while {doing}: {message(error)}", why, todo)
    return StoreRefused(f"MySQL refused while {doing}: {message(error)}", why, todo)


def too_slow(timeout: float) -> StoreRefused:
    """The error of a statement of which no row came within ``timeout``."""
    return StoreRefused(
        f"MySQL gave no answer within option timeout={timeout:g} s: the statement was given up",
        why="the statement takes longer; the server itself answers",
        todo="raise option timeout, or let an index or a narrower query make the statement faster",
    )


def is_late(error: BaseException) -> bool:
    """Whether a connection was given up because no answer came in time."""
    return isinstance(error.__context__, TimeoutError)
