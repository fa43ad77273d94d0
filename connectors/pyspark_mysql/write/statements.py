"""The statements that apply rows: the SQL before and after the rows of a chunk."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import replace
from typing import NamedTuple

from pyspark_mysql.server.literals import identifier
from pyspark_mysql.write.contradictions import TIMESTAMPS
from pyspark_mysql.write.plan import TableRows
from sparkonce.change import Append

NEW = "sparkonce_new"
"""The alias of the row that MySQL writes; in MariaDB VALUES(column) has its values."""

OTHER = "sparkonce_other_"
"""A text that fails a conversion to a number if the server found a stored row with another key. A
null would fail only for some types: an auto-increment column accepts it."""


class Frame(NamedTuple):
    """A statement without its rows."""

    head: bytes
    tail: bytes


def frame(
    detail: TableRows, *, mariadb: bool, ambiguous: bool = False, left: Collection[str] = ()
) -> Frame:
    """The statement that inserts rows, or updates stored rows except their columns `left`.

    It is `ambiguous` if the server may find a stored row by a unique key other than the row's key.
    """
    names = ", ".join(map(identifier, detail.columns))
    head = f"INSERT INTO {identifier(*detail.table)} ({names}) VALUES "
    appends = isinstance(detail.change, Append)
    tail = "" if appends else _on_duplicate(detail, mariadb, ambiguous, left)
    return Frame(head.encode(), tail.encode())


def _on_duplicate(detail: TableRows, mariadb: bool, ambiguous: bool, left: Collection[str]) -> str:
    key, stored = detail.key, {name: identifier(*detail.table, name) for name in detail.columns}
    new = {
        name: f"VALUES({identifier(name)})" if mariadb else identifier(NEW, name)
        for name in detail.columns
    }
    changed = [name for name in detail.columns if name not in (*key, *left)]
    # A statement must assign at least one column.
    assigned = {name: stored[name] for name in (*(() if changed else key[:1]), *key_times(detail))}
    if ambiguous:
        same = " AND ".join(f"{stored[name]} <=> {new[name]}" for name in key)
        # The text is not constant: the server would evaluate a constant even if all keys match.
        own = f"({same}) OR CAST(CONCAT('{OTHER}', {same}) AS SIGNED)"
        assigned[key[0]] = f"IF({own}, {stored[key[0]]}, NULL)"
    for name in changed:
        assigned[name] = new[name]
        if name in detail.added:
            assigned[name] = f"COALESCE({stored[name]}, 0) + {new[name]}"
        elif detail.keeps_nulls:
            assigned[name] = f"COALESCE({new[name]}, {stored[name]})"
    alias = "" if mariadb else f" AS {NEW}"
    values = ", ".join(f"{identifier(name)} = {value}" for name, value in assigned.items())
    return f"{alias} ON DUPLICATE KEY UPDATE {values}"


def key_times(detail: TableRows) -> list[str]:
    """The columns of the key that an update must assign to themselves.

    The server would set one with ON UPDATE CURRENT_TIMESTAMP, in MariaDB perhaps an implicit one,
    to the current time.
    """
    return [name for name in detail.key if detail.kinds[name] in ("date", *TIMESTAMPS)]


def probes(detail: TableRows) -> list[str]:
    """Each kind of statement that a commit sends to the target, with a condition for no row.

    They need the same rights, and within a transaction they block ALTER of the table.
    """
    table, names = identifier(*detail.table), [identifier(name) for name in detail.columns]
    if not detail.makes_rows:
        set_ = ", ".join(f"{identifier(name)} = NULL" for name in detail.set_columns)
        change = f"UPDATE {table} SET {set_}" if set_ else f"DELETE FROM {table}"
        looked_up = ", ".join(map(identifier, detail.key))
        kinds = [f"SELECT {looked_up} FROM {table}", change]
    else:
        nulls = ", ".join(["NULL"] * len(names))
        # IGNORE: MariaDB requires columns that a trigger fills, even without any row.
        kinds = [f"INSERT IGNORE INTO {table} ({', '.join(names)}) SELECT {nulls} FROM DUAL"]
    if detail.updates:
        # Tests the right to read these columns only if sums or nulls=keep need it.
        reads = detail.added or detail.keeps_nulls
        changed = [f"{name} = {name if reads else 'NULL'}" for name in names]
        kinds.append(f"UPDATE {table} SET {', '.join(changed)}")
    if detail.op or detail.overwrites:
        kinds.append(f"DELETE FROM {table}")
    return [f"{kind} WHERE 1 = 0" for kind in kinds]


def metadata_lock(detail: TableRows, quoted_others: Sequence[str]) -> str:
    """One statement that finds no row; within a transaction it blocks ALTER of all tables."""
    fewest = detail.columns if detail.set_columns else detail.key or detail.columns
    last = probes(replace(detail, columns=fewest))[-1]
    return f"{last} AND EXISTS (SELECT 1 FROM {' CROSS JOIN '.join(quoted_others)} WHERE 1 = 0)"
