"""Translates errors of the server into errors of sparkonce, by their numbers."""

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
"""The cause of an error by its numbers, and the cure where it is not the default one."""

MEND_ROW = "correct the row before the sink, or alter the column so that it accepts the row"
GRANT = "grant it as docs/permissions.md lists"
_LOCK = "another session locked the same rows; the server rolled the whole transaction back"

DEMOTED = (1290, 1792, 1836)
"""Numbers of a read-only server: after a failover its name may resolve to another server."""

_LOST: _Table = {
    (2006, 1152, 1184): "the connection was closed",
    (2013,): "the connection was lost, or the server did not reply within option timeout",
    (2055,): "the connection was lost",
    (1053, 1077, 1079): "the server shuts down",
    (1158, 1160): "the network failed",
    (1159, 1161): "the network was too slow",
    (1317,): "someone ended the statement (KILL)",
    (1927,): "someone ended the connection (KILL), or it was idle for too long",
    (4031,): "the connection was idle for too long",
}
_PASSING: _Table = {
    (2003,): "the server is down, or the network or option url is wrong",
    (2005,): "the host name does not resolve",
    (1040, 1203, 1226): "the server has no connection left for this user",
    (1205,): (_LOCK, "look for a long transaction on the target, or raise option maxRetries"),
    (1213,): (_LOCK, "find out what else writes to the target, or raise option maxRetries"),
    (1412,): "another session altered the table at the same time",
    (3032,): "the server is in offline mode",
    (1637,): "the server has too many concurrent transactions",
    (3101,): "another member of the group wrote the same rows",
    (1047,): "the node is currently not part of its cluster",
    (9001,): "ProxySQL reached no server of its group",
    DEMOTED: ("the server is read-only, as a replica is", "point option url at the primary"),
}
_ROW: _Table = {
    (1022,): "the key exists already",
    (1048, 1263): "the column is NOT NULL",
    (1364,): (
        "neither the query nor a trigger sets a column that is NOT NULL",
        "add the column to the query, or let the trigger fill it in each row",
    ),
    (1062,): (
        "a row with this key exists already",
        "use writeMode=upsert, drop the duplicates before the sink, or delete the stored row",
    ),
    (1169,): "a unique key has this value already",
    (1216, 1452): "a foreign key refers to a row that does not exist",
    (1217, 1451): "foreign keys of other rows refer to this row",
    (1264,): "the number does not fit the column",
    (1265,): "the column would store only a part of the value",
    (1267, 1270, 1271, 3854): "the key's column can't hold all characters of the string",
    (1292, 1367, 1411): "the value is not valid for the column's type",
    (1365,): "an expression of the table divides by zero",
    (1366,): "the value is not valid for the column's type or character set",
    (1406,): "the value is longer than the column",
    (1441,): "the date is out of range",
    (1526,): "the table has no partition for the row",
    (1644,): "a trigger rejected the row",
    (1690,): "the sum is out of the column's range",
    (1748,): "the row belongs to another partition",
    (1761, 1762): "a foreign key would make a duplicate",
    (3140, 3141): "the string is not JSON",
    (3751, 3903, 3907): "the value does not fit an index of the table",
    (3156,): "the JSON does not have the requested type",
    (3157,): "the JSON is nested too deeply",
    (3819, 4025): "a CHECK constraint rejected the row",
    (1118,): "the row is too large for the table",
}
_REFUSED: _Table = {
    (1129,): ("the server blocks this host after many failures", "run FLUSH HOSTS on the server"),
    (1044,): ("the user has no right to this database", GRANT),
    (1045, 1698): (
        "the server does not accept this user and password from this host",
        "check options user, password and passwordFile, or the URL",
    ),
    (1820,): ("the user must change the password", "change it"),
    (1862,): ("the user's password has expired", "change it"),
    (3118, 4151): ("the user's account is locked", "unlock it"),
    (2059,): (
        "the client does not support the user's authentication plugin",
        "give the user caching_sha2_password or mysql_native_password",
    ),
    (1251,): (
        "the client does not support the user's authentication plugin",
        "give the user another plugin",
    ),
    (3159,): ("the server accepts only connections with TLS", "set option tlsMode=verify"),
    (1142, 1143, 1227, 1370): ("the user lacks a right", GRANT),
    (1049,): ("the database does not exist", "create it, or correct option url or dbtable"),
    (1046,): ("no option names a database", "name one in option url or dbtable"),
    (1146, 1051, 1052, 1054, 1136, 3105, 1906): (
        "someone dropped, renamed or altered the table after the check",
        "make the table and the query's columns match again",
    ),
    (1288, 1471): ("the target is not writable", "name a base table in option dbtable"),
    (1021, 1114, 1041, 1037): ("the server has no space left", "free disk space on the server"),
    (1206,): ("InnoDB has no memory for this number of locks", "raise innodb_buffer_pool_size"),
    (1153, 1301): ("max_allowed_packet of the server is too small", "raise it"),
    (1197, 1180, 3100): (
        "the epoch exceeds the server's limit on the size of a transaction",
        "raise that limit, or, unless the epoch overwrites, set option atomicity=chunk, which"
        " uses several transactions",
    ),
    (1665,): (
        "binlog_format=STATEMENT can't log what this isolation level changes",
        "set binlog_format to ROW or MIXED",
    ),
    (1969,): ("a limit of the server on the time of a statement", "raise max_statement_time"),
    (3024,): ("a limit of the server on the time of a statement", "raise max_execution_time"),
    (1236,): (
        "the server can't send its binary log from that position",
        "check whether it still has those transactions, or begin with a new checkpointLocation",
    ),
    (1030,): ("the storage engine failed", "read the server's error log"),
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
    (
        "the server replied with this error to a statement of the connector",
        "look the error up by its number",
    ),
)
OF_STATES = {
    "22": _failure(FailureKind.ROW, "the server reports an invalid value"),
    "23": _failure(FailureKind.ROW, "a constraint rejected the row"),
    "45": _failure(FailureKind.ROW, "a trigger rejected the row"),
}
"""The failures of all other numbers, by the class of their SQLSTATE. SIGNAL in a trigger has 45."""
OF_CLIENT = _failure(
    FailureKind.LOST, "the client could not read the reply, or lost the connection"
)


