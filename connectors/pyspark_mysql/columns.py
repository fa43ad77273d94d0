"""Which type of a query fits which type of a column, and what a new table gets."""

from __future__ import annotations

from dataclasses import dataclass

import pyarrow as pa
from pyarrow import types

from pyspark_mysql.literals import identifier
from sparkonce import text
from sparkonce.errors import OptionError

DOUBLE_DIGITS, INT64_DIGITS = 15, 18
"""Decimal digits that are kept by either."""
_INTEGERS = ("tinyint", "smallint", "mediumint", "int", "bigint")
_EXACT = (*_INTEGERS, "decimal", "bit", "year")
_TEXTS = ("char", "varchar", "tinytext", "text", "mediumtext", "longtext")
_BLOBS = ("binary", "varbinary", "tinyblob", "blob", "mediumblob", "longblob")

FITS: dict[str, tuple[str, ...]] = {
    "boolean": (*_INTEGERS, "bit"),
    "tinyint": (*_EXACT, "float", "double"),
    "smallint": (*_EXACT, "float", "double"),
    "int": (*_EXACT, "double"),
    "bigint": _EXACT,
    "interval": ("bigint", "decimal"),
    "float": ("float", "double"),
    "double": ("double",),
    "decimal": ("decimal", *_INTEGERS),
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

_SIMPLE = (
    (types.is_boolean, "boolean"),
    (types.is_int8, "tinyint"),
    (types.is_int16, "smallint"),
    (types.is_int32, "int"),
    (types.is_int64, "bigint"),
    (types.is_float32, "float"),
    (types.is_float64, "double"),
    (types.is_string, "string"),
    (types.is_large_string, "string"),
    (types.is_binary, "binary"),
    (types.is_large_binary, "binary"),
    (types.is_date32, "date"),
    (types.is_time, "time"),
    (types.is_duration, "interval"),
    (types.is_null, "void"),
)


@dataclass(frozen=True)
class Column:
    """A column of the target, as the server describes it.

    Attributes:
        kind: its type without arguments, ``decimal``.
        shown: its type as declared, ``decimal(10,2) unsigned``.
        scale: digits behind the point, where it has such.
        generated: the server computes it.
        numbered: the server numbers rows in it (auto-increment).
        collation: by which its texts are compared; empty where it has none.
        room: of a text, in characters; in bytes of bytes and bits, and where it is one of the TEXT
            types.
    """

    name: str
    kind: str
    shown: str
    scale: int
    generated: bool = False
    numbered: bool = False
    nullable: bool = True
    has_default: bool = False
    collation: str = ""
    room: int = 0

    @property
    def charset(self) -> str:
        """The character set of its texts; empty where it has none."""
        return self.collation.partition("_")[0]

    @property
    def needed(self) -> bool:
        """Whether a new row must have a value for it. (An ENUM takes its first member.)"""
        given = self.has_default or self.generated or self.numbered or self.kind == "enum"
        return not self.nullable and not given


def kind_of(field: pa.Field) -> str:
    """Spark's name of a column's type; arrays, maps and structs are ``json``.

    Raises:
        OptionError: it has no documented form.
    """
    problem = text.check(field.type)
    if problem:
        raise OptionError(
            f"Column {field.name!r} can't be written: {problem}",
            why="its type has no documented form in MySQL",
            todo="cast it, for example to string, or drop it before the sink",
        )
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


def misfit(kind: str, column: Column) -> str | None:
    """Why values of this kind can't be written to a column, or None if they can."""
    family, _, arguments = kind.partition("(")
    if column.generated:
        return "the server computes that column itself"
    if family == "void":
        return None
    if column.kind not in FITS[family]:
        fits = ", ".join(FITS[family])
        return f"{kind} goes into {fits}"
    return _rounding(family, arguments.removesuffix(")"), column)


def _rounding(family: str, arguments: str, column: Column) -> str | None:
    if column.kind == "json" and arguments:
        return f"MySQL's JSON keeps numbers as doubles, and {arguments} has more digits"
    if family in ("float", "double") and "(" in column.shown:
        return "the column would round"
    if family == "decimal" and int(arguments.partition(",")[2]) > column.scale:
        return f"the column would round to {column.scale} decimals"
    return None


def unaddable(kind: str, column: Column) -> str | None:
    """Why an increment of this kind can't be added to a column that it fits, or None if it can."""
    if column.kind == "year":
        return "a year is no sum"
    if column.kind in ("float", "double") and kind not in ("float", "double"):
        return "a sum that is large enough would no longer grow: the column rounds it"
    return None


def unfit_key(kind: str, column: Column) -> str | None:
    """Why stored rows can't be looked up in a column that values of this kind fit; None if so."""
    if kind == "string" and column.kind in ("inet6", "set"):
        return "its values have several spellings, and the server makes one of them"
    return None


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
