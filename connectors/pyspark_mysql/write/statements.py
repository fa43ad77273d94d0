"""The statements that apply rows: what stands before the rows of a chunk, and behind them."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, NamedTuple

from pyspark_mysql.server.literals import identifier
from sparkonce.change import Append

if TYPE_CHECKING:
    from pyspark_mysql.write.plan import TableRows

OWN = ("sparkonce_flag", "sparkonce_row")
"""Columns of a temporary table besides those of the query: whether the row deletes; its number."""

NEW = "sparkonce_new"
"""What MySQL calls the row that is being written; MariaDB says VALUES(column)."""

OTHER = "sparkonce_other_"
"""What is read as a number, and fails so, where another stored row was found than that of the key;
a null would do in its place for some types only: an auto-increment column takes it."""

TIMES = ("date", "timestamp", "timestamp_ntz")


class Frame(NamedTuple):
    """A statement without its rows."""

    head: bytes
    tail: bytes


def frame(
    detail: TableRows, *, mariadb: bool, ambiguous: bool = False, left: Collection[str] = ()
) -> Frame:
    """The statement that inserts rows, or updates what is there of them.

    Args:
        detail: of the plan, see `TableRows`.
        mariadb: whose dialect to speak.
        ambiguous: whether MySQL may find a stored row by another unique key than the row's own.
        left: columns that an update leaves alone.
    """
    names = ", ".join(map(identifier, detail.columns))
    head = f"INSERT INTO {identifier(*detail.table)} ({names}) VALUES "
    appends = isinstance(detail.change, Append)
    tail = "" if appends else _on_duplicate(detail, mariadb, ambiguous, left)
    return Frame(head.encode(), tail.encode())


def _on_duplicate(detail: TableRows, mariadb: bool, ambiguous: bool, left: Collection[str]) -> str:
    key = detail.key
    changed = [name for name in detail.columns if name not in (*key, *left)]
    changes = {name: _change(name, detail, mariadb) for name in changed}
    names = [*(() if changed else key[:1]), *renewed(detail)]  # something must be assigned
    kept = {name: identifier(*detail.table, name) for name in names}
    if ambiguous:
        same = " AND ".join(_same(name, detail, mariadb) for name in key)
        # The text is no constant: a constant would be looked at although all rows are their own.
        own = f"({same}) OR CAST(CONCAT('{OTHER}', {same}) AS SIGNED)"
        kept[key[0]] = f"IF({own}, {identifier(*detail.table, key[0])}, NULL)"
    alias = "" if mariadb else f" AS {NEW}"
    assigned = [f"{identifier(name)} = {value}" for name, value in {**kept, **changes}.items()]
    return f"{alias} ON DUPLICATE KEY UPDATE {', '.join(assigned)}"


def renewed(detail: TableRows) -> list[str]:
    """The columns of the key that an update may set to the time of day, unless it assigns them.

    They were declared ON UPDATE CURRENT_TIMESTAMP, in MariaDB perhaps unasked.
    """
    return [name for name in detail.key if detail.kinds[name] in TIMES]


def _same(name: str, detail: TableRows, mariadb: bool) -> str:
    return f"{identifier(*detail.table, name)} <=> {_new(name, mariadb)}"


def _new(name: str, mariadb: bool) -> str:
    return f"VALUES({identifier(name)})" if mariadb else identifier(NEW, name)


def _change(name: str, detail: TableRows, mariadb: bool) -> str:
    new = _new(name, mariadb)
    stored = identifier(*detail.table, name)
    if name in detail.added:
        return f"COALESCE({stored}, 0) + {new}"
    return f"COALESCE({new}, {stored})" if detail.nulls == "keep" else new


def idle(detail: TableRows) -> list[str]:
    """Each kind of statement that a commit sends to the target, so that no row is found.

    They need the same rights, and in a transaction they keep the table from being altered.
    """
    table, names = identifier(*detail.table), [identifier(name) for name in detail.columns]
    if not detail.makes_rows:
        kinds = [f"SELECT {', '.join(names)} FROM {table}", f"DELETE FROM {table}"]
    else:
        # IGNORE: MariaDB asks for columns that a trigger fills, although there is no row.
        kinds = [
            f"INSERT IGNORE INTO {table} ({', '.join(names)}) SELECT {_nulls(names)} FROM DUAL"
        ]
    if detail.updates:
        # The right to read these columns is tried only where sums and nulls=keep need it.
        reads = detail.added or detail.nulls == "keep"
        changed = [f"{name} = {name if reads else 'NULL'}" for name in names]
        kinds.append(f"UPDATE {table} SET {', '.join(changed)}")
    if detail.op or detail.overwrites:
        kinds.append(f"DELETE FROM {table}")
    return [f"{kind} WHERE 1 = 0" for kind in kinds]


def holding(detail: TableRows, others: Sequence[str]) -> str:
    """One statement that finds no row; in a transaction it keeps all tables from being altered.

    Args:
        detail: of the plan, whose target is one of them.
        others: the quoted names of those that are only read by it.
    """
    last = idle(replace(detail, columns=detail.key or detail.columns))[-1]
    return f"{last} AND EXISTS (SELECT 1 FROM {' CROSS JOIN '.join(others)} WHERE 1 = 0)"


def _nulls(names: Sequence[str]) -> str:
    return ", ".join("NULL" for _ in names)
