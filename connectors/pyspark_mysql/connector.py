"""The MySQL connector: its options, its plan, and where store and encoder come from.

The plan's detail, which the manifest keeps and the statements are made from: ``table`` (database
and name), ``mode``, ``columns`` (in the order of a chunk's rows), ``key``, ``added`` (columns that
an increment adds), ``nulls``, ``kinds`` (the type of each column).
"""

from __future__ import annotations

import difflib
import re
from collections.abc import Mapping, Sequence
from typing import Any

import pyarrow as pa

from pyspark_mysql import address, tables
from pyspark_mysql.chunks import ChunkEncoder
from pyspark_mysql.client import Session
from pyspark_mysql.columns import kind_of
from pyspark_mysql.store import MySqlStore
from sparkonce.errors import OptionError
from sparkonce.options import COMMON, Option, choice
from sparkonce.protocol import Encoder, Plan

_NAME = re.compile(r"`((?:[^`]|``)+)`|([^`.]+)")


def table_name(text: str) -> tuple[str, ...]:
    """Read option ``dbtable``: a table, or a database and a table.

    Raises:
        ValueError: it is neither.
    """
    quoted = _NAME.pattern.replace("(", "(?:").replace("(?:?:", "(?:")
    if not re.fullmatch(rf"(?:{quoted})(?:\.(?:{quoted}))?", text):
        raise ValueError("orders, shop.orders, or `odd.name` between backticks")
    parts = [match[1] or match[2] for match in _NAME.finditer(text)]
    return tuple(part.replace("``", "`") for part in parts)


def boolean(text: str) -> bool:
    """True or false.

    Raises:
        ValueError: it is neither.
    """
    if text.lower() not in ("true", "false"):
        raise ValueError("true or false")
    return text.lower() == "true"


def columns(text: str) -> list[str]:
    """Column names between commas.

    Raises:
        ValueError: a name is empty or there twice.
    """
    names = [name.strip() for name in text.split(",")]
    if not all(names) or len({name.lower() for name in names}) < len(names):
        raise ValueError("column names with commas between, such as order_id,line_no")
    return names


OPTIONS = (
    Option(
        "url",
        "`mysql://host:3306/database`, or `mariadb://`, or `jdbc:mysql://`.",
        address.url,
        required=True,
    ),
    Option("dbtable", "The target: `orders`, or `shop.orders`.", table_name, required=True),
    Option(
        "writeMode",
        "`append` inserts rows; `upsert` inserts or updates them by key; `increment` adds all"
        " other columns to the stored row's; `delete` deletes the rows with these keys. Default:"
        " `upsert` where a key is given, else `append`.",
        choice("append", "upsert", "increment", "delete"),
    ),
    Option(
        "key",
        "Columns that name a row: `order_id,line_no`. For upsert and increment they must be the"
        " primary key or a unique index.",
        columns,
    ),
    Option(
        "nulls",
        "Upsert: `write` stores a null, `keep` leaves what is stored.",
        choice("write", "keep"),
        "write",
    ),
    Option("createTable", "Whether to create a target that is not there.", boolean, False),
    Option(
        "ledgerSchema",
        "Database of the connector's own tables, on the same server. Default: the target's.",
    ),
    Option("createTables", "Whether to create the connector's own tables.", boolean, True),
    Option(
        "atomicity",
        "`epoch`: a whole epoch is one transaction. `chunk`: one for each chunk, for servers that"
        " limit a transaction's size; readers may see a part of an epoch.",
        choice("epoch", "chunk"),
        "epoch",
    ),
    Option("unixSocket", "Path of a Unix socket, used instead of the URL's host and port."),
    Option(
        "tlsMode",
        "`verify` checks the server's certificate and host name, `unverified` only encrypts."
        " Default: `verify`, but `off` on this host (localhost, a Unix socket).",
        choice("verify", "unverified", "off"),
    ),
    Option("tlsCaFile", "CA certificates (PEM); default: the system's."),
    Option("tlsCertFile", "Client certificate (PEM)."),
    Option("tlsKeyFile", "Key of the client certificate (PEM)."),
    *COMMON,
)

EXACT_KEY = re.compile(
    r"boolean|tinyint|smallint|int|bigint|decimal.*|string|binary|date|timestamp.*|time|interval"
)
ADDABLE = re.compile(r"tinyint|smallint|int|bigint|decimal.*|float|double")


class MySqlConnector:
    """See `sparkonce.protocol.Connector`."""

    name = "mysql"
    options = OPTIONS

    def plan(self, options: Mapping[str, Any], schema: pa.Schema) -> Plan:
        """See `Connector.plan`."""
        table = _table(options)
        key = [_key_column(name, schema) for name in options["key"] or []]
        mode = options["writeMode"] or ("upsert" if key else "append")
        kinds = {field.name: kind_of(field) for field in schema}
        _require_key(mode, key)
        _require_no_contradiction(mode, options)
        for name in key:
            _require_exact(name, kinds[name])
        written = key if mode == "delete" else schema.names
        added = _added(key, kinds) if mode == "increment" else []
        return Plan(
            target="table:" + ".".join(table),
            repeatable=mode in ("upsert", "delete"),
            columns=len(written),
            detail={
                "table": list(table),
                "mode": mode,
                "columns": list(written),
                "key": key,
                "added": added,
                "nulls": options["nulls"],
                "kinds": {name: kinds[name] for name in written},
            },
        )

    def encoder(self, plan: Plan) -> Encoder:
        """See `Connector.encoder`."""
        return ChunkEncoder(plan.detail)

    def connect(self, options: Mapping[str, Any], plan: Plan | None = None) -> MySqlStore:
        """See `Connector.connect`."""
        session = Session(options)
        schema = options["ledgerSchema"] or _database(options)
        create = bool(options["createTables"]) and plan is not None
        return MySqlStore(
            session,
            tables.OwnTables(session, schema, create=create),
            plan,
            create_target=options["createTable"],
            whole=options["atomicity"] == "epoch",
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


def _key_column(name: str, schema: pa.Schema) -> str:
    found = [other for other in schema.names if other == name]
    found = found or [other for other in schema.names if other.lower() == name.lower()]
    if len(found) == 1:
        return str(found[0])
    near = difflib.get_close_matches(name, schema.names, n=1)
    raise OptionError(
        f"Option key names column {name!r}, which the query does not have",
        why=f"its columns are {', '.join(schema.names)}",
        todo=f"did you mean {near[0]!r}?" if near else "name one of them",
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


def _added(key: Sequence[str], kinds: Mapping[str, str]) -> list[str]:
    added = [name for name in kinds if name not in key]
    for name in added:
        if not ADDABLE.fullmatch(kinds[name]):
            raise OptionError(
                f"Option writeMode=increment can't add column {name!r} of type {kinds[name]}",
                why="only numbers are added",
                todo="drop the column, make it part of the key, or cast it to a number",
            )
    if not added:
        raise OptionError(
            "Option writeMode=increment has nothing to add",
            why="all columns are part of the key",
            todo="add a number column, for example lit(1).alias('count')",
        )
    return added


def _require_no_contradiction(mode: str, options: Mapping[str, Any]) -> None:
    if mode != "upsert" and options["nulls"] == "keep":
        raise OptionError(
            f"Options writeMode={mode} and nulls=keep contradict each other",
            why="nulls says what an upsert does with a null",
            todo="leave nulls out",
        )
    if mode == "delete" and options["createTable"]:
        raise OptionError(
            "Options writeMode=delete and createTable contradict each other",
            why="a table made from the key alone would hold nothing to delete",
            todo="leave createTable out",
        )
