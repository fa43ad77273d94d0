"""Many tables as a feed: their changes as JSON, in the order of the log.

A position is ``{"gtids": set, "tables": names}``: the transactions that were read, and the tables
that the query follows. It also has the tables whose snapshot is not complete, each with the highest
number at the start of a key that was read: ``"snapshot": {"shop.orders": 1000}``.

A snapshot runs beside the changes of all tables. Each epoch has a piece of it, as of the epoch's
end. Of the log it has only rows that belong to former pieces.

The log itself describes the columns of each row.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property, partial

import pyarrow as pa

from pyspark_mysql.binlog.events import LogPlace
from pyspark_mysql.binlog.names import FollowedNames, TableName
from pyspark_mysql.binlog.reader import Change, RowChanges, TableStatement
from pyspark_mysql.follow import fitness, snapshot
from pyspark_mysql.follow.condition import OPTION as CONDITION
from pyspark_mysql.follow.feed import warn_of
from pyspark_mysql.follow.log_feed import READING, SNAPSHOT, LogFeed, log
from pyspark_mysql.follow.rows_as_json import RowsAsJson
from pyspark_mysql.follow.snapshot import Snapshot, SnapshotPiece
from pyspark_mysql.follow.table import (
    BEFORE,
    END_OF_ROW,
    LOGS_NAMES,
    META,
    OP,
    PERIOD,
    FollowedTable,
    followed,
    is_read,
)
from pyspark_mysql.read.columns import as_logged
from pyspark_mysql.server.client import MySqlSession
from pyspark_mysql.server.failures import translated
from pyspark_mysql.target import lookup
from sparkonce.errors import OptionError, StoreRefused, UnreadLost
from sparkonce.options import Options
from sparkonce.reading import STARTS, Position, Scan

TABLES = """
SELECT table_schema, table_name, table_type FROM information_schema.tables
WHERE table_type IN ('BASE TABLE', 'SYSTEM VERSIONED')
  AND table_schema NOT IN ('mysql', 'sys', 'information_schema', 'performance_schema')
"""
EXCLUDED = "excluded"
"""In a position: tables that option ``dbtable`` no longer names, with what was read before."""

VERSIONED = (
    "is or was system versioned",
    "the log has rows of its history, which look like current rows",
)


@dataclass(frozen=True)
class TablePiece:
    """A split: a piece of a table's snapshot."""

    name: str
    piece: SnapshotPiece


@dataclass(frozen=True)
class ManyTablesSplit:
    """A split: the transactions that are in `end` and not in `behind`."""

    behind: str
    end: str
    tables: tuple[str, ...]  # that the query follows before and after
    limits: Mapping[str, int | None]  # of tables in their snapshot: up to which number it was read
    place: LogPlace | None = None  # of the last transaction before them, if known


