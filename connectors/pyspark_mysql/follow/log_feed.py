"""A feed of the binary log: what the feeds of one table and of many tables share.

A position has ``"gtids"``: the set of transactions that were read. The feed stores nothing.
"""

from __future__ import annotations

import logging
import time
from abc import ABC, abstractmethod
from collections import deque
from collections.abc import Iterable, Iterator
from contextlib import closing, contextmanager
from dataclasses import dataclass
from functools import cached_property

import pymysql

from pyspark_mysql.binlog.carrying import Carrier
from pyspark_mysql.binlog.events import UPDATE, LogPlace
from pyspark_mysql.binlog.gtids import GtidRange, Gtids, gtids
from pyspark_mysql.binlog.images import PADDING, RowImage
from pyspark_mysql.binlog.layouts import TableLayout
from pyspark_mysql.binlog.names import FollowedNames, TableName
from pyspark_mysql.binlog.reader import (
    BinlogReader,
    BinlogRefusal,
    Change,
    RowChanges,
    Step,
    TransactionEnd,
)
from pyspark_mysql.binlog.tables import Charsets, charsets
from pyspark_mysql.follow import fitness
from pyspark_mysql.follow.fitness import LogServer
from pyspark_mysql.follow.request import NOT_THERE, files_up_to, log_behind, log_between
from pyspark_mysql.server.client import MySqlSession
from pyspark_mysql.server.failures import number, translated
from pyspark_mysql.target import lookup
from sparkonce.errors import StoreRefused
from sparkonce.options import Options
from sparkonce.reading import Position

log = logging.getLogger("sparkonce")

READING = "reading the binary log"
SNAPSHOT = "snapshot"

QUIET_SECONDS = 600
"""How long transactions of only other tables create no epoch."""


@dataclass
class EmptyScan:
    """Transactions that were scanned after a position and have no rows of a followed table."""

    after: Position
    upto: str  # all transactions that were scanned
    since: float  # when the scan began, by the monotonic clock


