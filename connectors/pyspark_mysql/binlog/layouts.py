"""Layouts of tables, and whether an ALTER TABLE keeps every value that a table of a layout holds.

Such a statement needs no rows in the log. The log describes the former types.

See https://dev.mysql.com/doc/refman/8.4/en/alter-table.html and
https://mariadb.com/docs/server/reference/sql-statements/data-definition/alter/alter-table.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple, TypeAlias

from pyspark_mysql.binlog import tables
from pyspark_mysql.binlog.names import TableName
from pyspark_mysql.binlog.tables import BinlogColumn, LoggedTable

STRICT, PADS, KEEPS_ZEROS = 1 << 21 | 1 << 22, 1 << 31, 1 << 19
"""Bits of ``sql_mode``: STRICT_TRANS_TABLES and STRICT_ALL_TABLES. With one of them the server
rejects an ALTER that would cut a text, replace a character or turn a null into another value. And
PAD_CHAR_TO_FULL_LENGTH, NO_AUTO_VALUE_ON_ZERO."""

BITS_OF = {tables.TINY: 8, tables.SHORT: 16, tables.INT24: 24, tables.LONG: 32, tables.LONGLONG: 64}
DIGITS_OF = {8: 3, 16: 5, 24: 8, 32: 10, 64: 20}
"""The decimal digits that hold every integer of a number of bits."""

INTEGERS = {
    **dict.fromkeys(("TINYINT", "INT1", "BOOL", "BOOLEAN"), 8),
    **dict.fromkeys(("SMALLINT", "INT2"), 16),
    **dict.fromkeys(("MEDIUMINT", "INT3", "MIDDLEINT"), 24),
    **dict.fromkeys(("INT", "INTEGER", "INT4"), 32),
    **dict.fromkeys(("BIGINT", "INT8"), 64),
}
DECIMALS = ("DECIMAL", "DEC", "NUMERIC", "FIXED")
MOMENTS = ("DATETIME", "TIMESTAMP", "TIME")
SIZES = ("TINY", "", "MEDIUM", "LONG")  # a length takes 1 to 4 bytes
SIZED = {
    f"{size}{kind}": (kind, at) for kind in ("TEXT", "BLOB") for at, size in enumerate(SIZES, 1)
}
OTHERS = (
    *("GEOMETRY", "POINT", "LINESTRING", "POLYGON", "MULTIPOINT", "MULTILINESTRING"),
    *("MULTIPOLYGON", "GEOMETRYCOLLECTION", "UUID", "INET4", "INET6", "VECTOR"),
)
"""Types that are not compared."""

CHOICES = ("ENUM", "SET")
OF_TEXT = ("CHAR", "VARCHAR", "TEXT", *CHOICES)

UNKNOWN_COLUMNS = "the log that the server keeps does not describe the former columns of the table"

WIDTHS = {"utf8mb4": 4, "utf16": 4, "utf16le": 4, "utf32": 4, "gb18030": 4}
WIDTHS |= {"utf8": 3, "utf8mb3": 3, "ujis": 3, "eucjpms": 3}
WIDTHS |= dict.fromkeys(("ucs2", "gbk", "gb2312", "big5", "sjis", "cp932", "euckr"), 2)
"""The most bytes of a character, where that is more than one."""


class ColumnForm(NamedTuple):
    """The type of a column, as far as it decides which values it holds.

    Attributes:
        family: its name without size, ``INT``.
        size: bits of an integer, digits of a decimal or of a fraction of a second, characters of a
            text, bytes of the length of a TEXT or BLOB.
        scale: digits after the point; of a logged TEXT, the most bytes of a character.
        words: the members of an ENUM or SET.
    """

    family: str
    size: int = 0
    scale: int = 0
    unsigned: bool = False
    words: tuple[str, ...] = ()

    def holds(self, former: ColumnForm, *, strict: bool) -> bool:
        """Whether it holds every value of the former type unchanged."""
        if self.family in OF_TEXT and not strict:
            return False  # the statement may also change the character set
        if self.family != former.family:
            return self._holds_other(former)
        if self.family in CHOICES:
            return self.words[: len(former.words)] == former.words
        if self.family in ("BINARY", "BIT"):  # a longer one adds zeros
            return self.size == former.size
        if self.family == "TEXT":  # other character sets than these may need more bytes
            return self.size > former.size or (self.size == former.size and former.scale == 4)
        whole, before = self.size - self.scale, former.size - former.scale
        return whole >= before and self.scale >= former.scale and self._holds_sign(former)

    def _holds_sign(self, former: ColumnForm) -> bool:
        if self.unsigned == former.unsigned:
            return True
        is_wider = self.family != "INT" or self.size > former.size
        return former.unsigned and is_wider

    def _holds_other(self, former: ColumnForm) -> bool:
        both, longest = (former.family, self.family), (1 << 8 * self.size) - 1
        if both == ("INT", "DECIMAL"):
            signed = former.unsigned or not self.unsigned
            return signed and self.size - self.scale >= DIGITS_OF[former.size]
        if both == ("CHAR", "VARCHAR"):
            return self.size >= former.size
        if both in (("CHAR", "TEXT"), ("VARCHAR", "TEXT")):
            return longest >= 4 * former.size
        return both == ("VARBINARY", "BLOB") and longest >= former.size


class ColumnState(NamedTuple):
    """A column of a table before a statement."""

    form: ColumnForm | None  # None for a type that is not compared
    nullable: bool = True
    in_key: bool = False


class ColumnClause(NamedTuple):
    """A clause of ALTER TABLE that concerns a column; an added one has no former name.

    Attributes:
        former: its name before.
        name: its name since; empty if the clause drops it.
        form: its declared type; None if the clause keeps it, or if the type is not compared.
        nullable: whether it may be null since; None if the clause keeps that.
        numbered: whether the clause declares AUTO_INCREMENT: the server numbers zeros anew, unless
            the column had that before, which the log does not show.
        retyped: whether the clause declares a type.
        conditional: whether it has IF EXISTS, or IF NOT EXISTS where it adds a column (MariaDB).
    """

    former: str = ""
    name: str = ""
    form: ColumnForm | None = None
    nullable: bool | None = None
    numbered: bool = False
    retyped: bool = False
    conditional: bool = False

    @property
    def needs_layout(self) -> bool:
        """Whether the former column decides if the clause keeps all values."""
        return bool(self.former) and (self.retyped or not self.name)


class Emptying(NamedTuple):
    """TRUNCATE or DROP of followed tables."""

    names: tuple[TableName, ...]


class Creation(NamedTuple):
    """CREATE TABLE of a followed table, which is empty then."""

    name: TableName


class Alteration(NamedTuple):
    """ALTER TABLE of a followed table, by clauses that concern columns."""

    name: TableName
    clauses: tuple[ColumnClause, ...]
    strict: bool  # whether the server rejects it where a value would not fit

    @property
    def reuses_names(self) -> bool:
        """Whether a column gets the former name of another one."""
        former = {one.former for one in self.clauses} - {""}
        return any(one.name != one.former and one.name in former for one in self.clauses)


KnownEffect: TypeAlias = Emptying | Creation | Alteration


@dataclass
class TableLayout:
    """The columns of a table, as the log describes them before a statement.

    Attributes:
        columns: by their names in lower case.
        is_empty: whether the table has no rows: then no statement changes any.
    """

    columns: Mapping[str, ColumnState] = field(default_factory=dict)
    is_empty: bool = False

    @classmethod
    def of(cls, logged: LoggedTable, names: Mapping[int, str]) -> TableLayout:
        """The layout that the log describes; `names` are those of character sets by collation."""
        return cls(
            {
                one.name.lower(): ColumnState(
                    logged_form(one, names.get(one.collation, "")),
                    one.nullable,
                    at in logged.key,
                )
                for at, one in enumerate(logged.columns)
            }
        )

    def lacks(self, clauses: Sequence[ColumnClause]) -> bool:
        """Whether it does not have the former columns of these clauses."""
        former = (one.former for one in clauses if not one.conditional)
        return not self.is_empty and any(one and one not in self.columns for one in former)

    def refusal(self, clauses: Sequence[ColumnClause], *, strict: bool) -> str:
        """Why these clauses may change rows or their identity; empty if they don't."""
        if self.is_empty:
            return ""
        if self.lacks(clauses):
            return UNKNOWN_COLUMNS
        changing = (one for one in self._effective(clauses) if one.former)
        reasons = (_refusal(one, self.columns[one.former], strict=strict) for one in changing)
        return next(filter(None, reasons), "")

    def after(self, clauses: Sequence[ColumnClause]) -> TableLayout:
        """The layout since a statement with these clauses, which all name the former columns."""
        clauses = self._effective(clauses)
        gone = {one.former for one in clauses}
        columns = {name: one for name, one in self.columns.items() if name not in gone}
        for one in clauses:
            if one.name:
                before = self.columns.get(one.former, ColumnState(None))
                form = one.form if one.retyped else before.form
                nullable = before.nullable if one.nullable is None else one.nullable
                columns[one.name] = ColumnState(form, nullable, before.in_key)
        return TableLayout(columns, self.is_empty)

    def _effective(self, clauses: Sequence[ColumnClause]) -> list[ColumnClause]:
        """The clauses without those that find, or don't find, their column."""
        known = self.columns
        return [
            one
            for one in clauses
            if not one.conditional or (one.former in known if one.former else one.name not in known)
        ]


