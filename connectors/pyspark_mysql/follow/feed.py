"""A table as a feed: an epoch has the changes of some transactions. The feed stores nothing.

A position is ``{"gtids": set}``: the transactions that were read. During the snapshot it also has
the highest number that was read: ``{"gtids": set, "snapshot": 1000}``, and ``"snapshot": null``
before the first row.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cached_property

import pyarrow as pa
import pymysql

from pyspark_mysql.binlog.events import UPDATE, LogPlace
from pyspark_mysql.binlog.gtids import GtidRange, Gtids, gtids
from pyspark_mysql.binlog.images import PADDING, RowImage
from pyspark_mysql.binlog.reader import (
    BinlogReader,
    BinlogRefusal,
    RowChanges,
    Step,
    TransactionEnd,
)
from pyspark_mysql.follow import fitness, snapshot
from pyspark_mysql.follow.changes import Changes
from pyspark_mysql.follow.fitness import LogServer
from pyspark_mysql.follow.request import NOT_THERE, log_behind
from pyspark_mysql.follow.snapshot import Snapshot, SnapshotPiece
from pyspark_mysql.follow.table import OP, FollowedTable, followed
from pyspark_mysql.server.client import MySqlSession
from pyspark_mysql.server.failures import number, translated
from sparkonce.errors import StoreRefused
from sparkonce.options import Options
from sparkonce.reading import STARTS, Position, Scan

log = logging.getLogger("sparkonce")

READING = "reading the binary log"
SNAPSHOT = "snapshot"

QUIET_SECONDS = 600
"""How long transactions of only other tables create no epoch."""


@dataclass(frozen=True)
class TransactionSplit:
    """A split: the transactions that are in `end` and not in `behind`."""

    behind: str
    end: str
    table: FollowedTable | None = None  # for rows without column names; None: not looked up
    place: LogPlace | None = None  # of the last transaction before them, if known


@dataclass
class EmptyScan:
    """Transactions that were scanned after a position and have no rows of the table."""

    after: Position
    upto: str  # all transactions that were scanned
    since: float  # when the scan began, by the monotonic clock


class MySqlFeed:
    """See `sparkonce.reading.Feed`."""

    unit = "transactions"

    def __init__(self, session: MySqlSession, options: Options, wanted: Scan) -> None:
        self.session, self.options, self.schema = session, options, wanted.schema
        self.of = ".".join(filter(None, (session.database, *options["dbtable"])[-2:]))
        self._empty = EmptyScan({}, "", 0.0)
        self._named, self._is_laid_out = True, False
        self._places: dict[str, LogPlace] = {}

    def begin(self) -> Position:
        """See `Feed.begin`. Rejects a table that can't be followed."""
        starts: str = self.options[STARTS]
        server = self._server()
        with translated(READING):
            fitness.require_all_logged(self.session)
            self.table  # noqa: B018 (raises if it does not exist)
        if starts == SNAPSHOT:
            return {"gtids": server.executed, SNAPSHOT: None}
        if starts == "latest":
            return {"gtids": server.executed}
        fitness.require_dialect(starts, server)
        return {"gtids": starts}

    def latest(self) -> Position:
        """See `Feed.latest`."""
        return {"gtids": self._server().executed}

    def advance(self, after: Position, goal: Position, most: int | None) -> Position:
        """See `Feed.advance`. An epoch ends with a transaction, or within the snapshot.

        Transactions of only other tables create no epoch: if a sink writes to the same server,
        each epoch would cause the next one. After `QUIET_SECONDS` they do create one, because the
        server keeps its log for a limited time.
        """
        server = self._server()
        begin = self._begin(after, server)
        if SNAPSHOT in after:
            return self._next_piece(begin, after[SNAPSHOT], most)
        if self._empty.after != after:
            self._empty = EmptyScan(after, begin, time.monotonic())
        empty = "" if server.had.lacks(self._empty.upto) else self._empty.upto
        scanned = self._gtids(begin).joined(empty)
        kept = [str(self._gtids(one)) for one in (begin, scanned)]
        self._places = {at: one for at, one in self._places.items() if at in kept}
        wanted = self._gtids(scanned).up_to(goal["gtids"])
        epoch = _Epoch(most)
        if not wanted.is_complete:
            with self._steps(scanned, wanted) as steps:
                epoch.take(steps)
        self._named = self._named and epoch.named
        if epoch.rows:
            return goal if wanted.is_complete else {"gtids": wanted.reached()}
        fitness.require_all_read(scanned, wanted)
        self._empty.upto = goal["gtids"]
        return goal if time.monotonic() - self._empty.since > QUIET_SECONDS else after

    def passed(self, after: Position, goal: Position) -> Position:  # noqa: ARG002 (the whole goal)
        """See `Feed.passed`."""
        return goal

    def _next_piece(self, behind: str, low: int | None, most: int | None) -> Position:
        border = None
        with translated("reading the table"):
            snapshot.require_snapshot(self.table)
            if most is not None:
                border = snapshot.next_border(self.session, self.table, low, most)
        return {"gtids": behind} if border is None else {"gtids": behind, SNAPSHOT: border}

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

    def behind(self, after: Position, end: Position) -> int:
        """See `Feed.behind`. Counts transactions of all tables."""
        return self._gtids(after["gtids"]).count_up_to(end["gtids"])

    def read(self, split: SnapshotPiece | TransactionSplit) -> Iterator[pa.RecordBatch]:
        """See `Feed.read`."""
        with translated(READING):
            table = self.table
            if isinstance(split, SnapshotPiece):
                reader = Snapshot(self.session, table, self.schema)
                yield from reader.read(split, self._rows(split, GtidRange()))
            else:
                yield from self._changes(split)

    def _changes(self, split: TransactionSplit) -> Iterator[pa.RecordBatch]:
        wanted, known = self._gtids(split.behind).up_to(split.end), split.table
        if split.place:
            self._places[str(self._gtids(split.behind))] = split.place

        def rows() -> Iterator[RowChanges]:
            for one in self._rows(split, wanted):
                if known is None and not one.table.named:
                    self._laid_out(split.behind)
                yield one

        changes = Changes(self.schema, None, known or self.table)
        yield from changes.batches(rows())
        fitness.require_all_read(split.behind, wanted)

    def _laid_out(self, behind: str) -> FollowedTable:
        """The table that names the columns of rows logged without names.

        Scans the log after those rows once, and fails if the table was altered since.
        """
        if not self._is_laid_out:
            unnamed, _ = False, self.table  # read the table before the log
            with self._steps(behind, GtidRange(), skips=False) as steps:
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
        self.table.require_columns(self.schema)
        _warn(self.table, self.schema)
        return True

    @cached_property
    def table(self) -> FollowedTable:
        """The followed table."""
        return followed(self.session, self.options["dbtable"])

    def _server(self) -> LogServer:
        with translated(READING):
            return fitness.log_server(self.session)

    @cached_property
    def _mariadb(self) -> bool:
        with translated(READING), self.session.connected() as live:
            return live.mariadb

    def _gtids(self, text: str) -> Gtids:
        return gtids(text, mariadb=self._mariadb)

    def _place(self, behind: str) -> LogPlace | None:
        """The place of the last of these transactions in the log, if known."""
        return self._places.get(str(self._gtids(behind)))

    def _begin(self, after: Position, server: LogServer) -> str:
        """The transactions that were read, if the server has them and all later ones."""
        fails = self.options["failOnDataLoss"]
        read = fitness.executed(after["gtids"], server, fails=fails)
        if gone := self._gtids(read).lacks(server.purged):
            error = fitness.purged(gone, self.table.full_name, in_snapshot=SNAPSHOT in after)
            if SNAPSHOT in after or fails:
                raise error
            log.warning("%s", error)
            read = self._gtids(read).joined(server.purged)
        return read

    def _pieces(self, begin: str, after: Position, end: Position) -> Sequence[SnapshotPiece]:
        snapshot.require_snapshot(self.table)
        whole = SnapshotPiece(begin, after[SNAPSHOT], end.get(SNAPSHOT))
        return snapshot.pieces(self.session, self.table, whole, self.options["numPartitions"])

    def _rows(
        self, split: SnapshotPiece | TransactionSplit, wanted: GtidRange
    ) -> Iterator[RowChanges]:
        """The rows that the transactions changed."""
        in_snapshot = isinstance(split, SnapshotPiece)
        with self._steps(split.behind, wanted, skips=not in_snapshot) as steps:
            for step in steps:
                if isinstance(step, BinlogRefusal):
                    todo = (
                        ", and start a new query: this query can no longer complete its snapshot"
                        if in_snapshot
                        else f"; the stream continues after it with skipTransactions={step.gtid},"
                        " without its rows"
                    )
                    what = f"Transaction {step.gtid} {step.what}"
                    raise StoreRefused(what, step.why, step.todo + todo)
                if isinstance(step, RowChanges):
                    yield step

    @contextmanager
    def _steps(
        self, behind: str, wanted: GtidRange, *, skips: bool = True
    ) -> Iterator[Iterator[Step]]:
        skipped = (skips and self.options["skipTransactions"]) or ()
        with translated(READING):
            place, mariadb = self._place(behind), self._mariadb
            found = BinlogReader(self.table.name, wanted, skipped, mariadb=mariadb, behind=place)
            try:
                with log_behind(self.session, behind, place, mariadb=mariadb) as events:
                    yield found.steps(events)
            except pymysql.MySQLError as error:
                purged = self._server().purged if number(error) == NOT_THERE else ""
                if gone := self._gtids(behind).lacks(purged):
                    raise fitness.purged(gone, self.table.full_name, in_snapshot=False) from None
                raise
            # From a place MariaDB sends all later events, even those already read: with several
            # domains, the query may have read one of them further.
            reached = wanted.reached()
            if found.place and reached and not (mariadb and "," in reached):
                self._places[reached] = found.place


