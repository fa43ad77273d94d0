"""Sends rows directly to a table: by INSERT, or by LOAD DATA LOCAL, which is faster in MySQL.

With LOCAL the server reports bad rows only as warnings: it stores 300 in a TINYINT as 127, and
ignores a duplicate. So rows that did not load without warnings are rolled back and inserted.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable
from contextlib import AbstractContextManager, nullcontext

import pymysql

from pyspark_mysql.server.client import MySqlSession
from pyspark_mysql.server.failures import failure_of, message, number
from pyspark_mysql.server.literals import HEX_TEXT, identifier
from pyspark_mysql.target.columns import TableColumn, named, unfilled
from pyspark_mysql.write.chunks import DecodedChunk, EncodedRows
from pyspark_mysql.write.plan import TableRows
from pyspark_mysql.write.refusals import Refusals, RefusedRow, sent_in_halves
from pyspark_mysql.write.statements import Frame
from sparkonce.change import Append
from sparkonce.errors import FailureKind, StoreRefused

ROOM = 1024
"""Bytes of a packet that are reserved for its header."""

STATEMENT = 64 * 1024
"""Bytes of rows in a statement. MySQL executes statements that fit into its caches a third faster
than statements of a megabyte; in MariaDB the size does not matter."""

HERE = "sparkonce_chunk"
DUPLICATE, MOST_WARNINGS = 1062, 65_535
NO_SUCH_COMMAND = 1047
"""The error of ProxySQL for LOAD DATA LOCAL; a Galera node outside its cluster has it for all."""

ENOUGH = 100
"""The number of rows that suffices as a sample of an epoch."""


class RowWriter(ABC):
    """Writes rows to a target that does not change meanwhile.

    Attributes:
        is_local: whether rows are sent with the server's local time. Instants are sent in UTC.
            Gathered rows are copied in local time.
    """

    is_local = False

    def __init__(self, session: MySqlSession, refusals: Refusals) -> None:
        self.session, self.refusals, self.detail = session, refusals, refusals.detail

    def apply(self, chunks: Iterable[DecodedChunk]) -> bool:
        """Apply chunks inside a transaction of the caller; whether the server stored any row.

        Raises:
            RefusedRow: the server rejected a row; the caller rolls the transaction back.
            TooManyBadRows: more bad rows than option ``maxBadRows`` allows.
            pymysql.MySQLError: any other error.
        """
        with self.time():
            self.begin()
            for chunk in chunks:
                self.take(chunk)
            return self.finish()

    def time(self) -> AbstractContextManager[None]:
        """The time zone in which rows are sent."""
        return self.session.local_time() if self.is_local else nullcontext()

    def take(self, chunk: DecodedChunk) -> None:
        """Take a chunk. Raises the errors of `apply`."""
        self.refusals.partition = chunk.partition
        if chunk.empties:
            self.empty()
        for letter in chunk.bad:
            self.refusals.of_task(letter)
        self.write(chunk.rows)

    def finish(self) -> bool:
        """Apply the taken rows; whether the server stored any row. Raises as `apply`."""
        self.refusals.partition = None  # the remaining rows of a key may be of several
        return self.end()

    def begin(self) -> None:  # noqa: B027 (most writers need nothing)
        """Prepare a transaction before its first rows."""

    def empty(self) -> None:
        """Empty the target, and forget the rows so far; only where rows have an operation."""
        raise NotImplementedError

    def close(self) -> None:  # noqa: B027 (most writers have nothing)
        """Free what the connection would keep until the next epoch."""

    @abstractmethod
    def write(self, rows: EncodedRows) -> None:
        """Take these rows. Raises the errors of `apply`."""

    @abstractmethod
    def end(self) -> bool:
        """Apply the taken rows; whether the server stored any row. Raises as `apply`."""


def empty(session: MySqlSession, detail: TableRows) -> None:
    """Delete all rows of the target, or those that an overwrite replaces.

    Raises:
        StoreRefused: the server can't delete one of them.
    """
    # TRUNCATE would commit: readers would see an empty table, and a bad row would leave it so.
    try:
        session.run(f"DELETE FROM {identifier(*detail.table)}{detail.replaced}")
    except pymysql.MySQLError as error:
        if failure_of(error).kind is not FailureKind.ROW:
            raise
        raise StoreRefused(
            f"Table {detail.table_name} can't be emptied, and no row of the epoch took effect:"
            f" {message(error)}",
            why="the server can't delete a stored row: a foreign key of this table or another one"
            " refers to it, or a trigger rejects the delete",
            todo="drop that foreign key, or declare it ON DELETE CASCADE or SET NULL; or write with"
            " option key in mode append, without rows that empty the table",
        ) from None


class InsertWriter(RowWriter):
    """Sends rows in statements of one form; `alone` builds that of a row that keeps columns.

    Attributes:
        most: maximum bytes of rows in a statement.
        changed: rows so far by the server's count: one for a new row, two for an updated one.
        stored: whether the server stored any row.
    """

    def __init__(
        self,
        session: MySqlSession,
        refusals: Refusals,
        frame: Frame,
        alone: Callable[..., Frame] | None = None,
    ) -> None:
        super().__init__(session, refusals)
        self.frame, self.alone = frame, alone
        self.most = session.live.packet - len(frame.head) - len(frame.tail) - ROOM
        self.changed, self.stored = 0, False

    def write(self, rows: EncodedRows) -> None:
        """See `RowWriter.write`."""
        parts = filter(self._fits, rows.within(min(self.most, STATEMENT)))
        for row, error in sent_in_halves(parts, self._send):
            if not self._sent_alone(row):
                self.refusals.by_server(row.literals(), error)

    def end(self) -> bool:
        """See `RowWriter.end`."""
        return self.stored

    def _send(self, rows: EncodedRows, frame: Frame | None = None) -> None:
        head, tail = frame or self.frame
        self.changed += self.session.change(b"".join([head, rows.text, tail]))
        self.stored = True

    def _sent_alone(self, row: EncodedRows) -> bool:
        """Send a row without the columns that keep their values: these may be invalid.

        An ENUM may hold '', which the server rejects even if the column itself has it.
        """
        if self.alone is None:
            return False
        columns = zip(self.detail.columns, row.literals(), strict=False)
        nulls = tuple(name for name, literal in columns if literal == "NULL")
        try:
            self._send(row, self.alone(left=nulls))
        except pymysql.MySQLError as error:
            if failure_of(error).kind is not FailureKind.ROW:
                raise
            return False
        return True

    def _fits(self, rows: EncodedRows) -> bool:
        if len(rows.text) <= self.most:
            return True
        error = RefusedRow(
            f"the row takes {len(rows.text):,} bytes",
            f"max_allowed_packet of the server is {self.session.live.packet:,}",
            "raise max_allowed_packet, or cut the row's large columns before the sink",
        )
        self.refusals.refuse(rows.literals(), error)
        return False


class SkippingWriter(InsertWriter):
    """Inserts rows, and skips those of which a unique key exists.

    With IGNORE the server also turns other errors into warnings, and stores other values. So such a
    statement counts only if all its warnings are duplicates, one for each row that is not inserted.
    Else its rows are sent without IGNORE, which skips each duplicate by itself.
    """

    def begin(self) -> None:
        """See `RowWriter.begin`."""
        self.session.run(f"SET SESSION max_error_count = {MOST_WARNINGS}")

    def write(self, rows: EncodedRows) -> None:
        """See `RowWriter.write`."""
        for part in filter(self._fits, rows.within(min(self.most, STATEMENT))):
            if self._skipped(part):
                continue
            for row, error in sent_in_halves([part], self._send):
                if number(error) != DUPLICATE:
                    self.refusals.by_server(row.literals(), error)

    def _skipped(self, rows: EncodedRows) -> bool:
        """Insert the rows that are new; False if nothing was inserted."""
        self.session.run(f"SAVEPOINT {HERE}")
        try:
            head = self.frame.head.replace(b"INSERT", b"INSERT IGNORE", 1)
            added = self.session.change(head + rows.text)
            warned = [int(code) for _, code, _ in self.session.run("SHOW WARNINGS")]
        except pymysql.MySQLError as error:
            if failure_of(error).kind is not FailureKind.ROW:
                raise
            added, warned = -1, []
        if warned == [DUPLICATE] * (len(rows) - added):
            self.stored = True
            return True
        self.session.run(f"ROLLBACK TO SAVEPOINT {HERE}")
        return False


class LoadWriter(InsertWriter):
    """Loads rows while they are new, and inserts the others.

    In a plan that appends all rows count as new. Otherwise the writer inserts the first rows, and
    the server's count shows whether any existed. A LOAD DATA that finds an existing row keeps a
    shared lock on it, so two writers of the same keys would deadlock.
    """

    def __init__(
        self,
        session: MySqlSession,
        refusals: Refusals,
        frame: Frame,
        alone: Callable[..., Frame] | None,
        columns: Iterable[TableColumn],
    ) -> None:
        super().__init__(session, refusals, frame, alone)
        detail = self.detail
        self.sql = _load_statement(detail)
        self.appends = self.sampled = self.all_new = isinstance(detail.change, Append)
        # If the table has triggers, LOAD DATA in MySQL stores zeros for nulls in these columns
        # without a warning. INSERT rejects them, or stores a trigger's value. (MariaDB warns.)
        there = {} if self.session.live.mariadb else named(columns, detail.columns)
        self.never_null = {n for n, c in there.items() if not c.nullable and n not in detail.key}

    @staticmethod
    def fits(session: MySqlSession, detail: TableRows, columns: list[TableColumn]) -> bool:
        """Whether LOAD DATA stores rows as INSERT does.

        LOAD DATA reads bits from characters and the year 0 as 2000, and stores a zero in a column
        that neither the query nor a trigger fills.
        """
        differs = any(column.kind in ("bit", "year") for column in columns)
        return session.live.loads and not differs and not unfilled(columns, detail.columns)

    def write(self, rows: EncodedRows) -> None:
        """See `RowWriter.write`."""
        for part in rows.within(self.most if self.sampled else STATEMENT):
            if self.all_new and self._loaded(part):
                continue
            before = self.changed
            super().write(part)
            if self.sampled:
                # A keyed row that did not load may exist already, and so may those after it.
                self.all_new = self.appends
            elif len(part) >= ENOUGH:
                self.sampled, self.all_new = True, self.changed - before == len(part)

    def _loaded(self, rows: EncodedRows) -> bool:
        """Load all rows; False if none was loaded."""
        lines = rows.lines
        larger = len(rows.text) > self.most
        # LOAD DATA can't read the hexadecimal form of a text. A row that exceeds a packet goes to
        # the INSERT, which refuses it by name or sets it aside.
        if larger or self.never_null & rows.nulls or HEX_TEXT in bytes(lines):
            return False
        # Allows to roll back only these rows: the transaction also has the chunks before them.
        self.session.run(f"SAVEPOINT {HERE}")
        try:
            loaded = self.session.load(self.sql, lines)
        except pymysql.MySQLError as error:
            # After these errors the transaction continues, and an INSERT may succeed.
            continues = failure_of(error).kind in (FailureKind.ROW, FailureKind.REFUSED)
            if not continues and number(error) != NO_SUCH_COMMAND:
                raise
            loaded = -1
        if loaded != len(rows):
            self.session.run(f"ROLLBACK TO SAVEPOINT {HERE}")
            return False
        self.stored = True
        return True


def _load_statement(detail: TableRows) -> str:
    """The statement that loads the text of a VALUES list."""
    fields, sets = [], []
    for place, name in enumerate(detail.columns):
        field = identifier(name)
        if detail.kinds[name] == "binary":  # X'00ff'
            text = f"@sparkonce_{place}"
            sets.append(f"{field} = UNHEX(SUBSTR({text}, 3, LENGTH({text}) - 3))")
            field = text
        fields.append(field)
    return (
        f"LOAD DATA LOCAL INFILE 'sparkonce' INTO TABLE {identifier(*detail.table)}"
        " CHARACTER SET utf8mb4 FIELDS TERMINATED BY ',' OPTIONALLY ENCLOSED BY ''''"
        " ESCAPED BY '' LINES STARTING BY '(' TERMINATED BY '),'"
        f" ({', '.join(fields)})" + (f" SET {', '.join(sets)}" if sets else "")
    )
