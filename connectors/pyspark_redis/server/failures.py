"""Translates errors of Redis into errors of sparkonce, from one table."""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial

import redis
from redis import exceptions

from sparkonce.errors import (
    AGAIN,
    RESTART,
    FailureKind,
    KnownFailure,
    StoreError,
    StoreRefused,
    StoreUnreachable,
    refused,
)

_row = partial(refused, kind=FailureKind.ROW)
_unfit = partial(KnownFailure, FailureKind.REFUSED)

PASSWORD = _unfit(
    "the server rejects this user and password, or requires a password",
    "check options user, password and passwordFile, or the URL",
)

ACL = refused(
    "the user's ACL does not allow the command", "grant the rights that docs/permissions.md lists"
)

OVERFLOW = _row(
    "the sum exceeds the 64-bit range of Redis integers, or the range of a double",
    "set that field to a smaller number",
)

INFINITE = _row(
    "the field holds an infinity, or the sum exceeds the range of a double",
    "set that field to a smaller number",
)

REFUSALS = {
    # First, because these texts end with values of users, which may contain any other key.
    "overflow:": OVERFLOW,
    "unordered:": _row(
        "option sequenceColumn compares each row with this field",
        "set that field to a value in the form that the sink writes for the column's type"
        " (docs/redis.md), or delete it",
    ),
    "damaged:": refused(
        "the key is a record of sparkonce, and another program has written it",
        "set that field to a whole number above all others in that hash (HGETALL)",
    ),
    "NOAUTH": PASSWORD,
    "WRONGPASS": PASSWORD,
    "NOPERM": ACL,
    "The user executing the script": ACL,
    "ACL failure": ACL,
    "OOM": refused(
        "maxmemory is reached, and the eviction policy drops nothing",
        "free memory (`sparkonce gc` drops staged rows that no epoch needs, even on a full server)"
        " or raise maxmemory",
    ),
    "MISCONF": refused(
        "the server can't save to its disk and so rejects writes", "repair the server's disk"
    ),
    "NOREPLICAS": refused(
        "the server has fewer replicas than min-replicas-to-write requires",
        "reconnect the replicas",
    ),
    "WRONGTYPE": _row(
        "the key holds another Redis type than the sink's model", "rename or delete that key"
    ),
    "increment or decrement would overflow": OVERFLOW,
    "increment would produce NaN or Infinity": INFINITE,
    "resulting score is not a number": INFINITE,
    "exhausted the last possible ID": _row(
        "no id is higher than the stream's last id", "delete the stream"
    ),
    "equal or smaller than the target stream": _row(
        "the row's own id (option idColumn) is not higher than the stream's last id",
        "write rows in the order of their ids; or rename or delete the stream",
    ),
    "must be greater than 0-0": _row("no entry has the id 0-0", "filter out that row"),
    "Invalid stream ID": _row(
        "an id is two numbers of at most 64 bits (option idColumn)", "filter out that row"
    ),
    "refuses the login": _unfit(
        "options user and password are for the servers, not for the Sentinels",
        "set options sentinelUser and sentinelPassword, or sentinelPasswordFile",
    ),
    "DB index is out of range": _unfit(
        "the server has fewer databases than the number after the last slash of the URL",
        "set a smaller number in option url (a server has 16 unless `databases` says otherwise)",
    ),
    "cluster support disabled": _unfit(
        "the server is not a node of a Redis Cluster, and option url begins with redis+cluster://",
        "write redis:// in option url",
    ),
    "not an integer": _row(
        "the field does not hold a whole number",
        "set that field to a whole number or delete it",
    ),
    "not a float": _row(
        "the field does not hold a number", "set that field to a number or delete it"
    ),
}
"""Known failures by the code or the words of a reply."""

OF_ROWS = [text for text, known in REFUSALS.items() if known.kind is FailureKind.ROW]

OTHER = refused(
    "the server gave this reply to a command of the connector",
    "check its version (6.2 or newer) and configuration",
)

CODES = {
    exceptions.AuthenticationError: "WRONGPASS",
    exceptions.NoPermissionError: "NOPERM",
    exceptions.OutOfMemoryError: "OOM",
    exceptions.ReadOnlyError: "READONLY",
    exceptions.AskError: "ASK",  # and its subclass for MOVED
    exceptions.ClusterDownError: "CLUSTERDOWN",
    exceptions.TryAgainError: "TRYAGAIN",
}
"""The codes that redis-py cuts from the text of these errors."""

