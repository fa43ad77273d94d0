"""What the log says of one table: its rows, transaction by transaction, and what no rows tell."""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import TypeAlias

from pyspark_mysql.binlog import headers
from pyspark_mysql.binlog.headers import Begin
from pyspark_mysql.binlog.packets import Event
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

OPENS = re.compile(r"BEGIN$|XA START|.*START TRANSACTION$", re.DOTALL)
ROLLBACK = re.compile(r"ROLLBACK\b", re.IGNORECASE)
ENDS = re.compile(r"(COMMIT|ROLLBACK(?!\s+(WORK\s+)?TO\b))\b", re.IGNORECASE)


class Log:
    """Reads events of one server.

    Args:
        table: that is followed: its database and its name.
        stretch: transactions that are to be read.
        skipped: GTIDs of those of which no rows are told, whatever they did.
        mariadb: whether the server is one.
    """

    def __init__(
        self,
        table: tuple[str, str],
        stretch: Stretch,
        skipped: Collection[str],
        *,
        mariadb: bool,
    ) -> None:
        self.database, self.name = table
        self.stretch, self.skipped, self._mariadb = stretch, skipped, mariadb
        self._begin: Begin | None = None
        self._checksum, self._open, self._xa, self._told = 0, False, False, True
        self._has_rows = False
        self._tables: dict[bytes, Table | None] = {}
        self._takes: dict[int, Callable[[Event, Begin], Sequence[Step]]] = {
            headers.TABLE_MAP: self._map,
            headers.QUERY: self._query,
            headers.MARIADB_QUERY: self._query,
            headers.LOAD_DATA: self._query,
            headers.XID: self._end,
            headers.XA_PREPARE: self._end,
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
            if event.kind == headers.FORMAT:
                self._checksum = headers.checksum(event)
                continue
            for step in self._taken(self._checked(event) if self._checksum else event):
                if isinstance(step, End):
                    self.stretch.take(step.gtid)
                yield step
            if self.stretch.done:
                return

    def _checked(self, event: Event) -> Event:
        if not headers.is_whole(event):
            raise StoreRefused(
                "An event of the binary log does not have its checksum",
                why="it was damaged on the server's disk or on its way",
                todo="look at it with mysqlbinlog --verify-binlog-checksum, or try again",
            )
        return Event(event.kind, event.data, event.at, event.end - self._checksum)

    def _taken(self, event: Event) -> Sequence[Step]:
        """What an event tells; most transactions may be those of other readers."""
        if self._begin is not None and event.kind in self._takes:
            return self._takes[event.kind](event, self._begin)
        if event.kind in BEGINS:
            self._start(BEGINS[event.kind](event))
        else:
            _require_known(event.kind)
        return ()

    def _start(self, begin: Begin) -> None:
        self._begin = begin if self.stretch.wants(begin.gtid) else None
        self._open = self._mariadb and not begin.alone
        self._xa, self._has_rows = begin.prepared, False
        self._told = not self.skipped or str(begin.gtid) not in self.skipped

    def _end(self, event: Event, begin: Begin) -> Sequence[Step]:  # noqa: ARG002
        self._begin = None
        return (End(begin.gtid),)

    def _payload(self, event: Event, begin: Begin) -> Sequence[Step]:  # noqa: ARG002
        return [step for one in headers.payload(event) for step in self._taken(one)]

    def _query(self, event: Event, begin: Begin) -> Sequence[Step]:
        database, text = headers.statement(event)
        if OPENS.match(text):
            self._open = True
            self._xa = self._xa or text.startswith("XA")
            return ()
        found = self._refused(begin, database, text) if self._told else ()
        is_over = not self._open or ENDS.match(text)
        return (*found, *self._end(event, begin)) if is_over else found

    def _refused(self, begin: Begin, database: str, text: str) -> Sequence[Refusal]:
        """Refuse a statement that may have changed the table, or take back rows of it."""
        if ROLLBACK.match(text):
            return (_rolled_back(begin.gtid),) if self._has_rows else ()
        done = effect(text, database, (self.database, self.name))
        if done is Effect.NOTHING:
            return ()
        what = f"changes the table by a statement: {text[:200]}"
        why = "what it did to rows is not in the log, and columns may be others since"
        todo = "bring the target in line with the table"
        return (Refusal(begin.gtid, what, why, todo, alters=done is Effect.COLUMNS),)

    def _map(self, event: Event, begin: Begin) -> Sequence[Step]:  # noqa: ARG002
        data, at = event.data, event.at
        body = data[at + 6 : event.end]
        is_wanted = whose(body) == (self.database, self.name)
        found = table(body, mariadb=self._mariadb) if is_wanted else None
        self._tables[data[at : at + 6]] = found
        return ()

    def _rows(self, event: Event, begin: Begin) -> Sequence[Step]:
        found = self._tables.get(event.data[event.at : event.at + 6])
        if found is None or not self._told:
            return ()
        if event.kind == headers.PARTIAL_UPDATE:
            return (_partial(begin.gtid),)
        if self._xa:
            return (_undecided(begin.gtid),)
        body = headers.rows(event)
        if any(_has_gaps(bits, body.columns) for bits in body.present):
            return (_gaps(begin.gtid),)
        self._has_rows = True
        return (Rows(begin, body.operation, found, body.data),)


BEGINS: dict[int, Callable[[Event], Begin]] = {
    headers.GTID: headers.begin,
    headers.GTID_TAGGED: headers.begin_tagged,
    headers.MARIADB_GTID: headers.begin_in_domain,
}


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


def _require_known(kind: int) -> None:
    if kind == headers.INCIDENT:
        raise StoreRefused(
            "The server says that its binary log lacks transactions (an incident event)",
            why="something failed there while it wrote its log",
            todo="bring the target in line with the table, and begin anew",
        )
    if kind == headers.ANONYMOUS:
        raise StoreRefused(
            "The binary log has transactions without GTIDs",
            why="the server's gtid_mode is not ON, or was not: without them nothing tells what"
            " was read",
            todo="set gtid_mode=ON on the server, and begin behind those",
        )


def _has_gaps(present: bytes, columns: int) -> bool:
    return int.from_bytes(present, "little") & ((1 << columns) - 1) != (1 << columns) - 1