def _refusal(clause: ColumnClause, column: ColumnState, *, strict: bool) -> str:
    """Why a clause may change values of a column, or the key; empty if it doesn't."""
    if not clause.name:
        return f"column {clause.former} is part of the primary key" if column.in_key else ""
    is_moment = clause.form is not None and clause.form.family == "TIMESTAMP"
    if clause.nullable is False and column.nullable and (is_moment or not strict):
        return f"nulls of column {clause.former} may get another value"
    if not clause.retyped:
        return ""
    new, old = clause.form, column.form
    if new is None or old is None or not new.holds(old, strict=strict):
        return f"the new type of column {clause.former} may not hold every former value"
    return ""


def logged_form(column: BinlogColumn, charset: str) -> ColumnForm | None:
    """The type of a column, as the log describes it; None for a type that is not compared."""
    code, meta, unsigned = column.type.code, column.type.meta, bool(column.unsigned)
    if code in BITS_OF:
        return ColumnForm("INT", BITS_OF[code], unsigned=unsigned)
    if code == tables.BIT:
        return ColumnForm("BIT", (meta & 255) + 8 * (meta >> 8))
    if code == tables.NEWDECIMAL:
        return ColumnForm("DECIMAL", meta & 255, meta >> 8, unsigned)
    if code in FAMILIES:
        family = FAMILIES[code]
        return ColumnForm(family, meta if family in MOMENTS else 0)
    return _logged_text(code, meta, charset, column.words)


