"""Rows sent to a table as they are: by INSERT, or by LOAD DATA LOCAL, which MySQL takes in faster.

With LOCAL the server has no errors for rows, but warnings: it makes 127 of 300 in a TINYINT, and
leaves a duplicate out. So rows that were not loaded without any are taken back and inserted.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable
from contextlib import nullcontext

import pymysql

from pyspark_mysql.server.client import MySqlSession
from pyspark_mysql.server.failures import failure_of, number
from pyspark_mysql.server.literals import HEX_TEXT, identifier
from pyspark_mysql.target.columns import TableColumn, named, unfilled
from pyspark_mysql.write.chunks import DecodedChunk, EncodedRows
from pyspark_mysql.write.plan import TableRows
from pyspark_mysql.write.refusals import Refusals, RefusedRow, sent_in_halves
from pyspark_mysql.write.statements import Frame
from sparkonce.change import Append
from sparkonce.errors import FailureKind

ROOM = 1024
"""Bytes of a packet that are left for its header."""

STATEMENT = 64 * 1024
"""Bytes of rows in a statement. MySQL takes those that fit into its caches a third faster than
those of a megabyte; MariaDB does not mind."""

HERE = "sparkonce_chunk"
NO_SUCH_COMMAND = 1047
"""ProxySQL says so of LOAD DATA LOCAL; a node of Galera that left its cluster says so of all."""

ENOUGH = 100
"""Rows that tell what the others of an epoch may be like."""


class RowWriter(ABC):
    """A way to write rows to a target that stays as it is while this is used.

    Attributes:
        is_local: whether the time of day is the server's own while rows are sent. Instants are sent
            in UTC; what is gathered is copied in the server's time.
    """

    is_local = False

    def __init__(self, session: MySqlSession, refusals: Refusals) -> None:
        self.session, self.refusals, self.detail = session, refusals, refusals.detail

    def apply(self, chunks: Iterable[DecodedChunk]) -> bool:
        """Apply chunks, inside a transaction of the caller's; whether the server took any row.

        Raises:
            RefusedRow: a row is refused; the caller rolls all of it back.
            TooManyBadRows: so are more than may go aside.
            pymysql.MySQLError: anything else.
        """
        with self.session.local_time() if self.is_local else nullcontext():
            self.begin()
            for chunk in chunks:
                self.refusals.partition = chunk.partition
                for letter in chunk.bad:
                    self.refusals.of_task(letter)
                self.write(chunk.rows)
            self.refusals.partition = None  # of what is left, a key's rows may come from several
            return self.end()

    def begin(self) -> None:  # noqa: B027 (most have nothing to do)
        """Do what must be done in each transaction before the first rows."""

    @abstractmethod
    def write(self, rows: EncodedRows) -> None:
        """Take these rows. Raises as `apply`."""

    @abstractmethod
    def end(self) -> bool:
        """Let what was taken take effect; whether the server took any row. Raises as `apply`."""


class InsertWriter(RowWriter):
    """Sends rows in statements of one form; `alone` gives that of a row of which columns stay.

    Attributes:
        most: bytes of rows that a statement may have.
        changed: rows so far, as the server counts: one for a new row, two for an updated one.
        stored: whether the server took any row.
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
        """Send a row without the columns that are kept: what is stored may be no value of theirs.

        An ENUM may hold '', which the server does not take, not even from the column itself.
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
            f"it takes {len(rows.text):,} bytes",
            f"max_allowed_packet of the server is {self.session.live.packet:,}",
            "raise it, or cut the row's large columns before the sink",
        )
        self.refusals.refuse(rows.literals(), error)
        return False


class LoadWriter(InsertWriter):
    """Loads rows while they are new, and inserts the others.

    Rows of a plan that only appends are all taken for new. Of others the first are inserted, and
    the server's count says whether any was stored: a LOAD DATA that meets one keeps a shared lock
    on it, by which two writers of the same keys would deadlock.
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
        # Of nulls in these columns MySQL makes zeros without a warning where there are triggers.
        # An INSERT refuses them, or takes what a trigger puts in their place. (MariaDB warns.)
        there = {} if self.session.live.mariadb else named(columns, detail.columns)
        self.never_null = {n for n, c in there.items() if not c.nullable and n not in detail.key}

    @staticmethod
    def fits(session: MySqlSession, detail: TableRows, columns: list[TableColumn]) -> bool:
        """Whether LOAD DATA does with rows what INSERT does.

        It reads bits from characters, and puts a zero where neither the query nor a trigger has
        filled a column.
        """
        has_bits = any(column.kind == "bit" for column in columns)
        return session.live.loads and not has_bits and not unfilled(columns, detail.columns)

    def write(self, rows: EncodedRows) -> None:
        """See `RowWriter.write`."""
        for part in rows.within(self.most if self.sampled else STATEMENT):
            if self.all_new and self._loaded(part):
                continue
            before = self.changed
            super().write(part)
            if self.sampled:
                # A keyed row that was not loaded may be stored already, and those behind it, too.
                self.all_new = self.appends
            elif len(part) >= ENOUGH:
                self.sampled, self.all_new = True, self.changed - before == len(part)

    def _loaded(self, rows: EncodedRows) -> bool:
        """Whether all rows were loaded; else none was."""
        lines = rows.lines
        larger = len(rows.text) > self.most
        # LOAD DATA can't read the hexadecimal form of a text. A row that is too large for a packet
        # is inserted in vain, which names it or puts it aside.
        if larger or self.never_null & rows.nulls or HEX_TEXT in bytes(lines):
            return False
        # So that these rows can be taken back alone: the chunks before them are in the transaction.
        self.session.run(f"SAVEPOINT {HERE}")
        try:
            loaded = self.session.load(self.sql, lines)
        except pymysql.MySQLError as error:
            # Of these the transaction goes on, and an INSERT may do what LOAD DATA did not.
            goes_on = failure_of(error).kind in (FailureKind.ROW, FailureKind.REFUSED)
            if not goes_on and number(error) != NO_SUCH_COMMAND:
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