PASSING = ("LOADING", "BUSY", "MASTERDOWN", "TRYAGAIN", "CLUSTERDOWN", "while the cluster is down")
"""Codes of failures that pass; the last text is what a script gets."""

MOVES = ("MOVED", "ASK", "access a non local key")
"""Replies for a key on another node of a cluster; the last text is what a script gets."""


class Demoted(StoreUnreachable):
    """The server is a replica; a failover may soon promote it, or connect to the primary."""


def demoted() -> Demoted:
    """The error for a replica."""
    return Demoted(
        "The server is a replica", "a replica rejects writes", "set option url to the primary"
    )


def moves(doing: str, text: str) -> StoreUnreachable:
    """The error for a slot that another node of a cluster serves, or will serve soon."""
    return StoreUnreachable(
        f"A slot of the cluster moves while {doing}: {text}",
        why="the cluster moves slots between nodes, or a replica takes over",
        todo="wait until the move ends, then restart the query; it loses and duplicates nothing",
    )


class OtherType(StoreRefused):
    """A key of sparkonce holds another Redis type; the server does not say which key."""


def other_type(key: str, kind: str, todo: str) -> StoreRefused:
    """The error for a key that does not hold Redis type `kind`; `todo` says what to do."""
    return StoreRefused(
        f"Key {key!r} is not a {kind}",
        why="another program has written the key, or an option names the wrong key (WRONGTYPE)",
        todo=todo,
    )


def no_stream(key: str) -> StoreRefused:
    """The error for a key in option ``streams`` that is not a stream."""
    return other_type(key, "stream", "name streams in option streams; TYPE shows what a key holds")


@contextmanager
def translated(doing: str) -> Iterator[None]:
    """Translate errors of redis-py into errors of sparkonce; `doing` names the operation."""
    try:
        yield
    except redis.RedisError as error:
        raise translate(error, doing) from None


def translate(error: redis.RedisError, doing: str) -> StoreError:
    """The error of sparkonce for an error of redis-py."""
    text = str(error) or type(error).__name__
    code = next((code for kind, code in CODES.items() if isinstance(error, kind)), "")
    coded = f"{code} {text}".lstrip()
    if _has(coded, "READONLY"):
        return demoted()
    if _has(coded, *MOVES):
        return moves(doing, text)
    if code in REFUSALS:
        return refusal(coded).error("Redis", doing, coded)
    late = isinstance(error, exceptions.TimeoutError)
    if late or isinstance(error, exceptions.ConnectionError) or _has(coded, *PASSING):
        return _away(doing, text, late=late)
    if _has(text, "WRONGTYPE"):  # `pyspark_redis.write.delivery` reports this error of a row
        return OtherType(
            f"Redis refused while {doing}: {text}",
            why="a key of sparkonce holds another Redis type: another program has written the key",
            todo="find the key among those that docs/redis.md lists (TYPE), rename it (RENAME),"
            f" {RESTART}",
        )
    return refusal(text).error("Redis", doing, text)


def _away(doing: str, text: str, *, late: bool) -> StoreUnreachable:
    if late:
        return StoreUnreachable(
            f"Redis has not answered within option timeout while {doing}: {text}",
            why="the server is busy or down, the network loses requests, or a key takes longer, for"
            " example one with millions of elements",
            todo="check option url and the server, or raise option timeout; a restarted query"
            " loses and duplicates nothing",
        )
    return StoreUnreachable(
        f"Redis can't be reached while {doing}: {text}",
        why="the server is down or busy, or the network or option url is wrong",
        todo=AGAIN,
    )


def refusal(text: str) -> KnownFailure:
    """The known failure for the server's reply `text`."""
    return next((known for code, known in REFUSALS.items() if _has(text, code)), OTHER)


def _has(text: str, *codes: str) -> bool:
    # If a command fails inside a script, its code is in the middle of the text.
    return any(re.search(rf"(^|[\s:-]){re.escape(code)}(?!\w)", text) for code in codes)