def _logged_text(
    code: int, meta: int, charset: str, words: Sequence[bytes] | None
) -> ColumnForm | None:
    is_text = charset not in ("", "binary")
    if code in CHOICES_OF:
        # Members in ASCII, which every character set of a table writes in the same way.
        is_known = words is not None and is_text and all(map(bytes.isascii, words))
        texts = tuple(one.decode() for one in words or ()) if is_known else ()
        return ColumnForm(CHOICES_OF[code], words=texts) if is_known else None
    if code == tables.BLOB:
        width = WIDTHS.get(charset, 1)
        return ColumnForm("TEXT", meta, width) if is_text else ColumnForm("BLOB", meta)
    if code in (tables.VARCHAR, tables.STRING):
        family = "VAR" if code == tables.VARCHAR else ""
        size = meta // WIDTHS.get(charset, 1)
        return ColumnForm(f"{family}{'CHAR' if is_text else 'BINARY'}", size)
    return None


FAMILIES = {tables.DATE: "DATE", tables.NEWDATE: "DATE", tables.YEAR: "YEAR", tables.JSON: "JSON"}
FAMILIES |= {tables.FLOAT: "FLOAT", tables.DOUBLE: "DOUBLE", tables.TIME2: "TIME"}
FAMILIES |= {tables.DATETIME2: "DATETIME", tables.TIMESTAMP2: "TIMESTAMP"}
CHOICES_OF = {tables.ENUM: "ENUM", tables.SET: "SET"}
