"""A table as a feed: an epoch is what some transactions did to it, and nothing of it is kept.

A position is ``{"gtids": set}``: the transactions that were read. While the rows are read that were
there at the beginning, it says up to which number, too: ``{"gtids": set, "snapshot": 1000}``, and
``"snapshot": null`` before the first one.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cached_property

import pyarrow as pa
import pymysql

from pyspark_mysql.binlog.gtids import gtids
from pyspark_mysql.binlog.log import Log, Refusal, Rows, Step
from pyspark_mysql.binlog.places import Place
from pyspark_mysql.binlog.transactions import Everything, Gtids, Stretch
from pyspark_mysql.follow import fitness, snapshot
from pyspark_mysql.follow.changes import Changes
from pyspark_mysql.follow.epochs import Epoch
from pyspark_mysql.follow.fitness import Server
from pyspark_mysql.follow.layout import Layout
from pyspark_mysql.follow.losses import (
    altered,
    purged,
    refused,
    require_all,
    require_dialect,
    require_same_kind,
    strange,
    untold,
)
from pyspark_mysql.follow.readable import require_columns
from pyspark_mysql.follow.request import NOT_THERE, log_behind
from pyspark_mysql.follow.snapshot import Piece, Snapshot
from pyspark_mysql.follow.table import Followed, followed, warn
from pyspark_mysql.server.client import Session
from pyspark_mysql.server.failures import number, translated
from sparkonce.feeds import STARTS, Position
from sparkonce.options import Options
from sparkonce.reading import Scan

log = logging.getLogger("sparkonce")

READING = "reading the binary log"
SNAPSHOT = "snapshot"


@dataclass(frozen=True)
class Transactions:
    """A split: those that are among `end`, and not among `behind`.

    Attributes:
        layout: of rows whose columns have no names in the log; None where that was not looked at.
        place: of the last transaction before them, where it is known.
    """

    behind: str
    end: str
    layout: Layout | None = None
    place: Place | None = None


QUIET_SECONDS = 600
"""For so long transactions of other tables alone make no epoch."""


@dataclass
class Quiet:
    """What was scanned and has no rows.

    Attributes:
        after: behind which position.
        upto: all that was scanned.
        since: when that began, on a clock of its own.
    """

    after: Position
    upto: str
    since: float


class MySqlFeed:
    """See `sparkonce.feeds.Feed`."""

    unit = "transactions"

    def __init__(self, session: Session, options: Options, wanted: Scan) -> None:
        self.session, self.options, self.schema = session, options, wanted.schema
        self.of = ".".join(filter(None, (session.database, *options["dbtable"])[-2:]))
        self._quiet = Quiet({}, "", 0.0)
        self._named, self._is_laid_out = True, False
        self._places: dict[str, Place] = {}

    def begin(self) -> Position:
        """See `Feed.begin`. A table that can't be followed is refused."""
        starts: str = self.options[STARTS]
        server = self._server()
        with translated(READING):
            fitness.require_all_logged(self.session)
            self.table  # noqa: B018 (it must be there)
        if starts == SNAPSHOT:
            return {"gtids": server.executed, SNAPSHOT: None}
        if starts == "latest":
            return {"gtids": server.executed}
        require_dialect(starts, server)
        return {"gtids": starts}

    def latest(self) -> Position:
        """See `Feed.latest`."""
        return {"gtids": self._server().executed}

    def advance(self, after: Position, goal: Position, most: int | None) -> Position:
        """See `Feed.advance`. An epoch ends with a transaction, or within the snapshot.

        Transactions of other tables alone make no epoch: where a sink writes to the same server,
        each would bring the next one. After a while they do, as the log is kept for a time only.
        """
        server = self._server()
        begin = self._begin(after, server)
        if SNAPSHOT in after:
            return self._next_piece(begin, after[SNAPSHOT], most)
        if self._quiet.after != after:
            self._quiet = Quiet(after, begin, time.monotonic())
        quiet = "" if server.lacks(self._quiet.upto) else self._quiet.upto
        scanned = self._gtids(begin).joined(quiet)
        kept = [str(self._gtids(one)) for one in (begin, scanned)]
        self._places = {at: one for at, one in self._places.items() if at in kept}
        stretch = self._gtids(scanned).to(goal["gtids"])
        epoch = Epoch(most)
        if not stretch.done:
            with self._steps(scanned, stretch) as steps:
                epoch.take(steps)
        self._named = self._named and epoch.named
        if epoch.rows:
            return goal if stretch.done else {"gtids": stretch.reached()}
        require_all(scanned, stretch)
        self._quiet.upto = goal["gtids"]
        return goal if time.monotonic() - self._quiet.since > QUIET_SECONDS else after

    def passed(self, after: Position, goal: Position) -> Position:  # noqa: ARG002 (it is all)
        """See `Feed.passed`."""
        return goal

    def _next_piece(self, behind: str, low: int | None, most: int | None) -> Position:
        border = None
        with translated("reading the table"):
            snapshot.require_fit(self.table)
            if most is not None:
                border = snapshot.next_border(self.session, self.table, low, most)
        return {"gtids": behind} if border is None else {"gtids": behind, SNAPSHOT: border}

    def between(self, after: Position, end: Position) -> Sequence[Piece | Transactions]:
        """See `Feed.between`. Later changes of a row come behind earlier ones, in one split."""
        server = self._server()
        begin, upto = self._begin(after, server), self._there(end["gtids"], server)
        with translated(READING):
            self._looked_at  # noqa: B018 (once for all epochs)
            pieces = [*self._pieces(begin, after, end)] if SNAPSHOT in after else []
            if self._gtids(begin).to(upto).done:
                return pieces
            layout = None if self._named else self._layout(begin)
        return [*pieces, Transactions(begin, upto, layout, self._place(begin))]

    def behind(self, after: Position, end: Position) -> int:
        """See `Feed.behind`. It tells of transactions of all tables."""
        return self._gtids(after["gtids"]).many(end["gtids"])

    def read(self, split: Piece | Transactions) -> Iterator[pa.RecordBatch]:
        """See `Feed.read`."""
        with translated(READING):
            table = self.table
            if isinstance(split, Piece):
                reader = Snapshot(self.session, table, self.schema)
                yield from reader.read(split, self._rows(split, Everything()))
            else:
                yield from self._changes(split)

    def _changes(self, split: Transactions) -> Iterator[pa.RecordBatch]:
        stretch, known = self._gtids(split.behind).to(split.end), split.layout
        if split.place:
            self._places[str(self._gtids(split.behind))] = split.place

        def rows() -> Iterator[Rows]:
            for one in self._rows(split, stretch):
                if known is None and not one.table.named:
                    self._layout(split.behind)
                yield one

        changes = Changes(self.schema, None, known or self.table.layout)
        yield from changes.batches(rows())
        require_all(split.behind, stretch)

    def _layout(self, behind: str) -> Layout:
        """The layout of rows that have no names, if none was altered since.

        All that is logged behind them is looked at, once.

        Raises:
            StoreRefused: a statement that may have altered the table came behind rows.
        """
        if not self._is_laid_out:
            unnamed, _ = False, self.table  # as it is before the log is looked at
            with self._steps(behind, Everything(), skips=False) as steps:
                for step in steps:
                    if isinstance(step, Refusal) and step.alters and unnamed:
                        raise altered(".".join(self.table.name), step)
                    unnamed = unnamed or (isinstance(step, Rows) and not step.table.named)
            self._is_laid_out = True
        return self.table.layout

    @cached_property
    def _looked_at(self) -> bool:
        """What can't be read is told before any row is."""
        require_columns(self.table, self.schema)
        warn(self.table, self.schema)
        return True

    @cached_property
    def table(self) -> Followed:
        """The table that is followed."""
        return followed(self.session, self.options["dbtable"])

    def _server(self) -> Server:
        with translated(READING):
            return fitness.server(self.session)

    @cached_property
    def _mariadb(self) -> bool:
        with translated(READING), self.session.connected() as live:
            return live.mariadb

    def _gtids(self, text: str) -> Gtids:
        return gtids(text, mariadb=self._mariadb)

    def _place(self, behind: str) -> Place | None:
        """Where the last of some transactions is in the log, if that is known."""
        return self._places.get(str(self._gtids(behind)))

    def _remember(self, reached: str, place: Place | None) -> None:
        """Keep the place behind which nothing of the log was read.

        From a place MariaDB sends what was read before, too, as far as it lies behind that: of
        several domains one may have been read further on.
        """
        if place and reached and not (self._mariadb and "," in reached):
            self._places[reached] = place

    def _begin(self, after: Position, server: Server) -> str:
        """What was read, where the server has it, and all behind it."""
        read = self._there(after["gtids"], server)
        if gone := self._gtids(read).lacks(server.purged):
            error = purged(gone, ".".join(self.table.name), in_snapshot=SNAPSHOT in after)
            if SNAPSHOT in after or self.options["failOnDataLoss"]:
                raise error
            log.warning("%s", error)
            read = self._gtids(read).joined(server.purged)
        return read

    def _there(self, read: str, server: Server) -> str:
        """Transactions of those that the server has; if it lacks any, that is told."""
        require_same_kind(read, server)
        lacking = server.lacks(read)
        if not lacking:
            return read
        error = strange(lacking)
        if self.options["failOnDataLoss"]:
            raise error
        log.warning("%s", error)
        shared = server.shared(read)
        if shared is None:
            raise untold(lacking)
        return shared

    def _pieces(self, begin: str, after: Position, end: Position) -> Sequence[Piece]:
        snapshot.require_fit(self.table)
        high = end.get(SNAPSHOT)
        whole = Piece(begin, after[SNAPSHOT], high)
        return snapshot.pieces(self.session, self.table, whole, self.options["numPartitions"])

    def _rows(self, split: Piece | Transactions, stretch: Stretch) -> Iterator[Rows]:
        """The rows that transactions changed."""
        in_snapshot = isinstance(split, Piece)
        with self._steps(split.behind, stretch, skips=not in_snapshot) as steps:
            for step in steps:
                if isinstance(step, Refusal):
                    raise refused(step, in_snapshot=in_snapshot)
                if isinstance(step, Rows):
                    yield step

    @contextmanager
    def _steps(
        self, behind: str, stretch: Stretch, *, skips: bool = True
    ) -> Iterator[Iterator[Step]]:
        skipped = (skips and self.options["skipTransactions"]) or ()
        with translated(READING):
            place, mariadb = self._place(behind), self._mariadb
            found = Log(self.table.name, stretch, skipped, mariadb=mariadb, behind=place)
            try:
                with log_behind(self.session, behind, place, mariadb=mariadb) as events:
                    yield found.steps(events)
                self._remember(stretch.reached(), found.place)
            except pymysql.MySQLError as error:
                if number(error) == NOT_THERE:
                    self._require_kept(behind)
                raise

    def _require_kept(self, read: str) -> None:
        """Tell by their names transactions behind those that were purged."""
        if gone := self._gtids(read).lacks(self._server().purged):
            raise purged(gone, ".".join(self.table.name), in_snapshot=False)
