"""What the log says of one table: its rows, transaction by transaction, and what no rows tell.

Where a transaction ends is told by its events alone. MySQL says how many bytes they are. MariaDB
says whether it is one statement; any other one has an event of its own at its end.
"""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Collection, Iterable, Iterator
from contextlib import suppress
from dataclasses import dataclass, replace
from typing import IO, TypeAlias

from pyspark_mysql.binlog import events
from pyspark_mysql.binlog.events import HEADER, Event, LogFile, LogPlace, TransactionBegin
from pyspark_mysql.binlog.gtids import Gtid, GtidRange
from pyspark_mysql.binlog.statements import Effect, effect
from pyspark_mysql.binlog.tables import LoggedTable, name_in_map, table
from sparkonce.errors import StoreRefused

# Bytes of a transaction's rows beyond which they wait for its end in a file.
IN_MEMORY = 32 * 1024 * 1024


@dataclass(frozen=True)
class RowChanges:
    """Rows of one event, which did the same."""

    begin: TransactionBegin
    operation: str
    table: LoggedTable
    data: bytes  # as the log has them; of an update each row as it was, and then as it became


@dataclass(frozen=True)
class BinlogRefusal:
    """What a transaction did that can't be told row by row, why, and what to do about it."""

    gtid: Gtid
    what: str
    why: str
    todo: str
    alters: bool = False  # the table may have other columns since


@dataclass(frozen=True)
class TransactionEnd:
    """The end of a transaction, whichever tables it was of."""

    gtid: Gtid


Step: TypeAlias = RowChanges | BinlogRefusal | TransactionEnd

# Statements that MariaDB writes itself at the end of a transaction, where no XID_EVENT is.
ENDS = (b"COMMIT", b"ROLLBACK")

# What can't be told, why, and what to do: the words of a `BinlogRefusal`.
BROKEN_OFF = (
    "has no end in the log, and changes the table",
    "the server crashed in its midst, and the table's engine takes nothing back",
    "compare the table with the target",
)
PARTIAL_JSON = (
    "updates a part of a JSON column",
    "binlog_row_value_options=PARTIAL_JSON logs no whole values",
    "SET GLOBAL binlog_row_value_options=''",
)
UNDECIDED = (
    "is an XA transaction that changes the table",
    "its rows are logged before it is known whether they take effect",
    "write that table in transactions that are no XA transactions",
)
GAPS = (
    "has rows without all of their columns",
    "binlog_row_image was not FULL in the session that wrote them",
    "SET GLOBAL binlog_row_image=FULL",
)
ROLLED_BACK = (
    "was rolled back, whole or in part, when rows of the table had been logged",
    "it also did what can't be rolled back, such as creating a temporary table (MariaDB)",
    "look at what it left in the table, and bring the target in line",
)


