"""Which types of a query fit which types of a column, and the types of a new table."""

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
"""Decimal digits that a double and a 64-bit integer keep."""
INTEGERS = ("tinyint", "smallint", "mediumint", "int", "bigint")
_EXACT = (*INTEGERS, "decimal", "bit", "year")
TEXTS = ("tinytext", "text", "mediumtext", "longtext")
"""Types whose maximum length counts bytes."""
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
    "decimal": ("decimal", *INTEGERS, "bit"),
    "string": (*_TEXTS, "enum", "set", "json", "uuid", "inet4", "inet6", "time", "decimal"),
    "json": ("json", *_TEXTS),
    "binary": (*_BLOBS, "bit", "vector"),
    "date": ("date", "datetime"),
    "timestamp": ("datetime", "timestamp"),
    "timestamp_ntz": ("datetime",),
    "time": ("time",),
}
"""Pairs without silent rounding or conversion; the server checks whether each value fits."""

NEW_TYPES = {
    **{kind: kind.upper() for kind in FITS},
    "interval": "BIGINT",
    "string": "LONGTEXT",
    "binary": "LONGBLOB",
    "timestamp": "DATETIME(6)",
    "timestamp_ntz": "DATETIME(6)",
    "time": "TIME(6)",
}
"""The type of a new column; digits follow a decimal."""

SUMS = {**dict.fromkeys(("tinyint", "smallint", "int"), "bigint"), "float": "double"}
"""The types of new columns for sums: larger than the types of the added values."""

UNFIT_KEYS = ("inet6", "set", "time", "decimal")
"""Types whose texts have several spellings, of which the server stores one."""

_SIMPLE = (*spark_types.SIMPLE, (types.is_time, "time"), (types.is_duration, "interval"))


@dataclass(frozen=True)
class TableColumn:
    """A column of the target, as the server describes it.

    Attributes:
        kind: its type without arguments, ``decimal``.
        sql_type: its type as declared, ``decimal(10,2) unsigned``.
        scale: digits after the point, if any.
        generated: the server computes it.
        numbered: the server numbers rows in it (auto-increment).
        charset: the character set of its texts; empty if it has none.
        width: maximum bytes of a character in it.
        room: maximum length: in characters for a text; in bytes for bytes, bits and the TEXT
            types.
        of_period: it has the begin or the end of a row's period in a versioned table (MariaDB).
        computed: the server may compute its value in a new or a changed row without a value for it.
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
        """The part of its definition, in SQL, that decides which values it stores unchanged."""
        charset = f" CHARACTER SET {self.charset}" if self.charset else ""
        numbered = " AUTO_INCREMENT" if self.numbered else ""
        return f"{self.sql_type}{charset}{numbered} {'NULL' if self.nullable else 'NOT NULL'}"


def named(columns: Iterable[TableColumn], names: Iterable[str]) -> dict[str, TableColumn]:
    """The columns of a table with these names, whatever their case, by the given names."""
    by_name = {column.name.lower(): column for column in columns}
    return {name: by_name[name.lower()] for name in names if name.lower() in by_name}


def unfilled(columns: Iterable[TableColumn], names: Iterable[str]) -> list[TableColumn]:
    """Columns that need a value in a new row, and have neither one of these names nor a default."""
    given = {name.lower() for name in names}
    return [
        column
        for column in columns
        if not (column.nullable or column.has_default or column.generated or column.numbered)
        and column.kind != "enum"  # its default is its first member
        and column.name.lower() not in given
    ]


def kind_of(field: pa.Field) -> str:
    """Spark's name of a column's type; arrays, maps and structs are ``json``.

    Raises:
        OptionError: the type has no documented form.
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
    """An inner type of a nested one whose numbers have more digits than a double keeps."""
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
        return f"{kind} fits only {', '.join(FITS[family])}"
    return _rounding(family, arguments.removesuffix(")"), column)


def _rounding(family: str, arguments: str, column: TableColumn) -> str | None:
    if column.kind == "json" and arguments:
        return f"MySQL's JSON stores numbers as doubles, and {arguments} has more digits"
    if family in ("float", "double") and "(" in column.sql_type:
        return "the column would round values"
    if family == "decimal" and int(arguments.partition(",")[2]) > column.scale:
        return f"the column would round to {column.scale} decimals"
    return None


def unaddable(kind: str, column: TableColumn) -> str | None:
    """Why an increment of this kind can't be added to a column that it fits, or None if it can."""
    if column.kind == "year":
        return "a YEAR can't hold a sum"
    if column.kind in ("float", "double") and kind not in ("float", "double"):
        return "the column rounds, so a large sum would no longer grow"
    return None


def definition(name: str, kind: str, *, in_key: bool, mariadb: bool) -> str:
    """A column of a new table, or of a temporary one.

    Strings of a key are compared byte by byte, as Spark compares them.

    Raises:
        OptionError: MySQL has no column type for it.
    """
    family = kind.partition("(")[0]
    if family == "void" or (in_key and family == "json"):
        raise OptionError(
            f"The sink can't create column {name!r} of type {kind}",
            why=f"MySQL has no type of a {'key ' if in_key else ''}column for it",
            todo="cast the column, or create it by hand",
        )
    made = kind.upper() if family == "decimal" else NEW_TYPES[family]
    if in_key and family == "string":
        collation = "utf8mb4_nopad_bin" if mariadb else "utf8mb4_0900_bin"
        made = f"VARCHAR(255) CHARACTER SET utf8mb4 COLLATE {collation}"
    elif in_key and family == "binary":
        made = "VARBINARY(255)"
    elif family == "json" and kind != family and not mariadb:
        made = "LONGTEXT CHARACTER SET utf8mb4"  # which keeps all digits of numbers
    elif family == "string":
        made += " CHARACTER SET utf8mb4"
    return f"{identifier(name)} {made} {'NOT NULL' if in_key else 'NULL'}"
