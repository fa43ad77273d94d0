"""The tables that a commit writes: their requirements, the connector's two tables, and records.

Without transactions half an epoch could stay in the target and be applied again. An engine that
can't prepare a transaction (XA) commits separately from the ledger. For example FEDERATED claims to
have transactions, but may lose the rows of an epoch that the ledger has.
"""

from __future__ import annotations

from importlib.resources import files
from typing import NamedTuple

import pymysql

from pyspark_mysql.server.client import MySqlSession
from pyspark_mysql.server.failures import message, number, translate, translated
from pyspark_mysql.server.literals import identifier
from sparkonce.errors import OptionError, StoreRefused, StoreUnsafe
from sparkonce.exactly_once.ledger import kin_of
from sparkonce.protocol import Proposal, Record

ENGINE = """
SELECT %s, t.table_type, t.engine, e.transactions, e.xa
FROM information_schema.tables t LEFT JOIN information_schema.engines e ON e.engine = t.engine
WHERE t.table_schema = %s AND t.table_name = %s
"""
"""For one table: a server looks up one name, but scans all tables for a list of names."""
BASE_TABLES = ("BASE TABLE", "SYSTEM VERSIONED")

NAMES = ("ledger", "log")
NO_SUCH_TABLE = 1146
MAY_NOT = (1044, 1142)


def is_there(session: MySqlSession, table: tuple[str, ...]) -> bool:
    """Whether the table exists; `table` is its database and its name."""
    return bool(session.run(ENGINE, 0, *table))


def require_transactions(session: MySqlSession, *tables: tuple[str, ...]) -> None:
    """Reject tables without transactions. One query looks up all tables.

    Raises:
        OptionError: a table does not exist, or is not a base table.
        StoreUnsafe: an engine has no transactions, or commits separately from others.
    """
    named = (value for place, table in enumerate(tables) for value in (place, *table))
    rows = session.run(" UNION ALL ".join([ENGINE] * len(tables)), *named)
    found = {place: row for place, *row in rows}
    for place, table in enumerate(tables):
        if place not in found:
            raise OptionError(
                f"Table {'.'.join(table)} does not exist",
                why="the sink needs an existing table",
                todo="create it, or correct option dbtable; createTable=true creates a target",
            )
        _require_transactions(table, *found[place])


def _require_transactions(
    table: tuple[str, ...], kind: str, engine: str, transactions: str, xa: str
) -> None:
    name = ".".join(table)
    if kind not in BASE_TABLES:
        raise OptionError(
            f"{name} is a {kind.lower()}",
            why="the connector can check the requirements of an epoch only for a base table",
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
            why="it commits separately from the ledger, so an epoch could be lost or applied again",
            todo="name an InnoDB table; for a remote table, name its server in option url",
        )


class OwnTables:
    """Ledger and log, in database `schema`; `create` allows to create missing tables."""

    def __init__(self, session: MySqlSession, schema: str, *, create: bool) -> None:
        self.session, self.schema, self.create = session, schema, create
        self.names = [(schema, f"sparkonce_{name}") for name in NAMES]
        self.quoted = [identifier(*name) for name in self.names]
        self.ledger, self.log = self.quoted
        self.made = False

    def make(self) -> None:
        """Create missing tables. Must run outside transactions, because DDL commits.

        Raises:
            StoreRefused: a table is missing and may not be created, or the user may not write it.
        """
        # CREATE TABLE IF NOT EXISTS needs the right to create even if the table exists.
        if not self.there():
            if not self.create:
                raise self._absent("no sink has written to this database yet")
            for statement in ddl(self.schema):
                self._run(statement, "creating its ledger and log")
        if self.create:
            self.require_rights()
        self.made = True

    def require_rights(self) -> None:
        """Verify that the user may write the tables, by statements without rows.

        Raises:
            StoreRefused: the user lacks a right.
        """
        with translated("checking the user's rights to ledger and log"):
            for table, name in ((self.ledger, "name"), (self.log, "sink")):
                self.session.run(f"INSERT INTO {table} SELECT * FROM {table} WHERE 1 = 0")
                self.session.run(f"UPDATE {table} SET {name} = {name} WHERE 1 = 0")
                self.session.run(f"DELETE FROM {table} WHERE 1 = 0")

    def there(self) -> bool:
        """Whether both tables exist."""
        looks = f"SELECT 1 FROM {self.ledger} CROSS JOIN {self.log} LIMIT 0"
        return self._run(looks, "looking for its tables")

    def _run(self, sql: str, doing: str) -> bool:
        """Run a statement; False if a table does not exist."""
        try:
            self.session.run(sql)
        except pymysql.MySQLError as error:
            if number(error) == NO_SUCH_TABLE:
                return False
            # A user without rights to a table can't learn whether it exists.
            if number(error) in MAY_NOT:
                raise self._absent(message(error)) from None
            raise translate(error, doing) from None
        return True

    def _absent(self, why: str) -> StoreRefused:
        return StoreRefused(
            f"Tables {self.ledger} and {self.log} do not exist, or this user can't see them",
            why,
            todo="run the output of `sparkonce ddl mysql` in that database, and grant the user the"
            " rights that docs/permissions.md lists",
        )


