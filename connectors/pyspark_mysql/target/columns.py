"""Which type of a query fits which type of a column, and what a new table gets."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

import pyarrow as pa
from pyarrow import types

from pyspark_mysql.server.literals import identifier
from sparkonce import checks
from sparkonce.errors import OptionError
from sparkonce.values import spark_types

DOUBLE_DIGITS, INT64_DIGITS = 15, 18
"""Decimal digits that are kept by either."""
INTEGERS = ("tinyint", "smallint", "mediumint", "int", "bigint")
_EXACT = (*INTEGERS, "decimal", "bit", "year")
TEXTS = ("tinytext", "text", "mediumtext", "longtext")
"""Whose room is counted in bytes."""
_TEXTS = ("char", "varchar", *TEXTS)
_BLOBS = ("binary", "varbinary", "tinyblob", "blob", "mediumblob", "longblob")

FITS: dict[str, tuple[str, ...]] = {
    "boolean": (*INTEGERS, "bit"),
    "tinyint": (*_EXACT, "float", "double"),
    "smallint": (*_EXACT, "float", "double"),
    "int": (*_EXACT, "double"),
    "bigint": _EXACT,
    "interval": ("bigint", "decimal"),
    "float": ("float", "double"),
    "double": ("double",),
    "decimal": ("decimal", *INTEGERS),
    "string": (*_TEXTS, "enum", "set", "json", "uuid", "inet4", "inet6"),
    "json": ("json", *_TEXTS),
    "binary": (*_BLOBS, "bit"),
    "date": ("date", "datetime"),
    "timestamp": ("datetime", "timestamp"),
    "timestamp_ntz": ("datetime",),
    "time": ("time",),
}
"""What no silent rounding or conversion comes between; whether a value fits the server checks."""

NEW_TYPES = {
    **{kind: kind.upper() for kind in FITS},
    "interval": "BIGINT",
    "string": "LONGTEXT",
    "binary": "LONGBLOB",
    "timestamp": "DATETIME(6)",
    "timestamp_ntz": "DATETIME(6)",
    "time": "TIME(6)",
}
"""The type of a new column; a decimal has its digits behind it."""

SUMS = {**dict.fromkeys(("tinyint", "smallint", "int"), "bigint"), "float": "double"}
"""What a new column of sums has room for: more than for what is added."""

UNFIT_KEYS = ("inet6", "set")
"""Texts of these have several spellings, and the server makes one of them."""

_SIMPLE = (*spark_types.SIMPLE, (types.is_time, "time"), (types.is_duration, "interval"))


@dataclass(frozen=True)
class TableColumn:
    """A column of the target, as the server describes it.

    Attributes:
        kind: its type without arguments, ``decimal``.
        sql_type: its type as declared, ``decimal(10,2) unsigned``.
        scale: digits behind the point, where it has such.
        generated: the server computes it.
        numbered: the server numbers rows in it (auto-increment).
        charset: the character set of its texts; empty where it has none.
        width: most bytes of a character in it.
        room: of a text, in characters; in bytes of bytes and bits, and where it is one of the TEXT
            types.
        of_period: it says when a row of a versioned table (MariaDB) began or ended to be.
        computed: the server may compute its value in a new or a changed row, where none is given.
    """

    name: str
    kind: str
    sql_type: str
    scale: int = 0
    generated: bool = False
    numbered: bool = False
    nullable: bool = True
    has_default: bool = False
    charset: str = ""
    width: int = 0
    room: int = 0
    of_period: bool = False
    computed: bool = False

    @property
    def declared(self) -> str:
        """All of it that says which values it holds as they are, in words of SQL."""
        charset = f" CHARACTER SET {self.charset}" if self.charset else ""
        numbered = " AUTO_INCREMENT" if self.numbered else ""
        return f"{self.sql_type}{charset}{numbered} {'NULL' if self.nullable else 'NOT NULL'}"


def named(columns: Iterable[TableColumn], names: Iterable[str]) -> dict[str, TableColumn]:
    """Those of a table's columns that have these names, in any case of letters, by the names."""
    by_name = {column.name.lower(): column for column in columns}
    return {name: by_name[name.lower()] for name in names if name.lower() in by_name}


def unfilled(columns: Iterable[TableColumn], names: Iterable[str]) -> list[TableColumn]:
    """Columns that must have a value in a new row, and get none by these names or by default."""
    given = {name.lower() for name in names}
    return [
        column
        for column in columns
        if not (column.nullable or column.has_default or column.generated or column.numbered)
        and column.kind != "enum"  # it takes its first member
        and column.name.lower() not in given
    ]


def kind_of(field: pa.Field) -> str:
    """Spark's name of a column's type; arrays, maps and structs are ``json``.

    Raises:
        OptionError: it has no documented form.
    """
    checks.require_texts([field], "MySQL")
    if types.is_decimal(field.type):
        return f"decimal({field.type.precision},{field.type.scale})"
    if types.is_nested(field.type):
        return f"json({inner})" if (inner := _finest(field.type)) else "json"
    if types.is_timestamp(field.type):
        return "timestamp" if field.type.tz else "timestamp_ntz"
    return next(name for accepts, name in _SIMPLE if accepts(field.type))


def _finest(kind: pa.DataType) -> str | None:
    """A type inside a nested one whose numbers have more digits than a double keeps."""
    if types.is_decimal(kind):
        whole = kind.scale == 0 and kind.precision <= INT64_DIGITS
        exact = whole or kind.precision <= DOUBLE_DIGITS
        return None if exact else f"decimal({kind.precision},{kind.scale})"
    # The keys of a map are texts.
    inner = (
        [kind.item_type]
        if types.is_map(kind)
        else [kind.field(i).type for i in range(kind.num_fields)]
    )
    return next(filter(None, map(_finest, inner)), None)


def misfit(kind: str, column: TableColumn) -> str | None:
    """Why values of this kind can't be written to a column, or None if they can."""
    family, _, arguments = kind.partition("(")
    if column.generated:
        return "the server computes that column itself"
    if family == "void":
        return None
    if column.kind not in FITS[family]:
        return f"{kind} goes into {', '.join(FITS[family])}"
    return _rounding(family, arguments.removesuffix(")"), column)


def _rounding(family: str, arguments: str, column: TableColumn) -> str | None:
    if column.kind == "json" and arguments:
        return f"MySQL's JSON keeps numbers as doubles, and {arguments} has more digits"
    if family in ("float", "double") and "(" in column.sql_type:
        return "the column would round"
    if family == "decimal" and int(arguments.partition(",")[2]) > column.scale:
        return f"the column would round to {column.scale} decimals"
    return None


def unaddable(kind: str, column: TableColumn) -> str | None:
    """Why an increment of this kind can't be added to a column that it fits, or None if it can."""
    if column.kind == "year":
        return "a year is no sum"
    if column.kind in ("float", "double") and kind not in ("float", "double"):
        return "a sum that is large enough would no longer grow: the column rounds it"
    return None


def definition(name: str, kind: str, *, in_key: bool, mariadb: bool) -> str:
    """A column of a new table, or of a temporary one.

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