class LogFeed(ABC):
    """The steps of `sparkonce.reading.Feed` that read the log.

    Attributes:
        of: identifies the feed as far as its positions do not.
    """

    unit = "transactions"
    of: str

    def __init__(self, session: MySqlSession, options: Options) -> None:
        self.session, self.options = session, options
        self._empty = EmptyScan({}, "", 0.0)
        self._named = True  # the log has the names of all columns
        self._places: dict[str, LogPlace] = {}

    @property
    @abstractmethod
    def names(self) -> FollowedNames:
        """The names of the followed tables."""

    def latest(self) -> Position:
        """See `Feed.latest`."""
        return {"gtids": self._server().executed}

    def passed(self, after: Position, goal: Position) -> Position:  # noqa: ARG002 (the whole goal)
        """See `Feed.passed`."""
        return goal

    def behind(self, after: Position, end: Position) -> int:
        """See `Feed.behind`. Counts transactions of all tables."""
        return self._gtids(after["gtids"]).count_up_to(end["gtids"])

    def _next_epoch(
        self, server: LogServer, begin: str, after: Position, goal: Position, most: int | None
    ) -> Position:
        """The end of an epoch of transactions.

        Transactions of only other tables create no epoch: if a sink writes to the same server,
        each epoch would cause the next one. After `QUIET_SECONDS` they do create one, because the
        server keeps its log for a limited time.
        """
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

    def _server(self) -> LogServer:
        with translated(READING):
            return fitness.log_server(self.session)

    @cached_property
    def _mariadb(self) -> bool:
        with translated(READING), self.session.connected() as live:
            return live.mariadb

    @cached_property
    def charsets(self) -> Charsets:
        """The character sets of the server."""
        return charsets(self.session)

    @property
    def carries_alterations(self) -> bool:
        """Whether the stream carries on an ALTER that keeps every stored value."""
        return bool(self.options["onSchemaChange"] == "continue")

    def _is_plain(self, name: TableName) -> bool:
        """See `Carrier.is_plain`. A table that was dropped since has no rows."""
        with translated(READING):
            found = lookup.look_up(self.session, name)
        has_key = any(one.name == "PRIMARY" for one in found.indexes)
        return not found.columns or (has_key and not any(one.generated for one in found.columns))

    def _former(self, name: TableName, place: LogPlace | None) -> TableLayout | None:
        """The layout of a table before a transaction, from the log, the last file first."""
        with translated(READING):
            files = files_up_to(self.session, place)
            for begin in reversed(files):
                own, mariadb = FollowedNames.one(name), self._mariadb
                carrier = Carrier(own, mariadb, alterations=True, truncations=True)
                carrier.charsets = lambda: self.charsets.names
                reader = BinlogReader(own, GtidRange(), (), mariadb=mariadb, carrier=carrier)
                with closing(log_between(self.session, begin, place)) as events:
                    deque(reader.steps(events), maxlen=0)
                if layout := carrier.layout(name):
                    return layout
        return None

    def _gtids(self, text: str) -> Gtids:
        return gtids(text, mariadb=self._mariadb)

    def _place(self, behind: str) -> LogPlace | None:
        """The place of the last of these transactions in the log, if known."""
        return self._places.get(str(self._gtids(behind)))

    def _wanted(self, behind: str, end: str, place: LogPlace | None) -> GtidRange:
        """The transactions of a split, which knows the place of the last one before them."""
        if place:
            self._places[str(self._gtids(behind))] = place
        return self._gtids(behind).up_to(end)

    def _begin(self, after: Position, server: LogServer) -> str:
        """The transactions that were read, if the server has them and all later ones."""
        fails = self.options["failOnDataLoss"]
        read = fitness.executed(after["gtids"], server, fails=fails)
        if gone := self._gtids(read).lacks(server.purged):
            error = fitness.purged(gone, str(self.names), in_snapshot=SNAPSHOT in after)
            if SNAPSHOT in after or fails:
                raise error
            log.warning("%s", error)
            read = self._gtids(read).joined(server.purged)
        return read

    def _rows_since(self, behind: str, names: FollowedNames | None = None) -> Iterator[RowChanges]:
        """The rows that changed in the table, or in one with these names, since a snapshot."""
        found = self._rows(behind, GtidRange(), in_snapshot=True, names=names)
        return (one for one in found if isinstance(one, RowChanges))

    def _rows(
        self,
        behind: str,
        wanted: GtidRange,
        *,
        in_snapshot: bool = False,
        names: FollowedNames | None = None,
    ) -> Iterator[Change]:
        """What the transactions changed in all tables, or in those with these names.

        During a snapshot these are rows only.
        """
        with self._steps(behind, wanted, strict=in_snapshot, names=names) as steps:
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
                if not isinstance(step, TransactionEnd):
                    yield step

    @contextmanager
    def _steps(
        self,
        behind: str,
        wanted: GtidRange,
        *,
        strict: bool = False,
        names: FollowedNames | None = None,
    ) -> Iterator[Iterator[Step]]:
        """The steps; with `strict` the options neither skip nor carry on any."""
        skipped = (not strict and self.options["skipTransactions"]) or ()
        with translated(READING):
            place, mariadb = self._place(behind), self._mariadb
            names = names or self.names
            carrier = Carrier(names, mariadb)
            if not strict:
                carrier.alterations = self.carries_alterations
                carrier.truncations = self.options["onTruncate"] == "row"
            found = BinlogReader(
                names, wanted, skipped, mariadb=mariadb, behind=place, carrier=carrier
            )
            if carrier.alterations:
                carrier.charsets = lambda: self.charsets.names
                carrier.former = lambda name: self._former(name, found.current)
                carrier.is_plain = self._is_plain
            try:
                with log_behind(self.session, behind, place, mariadb=mariadb) as events:
                    yield found.steps(events)
            except pymysql.MySQLError as error:
                purged = self._server().purged if number(error) == NOT_THERE else ""
                if gone := self._gtids(behind).lacks(purged):
                    raise fitness.purged(gone, str(self.names), in_snapshot=False) from None
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
            return int(not isinstance(step, TransactionEnd))
        self.named = self.named and step.table.named
        if self._most is None:
            return 1
        if self._image.columns is not step.table.columns:
            self._image = RowImage(step.table.columns)
        found = len(self._image.starts(step.data + PADDING, len(step.data)))
        return found // 2 if step.operation == UPDATE else found
