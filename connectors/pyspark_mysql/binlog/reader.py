"""Reads tables from the log: their rows by transaction, and changes that have no rows in the log.

Only events mark the end of a transaction. MySQL logs the number of its bytes. MariaDB logs whether
it is a single statement; any other transaction ends with a separate event.
"""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Collection, Iterable, Iterator
from contextlib import suppress
from dataclasses import dataclass
from typing import IO, NamedTuple, TypeAlias

from pyspark_mysql.binlog import events
from pyspark_mysql.binlog.carrying import Carrier, NotCarried
from pyspark_mysql.binlog.events import (
    Event,
    LogFile,
    LoggedStatement,
    LogPlace,
    TransactionBegin,
)
from pyspark_mysql.binlog.gtids import Gtid, GtidRange
from pyspark_mysql.binlog.names import FollowedNames, TableName
from pyspark_mysql.binlog.packets import Received
from pyspark_mysql.binlog.short import ShortRun
from pyspark_mysql.binlog.statements import Effect, effect
from pyspark_mysql.binlog.tables import LoggedTable, name_in_map, table
from sparkonce.errors import StoreRefused

# The number of bytes above which a transaction's rows are buffered in a file.
IN_MEMORY = 32 * 1024 * 1024


class RowChanges(NamedTuple):
    """Rows of one event, all of the same operation."""

    begin: TransactionBegin
    operation: str
    name: TableName
    table: LoggedTable
    data: bytes  # as logged; of an update, each row before and then after the change


@dataclass(frozen=True)
class TableStatement:
    """A statement on a table that the stream carries on, see `carrying.Carrier`."""

    begin: TransactionBegin
    operation: str
    name: TableName
    text: str


@dataclass(frozen=True)
class BinlogRefusal:
    """A change of a transaction that the log does not have row by row; why, and what to do."""

    gtid: Gtid
    what: str
    why: str
    todo: str
    alters: bool = False  # the table may have other columns since


class TransactionEnd(NamedTuple):
    """The end of a transaction, whichever tables it changed."""

    gtid: Gtid


Change: TypeAlias = RowChanges | TableStatement
Step: TypeAlias = Change | BinlogRefusal | TransactionEnd

# Statements that MariaDB itself logs at the end of a transaction without an XID_EVENT.
ENDS = (b"COMMIT", b"ROLLBACK")

# The three texts of a `BinlogRefusal`: what, why, and what to do.
BROKEN_OFF = (
    "has no end in the log, and changes the table",
    "the server crashed during it, and the table's engine can't roll back",
    "compare the table with the target",
)
PARTIAL_JSON = (
    "updates a part of a JSON column",
    "binlog_row_value_options=PARTIAL_JSON does not log whole values",
    "SET GLOBAL binlog_row_value_options=''",
)
UNDECIDED = (
    "is an XA transaction that changes the table",
    "the server logs its rows before it knows whether they take effect",
    "do not write to that table in XA transactions",
)
GAPS = (
    "has rows without all of their columns",
    "binlog_row_image was not FULL in the session that wrote them",
    "SET GLOBAL binlog_row_image=FULL",
)
ROLLED_BACK = (
    "was rolled back, whole or in part, after the server had logged rows of the table",
    "it also did something irreversible, such as creating a temporary table (MariaDB)",
    "check what it left in the table, and reconcile the target",
)


