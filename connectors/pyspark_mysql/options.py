"""The options of the MySQL connector, and the functions that parse their values.

A parser raises ValueError for an invalid value; `sparkonce.options` turns it into an OptionError.
"""

from __future__ import annotations

import re

from pyspark_mysql.binlog.gtids import is_gtid, is_gtids
from pyspark_mysql.binlog.names import FollowedNames, TableName
from pyspark_mysql.follow.table import OP
from pyspark_mysql.read.source import condition, subquery
from pyspark_mysql.server import address
from pyspark_mysql.server.literals import NAME, NAME_RULE
from pyspark_mysql.target.names import LIKE
from pyspark_mysql.write.plan import MODES
from sparkonce import templates
from sparkonce.exactly_once.bad_rows import MAX_BAD_ROWS
from sparkonce.option_values import boolean, choice, columns, integer
from sparkonce.options import ADD_COLUMNS, COMMON, Option
from sparkonce.reading import FOLLOWS, READS, STARTS
from sparkonce.templates import Template

_NAME = r"(?:`(?:[^`]|``)+`|[^`.]+)"


def table_name(text: str) -> tuple[str, ...]:
    """Parse option ``dbtable``: a table, or a database and a table."""
    if not re.fullmatch(rf"{_NAME}(?:\.{_NAME})?", text):
        raise ValueError("orders, shop.orders, or `odd.name` between backticks")
    parts = re.findall(_NAME, text)
    return tuple(name(p[1:-1].replace("``", "`") if p[0] == "`" else p) for p in parts)


def target(text: str) -> tuple[str, ...]:
    """Parse option ``dbtable`` of a sink: a table, or a template with columns in braces."""
    if "{" not in re.sub(r"`(?:[^`]|``)*`", "", text):
        return table_name(text)
    shown = templates.plain(text)
    if "`" in text or re.search(r":[^{}]*\.[^{}]*\}", text):
        raise ValueError(f"{LIKE}, without backticks, and without dots in the format of a date")
    table_name(shown)
    first, dot, rest = text.partition(".")
    return (first, Template(rest)) if dot and "{" not in first else (Template(text),)


def tables(text: str) -> tuple[str, ...] | FollowedNames:
    """Parse option ``dbtable`` of a stream: a table, or several, with patterns and exclusions."""
    if not re.search(r"[,*!]", re.sub(r"`(?:[^`]|``)*`", "", text)):
        return table_name(text)
    wanted, unwanted = list[TableName](), list[TableName]()
    for one in re.findall(r"(?:`(?:[^`]|``)*`|[^,`])+", text):
        named = table_name(one.strip().removeprefix("!").strip())
        if any("*" in part for part in re.findall(r"`[^`]*`", one)):
            raise ValueError("a name with * between backticks can't be followed with others")
        of = ("", *named)[-2:]
        (unwanted if one.strip().startswith("!") else wanted).append((of[0], of[1]))
    if not wanted:
        raise ValueError("orders, shop.*, or orders,customers,!shop.tmp_*")
    return FollowedNames(tuple(wanted), tuple(unwanted))


def name(text: str) -> str:
    """Parse the name of a table or a database."""
    if not NAME.fullmatch(text):
        raise ValueError(NAME_RULE)
    return text


def start(text: str) -> str:
    """Parse option ``startingPosition``."""
    found = "".join(text.split()).lower()
    if found not in ("snapshot", "latest") and not (found and is_gtids(found)):
        raise ValueError("snapshot, latest, or a GTID set as the server writes it")
    return found


def transactions(text: str) -> frozenset[str]:
    """Parse option ``skipTransactions``."""
    found = frozenset("".join(text.split()).lower().split(","))
    if not all(map(is_gtid, found)):
        raise ValueError("comma-separated GTIDs without ranges, as the error names them")
    return found


