"""The table that option ``createTable`` makes, and columns of temporary ones."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pyspark_mysql.server.literals import NAME, NAME_RULE, identifier
from sparkonce.change import Increment
from sparkonce.errors import OptionError

if TYPE_CHECKING:
    from pyspark_mysql.write.plan import TableRows

NEW_TYPES = {
    "boolean": "BOOLEAN",
    "tinyint": "TINYINT",
    "smallint": "SMALLINT",
    "int": "INT",
    "bigint": "BIGINT",
    "interval": "BIGINT",
    "float": "FLOAT",
    "double": "DOUBLE",
    "string": "LONGTEXT",
    "json": "JSON",
    "binary": "LONGBLOB",
    "date": "DATE",
    "timestamp": "DATETIME(6)",
    "timestamp_ntz": "DATETIME(6)",
    "time": "TIME(6)",
}

SUMS = {**dict.fromkeys(("tinyint", "smallint", "int"), "bigint"), "float": "double"}


def target_ddl(detail: TableRows, *, mariadb: bool) -> str:
    """The statement that makes a target from the schema of a query; the key is its primary key.

    Raises:
        OptionError: a name or a type can't be had.
    """
    for name in detail.columns:
        _require_name(name)
    key, kinds = detail.key, dict(detail.kinds)
    if isinstance(detail.change, Increment):  # a sum needs more room than what is added
        kinds |= {name: SUMS.get(kinds[name], kinds[name]) for name in detail.change.added}
    columns = [
        definition(name, kinds[name], in_key=name in key, mariadb=mariadb)
        for name in detail.columns
    ]
    if key:
        columns.append(f"PRIMARY KEY ({', '.join(map(identifier, key))})")
    return f"CREATE TABLE {identifier(*detail.table)} ({', '.join(columns)})" + " ENGINE=InnoDB"


def _require_name(name: str) -> None:
    if not NAME.fullmatch(name):
        raise OptionError(
            f"Option createTable can't make a column of the name {name!r}",
            why=f"the servers take {NAME_RULE}",
            todo="rename it before the sink",
        )


def definition(name: str, kind: str, *, in_key: bool, mariadb: bool) -> str:
    """A column of a new table.

    Strings of a key are compared byte by byte, as Spark compares them.

    Raises:
        OptionError: no column type stands for it.
    """
    family = kind.partition("(")[0]
    if family == "void" or (in_key and family == "json"):
        raise OptionError(
            f"Option createTable can't make column {name!r} of type {kind}",
            why="no column type of MySQL stands for it there",
            todo="cast the column, or create the table by hand",
        )
    made = kind.upper() if family == "decimal" else NEW_TYPES[family]
    if in_key and family == "string":
        collation = "utf8mb4_nopad_bin" if mariadb else "utf8mb4_0900_bin"
        made = f"VARCHAR(255) CHARACTER SET utf8mb4 COLLATE {collation}"
    elif in_key and family == "binary":
        made = "VARBINARY(255)"
    elif family == "json" and kind != family and not mariadb:
        made = "LONGTEXT CHARACTER SET utf8mb4"  # whose numbers are no doubles
    elif family == "string":
        made += " CHARACTER SET utf8mb4"
    return f"{identifier(name)} {made} {'NOT NULL' if in_key else 'NULL'}"
