"""The MySQL connector: creates plans, stores, encoders and sources."""

from __future__ import annotations

from functools import partial

import pyarrow as pa

from pyspark_mysql.binlog.names import FollowedNames
from pyspark_mysql.follow import rows_as_json
from pyspark_mysql.follow.database import DatabaseFeed
from pyspark_mysql.follow.feed import MySqlFeed
from pyspark_mysql.follow.table import followed, schema_of
from pyspark_mysql.journal import tables
from pyspark_mysql.journal.dead_letters import DeadLetters
from pyspark_mysql.options import FOLLOWING, OPTIONS, READING
from pyspark_mysql.read.columns import described
from pyspark_mysql.read.source import MySqlSource, columns_named, relation, zero_dates
from pyspark_mysql.server import address
from pyspark_mysql.server.client import MySqlSession
from pyspark_mysql.server.failures import translated, translated_read
from pyspark_mysql.store import MySqlStore
from pyspark_mysql.target.names import TableNamer
from pyspark_mysql.write import plan as write_plan
from pyspark_mysql.write.chunks import ChunkEncoder
from pyspark_mysql.write.plan import TableRows
from pyspark_mysql.write.tables import TablesEncoder
from sparkonce.options import Options
from sparkonce.protocol import Encoder, Plan
from sparkonce.reading import Scan
from sparkonce.store import Patience


class MySqlConnector:
    """See `sparkonce.store.Connector`."""

    name = "mysql"
    options, reads, follows = OPTIONS, READING, FOLLOWING
    plan, overwriting = staticmethod(write_plan.plan), staticmethod(write_plan.overwriting)
    ddl = staticmethod(tables.ddl)

    def encoder(self, plan: Plan[TableRows], store: MySqlStore) -> Encoder:
        """See `Connector.encoder`."""
        detail, options = plan.detail, store.session.options
        if not detail.parts:
            return ChunkEncoder(detail)
        letters, patience = store.dead_letters, Patience(options["maxRetries"])
        namer = TableNamer(detail.parts, detail.table[0], [letters.name] if letters else [])
        return TablesEncoder(
            detail,
            namer,
            lambda table, made: patience.run(partial(store.look_up, detail, table, made)),
        )

    def connect(self, options: Options) -> MySqlStore:
        """See `Connector.connect`. Creates own tables only for a query, which names a table."""
        database = address.database(options)
        session = MySqlSession(options, database)
        own, letters = options["ledgerSchema"] or database, options["deadLetter"]
        return MySqlStore(
            session,
            tables.OwnTables(session, own, create=options["dbtable"] is not None),
            create_target=options["createTable"],
            add_columns=options["addColumns"],
            whole=options["atomicity"] == "epoch",
            dead_letters=letters
            and DeadLetters(session, (database, *letters)[-2:], options["maxBadRows"]),
        )

    def infer(self, options: Options) -> pa.Schema:
        """See `Readable.infer`."""
        session = _reading(options)
        source, names = relation(options), options["columns"]
        with translated_read("reading the columns"):
            columns = columns_named(session, source, names) if names else described(session, source)
        as_null = zero_dates(options)
        return pa.schema(
            [(one.name, one.natural, one.nullable or one.code in as_null) for one in columns]
        )

    def source(self, options: Options, scan: Scan) -> MySqlSource:
        """See `Readable.source`."""
        return MySqlSource(_reading(options), options, scan)

    def infer_feed(self, options: Options) -> pa.Schema:
        """See `Followable.infer_feed`."""
        asked = options["columns"] or ()
        if isinstance(options["dbtable"], FollowedNames):
            return rows_as_json.schema_of(asked)
        with translated("reading the columns"):
            columns = followed(_reading(options), options["dbtable"]).columns
        return schema_of(columns.values(), asked)

    def feed(self, options: Options, scan: Scan) -> MySqlFeed | DatabaseFeed:
        """See `Followable.feed`."""
        many = isinstance(options["dbtable"], FollowedNames)
        return (DatabaseFeed if many else MySqlFeed)(_reading(options), options, scan)


def _reading(options: Options) -> MySqlSession:
    """A session that needs no default database: names may be qualified."""
    return MySqlSession(options, address.parse(options).database)