def followed(text: str) -> list[str]:
    """Parse option ``columns`` of a stream. Adds ``_op``, which marks deleted rows."""
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
    Option(
        "dbtable",
        "The target: `orders`, `shop.orders`, or a template whose columns name the table of each"
        " row: `{_table}`, `events_{at:yyyyMM}`. The table need not have these columns.",
        target,
        required=True,
    ),
    Option(
        "writeMode",
        "`append` inserts rows; `upsert` inserts or updates them by key; `update` only updates"
        " them. `increment` adds all other columns to those of the stored row; `delete` deletes the"
        " rows with these keys."
        " Default: `upsert` if a key is set, else `append`.",
        choice(*MODES),
    ),
    Option(
        "key",
        "Columns that identify a row: `order_id,line_no`. For upsert and increment they must be the"
        " primary key or a unique index.",
        columns,
    ),
    Option(
        "onDuplicate",
        "Append: a row of which a unique key exists: `fail` makes it a bad row, `ignore` skips it.",
        choice("fail", "ignore"),
        "fail",
    ),
    Option(
        "nulls",
        "Upsert: `write` stores a null, `keep` keeps the stored value. `keep` can't be combined"
        " with `opColumn` or `sequenceColumn`.",
        choice("write", "keep"),
        "write",
    ),
    Option(
        "opColumn",
        "A column, not stored, with the operation of each row: I, U, D; insert, update, delete;"
        " Debezium's c, u, d, r; `_change_type` of Spark and Delta.",
    ),
    Option(
        "rowColumn",
        "With a template in `dbtable`: a column that has each row as a JSON object, such as `_row`"
        " of a stream of several tables. No other column is stored. Default of `key`: the primary"
        " key of each table.",
    ),
    Option(
        "sequenceColumn",
        "Of the rows of a key in an epoch, deletes included, the one with the highest value wins."
        " Of equal values, and without the option, the last by (partition, row) wins. Not stored if"
        " the table lacks the column.",
    ),
    Option(
        "onBadRow",
        "For a bad row: `fail` stops the epoch, no row of it takes effect, and the error names the"
        " bad row. `deadLetter` writes the bad row to a table and applies the others.",
        choice("fail", "deadLetter"),
        "fail",
    ),
    Option("deadLetter", "The table for `onBadRow=deadLetter`, on the same server.", table_name),
    MAX_BAD_ROWS,
    Option(
        "replaceWhere",
        "A batch in mode overwrite replaces only the rows for which this condition holds. It must"
        " hold for all rows of the batch: `day >= '2026-01-01' AND day < '2026-02-01'`.",
        condition,
    ),
    Option("createTable", "Whether to create a missing target.", boolean, False),
    ADD_COLUMNS,
    Option(
        "ledgerSchema",
        "Database of the connector's own tables, on the same server. Default: the target's.",
        name,
    ),
    Option(
        "atomicity",
        "`epoch`: one transaction for an epoch. `chunk`: one for each chunk, for servers that"
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
        "The table or subquery to read: `orders`, `shop.orders`, or `(SELECT ...) AS o`.",
        lambda text: subquery(text) or table_name(text),
    ),
    Option("query", "A SELECT to read, instead of `dbtable`."),
    Option(
        "partitionColumn",
        "A column of numbers, dates, timestamps or texts whose ranges are the splits, with"
        " `lowerBound` and `upperBound`. Default: the first columns of the primary key that have"
        " such types, or bytes.",
    ),
    Option("lowerBound", "A value near the lowest one; lower values are read, too."),
    Option("upperBound", "A value near the highest one; higher values are read, too."),
    Option("numPartitions", "The maximum number of splits.", integer(1, 10_000), 4),
    Option(
        "sessionInitStatement",
        "A statement to run at the start of each session:"
        " `SET SESSION group_concat_max_len = 100000`.",
    ),
    Option(
        "consistency",
        "`splits`: each split sees one state of the server, and a log line reports splits that"
        " differ. `snapshot`: the read fails if they differ, or if the server can't verify it.",
        choice("splits", "snapshot"),
        "splits",
    ),
    Option(
        "zeroDates",
        "The date 0000-00-00 in a `DATE`, `DATETIME` or `TIMESTAMP`: `fail` stops the read, `null`"
        " reads it as null.",
        choice("fail", "null"),
        "fail",
    ),
    *TLS,
    *READS,
)
"""The options of `spark.read`."""

COLUMNS = Option(
    "columns",
    "Columns to follow: `id,name`; `_op` is always included. Default: all columns of the table,"
    " `_op`, `_gtid` and `_ts`.",
    followed,
)
FOLLOWING = (
    URL,
    Option(
        "dbtable",
        "The table to follow: `orders`, or `shop.orders`; or several, whose rows are then JSON:"
        " `orders,customers`, `shop.*,!shop.tmp_*`.",
        tables,
        required=True,
    ),
    Option(
        STARTS,
        "Where a new query begins: `snapshot`, with the existing rows; `latest`, with later"
        " changes; or after a GTID set, as the server writes it.",
        start,
        required=True,
    ),
    Option(
        "snapshotWhere",
        "A condition on the rows of one table's snapshot: `status = 'open' AND at >= '2026-01-01'`."
        " Later changes of all rows arrive. Only a new query reads the option.",
    ),
    Option("numPartitions", "The maximum number of splits of a snapshot.", integer(1, 10_000), 4),
    Option(
        "skipTransactions",
        "GTIDs of transactions to skip without their rows. The error names transactions that no"
        " stream can follow.",
        transactions,
    ),
    Option(
        "onSchemaChange",
        "After an `ALTER TABLE` that keeps all stored values: `stop` stops the query; `continue`"
        " reads on, and the statement is a row with `_op` = `s`. A dropped column is null from then"
        " on, a new one is left out. It needs `binlog_row_metadata=FULL`.",
        choice("stop", "continue"),
        "stop",
    ),
    Option(
        "onTruncate",
        "A `TRUNCATE` or `DROP` of a table: `stop` stops the query; `row` makes it a row with `_op`"
        " = `t`, by which a sink empties its target.",
        choice("stop", "row"),
        "stop",
    ),
    *TLS,
    *(COLUMNS if one.name == COLUMNS.name else one for one in FOLLOWS),
)
"""The options of `spark.readStream`."""
