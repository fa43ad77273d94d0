"""The options of the MySQL connector, and how their texts are read.

What reads a text raises ValueError where it is none; `sparkonce.options` makes an error of it.
"""

from __future__ import annotations

import re

from pyspark_mysql.binlog.gtids import is_gtid, is_gtids
from pyspark_mysql.follow.table import OP
from pyspark_mysql.read.source import subquery
from pyspark_mysql.server import address
from pyspark_mysql.server.literals import NAME, NAME_RULE
from pyspark_mysql.write.plan import MODES
from sparkonce.exactly_once.bad_rows import max_bad_rows
from sparkonce.option_values import boolean, choice, columns, integer
from sparkonce.options import COMMON, Option
from sparkonce.reading import FOLLOWS, READS, STARTS

_NAME = r"(?:`(?:[^`]|``)+`|[^`.]+)"


def table_name(text: str) -> tuple[str, ...]:
    """Read option ``dbtable``: a table, or a database and a table."""
    if not re.fullmatch(rf"{_NAME}(?:\.{_NAME})?", text):
        raise ValueError("orders, shop.orders, or `odd.name` between backticks")
    parts = re.findall(_NAME, text)
    return tuple(name(p[1:-1].replace("``", "`") if p[0] == "`" else p) for p in parts)


def name(text: str) -> str:
    """Read the name of a table or a database."""
    if not NAME.fullmatch(text):
        raise ValueError(NAME_RULE)
    return text


def start(text: str) -> str:
    """Read option ``startingPosition``."""
    found = "".join(text.split()).lower()
    if found not in ("snapshot", "latest") and not (found and is_gtids(found)):
        raise ValueError("snapshot, latest, or a set of GTIDs as the server writes it")
    return found


def transactions(text: str) -> frozenset[str]:
    """Read option ``skipTransactions``."""
    found = frozenset("".join(text.split()).lower().split(","))
    if not all(map(is_gtid, found)):
        raise ValueError("GTIDs with commas between, as the error names them: no ranges")
    return found


def followed(text: str) -> list[str]:
    """Read option ``columns`` of a stream: without that column, deleted rows look like others."""
    names = columns(text)
    return names if OP in map(str.lower, names) else [*names, OP]


URL = Option(
    "url",
    "`mysql://host:3306/database`, or `mariadb://`, or `jdbc:mysql://`.",
    address.url,
    required=True,
)
TLS = (
    Option(
        "tlsMode",
        "`verify` checks the server's certificate and host name, `unverified` only encrypts."
        " Default: `verify`, but `off` on this host (localhost).",
        choice("verify", "unverified", "off"),
    ),
    Option("tlsCaFile", "CA certificates (PEM); default: the system's."),
    Option("tlsCertFile", "Client certificate (PEM)."),
    Option("tlsKeyFile", "Key of the client certificate (PEM)."),
)

OPTIONS = (
    URL,
    Option("dbtable", "The target: `orders`, or `shop.orders`.", table_name, required=True),
    Option(
        "writeMode",
        "`append` inserts rows; `upsert` inserts or updates them by key; `increment` adds all"
        " other columns to the stored row's; `delete` deletes the rows with these keys. Default:"
        " `upsert` where a key is given, else `append`.",
        choice(*MODES),
    ),
    Option(
        "key",
        "Columns that name a row: `order_id,line_no`. For upsert and increment they must be the"
        " primary key or a unique index.",
        columns,
    ),
    Option(
        "nulls",
        "Upsert: `write` stores a null, `keep` leaves what is stored. `keep` goes with neither"
        " `opColumn` nor `sequenceColumn`.",
        choice("write", "keep"),
        "write",
    ),
    Option(
        "opColumn",
        "A column that says what each row does, and is not stored: I, U, D; insert, update, delete;"
        " Debezium's c, u, d, r; `_change_type` of Spark and Delta.",
    ),
    Option(
        "sequenceColumn",
        "Within an epoch the row with the highest value wins for a key, deletes included; of equal"
        " ones, and without it, the last by (partition, row). Not stored if the table has no such"
        " column.",
    ),
    Option(
        "onBadRow",
        "A row that can't be stored: `fail` stops the epoch, nothing of it takes effect, and the"
        " error names the row; `deadLetter` writes it to a table, and the others go on.",
        choice("fail", "deadLetter"),
        "fail",
    ),
    Option("deadLetter", "The table for `onBadRow=deadLetter`, in the same server.", table_name),
    Option(
        "maxBadRows",
        "How many rows of an epoch `onBadRow=deadLetter` puts aside: a number, or a share and"
        " always 10 rows. With more the query stops, as the table may be at fault. Epochs of which"
        " no row is stored count together.",
        max_bad_rows,
        max_bad_rows("10%"),
    ),
    Option("createTable", "Whether to create a target that is not there.", boolean, False),
    Option(
        "ledgerSchema",
        "Database of the connector's own tables, on the same server. Default: the target's.",
        name,
    ),
    Option(
        "atomicity",
        "`epoch`: a whole epoch is one transaction. `chunk`: one for each chunk, for servers that"
        " limit a transaction's size; readers may see a part of an epoch.",
        choice("epoch", "chunk"),
        "epoch",
    ),
    *TLS,
    *COMMON,
)

READING = (
    URL,
    Option(
        "dbtable",
        "What is read: `orders`, `shop.orders`, or `(SELECT ...) AS o`.",
        lambda text: subquery(text) or table_name(text),
    ),
    Option("query", "Or a SELECT whose rows are read."),
    Option(
        "partitionColumn",
        "A whole number, date or timestamp by whose ranges splits are made, with `lowerBound` and"
        " `upperBound`. Default: the first column of the primary key, if it is one.",
    ),
    Option("lowerBound", "A value near the least one; lower ones are read, too."),
    Option("upperBound", "A value near the largest one; higher ones are read, too."),
    Option("numPartitions", "Most splits.", integer(1, 10_000), 4),
    Option(
        "consistency",
        "`splits`: each split is one state of the server, and the log tells if they differ."
        " `snapshot`: the read fails if they do, or where the server can't tell.",
        choice("splits", "snapshot"),
        "splits",
    ),
    *TLS,
    *READS,
)
"""Of `spark.read`."""

COLUMNS = Option(
    "columns",
    "Columns to be followed: `id,name`; `_op` always is. Default: all of the table, `_op`, `_gtid`"
    " and `_ts`.",
    followed,
)
FOLLOWING = (
    URL,
    Option("dbtable", "What is followed: `orders`, or `shop.orders`.", table_name, required=True),
    Option(
        STARTS,
        "Where a new query begins: `snapshot`, with the rows that are there; `latest`; or behind a"
        " set of GTIDs, as the server writes it.",
        start,
        required=True,
    ),
    Option("numPartitions", "Most splits of a snapshot.", integer(1, 10_000), 4),
    Option(
        "skipTransactions",
        "GTIDs of transactions that are passed without their rows: of those that no stream can"
        " follow, the error names them.",
        transactions,
    ),
    *TLS,
    *(COLUMNS if one.name == COLUMNS.name else one for one in FOLLOWS),
)
"""Of `spark.readStream`."""