class _Epoch:
    """Finds the end of an epoch: the end of a transaction, and before one that can't be followed.

    `most` limits the rows, except those of a single transaction. None means no limit.
    """

    def __init__(self, most: int | None) -> None:
        self._most, self._image = most, RowImage(())
        # Without a limit each event counts as one row. A refusal counts as a row, because the
        # epoch must report it.
        self.rows = 0
        self.named = True  # the log has the names of all columns

    def take(self, steps: Iterable[Step]) -> None:
        """Take steps up to the end. A refusal after rows stops the next epoch, not this one."""
        ended = False
        for step in steps:
            if isinstance(step, BinlogRefusal) and ended:
                return
            self.rows += self._count(step)
            if isinstance(step, TransactionEnd):
                ended = self.rows > 0
                if self._most is not None and self.rows >= self._most:
                    return

    def _count(self, step: Step) -> int:
        if not isinstance(step, RowChanges):
            return int(isinstance(step, BinlogRefusal))
        self.named = self.named and step.table.named
        if self._most is None:
            return 1
        if self._image.columns is not step.table.columns:
            self._image = RowImage(step.table.columns)
        found = len(self._image.starts(step.data + PADDING, len(step.data)))
        return found // 2 if step.operation == UPDATE else found


def _warn(table: FollowedTable, schema: pa.Schema) -> None:
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
