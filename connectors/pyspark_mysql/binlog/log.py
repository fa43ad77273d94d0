"""What the log says of one table: its rows, transaction by transaction, and what no rows tell.

Where a transaction ends is told by its events alone. MySQL says how many bytes they are. MariaDB
says whether it is one statement; any other one has an event of its own at its end.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator
from dataclasses import dataclass, replace
from typing import TypeAlias

from pyspark_mysql.binlog import headers
from pyspark_mysql.binlog.headers import Begin, Query
from pyspark_mysql.binlog.packets import HEADER, Event
from pyspark_mysql.binlog.places import File, Place
from pyspark_mysql.binlog.spool import Slot, Spool
from pyspark_mysql.binlog.statements import Effect, effect
from pyspark_mysql.binlog.tables import Table, table, whose
from pyspark_mysql.binlog.transactions import Gtid, Stretch
from sparkonce.errors import StoreRefused


@dataclass(frozen=True)
class Rows:
    """Rows of one event, which did the same.

    Attributes:
        data: as the log has them; of an update each row as it was, and then as it became.
    """

    begin: Begin
    operation: str
    table: Table
    data: bytes


@dataclass(frozen=True)
class Refusal:
    """What the log does not tell row by row, or not so that it can be told on.

    Attributes:
        gtid: of the transaction.
        what: it did.
        why: its rows can't be told.
        todo: about it.
        alters: whether the table may have other columns since.
    """

    gtid: Gtid
    what: str
    why: str
    todo: str
    alters: bool = False


@dataclass(frozen=True)
class End:
    """The end of a transaction, whichever tables it was of."""

    gtid: Gtid


Step: TypeAlias = Rows | Refusal | End

ENDS = (b"COMMIT", b"ROLLBACK")
"""Statements that MariaDB writes itself at the end of a transaction, where no XID_EVENT is."""


class Log:
    """Reads events of one server.

    Args:
        table: that is followed: its database and its name.
        stretch: transactions that are to be read.
        skipped: GTIDs of those of which no rows are told, whatever they did.
        mariadb: whether the server is one.
        behind: the place of the last one that was read, where the events begin with it.

    Attributes:
        place: of the last one that was read, where all before it in the log were read.
    """

    def __init__(
        self,
        table: tuple[str, str],
        stretch: Stretch,
        skipped: Collection[str],
        *,
        mariadb: bool,
        behind: Place | None = None,
    ) -> None:
        self.database, self.name = table
        self.stretch, self.skipped, self._mariadb = stretch, {*skipped}, mariadb
        self.place, self._behind = behind, behind
        self._file, self._passed = File(), False
        self._begin: Begin | None = None
        self._at, self._left = 0, 0
        self._checksum, self._over, self._told = 0, False, True
        self._touches = False
        self._held = list[tuple[Rows | Refusal, Slot | None]]()
        self._spool = Spool()
        self._tables: dict[bytes, Table | None] = {}
        self._takes: dict[int, Callable[[Event, Begin], None]] = {
            headers.TABLE_MAP: self._map,
            headers.QUERY: self._query,
            headers.MARIADB_QUERY: self._query,
            headers.LOAD_DATA: self._query,
            headers.XID: self._xid,
            headers.XA_PREPARE: self._prepare,
            headers.PAYLOAD: self._payload,
            headers.PARTIAL_UPDATE: self._rows,
            **dict.fromkeys((*headers.ROWS, *headers.COMPRESSED), self._rows),
        }

    def steps(self, events: Iterable[Event]) -> Iterator[Step]:
        """What transactions of the stretch did, until all of them have been read.

        Raises:
            StoreRefused: the log has what can't be read.
        """
        for event in events:
            if event.kind == headers.ROTATE:
                self._file = File(headers.file_name(event))
            elif event.kind == headers.FORMAT:
                self._file = self._file.begun(event)
                self._checksum = headers.checksum(event)
                yield from self._broken_off()
            elif event.kind not in headers.OUTSIDE:
                yield from self._counted(event)
            if self.stretch.done:
                return

    def _counted(self, event: Event) -> Iterator[Step]:
        """Take an event of a transaction, and tell all of it if that was its last one."""
        size = event.end - event.at + HEADER
        whole = self._checked(event) if self._checksum else event
        if event.kind in headers.BEGINS:
            yield from self._broken_off()
            self._start(headers.BEGINS[event.kind](whole), headers.end_in_file(event) - size)
        self._left -= size
        self._take(whole)
        if self._begin and (self._over if self._mariadb else self._left <= 0):
            yield from self._ended(self._begin)

    def _checked(self, event: Event) -> Event:
        if not headers.is_whole(event):
            raise StoreRefused(
                "An event of the binary log does not have its checksum",
                why="it was damaged on the server's disk or on its way",
                todo="look at it with mysqlbinlog --verify-binlog-checksum, or try again",
            )
        return Event(event.kind, event.data, event.at, event.end - self._checksum)

    def _take(self, event: Event) -> None:
        """Take what an event tells; most transactions may be those of other readers."""
        if self._begin is not None and event.kind in self._takes:
            self._takes[event.kind](event, self._begin)
        else:
            _require_known(event)

    def _start(self, begin: Begin, at: int) -> None:
        gtid, known = str(begin.gtid), self._behind
        self._behind = None
        if known and gtid == known.gtid:
            return
        if known:  # it is not there any more
            self.place = None
        if not self.stretch.wants(begin.gtid):
            self._passed = True
            return
        if not (self._mariadb or begin.size):
            raise _without_size(begin.gtid)
        self._begin, self._at, self._left = begin, at, begin.size
        self._over, self._told = False, gtid not in self.skipped
        self._touches = False

    def _broken_off(self) -> Iterator[Refusal]:
        """Forget a transaction that has no end: a crash of the server took it back (MariaDB)."""
        begin = self._begin
        self._forget()
        if begin and self._touches and not begin.transactional:
            if self._told:
                yield _broken_off(begin.gtid)
            # The server may give the GTID again, to a transaction that is not to be passed over.
            self.skipped.discard(str(begin.gtid))

    def _ended(self, begin: Begin) -> Iterator[Step]:
        if self._left < 0 and not self._mariadb:
            raise _without_size(begin.gtid)
        for step, slot in self._held:
            if slot and isinstance(step, Rows):
                yield replace(step, data=self._spool.get(slot))
            else:
                yield step
        self.stretch.take(begin.gtid)
        if not self._passed:
            self.place = Place(self._file, self._at, str(begin.gtid))
        self._forget()
        yield End(begin.gtid)

    def _forget(self) -> None:
        self._begin = None
        self._held.clear()
        self._spool.clear()

    def _hold(self, step: Rows | Refusal) -> None:
        """Keep a step until the end of its transaction."""
        if not self._told:
            return
        slot = None
        if isinstance(step, Rows) and (slot := self._spool.put(step.data)):
            step = replace(step, data=b"")
        self._held.append((step, slot))

    @property
    def _has_rows(self) -> bool:
        return any(isinstance(step, Rows) for step, _ in self._held)

    def _refuse(self, refusal: Refusal) -> None:
        """Give none of the rows that were logged up to here, and say why, if there are any."""
        if self._has_rows:
            self._held.clear()
            self._spool.clear()
            self._hold(refusal)

    def _xid(self, event: Event, begin: Begin) -> None:  # noqa: ARG002
        self._over = True

    def _prepare(self, event: Event, begin: Begin) -> None:
        self._over = True
        if not headers.is_one_phase(event):
            self._refuse(_undecided(begin.gtid))

    def _payload(self, event: Event, begin: Begin) -> None:  # noqa: ARG002
        for one in headers.payload(event):
            self._take(one)

    def _query(self, event: Event, begin: Begin) -> None:
        query = headers.statement(event)
        self._over = begin.alone or query.text in ENDS
        if self._told:
            self._look(query, begin)

    def _look(self, query: Query, begin: Begin) -> None:
        """Refuse a statement that may have changed the table, or take back rows of it."""
        done = effect(query, (self.database, self.name), mariadb=self._mariadb)
        if done is Effect.TAKEN_BACK:
            self._refuse(_rolled_back(begin.gtid))
        elif done is not Effect.NOTHING:
            self._hold(_by_statement(begin.gtid, query, alters=done is Effect.COLUMNS))

    def _map(self, event: Event, begin: Begin) -> None:  # noqa: ARG002
        data, at = event.data, event.at
        body = data[at + 6 : event.end]
        is_wanted = whose(body) == (self.database, self.name)
        found = table(body, mariadb=self._mariadb) if is_wanted else None
        self._tables[data[at : at + 6]] = found

    def _rows(self, event: Event, begin: Begin) -> None:
        found = self._tables.get(event.data[event.at : event.at + 6])
        self._touches |= found is not None
        if found is None or not self._told:
            return
        if event.kind == headers.PARTIAL_UPDATE:
            self._hold(_partial(begin.gtid))
            return
        body = headers.rows(event)
        if any(_has_gaps(bits, body.columns) for bits in body.present):
            self._hold(_gaps(begin.gtid))
            return
        self._hold(Rows(begin, body.operation, found, body.data))


def _by_statement(gtid: Gtid, query: Query, *, alters: bool) -> Refusal:
    text = query.text[:200].decode(errors="replace")
    what = f"changes the table by a statement: {text}"
    why = "or may do so: what it did to rows is not in the log, and columns may be others since"
    todo = "bring the target in line with the table"
    return Refusal(gtid, what, why, todo, alters=alters)


def _broken_off(gtid: Gtid) -> Refusal:
    return Refusal(
        gtid,
        "has no end in the log, and changes the table",
        "the server crashed in its midst, and the table's engine takes nothing back",
        "compare the table with the target",
    )


def _without_size(gtid: Gtid) -> StoreRefused:
    return StoreRefused(
        f"The log does not say where transaction {gtid} ends",
        why="it was logged by a MySQL before 8.0.2, or is not as its server wrote it",
        todo="begin a new query behind it",
    )


def _partial(gtid: Gtid) -> Refusal:
    return Refusal(
        gtid,
        "updates a part of a JSON column",
        "binlog_row_value_options=PARTIAL_JSON logs no whole values",
        "SET GLOBAL binlog_row_value_options=''",
    )


def _undecided(gtid: Gtid) -> Refusal:
    return Refusal(
        gtid,
        "is an XA transaction that changes the table",
        "its rows are logged before it is known whether they take effect",
        "write that table in transactions that are no XA transactions",
    )


def _gaps(gtid: Gtid) -> Refusal:
    return Refusal(
        gtid,
        "has rows without all of their columns",
        "binlog_row_image was not FULL in the session that wrote them",
        "SET GLOBAL binlog_row_image=FULL",
    )


def _rolled_back(gtid: Gtid) -> Refusal:
    return Refusal(
        gtid,
        "was rolled back, whole or in part, when rows of the table had been logged",
        "it also did what can't be rolled back, such as creating a temporary table (MariaDB)",
        "look at what it left in the table, and bring the target in line",
    )


def _require_known(event: Event) -> None:
    """Refuse what may be a change that is told in another way."""
    if event.kind == headers.INCIDENT:
        raise StoreRefused(
            "The server says that its binary log lacks transactions (an incident event)",
            why="something failed there while it wrote its log",
            todo="bring the target in line with the table, and begin anew",
        )
    if event.kind == headers.ANONYMOUS:
        raise StoreRefused(
            "The binary log has transactions without GTIDs",
            why="the server's gtid_mode is not ON, or was not: without them nothing tells what"
            " was read",
            todo="set gtid_mode=ON on the server, and begin behind those",
        )
    if event.kind not in headers.KNOWN and not headers.is_ignorable(event):
        raise StoreRefused(
            f"The binary log has an event of type {event.kind}",
            why="this release does not know it, so nothing tells whether it changes the table",
            todo="report this with the server's version",
        )


def _has_gaps(present: bytes, columns: int) -> bool:
    return int.from_bytes(present, "little") & ((1 << columns) - 1) != (1 << columns) - 1
