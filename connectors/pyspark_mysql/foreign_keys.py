"""Foreign keys by which rows of the target depend on other rows of it."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Any

from pyspark_mysql.client import Session
from sparkonce.errors import OptionError

PARENTS = """
SELECT unique_constraint_schema, referenced_table_name, delete_rule
FROM information_schema.referential_constraints
WHERE constraint_schema = %s AND table_name = %s
"""
ANY = ("CASCADE", "SET NULL", "SET DEFAULT", "RESTRICT", "NO ACTION")
SPREADING, CHANGING = ("CASCADE",), ("CASCADE", "SET NULL")


def leads_back(
    session: Session,
    table: Collection[str],
    first: Collection[str] = ANY,
    further: Collection[str] = ANY,
) -> bool:
    """Whether foreign keys lead from a table back to it, straight or by way of other tables.

    Args:
        session: of the server.
        table: database and name.
        first: rules ON DELETE that count for the table's own foreign keys.
        further: the same for those of the tables on the way.
    """
    home, seen = _lower(table), set()
    ahead = [(tuple(table), first)]
    while ahead:
        child, rules = ahead.pop()
        for schema, name, rule in session.run(PARENTS, *child):
            parent = _lower((schema, name))
            if rule not in rules:
                continue
            if parent == home:
                return True
            if parent not in seen:
                seen.add(parent)
                ahead.append(((schema, name), further))
    return False


def require_no_cascade(session: Session, detail: Mapping[str, Any]) -> None:
    """Refuse a change stream into a table in which deleting a row changes other rows.

    Raises:
        OptionError: it is such a table.
    """
    if detail["op"] and leads_back(session, detail["table"], CHANGING, SPREADING):
        raise OptionError(
            f"Option opColumn: {'.'.join(detail['table'])} has a foreign key that leads back to it,"
            " with ON DELETE CASCADE or SET NULL",
            why="an epoch's deletes come before its writes, so that they would also take rows that"
            " the epoch had let go of before",
            todo="make the foreign key ON DELETE RESTRICT, or drop it: a change stream tells of"
            " each row by itself",
        )


def _lower(table: Collection[str]) -> tuple[str, ...]:
    return tuple(name.lower() for name in table)
