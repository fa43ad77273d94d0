"""Epochs in which rows of one key must be compared first: by a sequence, or as writes and deletes.

All rows of an epoch are folded in a temporary table, whose key has the type and the collation of
the target's; what is left of each key then goes to the target by one DELETE and one INSERT.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pymysql

from pyspark_mysql.apply import Applier, RefusedRow
from pyspark_mysql.client import Session
from pyspark_mysql.dead_letters import Aside
from pyspark_mysql.failures import Kind, known
from pyspark_mysql.literals import identifier
from pyspark_mysql.load import Loading, can_load
from pyspark_mysql.statements import NEW, Frame

DELETED = identifier("sparkonce_deleted")


def applier(session: Session, detail: Mapping[str, Any], aside: Aside | None = None) -> Applier:
    """What applies the chunks of a manifest."""
    if detail["folded"]:
        return Folding(session, detail, aside)
    return (Loading if can_load(session, detail) else Applier)(session, detail, aside)


class Folding(Applier):
    """Applies the chunks of a whole epoch at once."""

    def begin(self) -> None:
        """Make the temporary table; it lives as long as the connection, and is made anew."""
        table, target = _scratch(self.detail), identifier(*self.detail["table"])
        columns = ", ".join(f"t.{identifier(name)}" for name in self.detail["columns"])
        key = ", ".join(map(identifier, self.detail["key"]))
        self.session.run(f"DROP TEMPORARY TABLE IF EXISTS {table}")
        # Columns of an outer join may be null: a row that deletes has no other values.
        self.session.run(
            f"CREATE TEMPORARY TABLE {table} ({DELETED} TINYINT NOT NULL, PRIMARY KEY ({key}))"
            f" ENGINE=InnoDB SELECT {columns}, 0 AS {DELETED} FROM (SELECT 1) AS one"
            f" LEFT JOIN {target} AS t ON FALSE LIMIT 0"
        )

    def end(self) -> None:
        """Write and delete what is left of each key.

        Raises:
            RefusedRow: the server refuses a row.
        """
        for statement in self._statements():
            try:
                self.session.run(statement)
            except pymysql.MySQLError as error:
                if known(error).kind is not Kind.ROW:
                    raise
                why = self.explained(error)
                raise RefusedRow(f"MySQL refused a row: {why.what}", why.why, why.todo) from None

    def _statements(self) -> list[str]:
        table, target = _scratch(self.detail), identifier(*self.detail["table"])
        same = " AND ".join(f"t.{k} = e.{k}" for k in map(identifier, self.detail["key"]))
        columns = ", ".join(map(identifier, self.detail["columns"]))
        update = super()._frame().tail.decode().removeprefix(f" AS {NEW}")
        rows = f"SELECT {columns} FROM {table} AS {NEW} WHERE {DELETED} = 0"
        return [
            f"DELETE t FROM {target} AS t JOIN {table} AS e ON {same} WHERE e.{DELETED} = 1",
            f"INSERT INTO {target} ({columns}) {rows}{update}",
        ]

    def _frame(self) -> Frame:
        """Rows go to the temporary table, where a later one replaces what is there of its key."""
        mariadb = self.session.live.mariadb
        names = [identifier(name) for name in self.detail["columns"]] + [DELETED]
        key = {identifier(name) for name in self.detail["key"]}
        sequence = identifier(self.detail["sequence"]) if self.detail["sequence"] else None
        # MySQL assigns from left to right: what is compared comes last.
        changed = sorted(
            (name for name in names if name not in key), key=lambda name: name == sequence
        )
        changes = [f"{name} = {self._later(name, sequence, mariadb)}" for name in changed]
        table, alias = _scratch(self.detail), "" if mariadb else f" AS {NEW}"
        return Frame(
            f"INSERT INTO {table} ({', '.join(names)}) VALUES ".encode(),
            f"{alias} ON DUPLICATE KEY UPDATE {', '.join(changes)}".encode(),
        )

    def _later(self, name: str, sequence: str | None, mariadb: bool) -> str:
        new = f"VALUES({name})" if mariadb else f"{NEW}.{name}"
        if sequence is None:
            return new
        table = _scratch(self.detail)
        comes = f"VALUES({sequence})" if mariadb else f"{NEW}.{sequence}"
        return f"IF({comes} >= {table}.{sequence}, {new}, {table}.{name})"


def _scratch(detail: Mapping[str, Any]) -> str:
    return identifier(detail["table"][0], "sparkonce_epoch")