class DatabaseFeed(LogFeed):
    """See `sparkonce.reading.Feed`."""

    def __init__(self, session: MySqlSession, options: Options, wanted: Scan) -> None:
        super().__init__(session, options)
        self.schema, self._known = wanted.schema, dict[TableName, set[str]]()
        self._looked_up = dict[str, FollowedTable]()
        self._seen = dict[str, str]()  # of tables, what the server had executed when they appeared
        self.of = "tables"  # not their names, which may change

    @cached_property
    def names(self) -> FollowedNames:
        """The names of option ``dbtable``; those without a database are of the URL's."""
        given: FollowedNames = self.options["dbtable"]
        database = self.session.database
        if not database and any(not one for one, _ in (*given.wanted, *given.unwanted)):
            raise OptionError(
                "Option dbtable names a table without its database",
                why="option url names no database",
                todo="write shop.orders or shop.*, or name the database in option url",
            )
        return given.within(database or "")

    def begin(self) -> Position:
        """See `Feed.begin`. Rejects tables that can't be followed."""
        starts: str = self.options[STARTS]
        if self.options[CONDITION] is not None:
            raise OptionError(
                f"Option {CONDITION} is for the snapshot of one table",
                why="dbtable names several, or a pattern, and their columns differ",
                todo=f"omit {CONDITION}, or follow that table by a query of its own",
            )
        server = self._server()
        with translated(READING):
            fitness.require_all_logged(self.session)
            self._require_names_in_log()
            tables = self._tables()
            if not tables:
                raise StoreRefused(
                    f"No table matches {self.names}, or the user may not read one",
                    why="the server lists none",
                    todo="correct option dbtable, or grant SELECT on the tables",
                )
            for name in tables:
                self._columns(name)
                warn_of(followed(self.session, name), self.schema)
        at = {"gtids": server.executed, "tables": _texts(tables)}
        if starts == SNAPSHOT:
            return {**at, SNAPSHOT: dict.fromkeys(_texts(tables))}
        if starts != "latest":
            fitness.require_dialect(starts, server)
            at["gtids"] = starts
        return at

    def latest(self) -> Position:
        """See `Feed.latest`."""
        gtids = self._server().executed
        with translated(READING):
            return {"gtids": gtids, "tables": _texts(self._tables())}

    def passed(self, after: Position, goal: Position) -> Position:
        """See `Feed.passed`."""
        return {**after, "gtids": goal["gtids"]}

    def advance(self, after: Position, goal: Position, most: int | None) -> Position:
        """See `Feed.advance`. An epoch ends with a transaction, and has a piece of a snapshot."""
        server = self._server()
        begin, read = self._begin(after, server), {"gtids": after["gtids"]}
        at = self._next_epoch(server, begin, read, {"gtids": goal["gtids"]}, most)
        with translated(READING):
            excluded, tables = self._excluded(after), self._reached(at["gtids"], after["tables"])
            returned = self._returns(tables, excluded)
            joined = [one for one in tables if one not in (*after["tables"], *returned)]
            known = sorted({*after["tables"], *joined, *returned} - excluded.keys())
            unread = {**after.get(SNAPSHOT, {}), **dict.fromkeys(joined)}
            unread = {name: low for name, low in unread.items() if name in known}
            if unread:
                name, low = next(iter(unread.items()))
                border = self._border(name, low, most)
                del unread[name]
                unread = unread if border is None else {name: border, **unread}
        parts = {SNAPSHOT: unread, EXCLUDED: excluded}
        full = {name: part for name, part in parts.items() if part}
        return {"gtids": at["gtids"], "tables": known, **full}

    def _reached(self, gtids: str, known: Sequence[str]) -> list[str]:
        """The tables that match; of new ones those whose last ALTER an epoch's end includes.

        A table's snapshot as of an earlier state would have to undo that statement.
        """
        tables = _texts(self._tables())
        new = [one for one in tables if one not in known]
        if new:
            now = self._server().executed  # after the list
            self._seen = {one: self._seen.get(one, now) for one in new}
        reached = self._gtids(gtids)
        return [one for one in tables if one not in new or not reached.lacks(self._seen[one])]

    def _excluded(self, after: Position) -> dict[str, str | None]:
        """The tables that the query followed and no longer does: each with what was read.

        None for a table whose snapshot was not complete.
        """
        gone = (one for one in after["tables"] if not self.names.match(*_name(one)))
        unread, before = after.get(SNAPSHOT, {}), after.get(EXCLUDED, {})
        return {**before, **{one: None if one in unread else after["gtids"] for one in gone}}

    def _returns(self, tables: Sequence[str], excluded: dict[str, str | None]) -> set[str]:
        """The tables that option ``dbtable`` names again, and that continue where they stopped.

        Removes them from `excluded`, and those that begin anew.
        """
        found = set[str]()
        for name in [one for one in tables if one in excluded]:
            if excluded.pop(name) is not None:
                found.add(name)
                continue
            error = UnreadLost(
                f"Option dbtable names table {name} again, which it left out during its snapshot",
                why="the stream does not have the rows that were deleted meanwhile",
                todo="leave it out, or start a new query; failOnDataLoss=false reads its present"
                " rows again, and deleted rows stay in the target",
            )
            if self.options["failOnDataLoss"]:
                raise error
            log.warning("%s", error)
        return found

    def _border(self, name: str, low: int | None, most: int | None) -> int | None:
        """The number up to which the next epoch reads a table; None for its end."""
        table = self._table(name)
        _require_snapshot(table)
        return None if most is None else snapshot.next_border(self.session, table, low, most)

    def between(self, after: Position, end: Position) -> Sequence[TablePiece | ManyTablesSplit]:
        """See `Feed.between`. One split has all changes of the log, in their order."""
        server = self._server()
        begin = self._begin(after, server)
        upto = fitness.executed(end["gtids"], server, fails=self.options["failOnDataLoss"])
        before = {**after.get(SNAPSHOT, {})}
        splits = list[TablePiece | ManyTablesSplit]()
        _warn_of_forgotten(after, end)
        excluded, returned = end.get(EXCLUDED, {}), after.get(EXCLUDED, {}).items()
        for name, gtids in returned:
            if gtids is not None and name in end["tables"]:
                since = self._begin({"gtids": gtids}, server)
                splits.append(ManyTablesSplit(since, upto, (name,), {}))
        joined = {*end["tables"]} - {*after["tables"]} - {one for one, at in returned if at}
        with translated(READING):
            for name in {**before, **dict.fromkeys(sorted(joined))}:
                now = end.get(SNAPSHOT, {})
                if name in excluded:
                    continue
                if name not in now or now[name] != before.get(name):
                    whole = SnapshotPiece(upto, before.get(name), now.get(name))
                    splits += self._pieces(name, whole)
        if not self._gtids(begin).up_to(upto).is_complete:
            tables = tuple(one for one in after["tables"] if one not in excluded)
            splits.append(ManyTablesSplit(begin, upto, tables, before, self._place(begin)))
        return splits

    def _pieces(self, name: str, whole: SnapshotPiece) -> list[TablePiece]:
        table = self._table(name)
        _require_snapshot(table)
        warn_of(table, self.schema)
        many = snapshot.pieces(self.session, table, whole, self.options["numPartitions"])
        return [TablePiece(name, one) for one in many]

    def read(self, split: TablePiece | ManyTablesSplit) -> Iterator[pa.RecordBatch]:
        """See `Feed.read`."""
        with translated(READING):
            learn = partial(self.charsets.learn, self.session)
            rows = RowsAsJson(self.schema, self.charsets, learn, self._kinds)
            if isinstance(split, TablePiece):
                yield from self._snapshot(split, rows)
            else:
                yield from self._changes(split, rows)

    def _snapshot(self, split: TablePiece, rows: RowsAsJson) -> Iterator[pa.RecordBatch]:
        table, piece = self._table(split.name), split.piece
        own = FollowedNames.one(table.name)
        since = self._rows_since(piece.behind, own)
        typed = pa.schema([*map(as_logged, table.columns.values()), (OP, pa.string())])
        found = Snapshot(self.session, table, typed).read(piece, since)
        yield from rows.of_snapshot(found, split.name, table.key)

    def _changes(self, split: ManyTablesSplit, rows: RowsAsJson) -> Iterator[pa.RecordBatch]:
        wanted = self._wanted(split.behind, split.end, split.place)
        unread = {name for name, low in split.limits.items() if low is None}
        known = {*split.tables} - unread
        # Not of option dbtable, which may have changed since the epoch was planned.
        names = FollowedNames(tuple(map(_name, split.tables)))
        rows_of_all = self._rows(split.behind, wanted, names=names)
        of_known = (one for one in rows_of_all if ".".join(one.name) in known)
        outside = _not_in_snapshot(of_known, split.limits)
        limits = {name: low for name, low in split.limits.items() if low is not None}
        yield from rows.batches(self._described(outside), limits)
        fitness.require_all_read(split.behind, wanted)

    def _kinds(self, name: TableName) -> Mapping[str, str]:
        """The types of a table's columns, which the log has as bytes.

        Raises:
            StoreRefused: the table was dropped.
        """
        if not self._mariadb:
            return {}
        _, columns = lookup.columns_of(self.session, name)
        if not columns:
            raise _unfollowed(
                name,
                "was dropped, and has columns of bytes",
                "MariaDB logs UUID, INET4 and INET6 as bytes, and only the table tells the type",
            )
        return {one.name.lower(): one.kind for one in columns}

    def _table(self, name: str) -> FollowedTable:
        """The present table of a name in a position."""
        if name not in self._looked_up:
            self._columns(_name(name))
            self._looked_up[name] = followed(self.session, _name(name))
        return self._looked_up[name]

    def _described(self, changes: Iterable[Change]) -> Iterator[Change]:
        """The changes; rejects rows that the log does not describe."""
        known = set[tuple[TableName, int]]()
        for one in changes:
            # By name, too: tables with the same columns share one description.
            if isinstance(one, RowChanges) and (one.name, id(one.table)) not in known:
                known.add((one.name, id(one.table)))
                self._require_described(one)
            yield one

    def _require_described(self, row: RowChanges) -> None:
        logged, at = row.table, f"Transaction {row.begin.gtid} logged rows of {'.'.join(row.name)}"
        names = {one.name for one in logged.columns}
        if not logged.named:
            raise StoreRefused(
                f"{at} without the names of their columns",
                why=f"{LOGS_NAMES} was not FULL",
                todo=f"SET GLOBAL {LOGS_NAMES}=FULL, and begin after that transaction",
            )
        if not names <= self._known.get(row.name, set()):
            self._known.pop(row.name, None)  # somebody altered it
        gone = names - self._columns(row.name)
        _require_no_meta(row.name, gone)
        # The key of a versioned table ends with the end of its period, a hidden column.
        ends = [logged.columns[at] for at in logged.key[1:]][-1:]
        hidden = [one for one in ends if one.name in gone]
        is_end = any((one.type.code, one.type.meta) == END_OF_ROW for one in hidden)
        if is_end or gone >= PERIOD:
            raise _unfollowed(row.name, *VERSIONED)

    def _tables(self) -> list[TableName]:
        """The tables that exist and match."""
        found = list[TableName]()
        for database, table, kind in self.session.run(TABLES):
            name = str(database), str(table)
            if self.names.match(*name):
                if kind != "BASE TABLE":
                    raise _unfollowed(name, *VERSIONED)
                if {".", "*"} & {*"".join(name)}:
                    why = "positions and patterns use these characters"
                    raise _unfollowed(name, "has a point or an asterisk in its name", why)
                found.append(name)
        return found

    def _require_names_in_log(self) -> None:
        value = self.session.variables(LOGS_NAMES).get(LOGS_NAMES)
        if value != "FULL":
            raise StoreRefused(
                f"A stream of several tables needs {LOGS_NAMES}=FULL, and it is {value}",
                why="the log would not have the names of columns",
                todo=f"SET GLOBAL {LOGS_NAMES}=FULL, and write {LOGS_NAMES.replace('_', '-')}=FULL"
                " into the server's configuration file",
            )

    def _columns(self, name: TableName) -> set[str]:
        """The present columns of a table; rejects those that the log shows as another type."""
        if name not in self._known:
            _, columns = lookup.columns_of(self.session, name)
            for column in columns:
                if not is_read(column):
                    raise _unfollowed(
                        name,
                        f"has column {column.name!r} of type {column.kind}",
                        "the connector can't read the form in which the log has its values",
                    )
            self._known[name] = {one.name for one in columns}
            _require_no_meta(name, self._known[name])
        return self._known[name]


