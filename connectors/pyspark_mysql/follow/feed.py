"""A table as a feed: an epoch has the changes of some transactions. The feed stores nothing.

A position is ``{"gtids": set}``: the transactions that were read. During the snapshot it also has
the highest number that was read: ``{"gtids": set, "snapshot": 1000}``, and ``"snapshot": null``
before the first row; and ``"where"``, the condition on its rows, if there is one.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property

import pyarrow as pa

from pyspark_mysql.binlog.events import LogPlace
from pyspark_mysql.binlog.gtids import GtidRange
from pyspark_mysql.binlog.names import FollowedNames
from pyspark_mysql.binlog.reader import BinlogRefusal, Change, RowChanges
from pyspark_mysql.follow import condition, fitness, snapshot
from pyspark_mysql.follow.changes import Changes
from pyspark_mysql.follow.condition import OPTION as CONDITION
from pyspark_mysql.follow.log_feed import READING, SNAPSHOT, LogFeed, log
from pyspark_mysql.follow.snapshot import Snapshot, SnapshotPiece
from pyspark_mysql.follow.table import OP, FollowedTable, followed
from pyspark_mysql.server.client import MySqlSession
from pyspark_mysql.server.failures import translated
from sparkonce.errors import OptionError, StoreRefused
from sparkonce.options import Options
from sparkonce.reading import STARTS, Position, Scan

WHERE = "where"


@dataclass(frozen=True)
class TransactionSplit:
    """A split: the transactions that are in `end` and not in `behind`."""

    behind: str
    end: str
    table: FollowedTable | None = None  # for rows without column names; None: not looked up
    place: LogPlace | None = None  # of the last transaction before them, if known


class MySqlFeed(LogFeed):
    """See `sparkonce.reading.Feed`."""

    def __init__(self, session: MySqlSession, options: Options, wanted: Scan) -> None:
        super().__init__(session, options)
        self.schema, self._is_laid_out = wanted.schema, False
        self.of = ".".join(filter(None, (session.database, *options["dbtable"])[-2:]))

    @property
    def names(self) -> FollowedNames:
        """The name of the table, as the server has it."""
        return FollowedNames.one(self.table.name)

    def begin(self) -> Position:
        """See `Feed.begin`. Rejects a table that can't be followed."""
        starts: str = self.options[STARTS]
        server = self._server()
        with translated(READING):
            fitness.require_all_logged(self.session)
            if self.carries_alterations:  # a later start may name columns of earlier rows
                self.table.require_columns(self.schema)
            self.table  # noqa: B018 (raises if it does not exist)
            where = self._checked_condition()
        if starts == SNAPSHOT:
            return {"gtids": server.executed, SNAPSHOT: None, **where}
        if starts == "latest":
            return {"gtids": server.executed}
        fitness.require_dialect(starts, server)
        return {"gtids": starts}

    def advance(self, after: Position, goal: Position, most: int | None) -> Position:
        """See `Feed.advance`. An epoch ends with a transaction, or within the snapshot."""
        server = self._server()
        begin = self._begin(after, server)
        if SNAPSHOT in after:
            return self._next_piece(begin, after, most)
        return self._next_epoch(server, begin, after, goal, most)

    def _checked_condition(self) -> Position:
        """The part of a position that has the condition; rejects one that can't be used."""
        text: str | None = self.options[CONDITION]
        if text is None:
            return {}
        if self.options[STARTS] != SNAPSHOT:
            raise OptionError(
                f"Option {CONDITION} needs {STARTS}={SNAPSHOT}",
                why="it chooses rows of a snapshot, and changes arrive whatever their rows hold",
                todo=f"set {STARTS}={SNAPSHOT}, or filter the stream in Spark",
            )
        snapshot.require_snapshot(self.table)
        found = condition.parsed(self.session, self.table, text)
        found.require_judged(self.session, self.table)
        return {WHERE: text}

    def _next_piece(self, behind: str, after: Position, most: int | None) -> Position:
        border = None
        with translated("reading the table"):
            snapshot.require_snapshot(self.table)
            if most is not None:
                # Of all rows: a search for those of a condition may take long.
                low = after[SNAPSHOT]
                border = snapshot.next_border(self.session, self.table, low, most)
        return {"gtids": behind} if border is None else {**after, "gtids": behind, SNAPSHOT: border}

    def _rest(self, behind: str, after: Position) -> SnapshotPiece:
        """The piece that the snapshot lacks after a position."""
        rest = SnapshotPiece(behind, after[SNAPSHOT])
        if WHERE not in after:
            return rest
        try:
            found = condition.parsed(self.session, self.table, after[WHERE])
        except OptionError as error:
            raise StoreRefused(
                f"The condition of the snapshot, {after[WHERE]!r}, no longer fits table"
                f" {self.table.full_name}",
                why=f"{error.why}; someone altered the table since the query began",
                todo="start a new query with a new checkpoint",
            ) from None
        return replace(rest, condition=found)

    def between(self, after: Position, end: Position) -> Sequence[SnapshotPiece | TransactionSplit]:
        """See `Feed.between`. One split has all changes of a row, in their order."""
        server = self._server()
        begin, fails = self._begin(after, server), self.options["failOnDataLoss"]
        upto = fitness.executed(end["gtids"], server, fails=fails)
        with translated(READING):
            self._checked_columns  # noqa: B018 (once for all epochs)
            pieces = [*self._pieces(begin, after, end)] if SNAPSHOT in after else []
            if self._gtids(begin).up_to(upto).is_complete:
                return pieces
            table = None if self._named else self._laid_out(begin)
        return [*pieces, TransactionSplit(begin, upto, table, self._place(begin))]

    def read(self, split: SnapshotPiece | TransactionSplit) -> Iterator[pa.RecordBatch]:
        """See `Feed.read`."""
        with translated(READING):
            table = self.table
            if isinstance(split, SnapshotPiece):
                reader = Snapshot(self.session, table, self.schema)
                yield from reader.read(split, self._rows_since(split.behind))
            else:
                yield from self._changes(split)

    def _changes(self, split: TransactionSplit) -> Iterator[pa.RecordBatch]:
        wanted, known = self._wanted(split.behind, split.end, split.place), split.table
        has_op = OP in self.schema.names

        def rows() -> Iterator[Change]:
            for one in self._rows(split.behind, wanted):
                if known is None and isinstance(one, RowChanges) and not one.table.named:
                    self._laid_out(split.behind)
                if has_op or isinstance(one, RowChanges):
                    yield one

        lenient = self.carries_alterations
        changes = Changes(self.schema, None, known or self.table, lenient=lenient)
        yield from changes.batches(rows())
        fitness.require_all_read(split.behind, wanted)

    def _laid_out(self, behind: str) -> FollowedTable:
        """The table that names the columns of rows logged without names.

        Scans the log after those rows once, and fails if the table was altered since.
        """
        if not self._is_laid_out:
            unnamed, _ = False, self.table  # read the table before the log
            with self._steps(behind, GtidRange(), strict=True) as steps:
                for step in steps:
                    if isinstance(step, BinlogRefusal) and step.alters and unnamed:
                        raise StoreRefused(
                            f"Rows of {self.table.full_name} are unreadable if they were logged"
                            f" before transaction {step.gtid}, which {step.what}",
                            why="the table may have had other columns then, and the log has no"
                            " column names (binlog_row_metadata)",
                            todo="reconcile the target with the table, SET GLOBAL"
                            " binlog_row_metadata=FULL, and start a new query after that"
                            " transaction",
                        )
                    unnamed = unnamed or (isinstance(step, RowChanges) and not step.table.named)
            self._is_laid_out = True
        return self.table

    @cached_property
    def _checked_columns(self) -> bool:
        """Reject unreadable columns before any row is read."""
        if self.carries_alterations:
            self.table.require_names_in_log()
        else:
            self.table.require_columns(self.schema)
        warn_of(self.table, self.schema)
        return True

    @cached_property
    def table(self) -> FollowedTable:
        """The followed table."""
        return followed(self.session, self.options["dbtable"])

    def _pieces(self, begin: str, after: Position, end: Position) -> Sequence[SnapshotPiece]:
        snapshot.require_snapshot(self.table)
        whole = replace(self._rest(begin, after), high=end.get(SNAPSHOT))
        return snapshot.pieces(self.session, self.table, whole, self.options["numPartitions"])


def warn_of(table: FollowedTable, schema: pa.Schema) -> None:
    """Warn of changes that a stream of these columns lacks or does not mark.

    See https://dev.mysql.com/doc/refman/8.4/en/innodb-and-mysql-replication.html.
    """
    if not table.key and table.whole:
        log.warning(
            "Table %s has no primary key: a sink with a key keeps the old row if an update changes"
            " a column of that key. Why: the log does not show that the row has another key then."
            " What to do: give the table a primary key, and the sink the same one",
            table.full_name,
        )
    if OP not in schema.names:
        log.warning(
            "The stream of %s has no column %s. Why: .schema(...) omits it, so deleted rows look"
            " like existing rows. What to do: add it to the schema",
            *(table.full_name, OP),
        )
    if table.cascade:
        log.warning(
            "Foreign key %s of %s changes its rows when rows of another table change, and a"
            " stream lacks these changes. Why: InnoDB makes them without logging them in the"
            " binary log. What to do: let applications change the rows of both tables",
            *(table.cascade, table.full_name),
        )
