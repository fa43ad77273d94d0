"""The supported servers, and the settings that a session needs.

A new connection sets them in one statement, and reads them back: the configuration or
`init_connect` may have set other values, and a proxy may swallow the SET. Settings by which a
*table* computes keep the server's values, as for everybody who writes to the table:
`auto_increment_increment`, `div_precision_increment`, `lc_time_names`. For local time see `LOCAL`.
"""

from __future__ import annotations

import math
import re
from collections.abc import Mapping
from typing import Any

from sparkonce.errors import StoreRefused, StoreUnsafe

MARIADB = "MariaDB"
OLDEST = {"MySQL": (8, 0, 19), MARIADB: (10, 6, 0)}
"""MySQL can name the new row in ON DUPLICATE KEY UPDATE since 8.0.19; for MariaDB, the oldest
tested release."""
OTHERS = ("TiDB", "Vitess")
"""Servers that speak MySQL's protocol, but lock, roll back and reply differently."""
HANDSHAKE = "5.5.5-"
"""The prefix of MariaDB's version, also behind a proxy, for clients that expect no version 10."""
NUMBER = re.compile(r"(\d+)\.(\d+)(?:\.(\d+))?")

MODE = (
    "STRICT_ALL_TABLES,ERROR_FOR_DIVISION_BY_ZERO,NO_ENGINE_SUBSTITUTION,NO_AUTO_VALUE_ON_ZERO"
    ",ALLOW_INVALID_DATES"
)
"""A zero in an auto-increment column stays a zero. Queries have no zero dates; those that a table
stores, or has as defaults, stay allowed."""

OLD_MARIADB = re.compile(r"(10\.|11\.0).*MariaDB")
"""Releases with other names for the settings of a transaction."""

UTC = "+00:00"
"""The time zone in which instants are written and read. It repeats and skips no hour."""

_NOW = "UTC_TIMESTAMP()"
_AHEAD = f"TIMEDIFF(CONVERT_TZ({_NOW}, '{UTC}', @@GLOBAL.time_zone), {_NOW})"
LOCAL = (
    f"time_zone = COALESCE(CONCAT(IF({_AHEAD} < 0, '', '+'),"
    f" TIME_FORMAT({_AHEAD}, '%H:%i')), '{UTC}')"
)
"""Sets the time zone to the current offset of the server's local time from UTC, for defaults and
triggers of a table. As an offset it repeats no hour either."""

Settings = Mapping[str, str | int]


def supported(version: str, comment: str) -> str:
    """The version without the prefix for old clients.

    Args:
        version: the result of VERSION(); forks of MySQL (Percona, Aurora) return that of MySQL.
        comment: the setting `version_comment`.

    Raises:
        StoreRefused: the server is too old, or another product.
    """
    for other in OTHERS:
        if other.lower() in f"{version} {comment}".lower():
            raise StoreRefused(
                f"The server is {other} ({version})",
                why="it differs from MySQL in locks, DDL and errors, on which exactly-once relies",
                todo="name a MySQL or MariaDB in option url",
            )
    version = version.removeprefix(HANDSHAKE)
    name = MARIADB if MARIADB in version else "MySQL"
    found = NUMBER.match(version)
    # Aurora may have its own release in place of the third number; all its releases qualify.
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
    """The settings of a session, by name; a reply takes at most `timeout` seconds.

    A driver that hangs within a transaction locks the ledger until the server ends its session, so
    the idle limit is short. A session that waits for the lock fails before its own time-out.
    """
    idle, wait = math.ceil(2 * timeout), max(1, int(timeout * 0.8))
    transaction = "tx" if OLD_MARIADB.match(version) else "transaction"
    return {
        # A statement outside a transaction commits itself.
        "autocommit": 1,
        # With CHAIN a statement after COMMIT would be in a transaction that nobody commits.
        "completion_type": "NO_CHAIN",
        f"{transaction}_isolation": "READ-COMMITTED",
        f"{transaction}_read_only": 0,
        "character_set_client": "utf8mb4",
        "character_set_connection": "utf8mb4",
        "character_set_results": "utf8mb4",
        # Cuts fractions of a second: MySQL would round them, unlike MariaDB.
        "sql_mode": MODE if mariadb else f"{MODE},TIME_TRUNCATE_FRACTIONAL",
        "time_zone": UTC,
        # Other values would cut results, reject statements, or find other rows.
        "sql_safe_updates": 0,
        "sql_select_limit": 2**64 - 1,
        "sql_big_selects": 1,
        "sql_auto_is_null": 0,
        # Only warnings report the changes that LOAD DATA makes to values.
        "sql_notes": 1,
        # MariaDB compares keys of a window only up to this length.
        "max_sort_length": 2**23,
        # With both off, MariaDB fills empty tables in bulk: an error would undo all rows so far.
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
        # Otherwise statements read and change a versioned table as of that time.
        "system_versioning_asof": "DEFAULT",
        # The limit for following foreign keys that lead back to a table.
        "max_recursive_iterations": 1000,
        "max_statement_time": 0,
        "idle_transaction_timeout": idle,
        "idle_readonly_transaction_timeout": idle,
        "idle_write_transaction_timeout": idle,
    }


_OF_MYSQL: Settings = {
    "cte_max_recursion_depth": 1000,
    "max_execution_time": 0,
    # Otherwise a condition with a long list of rows scans the whole table.
    "range_optimizer_max_mem_size": 0,
}


def statement(wanted: Settings) -> str:
    """The statement that sets the settings."""
    values = {
        name: f"'{v}'" if isinstance(v, str) and v != "DEFAULT" else v for name, v in wanted.items()
    }
    return "SET " + ", ".join(f"SESSION {name}={value}" for name, value in values.items())


def require(wanted: Settings, found: tuple[Any, ...]) -> None:
    """Verify that a session has the wanted settings.

    Raises:
        StoreUnsafe: a setting differs.
    """
    for (name, value), there in zip(wanted.items(), found, strict=True):
        if not _same(name, value, there):
            raise StoreUnsafe(
                f"The session has {name}={there!s} although the connector set {value!s}",
                why="the effect of statements depends on that setting. A proxy in front of the"
                " server may have swallowed the statement SET",
                todo="name the server itself in option url, or let the proxy forward SET",
            )


def _same(name: str, wanted: str | int, there: Any) -> bool:
    if isinstance(wanted, int):
        return float(there) == float(wanted)
    if name == "sql_mode":
        return set(str(there).split(",")) == set(wanted.split(","))
    return str(there).upper() == wanted.upper()
