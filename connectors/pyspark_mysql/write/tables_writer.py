"""Writes the rows of an epoch to several tables, in one transaction."""

from __future__ import annotations

from collections.abc import Callable, Iterable

from pyspark_mysql.write.inserting import RowWriter
from pyspark_mysql.write.plan import TableRows
from pyspark_mysql.write.refusals import Refusals
from pyspark_mysql.write.tables import TablesChunk
from sparkonce.change import Names

Open = Callable[[TableRows, int], RowWriter]
"""Checks and locks a table, and returns its writer; the number is the place of the writer among
those of the epoch."""


class TablesWriter:
    """A writer for each table; `refusals` takes bad rows that have no table."""

    def __init__(self, open_: Open, refusals: Refusals) -> None:
        self._open, self._refusals = open_, refusals
        self._writers: dict[Names, RowWriter] = {}
        self._opened, self._stored = 0, False

    def apply(self, chunks: Iterable[TablesChunk]) -> bool:
        """See `RowWriter.apply`. No row of a table refers to another table of the epoch."""
        for chunk in chunks:
            self._refusals.partition = chunk.partition
            for letter in chunk.bad:
                self._refusals.of_task(letter)
            for part in chunk.parts:
                writer = self._writer(part.detail)
                with writer.time():
                    writer.take(part.chunk)
        for table in [*self._writers]:
            self._finish(table)
        return self._stored

    def _writer(self, detail: TableRows) -> RowWriter:
        """The writer for a table. Rows in another form follow those before them."""
        known = self._writers.get(detail.table)
        if known is not None and known.detail == detail:
            return known
        if known is not None:
            self._finish(detail.table)
        self._opened += 1
        writer = self._writers[detail.table] = self._open(detail, self._opened)
        with writer.time():
            writer.begin()
        return writer

    def _finish(self, table: Names) -> None:
        writer = self._writers.pop(table)
        with writer.time():
            self._stored |= writer.finish()
        writer.close()