class BinlogReader:
    """Reads events of one server.

    Args:
        names: of the tables to follow.
        wanted: the transactions to read.
        skipped: GTIDs of transactions whose rows are not emitted, whatever they did.
        mariadb: whether the server is a MariaDB.
        behind: the place of the last read transaction, if the events begin with it.
        carrier: of statements to carry on; by default none is.
    """

    def __init__(
        self,
        names: FollowedNames,
        wanted: GtidRange,
        skipped: Collection[str],
        *,
        mariadb: bool,
        behind: LogPlace | None = None,
        carrier: Carrier | None = None,
    ) -> None:
        self._names = names
        self._carrier = carrier or Carrier(names, mariadb)
        self._wanted, self._skipped, self._mariadb = wanted, {*skipped}, mariadb
        self._behind = behind
        # A place whose transaction is a text only once somebody asks.
        self._place: tuple[LogFile, int, Gtid | str] | None = behind
        self._file, self._passed_any = LogFile(), False
        # The current transaction: its offset in its file; its remaining bytes (MySQL); whether its
        # last event was read (MariaDB); whether its rows are emitted; whether it has rows of a
        # followed table, emitted or not.
        self._begin: TransactionBegin | None = None
        self._at, self._left, self._over, self._gives_rows, self._touches = 0, 0, False, True, False
        # Steps are held until the end of their transaction, which shows that it took effect.
        self._held = list[tuple[Change | BinlogRefusal, tuple[int, int] | None]]()
        self._spool = _Spool()
        # The followed table by its number, and by its description.
        self._tables = dict[bytes, tuple[TableName, LoggedTable] | None]()
        self._maps = dict[bytes, tuple[TableName, LoggedTable] | None]()
        self._takes: dict[int, Callable[[Event, TransactionBegin], None]] = {
            events.TABLE_MAP: self._map,
            events.QUERY: self._statement,
            events.MARIADB_QUERY: self._statement,
            events.LOAD_DATA: self._statement,
            events.XID: self._xid,
            events.XA_PREPARE: self._prepare,
            events.PAYLOAD: self._payload,
            events.PARTIAL_UPDATE: self._rows,
            **dict.fromkeys((*events.ROWS, *events.COMPRESSED), self._rows),
        }

    @property
    def place(self) -> LogPlace | None:
        """The place of the last read transaction, if all before it in the log have been read."""
        place = self._place
        return place and LogPlace(place[0], place[1], str(place[2]))

    @property
    def current(self) -> LogPlace | None:
        """The place of the current transaction."""
        return self._begin and LogPlace(self._file, self._at, str(self._begin.gtid))

    def steps(self, found: Iterable[Received]) -> Iterator[Step]:
        """The steps of the wanted transactions, until all of them have been read."""
        for one in found:
            yield from self._short(one) if isinstance(one, ShortRun) else self._take(one)
            if self._wanted.is_complete:
                return

    def _take(self, event: Event) -> Iterator[Step]:
        kind, begins = event.kind, events.BEGINS
        if kind == events.ROTATE:
            self._file = LogFile(events.file_name(event))
        elif kind == events.FORMAT:
            self._file = self._file.begun(event)
            yield from self._broken_off()
        elif kind not in events.OUTSIDE:
            if kind in begins:
                if self._begin:
                    yield from self._broken_off()
                self._start(begins[kind](event), event.end_in_file - event.size)
            self._left -= event.size
            begin, take = self._begin, self._takes.get(kind)
            if take and begin:
                take(event, begin)
            else:  # many transactions may be irrelevant: their events are not decoded
                _require_known(event)
            if begin and (self._over if self._mariadb else self._left <= 0):
                yield from self._ended(begin)

    def _short(self, run: ShortRun) -> Iterator[Step]:
        # A loop over many transactions, so it has few calls for each.
        new, wanted = tuple.__new__, self._wanted
        for begin, at, described, event in run:
            if self._begin:
                yield from self._broken_off()
            self._start(begin, at)
            if not self._begin:
                continue
            if not (self._gives_rows or self._mariadb):  # as after its BEGIN
                self._carrier.forget()
            if (found := self._described(described)) and self._gives_rows:
                operation, data, is_whole = events.rows(event)
                if is_whole:
                    yield new(RowChanges, (begin, operation, *found, data))
                else:
                    yield BinlogRefusal(begin.gtid, *GAPS)
            self._read(begin)
            yield new(TransactionEnd, (begin.gtid,))
            if wanted.is_complete:
                return

    def _start(self, begin: TransactionBegin, at: int) -> None:
        known, self._behind = self._behind, None
        if known and str(begin.gtid) == known.gtid:
            return
        if known:  # the log no longer has it at its place
            self._place = None
        if not self._wanted.contains(begin.gtid):
            # It may have to be read later, so no later place has everything before it read.
            self._passed_any = True
            return
        if not (self._mariadb or begin.size):
            raise _without_size(begin.gtid)
        self._begin, self._at, self._left = begin, at, begin.size
        self._over, self._touches = False, False
        self._gives_rows = not self._skipped or str(begin.gtid) not in self._skipped

    def _broken_off(self) -> Iterator[BinlogRefusal]:
        # A transaction without an end: the server rolled it back after a crash, except in tables
        # whose engine has no transactions (MariaDB).
        begin = self._begin
        self._forget()
        if begin and self._touches and not begin.transactional:
            if self._gives_rows:
                yield BinlogRefusal(begin.gtid, *BROKEN_OFF)
            # The server may reuse the GTID for a transaction that must not be skipped.
            self._skipped.discard(str(begin.gtid))

    def _ended(self, begin: TransactionBegin) -> Iterator[Step]:
        if self._left < 0 and not self._mariadb:  # an event exceeds the logged size
            raise _without_size(begin.gtid)
        for step, slot in self._held:
            if slot and isinstance(step, RowChanges):
                yield step._replace(data=self._spool.get(*slot))
            else:
                yield step
        self._drop_held()
        self._read(begin)
        yield tuple.__new__(TransactionEnd, (begin.gtid,))

    def _read(self, begin: TransactionBegin) -> None:
        """Record that the current transaction has been read."""
        self._wanted.advance(begin.gtid)
        if not self._passed_any:
            self._place = self._file, self._at, begin.gtid
        self._begin = None

    def _forget(self) -> None:
        self._begin = None
        self._drop_held()

    def _drop_held(self) -> None:
        self._held.clear()
        self._spool.clear()

    def _hold(self, step: Change | BinlogRefusal) -> None:
        """Keep a step until the end of its transaction."""
        slot = None
        if isinstance(step, RowChanges) and (slot := self._spool.put(step.data)):
            step = step._replace(data=b"")
        self._held.append((step, slot))

    def _refuse_rows(self, begin: TransactionBegin, why: tuple[str, str, str]) -> None:
        """Replace the rows logged so far, if any, with a refusal."""
        if any(isinstance(step, RowChanges) for step, _ in self._held):
            self._drop_held()
            self._hold(BinlogRefusal(begin.gtid, *why))

    def _xid(self, event: Event, begin: TransactionBegin) -> None:  # noqa: ARG002
        self._over = True  # the body is an 8-byte number for the engines, which no reader needs

    def _prepare(self, event: Event, begin: TransactionBegin) -> None:
        # 1 byte: whether it also commits (XA COMMIT ... ONE PHASE); the XA transaction's name.
        self._over = True
        if not event.data[event.at]:
            self._refuse_rows(begin, UNDECIDED)

    def _payload(self, event: Event, begin: TransactionBegin) -> None:
        for one in events.payload(event):
            if take := self._takes.get(one.kind):
                take(one, begin)
            else:
                _require_known(one)

    def _statement(self, event: Event, begin: TransactionBegin) -> None:
        """Refuse a statement that may have changed the table, or that rolls back rows of it."""
        if event.kind == events.QUERY and self._gives_rows and events.is_begin(event):
            self._over = begin.alone
            return
        statement = events.statement(event)
        self._over = begin.alone or statement.text in ENDS
        if not self._gives_rows:
            self._carrier.forget()
            return
        done = effect(statement, self._names, mariadb=self._mariadb)
        if done is Effect.TAKEN_BACK:
            self._refuse_rows(begin, ROLLED_BACK)
        elif done is not Effect.NOTHING:
            self._carry(begin, statement, done)
        elif statement.text[:6].upper() == b"CREATE":
            self._carrier.create(statement)

    def _carry(self, begin: TransactionBegin, statement: LoggedStatement, done: Effect) -> None:
        """Carry on a statement that changes followed tables, or refuse it."""
        found = self._carrier.take(statement)
        if isinstance(found, NotCarried):
            text = statement.text[:200].decode(errors="replace")
            doubt = f"; {found.why}" if found.why else ""
            self._hold(
                BinlogRefusal(
                    begin.gtid,
                    f"changes the table by a statement: {text}",
                    "or may do so: the log has no rows of the statement, and the table may have"
                    f" other columns since{doubt}",
                    "reconcile the target with the table",
                    alters=done is Effect.COLUMNS,
                )
            )
            return
        text = statement.text.decode(errors="replace")
        for one in found:
            self._hold(TableStatement(begin, one.operation, one.name, text))

    def _map(self, event: Event, begin: TransactionBegin) -> None:  # noqa: ARG002
        # The 6 bytes are the number by which rows name the table, until the server reopens it.
        data, at = event.data, event.at
        self._tables[data[at : at + 6]] = self._described(data[at + 8 : event.end])

    def _described(self, body: bytes) -> tuple[TableName, LoggedTable] | None:
        """The followed table that an event describes behind number and flags; None for others."""
        if body not in self._maps:
            self._maps[body] = self._followed(body)
        found = self._maps[body]
        if found:
            self._carrier.describe(*found)
        return found

    def _followed(self, body: bytes) -> tuple[TableName, LoggedTable] | None:
        size = body[0] + 2
        size += body[size] + 2
        name = name_in_map(body[:size])
        if not self._names.match(*name):
            return None
        return name, table(body[size:], mariadb=self._mariadb)

    def _rows(self, event: Event, begin: TransactionBegin) -> None:
        found = self._tables.get(event.data[event.at : event.at + 6])
        self._touches |= found is not None
        if found is None or not self._gives_rows:
            return
        if event.kind == events.PARTIAL_UPDATE:
            self._hold(BinlogRefusal(begin.gtid, *PARTIAL_JSON))
            return
        operation, data, is_whole = events.rows(event)
        if is_whole:  # faster than the constructor of a named tuple
            self._hold(tuple.__new__(RowChanges, (begin, operation, *found, data)))
        else:
            self._hold(BinlogRefusal(begin.gtid, *GAPS))


