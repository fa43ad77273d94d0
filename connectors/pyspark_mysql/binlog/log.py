"""What the log says of one table: its rows, transaction by transaction, and what no rows tell."""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import TypeAlias

from pyspark_mysql.binlog import headers
from pyspark_mysql.binlog.headers import Begin
from pyspark_mysql.binlog.packets import Event
from pyspark_mysql.binlog.tables import Table, table
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
class Statement:
    """A statement that names the table: what it did to rows is not in the log."""

    gtid: Gtid
    text: str


@dataclass(frozen=True)
class End:
    """The end of a transaction, whichever tables it was of."""

    gtid: Gtid


Step: TypeAlias = Rows | Statement | End

OPENS = re.compile(r"BEGIN$|XA START|.*START TRANSACTION$", re.DOTALL)
CLOSES = re.compile(r"(COMMIT|ROLLBACK)( /\*.*\*/)?$")

HARMLESS = re.compile(
    r"(\s|/\*.*?\*/|--.*?\n|#.*?\n)*(CREATE(?!\s+OR\s+REPLACE\s+TABLE)|ANALYZE|OPTIMIZE|CHECK|REPAIR"
    r"|FLUSH|GRANT|REVOKE|SET|LOCK|UNLOCK|SAVEPOINT|RELEASE|ROLLBACK|BEGIN|COMMIT|XA)\b",
    re.IGNORECASE | re.DOTALL,
)
"""Statements that change no row and no column of a table that is there."""

DROPS = re.compile(r"(\s|/\*.*?\*/)*DROP\s+(DATABASE|SCHEMA)\b", re.IGNORECASE | re.DOTALL)


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
        self._tables: dict[bytes, Table | None] = {}
        self._is_named, self._is_database = _naming(self.name), _naming(self.database)
        self._takes: dict[int, Callable[[Event, Begin], Sequence[Step]]] = {
            headers.TABLE_MAP: self._map,
            headers.QUERY: self._query,
            headers.MARIADB_QUERY: self._query,
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
        self._xa = begin.prepared
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
        if CLOSES.match(text):
            return self._end(event, begin)
        about = self._told and self._is_about(database, text)
        found = (Statement(begin.gtid, text),) if about else ()
        return found if self._open else (*found, *self._end(event, begin))

    def _is_about(self, database: str, text: str) -> bool:
        """Whether a statement may have changed rows or columns of the table."""
        if DROPS.match(text):
            return self._is_database(text)
        here = database == self.database or self._is_database(text)
        return here and self._is_named(text) and not HARMLESS.match(text)

    def _map(self, event: Event, begin: Begin) -> Sequence[Step]:  # noqa: ARG002
        data, at = event.data, event.at
        found = table(data[at + 6 : event.end], mariadb=self._mariadb)
        is_wanted = (found.database, found.name) == (self.database, self.name)
        self._tables[data[at : at + 6]] = found if is_wanted else None
        return ()

    def _rows(self, event: Event, begin: Begin) -> Sequence[Step]:
        found = self._tables.get(event.data[event.at : event.at + 6])
        if found is None or not self._told:
            return ()
        if event.kind == headers.PARTIAL_UPDATE:
            raise refused(
                begin.gtid,
                "updates a part of a JSON column",
                "binlog_row_value_options=PARTIAL_JSON logs no whole values",
                "SET GLOBAL binlog_row_value_options=''",
            )
        if self._xa:
            raise refused(
                begin.gtid,
                "is prepared and decided later (XA)",
                "its rows are logged before it is known whether they take effect",
                "write that table in transactions that are no XA transactions",
            )
        body = headers.rows(event)
        if any(_has_gaps(bits, body.columns) for bits in body.present):
            raise refused(
                begin.gtid,
                "has rows without all of their columns",
                "binlog_row_image was not FULL in the session that wrote them",
                "SET GLOBAL binlog_row_image=FULL",
            )
        return (Rows(begin, body.operation, found, body.data),)


BEGINS: dict[int, Callable[[Event], Begin]] = {
    headers.GTID: headers.begin,
    headers.GTID_TAGGED: headers.begin_tagged,
    headers.MARIADB_GTID: headers.begin_in_domain,
}


def refused(gtid: Gtid, what: str, why: str, todo: str) -> StoreRefused:
    """The error for a transaction whose rows can't be told."""
    return StoreRefused(
        f"Transaction {gtid} {what}",
        why,
        f"{todo}; the stream can go on behind it with skipTransactions={gtid}, without its rows",
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


def _naming(name: str) -> Callable[[str], bool]:
    """Whether a text has a name as a word, in any case of letters."""
    found = re.compile(rf"(?<![\w$]){re.escape(name)}(?![\w$])", re.IGNORECASE)
    return lambda text: found.search(text.replace("``", "`")) is not None


def _has_gaps(present: bytes, columns: int) -> bool:
    return int.from_bytes(present, "little") & ((1 << columns) - 1) != (1 << columns) - 1
