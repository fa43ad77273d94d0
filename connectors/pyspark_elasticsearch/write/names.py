"""The index of a row by option ``index``, a template: ``events-{country}-{at:yyyy.MM.dd}``."""

from __future__ import annotations

import re
import string
from collections.abc import Sequence
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
from pyarrow import types

from sparkonce.checks import column
from sparkonce.errors import BadRow, OptionError
from sparkonce.values.rows import shown
from sparkonce.values.spark_types import spark_type
from sparkonce.values.text import to_text

FORBIDDEN = r'[\\/*?"<>| ,#:\x00-\x1f]|^[-_+]|^\.{0,2}$'
"""What a name has nowhere, how it does not begin, and what it is not; nor has it capitals."""

LONGEST = 255
"""Bytes of a name."""

_LETTERS = {"yyyy": "%Y", "MM": "%m", "dd": "%d", "HH": "%H"}
_DATE = re.compile(r"(?:yyyy|MM|dd|HH|[._-])+")

Part = str | tuple[str, str]
"""A literal text, or a column and the form of its date (empty for others)."""


def index_name(text: str) -> str:
    """Read option ``index``: an index, an alias, or a template.

    Raises:
        ValueError: it is none.
    """
    plain = re.sub(r"\{[^{}]*\}", "x", text)
    if "{" in plain or "}" in plain:
        raise ValueError("like events-{country}-{at:yyyy.MM.dd}, each brace with its other one")
    if len(text) > LONGEST or plain != plain.lower() or re.search(FORBIDDEN, plain):
        raise ValueError(
            'one index or alias, in lower case, without spaces and any of \\ / * ? " < > | , # :,'
            " and not beginning with - _ +; or a template of such names"
        )
    return text


def plain_name(text: str) -> str:
    """Read the name of an index.

    Raises:
        ValueError: it is none.
    """
    if "{" in text:
        raise ValueError("the name of one index")
    return index_name(text)


def parse(text: str, schema: pa.Schema) -> tuple[Part, ...]:
    """The parts of a template; none if it is a plain name.

    Raises:
        OptionError: it names a column that is not there or not fit, or has a wrong form.
    """
    if "{" not in text:
        return ()
    parts: list[Part] = []
    for literal, name, form, conversion in string.Formatter().parse(text):
        if literal:
            parts.append(literal)
        if name is not None:
            found = column(f"index={text!r}", name, schema)
            _require_form(text, schema.field(found), form or "", conversion)
            parts.append((found, form or ""))
    return tuple(parts)


def pattern(parts: Sequence[Part]) -> str:
    """All names that a template makes, with ``*`` for each column."""
    return "".join(part if isinstance(part, str) else "*" for part in parts)


def texts(parts: Sequence[Part], rows: pa.RecordBatch, reserved: Sequence[str] = ()) -> Any:
    """The index of each row.

    Raises:
        BadRow: a column is null, or makes a name that is none, or is not for rows.
    """
    pieces = [_piece(part, rows) for part in parts]
    made = pc.binary_join_element_wise(*pieces, pa.scalar(""))
    if made.null_count:
        raise _bad(rows, pc.index(made.is_null(), True).as_py(), "a column of it is null")
    too_long = pc.greater(pc.binary_length(made), LONGEST)
    capitals = pc.not_equal(made, pc.utf8_lower(made))
    wrong = pc.or_(pc.or_(pc.match_substring_regex(made, FORBIDDEN), capitals), too_long)
    if pc.any(wrong).as_py():
        row = pc.index(wrong, True).as_py()
        raise _bad(rows, row, f"{made[row].as_py()!r} is no name of an index")
    taken = pc.is_in(made, value_set=pa.array(reserved, pa.string()))
    if pc.any(taken).as_py():
        row = pc.index(taken, True).as_py()
        raise _bad(rows, row, f"{made[row].as_py()!r} is not for rows but for this connector")
    return made


def _piece(part: Part, rows: pa.RecordBatch) -> Any:
    if isinstance(part, str):
        return pa.scalar(part)
    name, form = part
    column = rows.column(name)
    if not form:
        return to_text(column).cast(pa.string())
    years = pc.year(column)
    wrong = pc.fill_null(pc.or_(pc.less(years, 1), pc.greater(years, 9999)), False)
    if pc.any(wrong).as_py():
        row = pc.index(wrong, True).as_py()
        raise _bad(rows, row, f"column {name!r} lies outside the years 0001 to 9999")
    if types.is_timestamp(column.type):
        column = column.view(pa.timestamp("us"))
    for letters, directive in _LETTERS.items():
        form = form.replace(letters, directive)
    return pc.strftime(column, format=form)


def _require_form(text: str, field: pa.Field, form: str, conversion: str | None) -> None:
    dated = types.is_timestamp(field.type) or types.is_date(field.type)
    plain = types.is_string(field.type) or types.is_integer(field.type)
    if conversion or not (dated or plain) or dated != bool(form):
        raise OptionError(
            f"Option index={text!r} can't use column {field.name!r} of type {spark_type(field)} so",
            why="a date or timestamp needs a form, a string or whole number has none, and other"
            " types can't be part of a name",
            todo="write it like events-{country}-{at:yyyy.MM.dd}",
        )
    if form and not _DATE.fullmatch(form):
        raise OptionError(
            f"Option index={text!r} has the form {form!r}",
            why="a form is made of yyyy, MM, dd, HH and the signs . _ -",
            todo="write it like {at:yyyy.MM.dd}; the time is in UTC",
        )


def _bad(rows: pa.RecordBatch, row: int, why: str) -> BadRow:
    return BadRow(
        f"A row has no index: {why}; the row: {shown(rows, row)}",
        why="option index is made from its columns",
        todo="filter such rows out, or mend the column before the sink, for example lower(country)",
    )
