"""Decides which statements a stream carries on as rows of their own, instead of a stop.

A stream carries on a TRUNCATE or DROP, and an ALTER that keeps every stored value.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from pyspark_mysql.binlog.events import LoggedStatement
from pyspark_mysql.binlog.layouts import (
    UNKNOWN_COLUMNS,
    Alteration,
    Creation,
    Emptying,
    TableLayout,
)
from pyspark_mysql.binlog.names import FollowedNames, TableName
from pyspark_mysql.binlog.statements import known_effect
from pyspark_mysql.binlog.tables import LoggedTable

SCHEMA_CHANGE, EMPTIED = "s", "t"
"""The `_op` of a schema change, and of a TRUNCATE or DROP; the latter as in Debezium."""


class Carried(NamedTuple):
    """A statement on a table that the stream carries on."""

    operation: str
    name: TableName


class NotCarried(NamedTuple):
    """A statement that stops the stream; `why` is empty if the options say so."""

    why: str = ""


@dataclass
class Carrier:
    """The statements of one read of the log, and the layouts of tables up to each of them.

    Attributes:
        names: of the followed tables.
        mariadb: whether the server is a MariaDB.
        alterations, truncations: which statements to carry on.
        charsets: looks up the names of character sets, by the numbers of their collations.
        former: looks up the layout of a table in the log before the current transaction.
        is_plain: looks up whether a table has a primary key and no generated columns, whose values
            change with the types of others. The log does not show either.
    """

    names: FollowedNames
    mariadb: bool
    alterations: bool = False
    truncations: bool = False
    charsets: Callable[[], Mapping[int, str]] = dict
    former: Callable[[TableName], TableLayout | None] = lambda _: None
    is_plain: Callable[[TableName], bool] = lambda _: True

    def __post_init__(self) -> None:
        self._described = dict[TableName, LoggedTable]()
        self._layouts = dict[TableName, TableLayout]()

    def describe(self, name: TableName, table: LoggedTable) -> None:
        """Take the columns of a table, as the log describes them before its rows."""
        if self.alterations:
            self._described[name] = table
            self._layouts.pop(name, None)

    def forget(self) -> None:
        """Forget all layouts, after statements that nobody looked at."""
        self._described.clear()
        self._layouts.clear()

    def layout(self, name: TableName) -> TableLayout | None:
        """The present layout of a table; None if it is unknown."""
        if name not in self._layouts and (table := self._described.get(name)) and table.named:
            self._layouts[name] = TableLayout.of(table, self.charsets())
        return self._layouts.get(name)

    def create(self, statement: LoggedStatement) -> None:
        """Take a statement that may create a followed table, which is then empty."""
        known = known_effect(statement, self.names, mariadb=self.mariadb)
        if isinstance(known, Creation):
            self._layouts[known.name] = TableLayout(is_empty=True)

    def take(self, statement: LoggedStatement) -> Sequence[Carried] | NotCarried:
        """Judge a statement that changes followed tables."""
        known = known_effect(statement, self.names, mariadb=self.mariadb)
        if isinstance(known, Emptying):
            for name in known.names:
                self._layouts[name] = TableLayout(is_empty=True)
            if self.truncations:
                return [Carried(EMPTIED, name) for name in known.names]
        elif isinstance(known, Alteration):
            return self._alter(known)
        else:
            self.forget()  # it may have renamed tables
        return NotCarried()

    def _alter(self, statement: Alteration) -> Sequence[Carried] | NotCarried:
        if not self.alterations:
            return NotCarried()
        name, clauses = statement.name, statement.clauses
        layout, needed = self.layout(name), any(one.needs_layout for one in clauses)
        # Unknown, unless the statement is proven.
        self._layouts.pop(name, None)
        self._described.pop(name, None)
        if statement.reuses_names:
            return NotCarried("a column gets the name of another one")
        if any(one.retyped and one.former for one in clauses) and not self.is_plain(name):
            return NotCarried("the table has generated columns, or no primary key")
        if needed and (layout is None or layout.lacks(clauses)):
            layout = self.former(name)
        if layout is None:
            return NotCarried(UNKNOWN_COLUMNS) if needed else [Carried(SCHEMA_CHANGE, name)]
        self._layouts[name] = layout.after(clauses)
        why = layout.refusal(clauses, strict=statement.strict)
        return NotCarried(why) if why else [Carried(SCHEMA_CHANGE, name)]
