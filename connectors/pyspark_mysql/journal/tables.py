"""The tables that a commit writes: what each must be, the connector's own two, and its records.

Without transactions half an epoch could stay and be applied again. An engine that can't prepare a
transaction (XA) commits by itself, apart from the ledger: FEDERATED says that it has transactions,
and may lose the rows of an epoch that the ledger has.
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


class Progress(NamedTuple):
    """What of a decision took effect: so many chunks, and so many of their rows as dead letters."""

    chunks: int
    aside: int


class LedgerRecords:
    """Reads and writes ledgers, claims on checkpoints and kept offsets; see sql/ledger.sql.

    Whoever calls holds the transaction.
    """

    def __init__(self, session: MySqlSession, table: str) -> None:
        # The client puts values in place of %s, and makes % of %%, where it is given any value: so
        # each statement has one.
        self.session, self.table = session, table.replace("%", "%%")

    def read(self, name: str, *, lock: bool = False) -> Record:
        """The record; with `lock` nobody else writes it before the transaction ends."""
        sql = f"SELECT revision, stamp, token, body FROM {self.table} WHERE name = %s"
        found = self.session.run(sql + " FOR UPDATE" if lock else sql, name)
        return Record(*found[0]) if found else Record()

    def _number(self, *, stays_open: bool) -> int:
        """The number of a decision.

        Those that stay open are counted in the row without a name, and lock it, one at a time,
        until COMMIT. The others share the lock, so they don't wait for each other.
        """
        if stays_open:
            count = f"UPDATE {self.table} SET revision = revision + 1 WHERE name = %s"
            self.session.run(count, "")
        sql = f"SELECT revision FROM {self.table} WHERE name = %s LOCK IN SHARE MODE"
        found = self.session.run(sql, "")
        if not found:
            self.insert("", Record(1))
            return self._number(stays_open=stays_open)
        # Above all that stayed open so far, and below the next that will.
        return 2 * int(found[0][0]) + (0 if stays_open else 1)

    def unfinished(self, kin: str) -> list[str]:
        """The names that end so, of sinks whose decision is being applied."""
        # By the index of tokens: the cost must not grow with the number of other sinks.
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
        """Write a record unless there is one."""
        self.session.run(
            f"INSERT INTO {self.table} (name, revision, stamp, token, body)"
            " VALUES (%s, %s, %s, %s, %s) ON DUPLICATE KEY UPDATE revision = revision",
            *(name, new.revision, new.stamp, new.token, new.body),
        )

    def update(self, name: str, new: Record, decided: int | None = None) -> None:
        """Write a locked record; `decided` is the number of the decision, where this is one."""
        # Another token has no progress yet. Columns are assigned from left to right, so `token`
        # must come behind those that ask for what it was.
        self.session.run(
            f"UPDATE {self.table} SET applied = IF(token = %s, applied, 0),"
            " aside = IF(token = %s, aside, 0), decided = COALESCE(%s, decided),"
            " revision = %s, stamp = %s, token = %s, body = %s WHERE name = %s",
            *(new.token, new.token, decided, new.revision, new.stamp, new.token, new.body, name),
        )

    def decide(self, proposal: Proposal, new: Record, *, stays_open: bool) -> None:
        """Write a decision into its locked record, `new`, and what is kept beside it.

        `stays_open` says that rows are applied after the transaction.
        """
        # Written over whatever is there: the locked row orders the writes of what is beside it.
        if proposal.beside is not None:
            self.session.run(
                f"REPLACE INTO {self.table} (name, revision, stamp, token, body)"
                " VALUES (%s, 1, %s, '', %s)",
                *(proposal.beside.name, proposal.record.stamp, proposal.beside.body),
            )
        self.update(proposal.manifest.sink, new, self._number(stays_open=stays_open))

    def delete(self, name: str) -> None:
        """Take a locked record away."""
        self.session.run(f"DELETE FROM {self.table} WHERE name = %s", name)

    def progress(self, name: str, token: str) -> Progress | None:
        """What of this decision took effect, locked; None if it is no longer the last."""
        sql = f"SELECT token, applied, aside FROM {self.table} WHERE name = %s FOR UPDATE"
        found = self.session.run(sql, name)
        return Progress(*found[0][1:]) if found and found[0][0] == token else None

    def advance(self, name: str, done: Progress) -> None:
        """Write what of the decision took effect, in the transaction that wrote its rows."""
        sql = f"UPDATE {self.table} SET applied = %s, aside = %s WHERE name = %s"
        self.session.run(sql, *done, name)