def _not_in_snapshot(
    changes: Iterable[Change], limits: Mapping[str, int | None]
) -> Iterator[Change]:
    """The changes; rejects statements on a table of which the query has read a part.

    The epoch also has a later part of the table, whose rows the statement did not change.
    """
    for one in changes:
        name = ".".join(one.name)
        if isinstance(one, TableStatement) and name in limits:
            raise StoreRefused(
                f"Transaction {one.begin.gtid} changes table {name} during its snapshot:"
                f" {one.text[:200]}",
                why="the stream has read a part of the table as it was before",
                todo="start a new query: this query can no longer complete its snapshot",
            )
        yield one


def _warn_of_forgotten(after: Position, end: Position) -> None:
    for name in {*after["tables"]} - {*end["tables"]} - end.get(EXCLUDED, {}).keys():
        log.warning(
            "Table %s was dropped, or option dbtable no longer names it. Why: Spark before 4.2 does"
            " not report the position of a query, so the table's position is lost. What to do: name"
            " it again only in a new query, or the stream lacks its deletes",
            name,
        )


def _require_snapshot(table: FollowedTable) -> None:
    """Reject a table whose existing rows can't be read beside its changes."""
    if not table.key:
        why = "without a key the connector can't match logged changes with the rows that it read"
        raise _unfollowed(table.name, "has no primary key", why)
    snapshot.require_snapshot(table)


def _require_no_meta(name: TableName, columns: Iterable[str]) -> None:
    """Reject columns with the names of those that describe a change."""
    for one in columns:
        if one.lower() in (*META, BEFORE):
            why = "the stream has a column of that name, which describes the change of the row"
            raise _unfollowed(name, f"has a column {one!r}", why)


def _name(text: str) -> TableName:
    """Database and table of a text in a position."""
    database, _, table = text.partition(".")
    return database, table


def _texts(names: Iterable[TableName]) -> list[str]:
    return sorted(map(".".join, names))


def _unfollowed(name: TableName, what: str, why: str) -> StoreRefused:
    full = ".".join(name)
    return StoreRefused(
        f"Table {full} {what}", why=why, todo=f"exclude it: add !{full} to option dbtable"
    )
