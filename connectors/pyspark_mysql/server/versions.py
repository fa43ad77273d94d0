"""Which servers the statements are written for."""

from __future__ import annotations

import re

from sparkonce.errors import StoreRefused

MARIADB = "MariaDB"
OLDEST = {"MySQL": (8, 0, 19), MARIADB: (10, 6, 0)}
"""MySQL names the new row in ON DUPLICATE KEY UPDATE since then; MariaDB's is its oldest release
that was tested."""
OTHERS = ("TiDB", "Vitess")
"""They speak MySQL's protocol, and lock, roll back and answer otherwise."""
HANDSHAKE = "5.5.5-"
"""What MariaDB, and a proxy before it, says first to clients that know no version 10."""
NUMBER = re.compile(r"(\d+)\.(\d+)(?:\.(\d+))?")


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
    oldest = OLDEST[name]
    if _numbers(version) < oldest:
        needed = ".".join(map(str, oldest))
        raise StoreRefused(
            f"The server's version is {version}",
            why=f"the connector's statements need {name} {needed}",
            todo=f"use {name} {needed} or newer",
        )
    return version


def _numbers(version: str) -> tuple[float, ...]:
    """Aurora may name a release of its own in place of the third number, and has passed all."""
    found = NUMBER.match(version)
    return tuple(float(number or "inf") for number in found.groups()) if found else ()