class BinlogReader:
    """Reads events of one server.

    Args:
        followed: the table: its database and its name.
        wanted: transactions that are to be read.
        skipped: GTIDs of those of which no rows are told, whatever they did.
        mariadb: whether the server is one.
        behind: the place of the last one that was read, where the events begin with it.

    Attributes:
        place: of the last one that was read, where all before it in the log were read.
    """

    def __init__(
        self,
        followed: tuple[str, str],
        wanted: GtidRange,
        skipped: Collection[str],
        *,
        mariadb: bool,
        behind: LogPlace | None = None,
    ) -> None:
        self._followed, self._name = followed, name_in_map(*followed)
        self._wanted, self._skipped, self._mariadb = wanted, {*skipped}, mariadb
        self.place, self._behind = behind, behind
        self._file, self._passed_any = LogFile(), False
        self._checksum = 0
        # The transaction that is being read: where it begins in its file; bytes that are left of it
        # (MySQL); whether its last event was there (MariaDB); whether its rows are told; whether it
        # has rows of the table, told or not.
        self._begin: TransactionBegin | None = None
        self._at, self._left, self._over, self._gives_rows, self._touches = 0, 0, False, True, False
        # Steps wait for the end of their transaction: only then it is known that it took effect.
        self._held = list[tuple[RowChanges | BinlogRefusal, tuple[int, int] | None]]()
        self._spool = _Spool()
        self._tables: dict[bytes, LoggedTable | None] = {}
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

    def steps(self, found: Iterable[Event]) -> Iterator[Step]:
        """What transactions did that are to be read, until all of them have been read."""
        for event in found:
            if event.kind == events.ROTATE:
                self._file = LogFile(events.file_name(event))
            elif event.kind == events.FORMAT:
                self._file = self._file.begun(event)
                self._checksum = events.checksum_size(event)
                yield from self._broken_off()
            elif event.kind not in events.OUTSIDE:
                yield from self._counted(event)
            if self._wanted.is_complete:
                return

    def _counted(self, event: Event) -> Iterator[Step]:
        """Take an event of a transaction, and tell all of it if that was its last one."""
        size = event.end - event.at + HEADER
        body = self._checked(event) if self._checksum else event
        if event.kind in events.BEGINS:
            yield from self._broken_off()
            self._start(events.BEGINS[event.kind](body), event.end_in_file - size)
        self._left -= size
        self._take(body)
        if self._begin and (self._over if self._mariadb else self._left <= 0):
            yield from self._ended(self._begin)

    def _checked(self, event: Event) -> Event:
        """The event without its checksum."""
        if not event.is_whole:
            raise StoreRefused(
                "An event of the binary log does not have its checksum",
                why="it was damaged on the server's disk or on its way",
                todo="look at it with mysqlbinlog --verify-binlog-checksum, or try again",
            )
        return Event(event.kind, event.data, event.at, event.end - self._checksum)

    def _take(self, event: Event) -> None:
        # Most transactions may be those of other readers: of these no event is looked into.
        if self._begin is not None and event.kind in self._takes:
            self._takes[event.kind](event, self._begin)
        else:
            _require_known(event)

    def _start(self, begin: TransactionBegin, at: int) -> None:
        gtid, known = str(begin.gtid), self._behind
        self._behind = None
        if known and gtid == known.gtid:
            return
        if known:  # it is not there any more
            self.place = None
        if not self._wanted.contains(begin.gtid):
            # It may have to be read later: of no place behind it all before it were read.
            self._passed_any = True
            return
        if not (self._mariadb or begin.size):
            raise _without_size(begin.gtid)
        self._begin, self._at, self._left = begin, at, begin.size
        self._over, self._gives_rows, self._touches = False, gtid not in self._skipped, False

    def _broken_off(self) -> Iterator[BinlogRefusal]:
        # A transaction that has no end: a crash of the server took it back, but for tables whose
        # engine takes nothing back (MariaDB).
        begin = self._begin
        self._forget()
        if begin and self._touches and not begin.transactional:
            if self._gives_rows:
                yield BinlogRefusal(begin.gtid, *BROKEN_OFF)
            # The server may give the GTID again, to a transaction that is not to be passed over.
            self._skipped.discard(str(begin.gtid))

    def _ended(self, begin: TransactionBegin) -> Iterator[Step]:
        if self._left < 0 and not self._mariadb:  # an event reaches beyond the end that it told
            raise _without_size(begin.gtid)
        for step, slot in self._held:
            if slot and isinstance(step, RowChanges):
                yield replace(step, data=self._spool.get(*slot))
            else:
                yield step
        self._wanted.advance(begin.gtid)
        if not self._passed_any:
            self.place = LogPlace(self._file, self._at, str(begin.gtid))
        self._forget()
        yield TransactionEnd(begin.gtid)

    def _forget(self) -> None:
        self._begin = None
        self._drop_held()

    def _drop_held(self) -> None:
        self._held.clear()
        self._spool.clear()

    def _hold(self, step: RowChanges | BinlogRefusal) -> None:
        """Keep a step until the end of its transaction."""
        slot = None
        if isinstance(step, RowChanges) and (slot := self._spool.put(step.data)):
            step = replace(step, data=b"")
        self._held.append((step, slot))

    def _refuse_rows(self, begin: TransactionBegin, why: tuple[str, str, str]) -> None:
        """Give none of the rows that were logged up to here, and say why, if there are any."""
        if any(isinstance(step, RowChanges) for step, _ in self._held):
            self._drop_held()
            self._hold(BinlogRefusal(begin.gtid, *why))

    def _xid(self, event: Event, begin: TransactionBegin) -> None:  # noqa: ARG002
        self._over = True  # the engines commit by 8 bytes of a number, which no reader needs

    def _prepare(self, event: Event, begin: TransactionBegin) -> None:
        # 1 whether it commits, too (XA COMMIT ... ONE PHASE); then the name of the XA transaction.
        self._over = True
        if not event.data[event.at]:
            self._refuse_rows(begin, UNDECIDED)

    def _payload(self, event: Event, begin: TransactionBegin) -> None:  # noqa: ARG002
        for one in events.payload(event):
            self._take(one)

    def _statement(self, event: Event, begin: TransactionBegin) -> None:
        """Refuse a statement that may have changed the table, or take back rows of it."""
        statement = events.statement(event)
        self._over = begin.alone or statement.text in ENDS
        if not self._gives_rows:
            return
        done = effect(statement, self._followed, mariadb=self._mariadb)
        if done is Effect.TAKEN_BACK:
            self._refuse_rows(begin, ROLLED_BACK)
        elif done is not Effect.NOTHING:
            text = statement.text[:200].decode(errors="replace")
            self._hold(
                BinlogRefusal(
                    begin.gtid,
                    f"changes the table by a statement: {text}",
                    "or may do so: what it did to rows is not in the log, and columns may be others"
                    " since",
                    "bring the target in line with the table",
                    alters=done is Effect.COLUMNS,
                )
            )

    def _map(self, event: Event, begin: TransactionBegin) -> None:  # noqa: ARG002
        # The 6 bytes are a number that rows name the table by, until the server opens it anew.
        data, at = event.data, event.at
        found = None
        if data.startswith(self._name, at + 8):
            found = table(data[at + 8 + len(self._name) : event.end], mariadb=self._mariadb)
        self._tables[data[at : at + 6]] = found

    def _rows(self, event: Event, begin: TransactionBegin) -> None:
        found = self._tables.get(event.data[event.at : event.at + 6])
        self._touches |= found is not None
        if found is None or not self._gives_rows:
            return
        if event.kind == events.PARTIAL_UPDATE:
            self._hold(BinlogRefusal(begin.gtid, *PARTIAL_JSON))
            return
        operation, data, is_whole = events.rows(event)
        if is_whole:
            self._hold(RowChanges(begin, operation, found, data))
        else:
            self._hold(BinlogRefusal(begin.gtid, *GAPS))


