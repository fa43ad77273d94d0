"""The temporary table in which an epoch is folded, and the statements about it.

It has one row for each key: what the changes of that key come to. Its columns have the types and
collations of the target's, so that keys are equal in it that are equal there. A flag says what is
to be done. Where nulls keep earlier values, or equal keys may be spelled in several ways, changes
must arrive in their order: with a sequence they are collected in a second table, and go sorted from
there to the first one.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from pyspark_mysql.bends import Bends
from pyspark_mysql.columns import definition
from pyspark_mysql.literals import identifier
from pyspark_mysql.statements import NEW, Frame, frame, renewed
from pyspark_mysql.steps import FLAG, ROW, Step

WRITE, DELETE, ANEW = 0, 1, 2
"""What is to be done: write the row; delete it; delete what is stored, then write the row."""
NUMBER = f"{ROW} BIGINT AUTO_INCREMENT PRIMARY KEY"
ORDER = identifier("sparkonce_order")
UNCHECKED = "SET STATEMENT check_constraint_checks = 0 FOR "
"""Since 11.4, MariaDB copies constraints of columns, which bind what comes out at the end alone."""


class Fold:
    """Statements of one epoch.

    Args:
        detail: of the manifest.
        stored: whether the target has a column for the sequence.
        ambiguous: whether a stored row may be found by another unique key than the row's own.
        bends: of the target.
        spelled: whether keys may be equal and yet differ.
    """

    def __init__(
        self,
        detail: Mapping[str, Any],
        *,
        stored: bool,
        mariadb: bool,
        ambiguous: bool,
        bends: Bends,
        spelled: bool,
    ) -> None:
        self.detail, self.mariadb = detail, mariadb
        self.guard = bends.condition(unless=f"{FLAG} = {DELETE}")
        self.unchecked = UNCHECKED if mariadb else ""
        self.target = identifier(*detail["table"])
        self.table = identifier(detail["table"][0], "sparkonce_epoch")
        self.collected = identifier(detail["table"][0], "sparkonce_changes")
        self.columns = [identifier(name) for name in detail["columns"]]
        self.key = [identifier(name) for name in detail["key"]]
        self.keeps = detail["nulls"] == "keep"
        self.by = identifier(detail["sequence"]) if detail["sequence"] else None
        self.sorts = self.by is not None and (self.keeps or spelled)
        written = [n for n in detail["columns"] if stored or n != detail["sequence"]]
        self.written = [identifier(name) for name in written]
        plain = {**detail, "columns": written}
        self.upsert = frame(plain, mariadb=mariadb, ambiguous=ambiguous).tail.decode()

    def create(self) -> list[str]:
        """Make the tables; they live as long as the connection, and are made anew."""
        made = self._create(self.table, f"UNIQUE ({', '.join(self.key)})")
        if self.sorts:
            made += self._create(self.collected, f"INDEX {ORDER} ({self.by}, {ROW})")
        return made

    def _create(self, table: str, index: str) -> list[str]:
        # Columns of an outer join may be null: a row that deletes has no other values.
        columns = ", ".join(f"t.{name}" for name in self.columns if name != self._apart)
        own = [f"{FLAG} TINYINT NOT NULL", *self._definition(), index]
        return [
            f"DROP TEMPORARY TABLE IF EXISTS {table}",
            f"CREATE TEMPORARY TABLE {table} ({NUMBER}, {', '.join(own)}) ENGINE=InnoDB"
            f" SELECT {columns}, 0 AS {FLAG} FROM (SELECT 1) AS one"
            f" LEFT JOIN {self.target} AS t ON FALSE LIMIT 0",
        ]

    @property
    def _apart(self) -> str | None:
        """The sequence, unless it is of the key: compared as the query has it, not as stored."""
        return None if self.by in self.key else self.by

    def _definition(self) -> list[str]:
        if self._apart is None:
            return []
        name = self.detail["sequence"]
        kind = self.detail["kinds"][name]
        return [definition(name, kind, in_key=False, mariadb=self.mariadb)]

    def arrival(self) -> Frame:
        """The statement that takes the rows of a chunk in."""
        names = ", ".join([*self.columns, FLAG])
        table = self.collected if self.sorts else self.table
        head = f"{self.unchecked}INSERT INTO {table} ({names}) VALUES "
        alias = "" if self.mariadb else f" AS {NEW}"
        tail = "" if self.sorts else f"{alias}{self._merge(self.by)}"
        return Frame(head.encode(), tail.encode())

    def sort(self, after: str, most: int) -> str:
        """Fold so many of what was collected, in order, behind a place in it."""
        names = ", ".join([*self.columns, FLAG])
        return (
            f"{self.unchecked}INSERT INTO {self.table} ({names})"
            f" SELECT {names} FROM {self._ordered(after)} LIMIT {most}{self._merge(None)}"
        )

    def place(self, after: str, most: int) -> str:
        """Query the place that is so many rows behind another one."""
        return f"SELECT {self.by}, {ROW} FROM {self._ordered(after)} LIMIT 1 OFFSET {most - 1}"

    def behind(self, sequence: str, row: int) -> str:
        """What is true of the rows behind a place."""
        return f"{self.by} > {sequence} OR ({self.by} = {sequence} AND {ROW} > {row})"

    def _ordered(self, after: str) -> str:
        return (
            f"{self.collected} AS {NEW} FORCE INDEX ({ORDER})"
            f" WHERE {after} ORDER BY {self.by}, {ROW}"
        )

    def steps(self) -> list[Step]:
        """What is done in the target, one after the other."""
        names = ", ".join(self.written)
        insert = f"INSERT INTO {self.target} ({names}) SELECT {names} FROM {self.table} AS {NEW}"
        update = self.upsert.removeprefix(f" AS {NEW}")
        writes = Step(insert, NEW, f"{FLAG} <> {DELETE}{self.guard}", update)
        # Without operations nothing is deleted, and the right to do so is not asked for.
        if not self.detail["op"]:
            return [writes]
        delete = deletion(self.detail, self.table, indexed=True)
        return [delete._replace(which=f"e.{FLAG} <> {WRITE}"), writes]

    def _merge(self, by: str | None) -> str:
        """What a later change of a key makes of what is there of it."""
        columns = [name for name in self.columns if name not in self.key]
        changes = [f"{name} = {self._value(name, by)}" for name in columns]
        if by is None:
            # A key is spelled as where it was first written; a deleted one begins anew.
            changes += [f"{name} = {self._spelling(name)}" for name in self.key]
        else:
            kept = map(identifier, renewed(self.detail))
            changes += [f"{name} = {self._old(name)}" for name in kept]
        # MySQL assigns from left to right, and the others look at the flag as it was. A sequence
        # that was assigned already makes no difference: it is the higher one.
        changes.append(f"{FLAG} = {self._flag(by)}")
        return f" ON DUPLICATE KEY UPDATE {', '.join(changes)}"

    def _value(self, name: str, by: str | None) -> str:
        old, new = self._old(name), self._new(name)
        if self.keeps:
            return f"IF({self._old(FLAG)} = {DELETE}, {new}, COALESCE({new}, {old}))"
        return new if by is None else f"IF({self._comes_later(by)}, {new}, {old})"

    def _spelling(self, name: str) -> str:
        return f"IF({self._old(FLAG)} = {DELETE}, {self._new(name)}, {self._old(name)})"

    def _flag(self, by: str | None) -> str:
        """A row that was deleted on the way is written anew, whichever of the two came first."""
        old, new = self._old(FLAG), self._new(FLAG)
        later = f"IF({new} = {DELETE}, {DELETE}, IF({old} = {WRITE}, {WRITE}, {ANEW}))"
        if by is None:
            return later
        earlier = f"IF({new} = {DELETE} AND {old} = {WRITE}, {ANEW}, {old})"
        return f"IF({self._comes_later(by)}, {later}, {earlier})"

    def _comes_later(self, by: str) -> str:
        return f"{self._new(by)} >= {self._old(by)}"

    def _old(self, name: str) -> str:
        return f"{self.table}.{name}"

    def _new(self, name: str) -> str:
        return f"VALUES({name})" if self.mariadb else f"{NEW}.{name}"


def deletion(detail: Mapping[str, Any], table: str, *, indexed: bool) -> Step:
    """The statement that deletes the rows of the target whose keys are in a table.

    They are looked up one by one, so that no other row of the target is locked; without an index
    it is left to the server to find a better way.
    """
    names = map(identifier, detail["key"])
    same = " AND ".join(f"t.{name} = e.{name}" for name in names)
    join, target = "STRAIGHT_JOIN" if indexed else "JOIN", identifier(*detail["table"])
    return Step(f"DELETE t FROM {table} AS e {join} {target} AS t ON {same}", "e")
