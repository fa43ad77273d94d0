"""The server's errors as ours: one table by number, one place."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager

import pymysql

from sparkonce.errors import (
    AGAIN,
    RESTART,
    FailureKind,
    KnownFailure,
    StoreError,
    StoreRefused,
    refused,
)

_Table = Mapping[tuple[int, ...], str | tuple[str, str]]
"""By numbers, why an error came, and what to do where that is not the usual."""

MEND_ROW = "mend the row before the sink, or let the column take it"
GRANT = "grant it as docs/permissions.md lists"
_LOCK = "another session locked the same rows; all of the transaction was rolled back"

DEMOTED = (1290, 1792, 1836)
"""Numbers of a server that takes no writes: after a failover the name may lead to another one."""

_LOST: _Table = {
    (2006, 1152, 1184): "the connection was closed",
    (2013,): "the connection was lost, or no answer came within option timeout",
    (2055,): "the connection was lost",
    (1053, 1077, 1079): "the server shuts down",
    (1158, 1160): "the network failed",
    (1159, 1161): "the network was too slow",
    (1317,): "someone ended the statement (KILL)",
    (1927,): "someone ended the connection (KILL), or it was idle too long",
    (4031,): "the connection was idle too long",
}
_PASSING: _Table = {
    (2003,): "the server is down, or the network or option url is wrong",
    (2005,): "the host's name is not known",
    (1040, 1203, 1226): "the server has no connection left for this user",
    (1205,): (_LOCK, "look for a long transaction on the target, or raise option maxRetries"),
    (1213,): (_LOCK, "look at what else writes to the target, or raise option maxRetries"),
    (1412,): "the table was altered in the same moment",
    (3032,): "the server is in offline mode",
    (1637,): "the server has too many transactions at once",
    (3101,): "another member of the group wrote the same rows",
    (1047,): "the node does not belong to its cluster now",
    (9001,): "ProxySQL reached no server of its group",
    DEMOTED: ("the server is read-only, as a replica is", "point option url at the primary"),
}
_ROW: _Table = {
    (1022,): "the key is there already",
    (1048, 1263): "the column can't be null",
    (1364,): (
        "a column that can't be null got no value, from the query or from a trigger",
        "add the column to the query, or let the trigger fill it in each row",
    ),
    (1062,): (
        "a row with this key is there already",
        "use writeMode=upsert, drop the duplicates before the sink, or delete the stored row",
    ),
    (1169,): "a unique key has this value already",
    (1216, 1452): "a foreign key finds no such row",
    (1217, 1451): "other rows point to this one",
    (1264,): "the number does not fit the column",
    (1265,): "the column would keep only a part of the value",
    (1267, 1270, 1271, 3854): "the key's column can't hold all characters of the text",
    (1292, 1367, 1411): "the value is none of the column's type",
    (1365,): "an expression of the table divides by zero",
    (1366,): "the value is none of the column's type or character set",
    (1406,): "the value is longer than the column",
    (1441,): "the date leaves its range",
    (1526,): "the table has no partition for it",
    (1644,): "a trigger refused it",
    (1690,): "the sum leaves the column's range",
    (1748,): "the row belongs to another partition",
    (1761, 1762): "a foreign key would make a duplicate",
    (3140, 3141): "the text is no JSON",
    (3751, 3903, 3907): "the value does not fit an index of the table",
    (3156,): "the JSON is not of the type asked for",
    (3157,): "the JSON is nested too deeply",
    (3819, 4025): "a CHECK constraint refused it",
    (1118,): "the row is too large for the table",
}
_REFUSED: _Table = {
    (1129,): ("the server blocks this host after many failures", "FLUSH HOSTS there"),
    (1044,): ("the user has no right to this database", GRANT),
    (1045, 1698): (
        "the server does not take this user and password from this host",
        "check options user, password and passwordFile, or the URL",
    ),
    (1820,): ("the user's password is to be changed", "change it"),
    (1862,): ("the user's password has expired", "change it"),
    (3118, 4151): ("the user's account is locked", "unlock it"),
    (2059,): (
        "the client does not know the user's way to log in",
        "give the user caching_sha2_password or mysql_native_password",
    ),
    (1251,): ("the client does not know the user's way to log in", "give the user another"),
    (3159,): ("the server takes connections with TLS only", "set option tlsMode=verify"),
    (1142, 1143, 1227, 1370): ("the user lacks a right", GRANT),
    (1049,): ("there is no such database", "create it, or mend option url or dbtable"),
    (1046,): ("no database is named", "name one in option url or dbtable"),
    (1146, 1051, 1052, 1054, 1136, 3105, 1906): (
        "the table was dropped, renamed or altered since it was checked",
        "bring the table and the query's columns together again",
    ),
    (1288, 1471): ("the target can't be written", "name a base table in option dbtable"),
    (1021, 1114, 1041, 1037): ("the server has no room left", "free disk space on the server"),
    (1206,): ("InnoDB has no memory for so many locks", "raise innodb_buffer_pool_size"),
    (1153, 1301): ("max_allowed_packet of the server is too small", "raise it"),
    (1197, 1180, 3100): (
        "the epoch is larger than the server lets a transaction be",
        "raise that limit, or, unless it overwrites, set option atomicity=chunk, which takes"
        " several",
    ),
    (1665,): (
        "binlog_format=STATEMENT can't log what this isolation level changes",
        "set binlog_format to ROW or MIXED",
    ),
    (1969,): ("a limit of the server on the time of a statement", "raise max_statement_time"),
    (3024,): ("a limit of the server on the time of a statement", "raise max_execution_time"),
    (1236,): (
        "the server can't send its binary log from there on",
        "look whether it still has those transactions, or begin with a new checkpointLocation",
    ),
    (1030,): ("the storage engine failed", "look into the server's log"),
}


def _failure(kind: FailureKind, said: str | tuple[str, str]) -> KnownFailure:
    usual = MEND_ROW if kind is FailureKind.ROW else AGAIN
    why, todo = (said, usual) if isinstance(said, str) else said
    return refused(why, todo) if kind is FailureKind.REFUSED else KnownFailure(kind, why, todo)


FAILURES = {
    number: _failure(kind, said)
    for kind, table in (
        (FailureKind.LOST, _LOST),
        (FailureKind.PASSING, _PASSING),
        (FailureKind.ROW, _ROW),
        (FailureKind.REFUSED, _REFUSED),
    )
    for numbers, said in table.items()
    for number in numbers
}
ALTERED = FAILURES[1146]
OTHER = _failure(
    FailureKind.REFUSED,
    ("the server gave this answer to a statement of the connector", "look it up by its number"),
)
OF_STATES = {
    "22": _failure(FailureKind.ROW, "the server says that the value is at fault"),
    "23": _failure(FailureKind.ROW, "a constraint refused it"),
    "45": _failure(FailureKind.ROW, "a trigger refused it"),
}
"""What the class of an SQLSTATE says of other numbers. 45 is that of a trigger's SIGNAL."""
OF_CLIENT = _failure(
    FailureKind.LOST, "the client could not read the answer, or lost the connection"
)


