"""Parses the column clauses of ALTER TABLE, in the forms that are proven to keep stored values."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import NamedTuple

from pyspark_mysql.binlog.layouts import (
    CHOICES,
    DECIMALS,
    INTEGERS,
    MOMENTS,
    OTHERS,
    SIZED,
    ColumnClause,
    ColumnForm,
)
from pyspark_mysql.binlog.tokens import Cursor, Token, split

NO_COLUMNS = (
    *("INDEX", "KEY", "CONSTRAINT", "UNIQUE", "FULLTEXT", "SPATIAL", "PRIMARY", "FOREIGN", "CHECK"),
    *("COLUMN", "PARTITION", "IF", "PERIOD", "SYSTEM"),
)
"""Words that begin other clauses, or that both servers reserve."""

NOW = ("CURRENT_TIMESTAMP", "NOW", "LOCALTIME", "LOCALTIMESTAMP")


class Unproven(Exception):
    """The text has a form that may change rows."""


def column_clauses(clause: Sequence[Token], *, mariadb: bool) -> list[ColumnClause]:
    """The columns that a clause concerns.

    Raises:
        Unproven: the clause is of another kind, or computes values.
    """
    found = Cursor(clause)
    made = [*_parsed(found, mariadb=mariadb)]
    if not found.ended:
        raise Unproven
    return made


def _parsed(found: Cursor, *, mariadb: bool) -> Iterator[ColumnClause]:
    verb = found.word("ADD", "DROP", "RENAME", "CHANGE", "MODIFY", "ALTER")
    is_column = bool(found.word("COLUMN"))
    if verb == "RENAME" and not is_column:
        raise Unproven
    conditional = found.words("IF NOT EXISTS" if verb == "ADD" else "IF EXISTS")
    if verb == "ADD":
        columns = found.group()
        for each in map(Cursor, split(columns)) if columns is not None else (found,):
            yield _added(each, mariadb=mariadb)._replace(conditional=conditional)
    elif verb == "DROP":
        yield ColumnClause(former=_name(found), conditional=conditional)
        found.word("RESTRICT", "CASCADE")
    elif verb == "RENAME":
        former = _name(found)
        if not found.word("TO"):
            raise Unproven
        yield ColumnClause(former, _name(found), conditional=conditional)
    elif verb in ("CHANGE", "MODIFY"):
        former = _name(found)
        name = _name(found) if verb == "CHANGE" else former
        kind = _definition(found, mariadb=mariadb)
        declared = kind.form, kind.nullable, kind.numbered
        yield ColumnClause(former, name, *declared, retyped=True, conditional=conditional)
    elif verb == "ALTER":
        _name(found)
        _alter_default(found)
    else:
        raise Unproven


def _name(found: Cursor) -> str:
    name = "" if found.peek(*NO_COLUMNS) else found.name()
    if not name:
        raise Unproven
    return name.lower()


def _alter_default(found: Cursor) -> None:
    """SET DEFAULT and the like, which concern later rows only."""
    if found.words("DROP DEFAULT") or found.words("SET VISIBLE") or found.words("SET INVISIBLE"):
        return
    if not found.words("SET DEFAULT"):
        raise Unproven
    if found.group() is None:
        _default(found)


def _added(found: Cursor, *, mariadb: bool) -> ColumnClause:
    """An added column: its values in stored rows must follow from the statement."""
    name = _name(found)
    kind = _definition(found, mariadb=mariadb)
    if not found.ended or kind.numbered or kind.computed:
        raise Unproven
    return ColumnClause("", name, kind.form, kind.nullable, retyped=True)


class ColumnDefinition(NamedTuple):
    """A declared column.

    Attributes:
        form: its type; None for one that is not compared.
        nullable: whether it may be null.
        numbered: whether the server numbers rows in it.
        computed: whether its default depends on the time, or is an expression.
    """

    form: ColumnForm | None
    nullable: bool
    numbered: bool
    computed: bool


def _definition(found: Cursor, *, mariadb: bool) -> ColumnDefinition:
    form = _form(found, mariadb=mariadb)
    # A TIMESTAMP may be NOT NULL without saying so, and then get the time of the statement
    # (explicit_defaults_for_timestamp).
    is_moment = form is not None and form.family == "TIMESTAMP"
    nullable, numbered, default = not is_moment, False, False
    implied = is_moment  # whether the time may be its default
    while not found.ended:
        if found.words("NOT NULL"):
            nullable = False
        elif found.word("NULL"):
            nullable, implied = True, False
        elif found.word("DEFAULT"):
            default, implied = found.group() is not None or _default(found), False
        elif found.word("AUTO_INCREMENT"):
            numbered = True
        elif not _is_harmless(found):
            raise Unproven
    return ColumnDefinition(form, nullable, numbered, default or implied)


def _default(found: Cursor) -> bool:
    """Take a default; return whether it depends on the time."""
    if found.word(*NOW):
        found.group()
        return True
    if found.string() or found.word("NULL", "TRUE", "FALSE"):
        return False
    found.sign("-") or found.sign("+")
    if not found.number():
        raise Unproven
    if found.sign("."):
        found.number()
    return False


def _is_harmless(found: Cursor) -> bool:
    """Take an attribute that changes no stored value."""
    if found.words("CHARACTER SET") or found.word("CHARSET"):
        return _is_charset(found.name())
    if found.words("ON UPDATE"):
        is_time = bool(found.word(*NOW))
        found.group()
        return is_time
    if found.word("UNIQUE"):
        found.word("KEY")
        return True
    return bool(
        found.word("VISIBLE", "INVISIBLE", "FIRST")
        or (found.word("COLUMN_FORMAT", "STORAGE", "AFTER") and found.name())
        or (found.word("COLLATE") and _is_charset(found.name()))
        or (found.word("COMMENT") and found.string())
        or (found.word("CHECK") and found.group() is not None)
    )


def _is_charset(name: str) -> bool:
    """Whether texts stay texts, of no more bytes than in utf8mb4."""
    return bool(name) and not name.lower().startswith(("binary", "utf16", "utf32", "ucs2"))


def _form(found: Cursor, *, mariadb: bool) -> ColumnForm | None:
    """The declared type; None for one that is not compared."""
    word = found.word(*FORMS, *CHOICES, *OTHERS)
    if not word:
        raise Unproven
    if word in CHOICES:
        return _choice(word, found.group())
    if word == "DOUBLE":
        found.word("PRECISION")
    if word == "JSON" and mariadb:
        word = "LONGTEXT"
    numbers, unsigned = _numbers(found.group()), _is_unsigned(found)
    return FORMS[word](numbers, unsigned) if word in FORMS else None


def _integer(bits: int) -> Callable[[list[int], bool], ColumnForm | None]:
    return lambda _, unsigned: ColumnForm("INT", bits, unsigned=unsigned)


def _decimal(numbers: list[int], unsigned: bool) -> ColumnForm | None:
    size, scale = [*numbers, *(10, 0)[len(numbers) :]]
    return ColumnForm("DECIMAL", size, scale, unsigned)


def _sized(family: str, usual: int) -> Callable[[list[int], bool], ColumnForm | None]:
    return lambda numbers, _: ColumnForm(family, (*numbers, usual)[0])


def _fixed(form: ColumnForm) -> Callable[[list[int], bool], ColumnForm | None]:
    """A type that with numbers or a sign holds other values, which are not compared."""
    return lambda numbers, unsigned: None if numbers or unsigned else form


FORMS: dict[str, Callable[[list[int], bool], ColumnForm | None]] = {
    **{name: _integer(bits) for name, bits in INTEGERS.items()},
    **dict.fromkeys(DECIMALS, _decimal),
    **{name: _fixed(ColumnForm(*one)) for name, one in SIZED.items()},
    **{name: _sized(name, 0) for name in MOMENTS},
    **{name: _sized(name, 1) for name in ("CHAR", "VARCHAR", "BINARY", "VARBINARY", "BIT")},
    **{name: _fixed(ColumnForm(name)) for name in ("FLOAT", "DOUBLE", "DATE", "JSON")},
    "CHARACTER": _sized("CHAR", 1),
    "YEAR": lambda *_: ColumnForm("YEAR"),
}
"""The types that a layout compares: by their numbers in brackets, and whether they have no sign."""


def _choice(family: str, words: Sequence[Token] | None) -> ColumnForm | None:
    """An ENUM or SET; None if the text of a member is uncertain."""
    members = [*split(words or ())]
    if any([one.kind for one in each] != ["'"] or "\\" in each[0].text for each in members):
        return None
    texts = (one.text[1:-1].replace("''", "'") for (one,) in members)
    return ColumnForm(family, words=tuple(texts))


def _numbers(group: Sequence[Token] | None) -> list[int]:
    parts = [*split(group)] if group is not None else []
    if not all(len(one) == 1 and one[0].text.isdecimal() for one in parts):
        raise Unproven
    return [int(one[0].text) for one in parts]


def _is_unsigned(found: Cursor) -> bool:
    unsigned = False
    while word := found.word("UNSIGNED", "SIGNED", "ZEROFILL"):
        unsigned = unsigned or word != "SIGNED"
    return unsigned
