"""Which tables have transactions. Without them half an epoch could stay and be applied again.

An engine that can't prepare a transaction (XA) commits by itself, apart from the ledger: FEDERATED
says that it has transactions, and may lose the rows of an epoch that the ledger has.
"""

from __future__ import annotations

from collections.abc import Sequence

from pyspark_mysql.server.client import Session
from pyspark_mysql.server.literals import identifier
from sparkonce.errors import OptionError, StoreUnsafe

ENGINE = """
SELECT %s, t.table_type, t.engine, e.transactions, e.xa
FROM information_schema.tables t LEFT JOIN information_schema.engines e ON e.engine = t.engine
WHERE t.table_schema = %s AND t.table_name = %s
"""
"""For one table: the servers look a name up, but read through all tables for a list of them."""
BASE_TABLES = ("BASE TABLE", "SYSTEM VERSIONED")


def is_there(session: Session, table: tuple[str, ...]) -> bool:
    """Whether there is a table of this database and name."""
    return bool(session.run(ENGINE, 0, *table))


def require_transactions(session: Session, *tables: tuple[str, ...]) -> None:
    """Refuse what is no table with transactions. All are looked up by one query.

    Raises:
        OptionError: one is not there, or no base table.
        StoreUnsafe: the engine of one has none, or commits them apart from others.
    """
    named = (value for place, table in enumerate(tables) for value in (place, *table))
    rows = session.run(" UNION ALL ".join([ENGINE] * len(tables)), *named)
    found = {place: row for place, *row in rows}
    for place, table in enumerate(tables):
        _require_transactions(".".join(table), identifier(*table), found.get(place))


def _require_transactions(shown: str, table: str, found: Sequence[str] | None) -> None:
    if found is None:
        raise OptionError(
            f"There is no table {shown}",
            why="rows have nowhere to go",
            todo="create it, or mend option dbtable; createTable=true makes a target",
        )
    kind, engine, transactions, xa = found
    if kind not in BASE_TABLES:
        raise OptionError(
            f"{shown} is a {kind.lower()}",
            why="only of a base table can be checked what an epoch needs",
            todo="name the base table",
        )
    if transactions != "YES":
        raise StoreUnsafe(
            f"Table {shown} has the engine {engine}",
            why="it has no transactions, so half an epoch could stay and be applied again",
            todo=f"ALTER TABLE {table} ENGINE=InnoDB",
        )
    if xa != "YES":
        raise StoreUnsafe(
            f"Table {shown} has the engine {engine}, which can't prepare a transaction (XA)",
            why="it commits apart from the ledger, so an epoch could be lost or applied again",
            todo="name a table of InnoDB; of a remote one, its own server in option url",
        )
