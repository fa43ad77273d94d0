"""Change streams and deletes: what the rows of a key come to in an epoch, done once a key."""

from __future__ import annotations

import pymysql

from pyspark_mysql.server.failures import number
from pyspark_mysql.server.literals import identifier
from pyspark_mysql.target.coercions import of_null
from pyspark_mysql.target.columns import named
from pyspark_mysql.target.lookup import Target
from pyspark_mysql.write.chunks import Rows
from pyspark_mysql.write.copying import copy_of
from pyspark_mysql.write.gathered import CAME, FLAG, GONE, ROW, WON, Gathered
from pyspark_mysql.write.inserting import Inserting
from pyspark_mysql.write.statements import NEW

NO_INDEX = (1070, 1071, 1170, 3152)
"""Too many columns, too long, or of a type that has no index."""


class Deleting:
    """Deletes the rows that have these keys.

    Args:
        gathered: the keys.
        indexed: whether an index of the target finds the rows; else the keys get one.
    """

    def __init__(self, gathered: Gathered, *, indexed: bool) -> None:
        self.gathered, self.indexed = gathered, indexed
        self.arriving = Inserting(gathered.session, gathered.arrival(), gathered.refusals)

    def begin(self) -> None:
        """See `Way.begin`."""
        names = ", ".join(map(identifier, self.gathered.detail.key))
        try:
            self.gathered.create(*([] if self.indexed else [f"INDEX ({names})"]))
        except pymysql.MySQLError as error:
            if number(error) not in NO_INDEX:
                raise
            # Such a key can't be indexed: the deletes are slower, and no less right.
            self.gathered.create()

    def write(self, rows: Rows) -> None:
        """See `Way.write`."""
        self.arriving.write(rows)

    def end(self) -> bool:
        """See `Way.end`."""
        self.gathered.delete(indexed=self.indexed)
        return self.gathered.any_left()


class Winners:
    """Writes or deletes each key of an epoch once, as the last one of its rows says.

    A key that is deleted on the way is deleted before it is written, so that columns which the
    query lacks get their defaults. All deletes come before all writes, and both in the order of the
    rows: what an earlier one lets go of, a unique value or a parent, a later one may have.

    Args:
        gathered: the rows.
        target: the table.
    """

    def __init__(self, gathered: Gathered, target: Target) -> None:
        self.gathered, self.session = gathered, gathered.session
        there = named(target.columns, gathered.detail.columns).values()
        self.nulls = [(column.name, null) for column in there if (null := of_null(column))]
        self.arriving = Inserting(self.session, gathered.arrival(), gathered.refusals)
        self.choice, self.deletes = _choice(gathered), bool(gathered.detail.op)
        self.copy = copy_of(gathered, target)

    def begin(self) -> None:
        """See `Way.begin`."""
        self.gathered.create()

    def write(self, rows: Rows) -> None:
        """See `Way.write`."""
        self.arriving.write(rows)

    def end(self) -> bool:
        """See `Way.end`."""
        self.session.run(self.choice)
        if self.deletes:  # else the right to do so is not asked for
            self.gathered.delete(indexed=True, which=f" AND {WON}.{GONE}")
        self._refuse_nulls()
        self.gathered.follow(self.copy.insert, f" AND NOT {NEW}.{FLAG}{self.copy.update}")
        return self.gathered.any_left()

    def _refuse_nulls(self) -> None:
        """Refuse what is null in the end where the server would put something in its place."""
        number_, refusals = self.gathered.number, self.gathered.refusals
        for name, coercion in self.nulls:
            null = f"NOT {NEW}.{FLAG} AND {identifier(NEW, name)} IS NULL"
            sql = f"SELECT {number_} FROM {self.gathered.source} WHERE {null} ORDER BY 1"
            for (row,) in self.session.run(sql):
                refusals.null(self.gathered.take_out(row), name, coercion)


def _choice(gathered: Gathered) -> str:
    """The statement that finds the winners.

    The servers number the rows of a key as fast as they sort them. (MariaDB finds the MAX of a
    window in quadratic time.) Where deletes come first, a higher number tells that there are some.
    """
    detail = gathered.detail
    key = ", ".join(map(identifier, detail.key))
    by = [identifier(detail.order)] if detail.order else []
    last = ", ".join(f"{column} DESC" for column in (*by, ROW))
    place = f"ROW_NUMBER() OVER (PARTITION BY {key} ORDER BY {last})"
    behind = f"ROW_NUMBER() OVER (PARTITION BY {key} ORDER BY {FLAG} DESC, {last})"
    # The last ORDER BY gives the winners their numbers, by which they then take effect.
    return (
        f"INSERT INTO {gathered.numbered} ({CAME}, {GONE}) SELECT {ROW}, {FLAG} OR behind > 1 FROM"
        f" (SELECT {ROW}, {FLAG}, {by[0] if by else '0'} AS sequence, {place} AS place,"
        f" {behind if detail.op else '1'} AS behind FROM {gathered.table}) AS numbered"
        f" WHERE place = 1 ORDER BY sequence, {ROW}"
    )