def number(error: pymysql.MySQLError) -> int:
    """The number of an error; 0 where the client has none."""
    first = error.args[0] if error.args else 0
    return first if isinstance(first, int) else 0


def failure_of(error: pymysql.MySQLError) -> KnownFailure:
    """What is known of an error."""
    code, state = number(error), getattr(error, "sqlstate", None) or ""
    # Numbers from 2000 to 2999 are the client's own.
    usual = OF_CLIENT if code == 0 or 2000 <= code < 3000 else OTHER
    return FAILURES.get(code) or OF_STATES.get(state[:2]) or usual


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
        found, known = translate(error, doing), failure_of(error)
        if not isinstance(found, StoreRefused):
            raise found from None
        why, todo = found.why, found.todo.removesuffix(f", {RESTART}")
        if known in (OTHER, ALTERED) or known.kind is FailureKind.ROW:
            why = "the server can't read what options dbtable, query and columns say"
            todo = "mend them as its answer says, or the table"
        raise StoreRefused(found.what, why, f"{todo}, and read again") from None


def translate(error: pymysql.MySQLError, doing: str) -> StoreError:
    """Our error for one of pymysql's."""
    found = failure_of(error)
    # Where a row was sent, it was looked for: this statement has none, it makes a table perhaps.
    known = OTHER if found.kind is FailureKind.ROW else found
    return known.error("MySQL", doing, message(error))


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
