"""Deletes by key.

Keys are gathered in a temporary table whose columns are those of the target: only so are they the
same as when they were written, cut and filled up by their types, and equal as their collations say.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pymysql

from pyspark_mysql.failures import number
from pyspark_mysql.gather import Gathering
from pyspark_mysql.keys import is_indexed
from pyspark_mysql.literals import identifier
from pyspark_mysql.scratch import NUMBER, UNCHECKED, deletion
from pyspark_mysql.statements import Frame
from pyspark_mysql.steps import Step

NO_INDEX = (1070, 1071, 1170, 3152)
"""Too many columns, too long, or of a type that has no index."""


class Keys:
    """The temporary table of the keys, and the statements about it.

    Args:
        detail: of the manifest.
        indexed: whether an index of the target finds the rows.
    """

    def __init__(self, detail: Mapping[str, Any], *, mariadb: bool, indexed: bool) -> None:
        self.detail, self.indexed = detail, indexed
        self.unchecked = UNCHECKED if mariadb else ""
        self.table = identifier(detail["table"][0], "sparkonce_epoch")
        self.names = ", ".join(map(identifier, detail["key"]))

    def create(self) -> list[str]:
        """Make it; it lives as long as the connection, and is made anew."""
        return self.made(index=False)

    def made(self, *, index: bool) -> list[str]:
        """Make it, with an index in which rows of the target can be looked up, or without."""
        columns = ", ".join(f"t.{identifier(name)}" for name in self.detail["key"])
        own = f"{NUMBER}, INDEX ({self.names})" if index else NUMBER
        return [
            f"DROP TEMPORARY TABLE IF EXISTS {self.table}",
            f"CREATE TEMPORARY TABLE {self.table} ({own}) ENGINE=InnoDB"
            f" SELECT {columns} FROM (SELECT 1) AS one"
            f" LEFT JOIN {identifier(*self.detail['table'])} AS t ON FALSE LIMIT 0",
        ]

    def arrival(self) -> Frame:
        """The statement that takes the rows of a chunk in."""
        head = f"{self.unchecked}INSERT INTO {self.table} ({self.names}) VALUES "
        return Frame(head.encode(), b"")

    def steps(self) -> list[Step]:
        """What is done in the target."""
        return [deletion(self.detail, self.table, indexed=self.indexed)]


class Deleting(Gathering):
    """Applies the chunks of a plan that only deletes."""

    scratch: Keys

    def begin(self) -> None:
        """See `Gathering.begin`. Where the target has no index, the temporary table needs one."""
        try:
            for statement in self.scratch.made(index=not self.scratch.indexed):
                self.session.run(statement)
        except pymysql.MySQLError as error:
            if number(error) not in NO_INDEX:
                raise
            super().begin()

    def _frame(self) -> Frame:
        """Keys go to a temporary table."""
        indexed = is_indexed(self.detail, self.target.indexes)
        mariadb = self.session.live.mariadb
        self.scratch = Keys(self.detail, mariadb=mariadb, indexed=indexed)
        return self.scratch.arrival()