class _Spool:
    """Buffers bytes until the end of their transaction: in memory, above a size on disk."""

    def __init__(self) -> None:
        self._file: IO[bytes] | None = None
        self._size = 0

    def put(self, data: bytes) -> tuple[int, int] | None:
        """Store bytes in the file, and return their place; None if their owner keeps them."""
        self._size += len(data)
        if self._size <= IN_MEMORY:
            return None
        try:
            self._file = self._file or tempfile.TemporaryFile()  # noqa: SIM115 (see clear)
            at = self._file.seek(0, 2)
            self._file.write(data)
            self._file.flush()
        except OSError as error:
            raise StoreRefused(
                f"Rows of a transaction can't be buffered in {tempfile.gettempdir()}: {error}",
                why="the stream buffers them until it reads the end of the transaction",
                todo="free space in that folder, or set TMPDIR to another one",
            ) from None
        return at, len(data)

    def get(self, at: int, size: int) -> bytes:
        if self._file is None:
            raise ValueError("cleared")
        self._file.seek(at)
        return self._file.read(size)

    def clear(self) -> None:
        self._size = 0
        if self._file:
            with suppress(OSError):
                self._file.close()
            self._file = None


def _without_size(gtid: Gtid) -> StoreRefused:
    return StoreRefused(
        f"The log does not say where transaction {gtid} ends",
        why="a MySQL before 8.0.2 logged it, or something changed the log",
        todo="start a new query after it",
    )


def _require_known(event: Event) -> None:
    """Reject an event that may be a change in an unknown form."""
    if event.kind == events.INCIDENT:
        raise StoreRefused(
            "The server reports that its binary log lacks transactions (an incident event)",
            why="an error occurred on the server while it wrote its log",
            todo="reconcile the target with the table, and start a new query",
        )
    if event.kind == events.ANONYMOUS:
        raise StoreRefused(
            "The binary log has transactions without GTIDs",
            why="the server's gtid_mode is not ON, or was not: without GTIDs the stream can't"
            " record what it has read",
            todo="set gtid_mode=ON on the server, and begin after those transactions",
        )
    if event.kind not in events.KNOWN and not event.is_ignorable:
        raise StoreRefused(
            f"The binary log has an event of type {event.kind}",
            why="this release can't decode it, so it may have changed the table",
            todo="report this with the server's version",
        )