def number(error: pymysql.MySQLError) -> int:
    """The number of an error; 0 if the error has none."""
    first = error.args[0] if error.args else 0
    return first if isinstance(first, int) else 0


def failure_of(error: pymysql.MySQLError) -> KnownFailure:
    """The kind, cause and cure of an error."""
    code, state = number(error), getattr(error, "sqlstate", None) or ""
    # The client itself uses the numbers 2000 to 2999.
    usual = OF_CLIENT if code == 0 or 2000 <= code < 3000 else OTHER
    return FAILURES.get(code) or OF_STATES.get(state[:2]) or usual


def message(error: pymysql.MySQLError) -> str:
    """The text of the server's error."""
    return " ".join(str(part) for part in error.args) or type(error).__name__


@contextmanager
def translated(doing: str) -> Iterator[None]:
    """Raise errors of pymysql as errors of sparkonce; `doing` names the action that failed."""
    try:
        yield
    except pymysql.MySQLError as error:
        raise translate(error, doing) from None


@contextmanager
def translated_read(doing: str) -> Iterator[None]:
    """See `translated`; for a batch read, which fails because of its options and never resumes."""
    try:
        yield
    except pymysql.MySQLError as error:
        found, known = translate(error, doing), failure_of(error)
        if not isinstance(found, StoreRefused):
            raise found from None
        why, todo = found.why, found.todo.removesuffix(f", {RESTART}")
        if known in (OTHER, ALTERED) or known.kind is FailureKind.ROW:
            why = "the server can't read what options dbtable, query and columns name"
            todo = "correct the options or the table as the server's error says"
        raise StoreRefused(found.what, why, f"{todo}, and read again") from None


def translate(error: pymysql.MySQLError, doing: str) -> StoreError:
    """Return the error of sparkonce for an error of pymysql."""
    found = failure_of(error)
    # Statements with rows handle this kind themselves; this one has none, it may create a table.
    known = OTHER if found.kind is FailureKind.ROW else found
    return known.error("MySQL", doing, message(error))


def too_slow(timeout: float) -> StoreRefused:
    """The error of a statement that returned no row within ``timeout`` seconds."""
    return StoreRefused(
        f"MySQL returned no row within option timeout={timeout:g} s; the statement was cancelled",
        why="the statement takes longer than that, while the server itself replies",
        todo="raise option timeout, or speed the statement up with an index or a narrower query",
    )


def is_late(error: BaseException) -> bool:
    """Whether a connection was closed because the server did not reply in time."""
    return isinstance(error.__context__, TimeoutError)
