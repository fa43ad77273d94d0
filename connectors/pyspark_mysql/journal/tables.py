"""The connector's own two tables, ledger and log."""

from __future__ import annotations

from importlib.resources import files

import pymysql

from pyspark_mysql.server.client import Session
from pyspark_mysql.server.failures import message, number, translate, translated
from pyspark_mysql.server.literals import identifier
from sparkonce.errors import StoreRefused

NAMES = ("ledger", "log")
NO_SUCH_TABLE = 1146
MAY_NOT = (1044, 1142)


class OwnTables:
    """Ledger and log.

    Args:
        session: of the server.
        schema: the database in which they lie.
        create: whether they are made if they are not there.
    """

    def __init__(self, session: Session, schema: str, *, create: bool) -> None:
        self.session, self.schema, self.create = session, schema, create
        self.names = [(schema, f"sparkonce_{name}") for name in NAMES]
        self.quoted = [identifier(*name) for name in self.names]
        self.ledger, self.log = self.quoted
        self.known = False

    def ensure(self) -> None:
        """Make them, unless they are known to be there.

        Raises:
            StoreRefused: they are not there and may not be made.
        """
        if not self.known:
            self.make()

    def make(self) -> None:
        """Make them, unless they are there. This is no part of any transaction: DDL commits.

        Raises:
            StoreRefused: they are not there and may not be made.
        """
        # CREATE TABLE IF NOT EXISTS asks for the right to create even where the table is there.
        if not self.there():
            if not self.create:
                raise self._absent("nothing has been written in this database yet")
            for statement in ddl(self.schema):
                self._run(statement, "creating its ledger and log")
        if self.create:
            self.require_rights()
        self.known = True

    def require_rights(self) -> None:
        """See that a query may write them, by statements over no row.

        Raises:
            StoreRefused: it may not.
        """
        for table, name in ((self.ledger, "name"), (self.log, "sink")):
            for statement in (
                f"INSERT INTO {table} SELECT * FROM {table} WHERE 1 = 0",
                f"UPDATE {table} SET {name} = {name} WHERE 1 = 0",
                f"DELETE FROM {table} WHERE 1 = 0",
            ):
                with translated("looking for the rights of a query to its ledger and log"):
                    self.session.run(statement)

    def there(self) -> bool:
        """Whether both are there."""
        looks = f"SELECT 1 FROM {self.ledger} CROSS JOIN {self.log} LIMIT 0"
        return self._run(looks, "looking for its tables")

    def _run(self, sql: str, doing: str) -> bool:
        """Whether the tables that are named are there."""
        try:
            self.session.run(sql)
        except pymysql.MySQLError as error:
            if number(error) == NO_SUCH_TABLE:
                return False
            # Whoever has no right to a table does not learn whether it is there.
            if number(error) in MAY_NOT:
                raise self._absent(message(error)) from None
            raise translate(error, doing) from None
        return True

    def _absent(self, why: str) -> StoreRefused:
        return StoreRefused(
            f"Tables {self.ledger} and {self.log} are not there, or not for this user",
            why,
            todo="run what `sparkonce ddl mysql` prints, in that database, and grant the user what"
            " docs/permissions.md lists",
        )


def ddl(schema: str = "") -> list[str]:
    """The statements that make ledger and log; in the current database without a schema."""
    names = {name: identifier(*filter(None, [schema, f"sparkonce_{name}"])) for name in NAMES}
    return [read_sql(name, **names) for name in NAMES]


def read_sql(name: str, **names: str) -> str:
    """A statement of the folder sql/, with quoted names put in."""
    text = (files(__package__) / "sql" / f"{name}.sql").read_text(encoding="utf-8")
    return text.format(**names).strip()
