"""Which servers the statements are written for, and what a session depends on.

Its settings are set when a connection opens, in one statement, and read back: a server may give its
sessions other ones than its defaults, by its configuration or by `init_connect`, and a proxy may
keep a SET from it. What a *table* computes by stays as the server has it, as for everybody who
writes to it: `auto_increment_increment`, `div_precision_increment`, `lc_time_names`; for the time
of day see `LOCAL`.
"""

from __future__ import annotations

import math
import re
from collections.abc import Mapping
from typing import Any

from sparkonce.errors import StoreRefused, StoreUnsafe

MARIADB = "MariaDB"
OLDEST = {"MySQL": (8, 0, 19), MARIADB: (10, 6, 0)}
"""MySQL names the new row in ON DUPLICATE KEY UPDATE since then; MariaDB's is its oldest release
that was tested."""
OTHERS = ("TiDB", "Vitess")
"""They speak MySQL's protocol, and lock, roll back and answer otherwise."""
HANDSHAKE = "5.5.5-"
"""What MariaDB, and a proxy before it, says first to clients that know no version 10."""
NUMBER = re.compile(r"(\d+)\.(\d+)(?:\.(\d+))?")

MODE = (
    "STRICT_ALL_TABLES,ERROR_FOR_DIVISION_BY_ZERO,NO_ENGINE_SUBSTITUTION,NO_AUTO_VALUE_ON_ZERO"
    ",ALLOW_INVALID_DATES"
)
"""A zero in an auto-increment column stays one. No value of a query is a zero date; those that a
table has, or has as defaults, are its own."""

OLD_MARIADB = re.compile(r"(10\.|11\.0).*MariaDB")
"""Its settings of a transaction have names of their own."""

UTC = "+00:00"
"""Instants are written and read in it. It has no hour twice, and leaves none out."""

_NOW = "UTC_TIMESTAMP()"
_AHEAD = f"TIMEDIFF(CONVERT_TZ({_NOW}, '{UTC}', @@GLOBAL.time_zone), {_NOW})"
LOCAL = (
    f"time_zone = COALESCE(CONCAT(IF({_AHEAD} < 0, '', '+'),"
    f" TIME_FORMAT({_AHEAD}, '%H:%i')), '{UTC}')"
)
"""Sets the difference from UTC that the server's own time of day has now, for what defaults and
triggers of a table compute. As a difference it has no hour twice, either."""

Settings = Mapping[str, str | int]


def supported(version: str, comment: str) -> str:
    """The version without what stands before it for old clients.

    Args:
        version: what VERSION() gives; forks of MySQL (Percona, Aurora) give that of MySQL.
        comment: the setting `version_comment`.

    Raises:
        StoreRefused: it is too old, or another product.
    """
    for other in OTHERS:
        if other.lower() in f"{version} {comment}".lower():
            raise StoreRefused(
                f"The server is {other} ({version})",
                why="it is not MySQL in what exactly-once is built on: locks, DDL, errors",
                todo="name a MySQL or MariaDB in option url",
            )
    version = version.removeprefix(HANDSHAKE)
    name = MARIADB if MARIADB in version else "MySQL"
    found = NUMBER.match(version)
    # Aurora may name a release of its own in place of the third number, and has passed all.
    numbers = tuple(float(number or "inf") for number in found.groups()) if found else ()
    if numbers < OLDEST[name]:
        needed = ".".join(map(str, OLDEST[name]))
        raise StoreRefused(
            f"The server's version is {version}",
            why=f"the connector's statements need {name} {needed}",
            todo=f"use {name} {needed} or newer",
        )
    return version


def settings(version: str, timeout: float, *, mariadb: bool) -> Settings:
    """The settings of a session, by name, where an answer takes at most `timeout`.

    A driver that hangs in mid-transaction holds the ledger until its session is ended, so that
    is soon; while whoever waits for it hears of it before its own time-out.
    """
    idle, wait = math.ceil(2 * timeout), max(1, int(timeout * 0.8))
    transaction = "tx" if OLD_MARIADB.match(version) else "transaction"
    return {
        # What is sent outside of a transaction takes effect by itself.
        "autocommit": 1,
        # With CHAIN what is sent behind COMMIT would be in a transaction that nobody commits.
        "completion_type": "NO_CHAIN",
        f"{transaction}_isolation": "READ-COMMITTED",
        f"{transaction}_read_only": 0,
        "character_set_client": "utf8mb4",
        "character_set_connection": "utf8mb4",
        "character_set_results": "utf8mb4",
        # Fractions of a second are cut: MySQL would round them, unlike MariaDB.
        "sql_mode": MODE if mariadb else f"{MODE},TIME_TRUNCATE_FRACTIONAL",
        "time_zone": UTC,
        # These would cut results, refuse statements, or find other rows.
        "sql_safe_updates": 0,
        "sql_select_limit": 2**64 - 1,
        "sql_big_selects": 1,
        "sql_auto_is_null": 0,
        # What LOAD DATA makes of a value is told by warnings alone.
        "sql_notes": 1,
        # MariaDB compares no more of the keys of a window than it sorts by.
        "max_sort_length": 2**23,
        # Without both, MariaDB fills empty tables in bulk: an error would undo all rows so far.
        "unique_checks": 1,
        "foreign_key_checks": 1,
        "wait_timeout": idle,
        "lock_wait_timeout": wait,
        "innodb_lock_wait_timeout": wait,
        **(_of_mariadb(idle) if mariadb else _OF_MYSQL),
    }


def _of_mariadb(idle: int) -> Settings:
    return {
        "check_constraint_checks": 1,
        # Else a versioned table is read and changed as it was then.
        "system_versioning_asof": "DEFAULT",
        # Beyond it the foreign keys that lead back to a table are no longer followed.
        "max_recursive_iterations": 1000,
        "max_statement_time": 0,
        "idle_transaction_timeout": idle,
        "idle_readonly_transaction_timeout": idle,
        "idle_write_transaction_timeout": idle,
    }


_OF_MYSQL: Settings = {
    "cte_max_recursion_depth": 1000,
    "max_execution_time": 0,
    # Else a condition with a long list of rows is looked up by reading the whole table.
    "range_optimizer_max_mem_size": 0,
}


def statement(wanted: Settings) -> str:
    """The statement that sets them."""
    values = {
        name: f"'{v}'" if isinstance(v, str) and v != "DEFAULT" else v for name, v in wanted.items()
    }
    return "SET " + ", ".join(f"SESSION {name}={value}" for name, value in values.items())


def require(wanted: Settings, found: tuple[Any, ...]) -> None:
    """See that a session has the settings that it was given.

    Raises:
        StoreUnsafe: it has others.
    """
    for (name, value), there in zip(wanted.items(), found, strict=True):
        if not _same(name, value, there):
            raise StoreUnsafe(
                f"The session has {name}={there!s}, and was told to have {value!s}",
                why="what a statement does depends on that setting. A proxy before the server may"
                " have kept the statement SET from it",
                todo="name the server itself in option url, or let the proxy pass SET on",
            )


def _same(name: str, wanted: str | int, there: Any) -> bool:
    if isinstance(wanted, int):
        return float(there) == float(wanted)
    if name == "sql_mode":
        return set(str(there).split(",")) == set(wanted.split(","))
    return str(there).upper() == wanted.upper()
