"""Names of targets that columns of a row make: ``events-{country}-{at:yyyy.MM.dd}``.

Times are in UTC.
"""

from __future__ import annotations

import re
import string
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

import pyarrow as pa
import pyarrow.compute as pc
from pyarrow import types

from sparkonce.checks import column
from sparkonce.errors import BadRow, OptionError
from sparkonce.values.rows import describe_row
from sparkonce.values.spark_types import spark_type
from sparkonce.values.text import to_text

LETTERS = {"yyyy": "%Y", "MM": "%m", "dd": "%d", "HH": "%H"}
DATE = re.compile(r"(?:yyyy|MM|dd|HH|[._-])+")

Segment: TypeAlias = str | tuple[str, str]
"""A literal text, or a column and its date format (empty for other types)."""


class Template(str):
    """The value of an option that is a template."""

    __slots__ = ()


def plain(text: str) -> str:
    """A template with ``x`` for each column, to check its literal text.

    Raises:
        ValueError: its braces are not balanced.
    """
    found = re.sub(r"\{[^{}]*\}", "x", text)
    if "{" in found or "}" in found:
        raise ValueError("like events-{country}-{at:yyyy.MM.dd}, with balanced braces")
    return found


def parse(option: str, text: str, schema: pa.Schema, like: str) -> tuple[Segment, ...]:
    """The segments of a template; none for a plain name.

    Args:
        option: its name.
        text: its value.
        schema: of the query.
        like: an example for errors.

    Raises:
        OptionError: a column is missing, or can't be part of a name.
    """
    if "{" not in text:
        return ()
    given, segments = f"{option}={text!r}", list[Segment]()
    for literal, name, form, conversion in string.Formatter().parse(text):
        if literal:
            segments.append(literal)
        if name is not None:
            found = column(given, name, schema)
            _require_form(given, schema.field(found), form or "", conversion, like)
            segments.append((found, form or ""))
    return tuple(segments)


def _require_form(
    given: str, field: pa.Field, form: str, conversion: str | None, like: str
) -> None:
    dated = types.is_timestamp(field.type) or types.is_date(field.type)
    simple = types.is_string(field.type) or types.is_integer(field.type)
    if conversion or not (dated or simple) or dated != bool(form):
        raise OptionError(
            f"Option {given} can't use column {field.name!r} of type {spark_type(field)}",
            why="a date or timestamp needs a format, a string or whole number has none, and other"
            " types can't be part of a name",
            todo=f"write it like {like}",
        )
    if form and not DATE.fullmatch(form):
        raise OptionError(
            f"Option {given} has the format {form!r}",
            why="a format consists of yyyy, MM, dd, HH and the characters . _ -",
            todo=f"write it like {like}; the time is in UTC",
        )


def columns(segments: Sequence[Segment]) -> tuple[str, ...]:
    """The columns that make the names."""
    return tuple(one[0] for one in segments if not isinstance(one, str))


def pattern(segments: Sequence[Segment]) -> str:
    """A pattern for all names of a template, with ``*`` for each column."""
    return "".join(one if isinstance(one, str) else "*" for one in segments)


def is_invertible(segments: Sequence[Segment]) -> bool:
    """Whether a name tells the values of its columns: there is one, and it is no date."""
    made = [one for one in segments if not isinstance(one, str)]
    return len(made) == 1 and not made[0][1]


def filled_by(segments: Sequence[Segment], name: str) -> dict[str, str]:
    """The value of the column of an invertible template, from a name that it made; else nothing."""
    if not is_invertible(segments):
        return {}
    at = next(at for at, one in enumerate(segments) if not isinstance(one, str))
    before, behind = (sum(map(len, some)) for some in (segments[:at], segments[at + 1 :]))
    return {segments[at][0]: name[before : len(name) - behind]}


@dataclass(frozen=True)
class Namer:
    """Makes the name of each row, by a template.

    Attributes:
        option: the name of the option, which is also the word for a target.
        todo: what a user can do about a row without a valid name.
    """

    option: str
    segments: Sequence[Segment]
    todo: str

    def names(self, rows: pa.RecordBatch) -> Any:
        """The name of each row.

        Raises:
            BadRow: a column of the template is null, or is a date outside the years 0001 to 9999.
        """
        texts = (self._text(one, rows) for one in self.segments)
        made = pc.binary_join_element_wise(*texts, pa.scalar(""))
        self.refuse(rows, made.is_null(), "a column of the template is null")
        return made

    def refuse(self, rows: pa.RecordBatch, wrong: Any, why: str, made: Any = None) -> None:
        """Refuse the first row that is `wrong`; `why` may show its name as ``{!r}``.

        Raises:
            BadRow: there is one.
        """
        if pc.any(wrong).as_py():
            row = pc.index(wrong, True).as_py()
            why = why if made is None else why.format(made[row].as_py())
            raise BadRow(
                f"A row has no target: {why}; the row: {describe_row(rows, row)}",
                why=f"option {self.option} takes the name from columns of the row",
                todo=self.todo,
            )

    def _text(self, segment: Segment, rows: pa.RecordBatch) -> Any:
        if isinstance(segment, str):
            return pa.scalar(segment)
        name, form = segment
        values = rows.column(name)
        if not form:
            return to_text(values).cast(pa.string())
        years = pc.year(values)
        wrong = pc.fill_null(pc.or_(pc.less(years, 1), pc.greater(years, 9999)), False)
        self.refuse(rows, wrong, f"column {name!r} is outside the years 0001 to 9999")
        if types.is_timestamp(values.type):
            values = values.view(pa.timestamp("us"))
        for letters, directive in LETTERS.items():
            form = form.replace(letters, directive)
        return pc.strftime(values, format=form)
