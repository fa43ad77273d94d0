"""Collects what the log has into windows, of which batches are made."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from typing import TypeAlias

from pyspark_mysql.binlog.names import TableName
from pyspark_mysql.binlog.reader import Change, RowChanges, TableStatement
from pyspark_mysql.binlog.tables import LoggedTable

BLOCK = 8 * 1024 * 1024
"""The number of bytes from which a window is complete."""

LayoutKey: TypeAlias = tuple[TableName, int]
"""A table, and the id of its description in the log."""


@dataclass
class LoggedRows:
    """Rows of one table and layout: an element of each list for each event."""

    # Only numbers, texts and bytes: the garbage collector would visit other objects many times.
    name: TableName
    table: LoggedTable
    gtids: list[str] = field(default_factory=list)
    micros: list[int] = field(default_factory=list)
    operations: list[str] = field(default_factory=list)
    data: list[bytes] = field(default_factory=list)
    places: list[int] = field(default_factory=list)  # among the changes of the window


@dataclass
class Window:
    """Changes that follow each other in the log."""

    rows: dict[LayoutKey, LoggedRows] = field(default_factory=dict)
    statements: list[TableStatement] = field(default_factory=list)
    places: list[int] = field(default_factory=list)  # of the statements
    count: int = 0
    size: int = 0  # in bytes

    def add(self, one: Change, layout: LayoutKey | None) -> None:
        """Add the next change."""
        if isinstance(one, RowChanges):
            begin, operation, name, table, data = one
            assert layout  # noqa: S101 (rows have one)
            rows = self.rows.get(layout)
            if rows is None:
                rows = self.rows[layout] = LoggedRows(name, table)
            rows.gtids.append(str(begin.gtid))
            rows.micros.append(begin.micros)
            rows.operations.append(operation)
            rows.data.append(data)
            rows.places.append(self.count)
            self.size += len(data)
        else:
            self.statements.append(one)
            self.places.append(self.count)
            self.size += len(one.text)
        self.count += 1


def windows(changes: Iterable[Change], *, mixed: bool = False) -> Iterator[Window]:
    """The changes in windows of about `BLOCK` bytes at most.

    Without `mixed` a window has rows of one layout, or statements.
    """
    window, last = Window(), None
    for one in changes:
        layout = (one.name, id(one.table)) if isinstance(one, RowChanges) else None
        if window.count and (window.size > BLOCK or not (mixed or layout == last)):
            yield window
            window = Window()
        window.add(one, layout)
        last = layout
    if window.count:
        yield window