class _Spool:
    """Bytes that wait for the end of their transaction, in memory, and many of them on disk."""

    def __init__(self) -> None:
        self._file: IO[bytes] | None = None
        self._size = 0

    def put(self, data: bytes) -> tuple[int, int] | None:
        """Where bytes lie in a file; None where there is room in memory: their owner keeps them."""
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
                f"Rows of a transaction can't be kept in {tempfile.gettempdir()}: {error}",
                why="they are given when the transaction's end is read, and wait until then",
                todo="make room there, or name another folder by the environment's TMPDIR",
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
        why="it was logged by a MySQL before 8.0.2, or is not as its server wrote it",
        todo="begin a new query behind it",
    )


def _require_known(event: Event) -> None:
    """Refuse what may be a change that is told in another way."""
    if event.kind == events.INCIDENT:
        raise StoreRefused(
            "The server says that its binary log lacks transactions (an incident event)",
            why="something failed there while it wrote its log",
            todo="bring the target in line with the table, and begin anew",
        )
    if event.kind == events.ANONYMOUS:
        raise StoreRefused(
            "The binary log has transactions without GTIDs",
            why="the server's gtid_mode is not ON, or was not: without them nothing tells what"
            " was read",
            todo="set gtid_mode=ON on the server, and begin behind those",
        )
    if event.kind not in events.KNOWN and not event.is_ignorable:
        raise StoreRefused(
            f"The binary log has an event of type {event.kind}",
            why="this release does not know it, so nothing tells whether it changes the table",
            todo="report this with the server's version",
        )
