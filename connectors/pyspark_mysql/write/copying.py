"""Rows that hold instants, for a table that computes the time of day.

An instant is sent in UTC, where no zone or DST changes it; a default or a trigger is to see the
server's own time. So rows arrive in a temporary table in UTC, and are copied in the server's time.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from pyspark_mysql.server.literals import identifier
from pyspark_mysql.target.lookup import Target, stored
from pyspark_mysql.write.gathered import Gathered
from pyspark_mysql.write.inserting import Inserting
from pyspark_mysql.write.statements import NEW, frame

if TYPE_CHECKING:
    from pyspark_mysql.write.chunks import Rows


class Copy(NamedTuple):
    """The statement that copies gathered rows: what stands before WHERE, and behind it."""

    insert: str
    update: str


def copy_of(gathered: Gathered, target: Target) -> Copy:
    """The statement that writes gathered rows as a plan has it."""
    written = stored(gathered.detail, target)
    names = [identifier(name) for name in written.columns]
    values = ", ".join(f"{NEW}.{name}" for name in names)
    into = f"INSERT INTO {gathered.target} ({', '.join(names)})"
    ambiguous = gathered.refusals.ambiguous
    update = frame(written, mariadb=gathered.mariadb, ambiguous=ambiguous).tail.decode()
    # INSERT ... SELECT takes no alias behind it: its rows have this name in FROM already.
    return Copy(f"{into} SELECT {values} FROM {gathered.source}", update.removeprefix(f" AS {NEW}"))


class Copying:
    """Writes each row, in the order in which they came.

    Args:
        gathered: the rows.
        target: the table.
    """

    def __init__(self, gathered: Gathered, target: Target) -> None:
        self.gathered, self.copy = gathered, copy_of(gathered, target)
        self.arriving = Inserting(gathered.session, gathered.arrival(), gathered.refusals)

    def begin(self) -> None:
        """See `Way.begin`."""
        self.gathered.create()

    def write(self, rows: Rows) -> None:
        """See `Way.write`."""
        self.arriving.write(rows)

    def end(self) -> bool:
        """See `Way.end`."""
        self.gathered.follow(*self.copy)
        return self.gathered.any_left()
