"""The tables that a commit writes: what each must be, and the connector's own two.

Without transactions half an epoch could stay and be applied again. An engine that can't prepare a
transaction (XA) commits by itself, apart from the ledger: FEDERATED says that it has transactions,
and may lose the rows of an epoch that the ledger has.
"""

from __future__ import annotations

from importlib.resources import files

import pymysql

from pyspark_mysql.server.client import MySqlSession
from pyspark_mysql.server.failures import message, number, translate, translated
from pyspark_mysql.server.literals import identifier
from sparkonce.errors import OptionError, StoreRefused, StoreUnsafe

ENGINE = """
SELECT %s, t.table_type, t.engine, e.transactions, e.xa
FROM information_schema.tables t LEFT JOIN information_schema.engines e ON e.engine = t.engine
WHERE t.table_schema = %s AND t.table_name = %s
"""
"""For one table: the servers look a name up, but read through all tables for a list of them."""
BASE_TABLES = ("BASE TABLE", "SYSTEM VERSIONED")

NAMES = ("ledger", "log")
NO_SUCH_TABLE = 1146
MAY_NOT = (1044, 1142)


def is_there(session: MySqlSession, table: tuple[str, ...]) -> bool:
    """Whether there is a table of this database and name."""
    return bool(session.run(ENGINE, 0, *table))


def require_transactions(session: MySqlSession, *tables: tuple[str, ...]) -> None:
    """Refuse what is no table with transactions. All are looked up by one query.

    Raises:
        OptionError: one is not there, or no base table.
        StoreUnsafe: the engine of one has none, or commits them apart from others.
    """
    named = (value for place, table in enumerate(tables) for value in (place, *table))
    rows = session.run(" UNION ALL ".join([ENGINE] * len(tables)), *named)
    found = {place: row for place, *row in rows}
    for place, table in enumerate(tables):
        if place not in found:
            raise OptionError(
                f"There is no table {'.'.join(table)}",
                why="rows have nowhere to go",
                todo="create it, or mend option dbtable; createTable=true makes a target",
            )
        _require_transactions(table, *found[place])


def _require_transactions(
    table: tuple[str, ...], kind: str, engine: str, transactions: str, xa: str
) -> None:
    name = ".".join(table)
    if kind not in BASE_TABLES:
        raise OptionError(
            f"{name} is a {kind.lower()}",
            why="only of a base table can be checked what an epoch needs",
            todo="name the base table",
        )
    if transactions != "YES":
        raise StoreUnsafe(
            f"Table {name} has the engine {engine}",
            why="it has no transactions, so half an epoch could stay and be applied again",
            todo=f"ALTER TABLE {identifier(*table)} ENGINE=InnoDB",
        )
    if xa != "YES":
        raise StoreUnsafe(
            f"Table {name} has the engine {engine}, which can't prepare a transaction (XA)",
            why="it commits apart from the ledger, so an epoch could be lost or applied again",
            todo="name a table of InnoDB; of a remote one, its own server in option url",
        )


class OwnTables:
    """Ledger and log, in database `schema`; with `create` they are made if they are not there."""

    def __init__(self, session: MySqlSession, schema: str, *, create: bool) -> None:
        self.session, self.schema, self.create = session, schema, create
        self.names = [(schema, f"sparkonce_{name}") for name in NAMES]
        self.quoted = [identifier(*name) for name in self.names]
        self.ledger, self.log = self.quoted
        self.made = False

    def make(self) -> None:
        """Make them, unless they are there. This is no part of any transaction: DDL commits.

        Raises:
            StoreRefused: they are not there and may not be made, or the user may not write them.
        """
        # CREATE TABLE IF NOT EXISTS asks for the right to create even where the table is there.
        if not self.there():
            if not self.create:
                raise self._absent("nothing has been written in this database yet")
            for statement in ddl(self.schema):
                self._run(statement, "creating its ledger and log")
        if self.create:
            self.require_rights()
        self.made = True

    def require_rights(self) -> None:
        """See that a query may write them, by statements over no row.

        Raises:
            StoreRefused: it may not.
        """
        with translated("looking for the rights of a query to its ledger and log"):
            for table, name in ((self.ledger, "name"), (self.log, "sink")):
                self.session.run(f"INSERT INTO {table} SELECT * FROM {table} WHERE 1 = 0")
                self.session.run(f"UPDATE {table} SET {name} = {name} WHERE 1 = 0")
                self.session.run(f"DELETE FROM {table} WHERE 1 = 0")

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
