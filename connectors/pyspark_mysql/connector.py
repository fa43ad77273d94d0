"""The MySQL connector: where plan, store and encoder come from."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pyspark_mysql.journal import tables
from pyspark_mysql.journal.dead_letters import DeadLetters
from pyspark_mysql.models import plan as table
from pyspark_mysql.models.chunks import ChunkEncoder
from pyspark_mysql.models.plan import TableRows
from pyspark_mysql.options import OPTIONS
from pyspark_mysql.server import address
from pyspark_mysql.server.client import Session
from pyspark_mysql.store import MySqlStore
from sparkonce.options import Options
from sparkonce.protocol import Encoder, Plan

if TYPE_CHECKING:
    import pyarrow as pa


class MySqlConnector:
    """See `sparkonce.store.Connector`."""

    name = "mysql"
    options = OPTIONS

    def plan(self, options: Options, schema: pa.Schema) -> Plan[TableRows]:
        """See `Connector.plan`."""
        return table.plan(options, schema)

    def overwriting(self, plan: Plan[TableRows], options: Options) -> Plan[TableRows]:
        """See `Overwriting`. Readers see the old rows until the new ones are all there."""
        return table.overwriting(plan, options)

    def encoder(self, plan: Plan[TableRows]) -> Encoder:
        """See `Connector.encoder`."""
        return ChunkEncoder(plan.detail)

    def connect(self, options: Options) -> MySqlStore:
        """See `Connector.connect`. Own tables are made for a query, which alone names a table."""
        database = address.database(options)
        session = Session(options, database)
        own, letters = options["ledgerSchema"] or database, options["deadLetter"]
        return MySqlStore(
            session,
            tables.OwnTables(session, own, create=options["dbtable"] is not None),
            create_target=options["createTable"],
            whole=options["atomicity"] == "epoch",
            dead_letters=letters
            and DeadLetters(session, (database, *letters)[-2:], options["maxBadRows"]),
        )

    def ddl(self) -> list[str]:
        """See `Connector.ddl`."""
        return tables.ddl()