def ddl(schema: str = "") -> list[str]:
    """The statements that create ledger and log; in the current database without a schema."""
    names = {name: identifier(*filter(None, [schema, f"sparkonce_{name}"])) for name in NAMES}
    return [read_sql(name, **names) for name in NAMES]


def read_sql(name: str, **names: str) -> str:
    """A statement of the folder sql/, with quoted names inserted."""
    text = (files(__package__) / "sql" / f"{name}.sql").read_text(encoding="utf-8")
    return text.format(**names).strip()


class Progress(NamedTuple):
    """The progress of a decision: its applied chunks, and the dead letters among their rows."""

    chunks: int
    aside: int


class LedgerRecords:
    """Reads and writes ledgers, claims on checkpoints and kept offsets; see sql/ledger.sql.

    The caller holds the transaction.
    """

    def __init__(self, session: MySqlSession, table: str) -> None:
        # The client replaces %s by values and %% by % only for statements with values: so each
        # statement has a value.
        self.session, self.table = session, table.replace("%", "%%")

    def read(self, name: str, *, lock: bool = False) -> Record:
        """The record; with `lock` no other transaction writes it before this one ends."""
        sql = f"SELECT revision, stamp, token, body FROM {self.table} WHERE name = %s"
        found = self.session.run(sql + " FOR UPDATE" if lock else sql, name)
        return Record(*found[0]) if found else Record()

    def _number(self, *, stays_open: bool) -> int:
        """The number of a decision.

        The row without a name counts decisions that stay open. Each of them locks that row until
        COMMIT. Other decisions share the lock, so they don't wait for each other.
        """
        if stays_open:
            count = f"UPDATE {self.table} SET revision = revision + 1 WHERE name = %s"
            self.session.run(count, "")
        sql = f"SELECT revision FROM {self.table} WHERE name = %s LOCK IN SHARE MODE"
        found = self.session.run(sql, "")
        if not found:
            self.insert("", Record(1))
            return self._number(stays_open=stays_open)
        # Above all decisions that stayed open so far, and below the next one.
        return 2 * int(found[0][0]) + (0 if stays_open else 1)

    def unfinished(self, kin: str) -> list[str]:
        """The sinks whose names end with `kin` and whose decision is being applied."""
        # Uses the index of tokens: the cost must not grow with the number of other sinks.
        return self._names("token > '' AND name LIKE %s", f"%{kin}")

    def decided_after(self, name: str) -> list[str]:
        """The sinks of the same target with a later decision."""
        own = f"(SELECT decided FROM {self.table} WHERE name = %s)"
        return self._names(f"decided > {own} AND name LIKE %s", name, f"%{kin_of(name)}")

    def names(self) -> list[str]:
        """The names of all records."""
        return self._names("name > %s", "")

    def _names(self, condition: str, *args: str) -> list[str]:
        found = self.session.run(f"SELECT name FROM {self.table} WHERE {condition}", *args)
        return [name for (name,) in found]

    def insert(self, name: str, new: Record) -> None:
        """Write a record unless it exists."""
        self.session.run(
            f"INSERT INTO {self.table} (name, revision, stamp, token, body)"
            " VALUES (%s, %s, %s, %s, %s) ON DUPLICATE KEY UPDATE revision = revision",
            *(name, new.revision, new.stamp, new.token, new.body),
        )

    def update(self, name: str, new: Record, decided: int | None = None) -> None:
        """Write a locked record; `decided` is the number of a new decision."""
        # Another token has no progress yet. The server assigns columns from left to right, so
        # `token` must follow the columns that read its former value.
        self.session.run(
            f"UPDATE {self.table} SET applied = IF(token = %s, applied, 0),"
            " aside = IF(token = %s, aside, 0), decided = COALESCE(%s, decided),"
            " revision = %s, stamp = %s, token = %s, body = %s WHERE name = %s",
            *(new.token, new.token, decided, new.revision, new.stamp, new.token, new.body, name),
        )

    def decide(self, proposal: Proposal, new: Record, *, stays_open: bool) -> None:
        """Write a decision, `new`, into its locked record, and its auxiliary record.

        `stays_open` means that rows are applied after the transaction.
        """
        # Replaces any auxiliary record: the locked row orders the writes to it.
        if proposal.beside is not None:
            self.session.run(
                f"REPLACE INTO {self.table} (name, revision, stamp, token, body)"
                " VALUES (%s, 1, %s, '', %s)",
                *(proposal.beside.name, proposal.record.stamp, proposal.beside.body),
            )
        self.update(proposal.manifest.sink, new, self._number(stays_open=stays_open))

    def delete(self, name: str) -> None:
        """Delete a locked record."""
        self.session.run(f"DELETE FROM {self.table} WHERE name = %s", name)

    def progress(self, name: str, token: str) -> Progress | None:
        """The locked progress of this decision; None if it is no longer the last."""
        sql = f"SELECT token, applied, aside FROM {self.table} WHERE name = %s FOR UPDATE"
        found = self.session.run(sql, name)
        return Progress(*found[0][1:]) if found and found[0][0] == token else None

    def advance(self, name: str, done: Progress) -> None:
        """Write the progress of the decision, in the transaction that wrote its rows."""
        sql = f"UPDATE {self.table} SET applied = %s, aside = %s WHERE name = %s"
        self.session.run(sql, *done, name)
