"""Where in a server's log a transaction lies: a hint, as the place may come to hold another one."""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

from pyspark_mysql.binlog import headers
from pyspark_mysql.binlog.packets import Event


class File(NamedTuple):
    """A file of a log. Those of one name that other servers have, or had, begin otherwise.

    Attributes:
        made: when it was begun, in seconds since 1970.
        server: the number of the server that began it.
    """

    name: str = ""
    made: int = 0
    server: int = 0

    def begun(self, event: Event) -> File:
        """The same, as its FORMAT_DESCRIPTION_EVENT says."""
        return File(self.name, event.seconds, event.server)


class Place(NamedTuple):
    """Where a transaction begins that was read, as were all before it in this log.

    Attributes:
        at: the offset in the file.
        gtid: of the transaction.
    """

    file: File
    at: int
    gtid: str


def up_to(place: Place, events: Iterable[Event]) -> list[Event] | None:
    """The events from a place on, up to the one that begins its transaction; None if it does not.

    Raises:
        pymysql.MySQLError: the server has no such place.
    """
    found = list[Event]()
    for event in events:
        found.append(event)
        if event.kind == headers.FORMAT and place.file.begun(event) != place.file:
            return None
        if event.kind in headers.BEGINS:
            return found if str(headers.BEGINS[event.kind](event).gtid) == place.gtid else None
    return None
