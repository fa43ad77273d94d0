"""The MySQL connector: its options, its plan, and where store and encoder come from.

The plan's detail, which the manifest keeps and the statements are made from: ``table`` (database
and name), ``mode``, ``columns`` (in the order of a chunk's rows), ``key``, ``added`` (columns that
an increment adds), ``nulls``, ``kinds`` (the type of each column), ``folded`` (rows of one key are
compared before they are written), ``op`` and ``sequence`` (the columns to compare by), ``aside``
(bad rows are put into chunks as such), ``schema`` (of the query, as Spark's DDL).
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any

import pyarrow as pa

from pyspark_mysql import address, gather, tables
from pyspark_mysql.chunks import ChunkEncoder
from pyspark_mysql.client import Session
from pyspark_mysql.columns import kind_of
from pyspark_mysql.dead_letters import DeadLetters
from pyspark_mysql.options import OPTIONS
from pyspark_mysql.store import MySqlStore
from sparkonce import checks, operations, schema_text
from sparkonce.errors import OptionError
from sparkonce.options import Options
from sparkonce.protocol import Encoder, Plan

EXACT_KEY = re.compile(
    r"boolean|tinyint|smallint|int|bigint|decimal.*|string|binary|date|timestamp.*|time|interval"
)
TIMESTAMPS = ("timestamp", "timestamp_ntz")
SEQUENCES = ("tinyint", "smallint", "int", "bigint", "decimal", "date", *TIMESTAMPS)
PREFIX = "sparkonce_"
CELLS = 48_000
"""Values in a chunk: each is a transaction, which the server syncs to disk."""
ADDABLE = re.compile(r"tinyint|smallint|int|bigint|decimal.*|float|double")


class MySqlConnector:
    """See `sparkonce.protocol.Connector`."""

    name = "mysql"
    options = OPTIONS

    def plan(self, options: Options, schema: pa.Schema) -> Plan[Any]:
        """See `Connector.plan`."""
        table = _table(options)
        key = [checks.key_column("key", name, schema) for name in options["key"] or []]
        op, sequence = (
            checks.column(option, options[option], schema) if options[option] else None
            for option in ("opColumn", "sequenceColumn")
        )
        _require_foreign_name("dbtable", table[1])
        _require_table_apart(table, options)
        mode = options["writeMode"] or ("upsert" if key or op or sequence else "append")
        kinds = {field.name: kind_of(field) for field in schema}
        operations.require_unstored(op, *key, sequence)
        if op or sequence:
            _require_foldable(mode, options, kinds, op, sequence)
        _require_key(mode, key)
        _require_no_contradiction(mode, options)
        for name in key:
            _require_exact(name, kinds[name])
        written = key if mode == "delete" else [name for name in schema.names if name != op]
        if op or sequence or mode == "delete":
            _require_foreign_columns(written)
        added = _added(key, schema) if mode == "increment" else []
        detail = {
            "table": list(table),
            "mode": mode,
            "columns": list(written),
            "key": key,
            "added": added,
            "nulls": options["nulls"],
            "folded": bool(op or sequence),
            "op": op,
            "sequence": sequence,
            "aside": options["onBadRow"] == "deadLetter",
            "kinds": {name: kinds[name] for name in written},
            "schema": schema_text.shown(schema),
        }
        return Plan(
            target="table:" + ".".join(table),
            repeatable=mode == "upsert",
            columns=len(written),
            cells=CELLS,
            detail=detail,
            stored=detail,
            key=tuple(key),
        )

    def encoder(self, plan: Plan[Any]) -> Encoder:
        """See `Connector.encoder`."""
        return ChunkEncoder(plan.detail)

    def connect(self, options: Options) -> MySqlStore:
        """See `Connector.connect`. Own tables are made for a query, which alone names a table."""
        database = _database(options)
        session = Session(options, database)
        schema = options["ledgerSchema"] or database
        return MySqlStore(
            session,
            tables.OwnTables(session, schema, create=options["dbtable"] is not None),
            create_target=options["createTable"],
            whole=options["atomicity"] == "epoch",
            dead_letters=_dead_letters(options, session),
        )

    def ddl(self) -> list[str]:
        """See `Connector.ddl`."""
        return tables.ddl()


def _table(options: Mapping[str, Any]) -> tuple[str, str]:
    return _database(options), options["dbtable"][-1]


def _database(options: Mapping[str, Any]) -> str:
    named: tuple[str, ...] = options.get("dbtable") or ()
    database = named[0] if len(named) == 2 else address.parse(options).database
    if not database:
        raise OptionError(
            "Neither option url nor option dbtable names a database",
            why="target and ledger must lie in one",
            todo="write mysql://host:3306/database, or dbtable=database.table",
        )
    return str(database)


def _require_foreign_name(option: str, table: str) -> None:
    if table.lower().startswith(PREFIX):
        raise OptionError(
            f"Option {option} is {table}, and names that begin with {PREFIX} are the connector's",
            why="its own tables and temporary ones have such names, and would be taken for it",
            todo="rename the table",
        )


def _require_table_apart(table: tuple[str, str], options: Mapping[str, Any]) -> None:
    """Bad rows go to a table of their own; some servers know no case of letters in its name."""
    if not options["deadLetter"]:
        return
    letters = (table[0], *options["deadLetter"])[-2:]
    _require_foreign_name("deadLetter", letters[1])
    if [name.lower() for name in letters] == [name.lower() for name in table]:
        raise OptionError(
            f"Options dbtable and deadLetter both name {'.'.join(letters)}",
            why="rows that can't be stored would be among those that are",
            todo="name another table in deadLetter; it is made on first use",
        )


def _require_foreign_columns(names: Sequence[str]) -> None:
    for name in names:
        if name.lower() in gather.OWN:
            raise OptionError(
                f"Column {name!r} has a name that the connector needs in its temporary table",
                why="rows are numbered and flagged there",
                todo="rename it, in the query and in the table",
            )


def _dead_letters(options: Mapping[str, Any], session: Session) -> DeadLetters | None:
    named: tuple[str, ...] | None = options["deadLetter"]
    if not named:
        return None
    return DeadLetters(
        session,
        named if len(named) == 2 else (session.database, *named),
        options["maxBadRows"],
    )


def _require_key(mode: str, key: Sequence[str]) -> None:
    if mode != "append" and not key:
        raise OptionError(
            f"Option key is missing, and writeMode={mode} needs it",
            why="it says which stored row a row is about",
            todo='add .option("key", ...), the columns of the primary key or of a unique index',
        )


def _require_exact(name: str, kind: str) -> None:
    if not EXACT_KEY.fullmatch(kind):
        raise OptionError(
            f"Option key names column {name!r} of type {kind}",
            why="values of this type are not compared exactly",
            todo="cast it to string, decimal or a whole number before the sink",
        )


def _added(key: Sequence[str], schema: pa.Schema) -> list[str]:
    fields = [field for field in schema if field.name not in key]
    return checks.require_addable(fields, _is_addable, "only numbers are added")


def _is_addable(field: pa.Field) -> bool:
    return ADDABLE.fullmatch(kind_of(field)) is not None


def _require_foldable(
    mode: str,
    options: Mapping[str, Any],
    kinds: Mapping[str, str],
    op: str | None,
    sequence: str | None,
) -> None:
    given = "opColumn" if op else "sequenceColumn"
    for name, value, fits in (
        ("writeMode", mode, "upsert"),
        ("atomicity", options["atomicity"], "epoch"),
        ("nulls", options["nulls"], "write"),
    ):
        if value != fits:
            raise OptionError(
                f"Options {given} and {name}={value} contradict each other",
                why="of a key's rows in an epoch the last one is written, and it alone",
                todo=f"leave {name} out, or set it to {fits}",
            )
    for option, column, allowed in (
        ("opColumn", op, ("string",)),
        ("sequenceColumn", sequence, SEQUENCES),
    ):
        if column is not None and kinds[column].partition("(")[0] not in allowed:
            raise OptionError(
                f"Option {option} names column {column!r} of type {kinds[column]}",
                why=f"it can be {', '.join(allowed)}",
                todo="cast it before the sink",
            )


def _require_no_contradiction(mode: str, options: Mapping[str, Any]) -> None:
    if mode != "upsert" and options["nulls"] == "keep":
        raise OptionError(
            f"Options writeMode={mode} and nulls=keep contradict each other",
            why="nulls says what an upsert does with a null",
            todo="leave nulls out",
        )
    checks.require_dead_letter(options, "a table", "orders_bad")
    if mode == "delete" and options["createTable"]:
        raise OptionError(
            "Options writeMode=delete and createTable contradict each other",
            why="a table made from the key alone would hold nothing to delete",
            todo="leave createTable out",
        )
