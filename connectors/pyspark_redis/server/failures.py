"""Redis's errors as ours: one table, one place."""

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
    "the server does not take this user and password, or asks for one",
    "check options user, password and passwordFile, or the URL",
)

ACL = refused("the user's ACL does not allow it", "grant it as docs/permissions.md lists")

OVERFLOW = _row(
    "the sum leaves the 64-bit range of Redis's integers, or that of a double",
    "set that field to a smaller number",
)

INFINITE = _row(
    "the field holds an infinity, or the sum leaves the range of a double",
    "set that field to a smaller number",
)

REFUSALS = {
    # First, since these texts go on with what columns and fields hold: any of the others.
    "overflow:": OVERFLOW,
    "unordered:": _row(
        "rows are compared with it as option sequenceColumn says",
        "set that field to a value as the sink writes it for the column's type (docs/redis.md) or"
        " delete it",
    ),
    "damaged:": refused(
        "it is a record of sparkonce's own, and something else has written it",
        "set that field to a whole number above all others in that hash (HGETALL)",
    ),
    "NOAUTH": PASSWORD,
    "WRONGPASS": PASSWORD,
    "NOPERM": ACL,
    "The user executing the script": ACL,
    "ACL failure": ACL,
    "OOM": refused(
        "maxmemory is reached, and the eviction policy drops nothing",
        "free memory (`sparkonce gc` drops staged rows that no epoch will take, also now) or raise"
        " maxmemory",
    ),
    "MISCONF": refused("the server can't save to its disk and so takes no writes", "mend its disk"),
    "NOREPLICAS": refused(
        "the server has fewer replicas than min-replicas-to-write asks for",
        "bring the replicas back",
    ),
    "WRONGTYPE": _row(
        "the key holds another Redis type than the sink's model", "rename or delete that key"
    ),
    "increment or decrement would overflow": OVERFLOW,
    "increment would produce NaN or Infinity": INFINITE,
    "resulting score is not a number": INFINITE,
    "exhausted the last possible ID": _row(
        "no id is left that is higher than the stream's last one", "delete the stream"
    ),
    "asks for a password, which": _unfit(
        "options user and password are those of the servers, and the connector has none for"
        " Sentinels",
        "let the Sentinels take requests without a password: no requirepass in sentinel.conf",
    ),
    "DB index is out of range": _unfit(
        "the server has fewer databases than the number behind the URL's last slash",
        "give a smaller number there (a server has 16 unless `databases` says otherwise)",
    ),
    "cluster support disabled": _unfit(
        "the server is no node of a Redis Cluster, and option url begins with redis+cluster://",
        "write redis:// in option url",
    ),
    "not an integer": _row(
        "the field holds something else than a whole number",
        "set that field to a whole number or delete it",
    ),
    "not a float": _row(
        "the field holds something else than a number", "set that field to a number or delete it"
    ),
}
"""By the code or the words of a reply."""

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
    exceptions.AskError: "ASK",  # MOVED is one, too
    exceptions.ClusterDownError: "CLUSTERDOWN",
    exceptions.TryAgainError: "TRYAGAIN",
}
"""The codes that redis-py cuts from the text of these errors."""

PASSING = ("LOADING", "BUSY", "MASTERDOWN", "TRYAGAIN", "CLUSTERDOWN", "while the cluster is down")
"""Codes that mean: later; the last is what a script is told."""

MOVES = ("MOVED", "ASK", "access a non local key")
"""What is said of a key that lies in another node of a cluster; the last to scripts."""


class Demoted(StoreUnreachable):
    """The server is a replica, which may be made a primary, or be replaced by one, in a moment."""


def demoted() -> Demoted:
    """The error for a replica."""
    return Demoted(
        "The server is a replica", "it takes no writes", "point option url at the primary"
    )


def moves(doing: str, text: str) -> StoreUnreachable:
    """The error for a slot that another node of a cluster has, or is about to have."""
    return StoreUnreachable(
        f"A slot of the cluster moves while {doing}: {text}",
        why="the cluster is resharded, or a replica takes over",
        todo="wait until that is done; what is started again loses and doubles nothing",
    )


class OtherType(StoreRefused):
    """The server does not say which key holds another Redis type than it must; no row's."""


def other_type(key: str, kind: str, todo: str) -> StoreRefused:
    """The error for a key that holds another type than a kind; it says what to do about it."""
    return StoreRefused(
        f"Key {key!r} is no {kind}",
        why="something else has written it, or another key is meant (WRONGTYPE)",
        todo=todo,
    )


def no_stream(key: str) -> StoreRefused:
    """The error for a key that is to be followed."""
    return other_type(key, "stream", "name streams in option streams; TYPE tells what a key holds")


@contextmanager
def translated(doing: str) -> Iterator[None]:
    """Raise what redis-py raises as one of our errors; `doing` says what was tried."""
    try:
        yield
    except redis.RedisError as error:
        raise translate(error, doing) from None


def translate(error: redis.RedisError, doing: str) -> StoreError:
    """Our error for one of redis-py's."""
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
    if _has(text, "WRONGTYPE"):  # what befalls a row is told by `pyspark_redis.write.delivery`
        return OtherType(
            f"Redis refused while {doing}: {text}",
            why="a key of sparkonce's own holds another Redis type: something else has written it",
            todo="find it among those that docs/redis.md lists (TYPE), move it away by RENAME,"
            f" {RESTART}",
        )
    return refusal(text).error("Redis", doing, text)


def _away(doing: str, text: str, *, late: bool) -> StoreUnreachable:
    if late:
        return StoreUnreachable(
            f"Redis has not answered within option timeout while {doing}: {text}",
            why="the server is busy or down, the network loses requests, or a key takes longer: it"
            " may have millions of elements",
            todo="check option url and the server, or raise option timeout; what is started again"
            " loses and doubles nothing",
        )
    return StoreUnreachable(
        f"Redis can't be reached while {doing}: {text}",
        why="the server is down or busy, or the network or option url is wrong",
        todo=AGAIN,
    )


def refusal(text: str) -> KnownFailure:
    """What is known of the server's reply `text`."""
    return next((known for code, known in REFUSALS.items() if _has(text, code)), OTHER)


def _has(text: str, *codes: str) -> bool:
    # The error of a command inside a script has its code in the middle of the text.
    return any(re.search(rf"(^|[\s:-]){re.escape(code)}(?!\w)", text) for code in codes)
