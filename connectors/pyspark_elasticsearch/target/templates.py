"""Option ``index`` as a template of names: ``events-{country}-{at:yyyy.MM.dd}``.

It leads to names that nobody knows before its rows come. So all indices and index templates of the
cluster are looked at that could be among them, and one that can't be shown to be another's counts.
"""

from __future__ import annotations

import re
import string
from collections.abc import Iterator, Mapping, Sequence
from fnmatch import fnmatchcase
from functools import lru_cache
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
from pyarrow import types

from pyspark_elasticsearch.server.client import Cluster, path
from sparkonce.checks import column
from sparkonce.errors import BadRow, OptionError
from sparkonce.values.rows import describe_row
from sparkonce.values.spark_types import spark_type
from sparkonce.values.text import to_text

FORBIDDEN = r'[\\/*?"<>| ,#:\x00-\x1f]|^[-_+]|^\.{0,2}$'
"""What a name has nowhere, how it does not begin, and what it is not; nor has it capitals."""

LONGEST = 255  # bytes of a name
LOOKING = "looking at templates of indices"
FLAT = {"flat_settings": "true"}
PIPELINES = "index.default_pipeline", "index.final_pipeline"
_LETTERS = {"yyyy": "%Y", "MM": "%m", "dd": "%d", "HH": "%H"}
_DATE = re.compile(r"(?:yyyy|MM|dd|HH|[._-])+")

Segment = str | tuple[str, str]
"""A literal text, or a column and the form of its date (empty for others)."""


def index_name(text: str) -> str:
    """Read option ``index``: an index, an alias, or a template; `ValueError` if it is none."""
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
    """Read the name of an index; `ValueError` if it is none."""
    if "{" in text:
        raise ValueError("the name of one index")
    return index_name(text)


def parse(text: str, schema: pa.Schema) -> tuple[Segment, ...]:
    """The segments of a template; none if it is a plain name. Unfit columns are refused."""
    if "{" not in text:
        return ()
    segments: list[Segment] = []
    for literal, name, form, conversion in string.Formatter().parse(text):
        if literal:
            segments.append(literal)
        if name is not None:
            found = column(f"index={text!r}", name, schema)
            _require_form(text, schema.field(found), form or "", conversion)
            segments.append((found, form or ""))
    return tuple(segments)


def pattern(segments: Sequence[Segment]) -> str:
    """All names that a template makes, with ``*`` for each column."""
    return "".join(one if isinstance(one, str) else "*" for one in segments)


def names(segments: Sequence[Segment], rows: pa.RecordBatch, reserved: Sequence[str] = ()) -> Any:
    """The index of each row; `BadRow` if a column is null, or makes no name, or a reserved one."""
    made = pc.binary_join_element_wise(*(_text(one, rows) for one in segments), pa.scalar(""))
    _refuse_row(rows, made.is_null(), "a column of it is null")
    too_long = pc.greater(pc.binary_length(made), LONGEST)
    capitals = pc.not_equal(made, pc.utf8_lower(made))
    wrong = pc.or_(pc.or_(pc.match_substring_regex(made, FORBIDDEN), capitals), too_long)
    _refuse_row(rows, wrong, "{!r} is no name of an index", made)
    taken = pc.is_in(made, value_set=pa.array(reserved, pa.string()))
    _refuse_row(rows, taken, "{!r} is not for rows but for this connector", made)
    return made


def _text(segment: Segment, rows: pa.RecordBatch) -> Any:
    if isinstance(segment, str):
        return pa.scalar(segment)
    name, form = segment
    column = rows.column(name)
    if not form:
        return to_text(column).cast(pa.string())
    years = pc.year(column)
    wrong = pc.fill_null(pc.or_(pc.less(years, 1), pc.greater(years, 9999)), False)
    _refuse_row(rows, wrong, f"column {name!r} lies outside the years 0001 to 9999")
    if types.is_timestamp(column.type):
        column = column.view(pa.timestamp("us"))
    for letters, directive in _LETTERS.items():
        form = form.replace(letters, directive)
    return pc.strftime(column, format=form)


def _refuse_row(rows: pa.RecordBatch, wrong: Any, why: str, made: Any = None) -> None:
    if pc.any(wrong).as_py():
        row = pc.index(wrong, True).as_py()
        why = why if made is None else why.format(made[row].as_py())
        raise BadRow(
            f"A row has no index: {why}; the row: {describe_row(rows, row)}",
            why="option index is made from its columns",
            todo="filter such rows out, or mend the column before the sink, for example"
            " lower(country)",
        )


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


@lru_cache
def meet(one: str, other: str) -> bool:
    """Whether a name may match two patterns, in which ``*`` stands for any text."""
    if not one or not other:
        return not (one + other).strip("*")
    if one[0] == "*":
        return meet(one[1:], other) or meet(one, other[1:])
    if other[0] == "*":
        return meet(other, one)
    return one[0] == other[0] and meet(one[1:], other[1:])


def settings(cluster: Cluster, pattern: str, option: str) -> Iterator[Mapping[str, Any]]:
    """The pipelines, as settings, of all indices with names of a pattern, also of those to come.

    Those to come must not be data streams (`OptionError`).
    """
    target = path(pattern, "_settings", ",".join(PIPELINES))
    doing = f"looking at indices {pattern}"
    # One index with a block of metadata refuses it for all; answers to rows tell the rest.
    there = cluster.ask(doing, "GET", target, params=FLAT, allow=(403, 404))
    if there.status == 200:
        yield from (about["settings"] for about in there.body.values())
    yield from _of_new(cluster, pattern, option)


def stream_of(cluster: Cluster, name: str) -> str:
    """The index template that makes a data stream of this name; empty where none does."""
    for template, about in _matching(cluster, name):
        return template if "data_stream" in about else ""
    return ""


def _matching(cluster: Cluster, pattern: str) -> Iterator[tuple[str, Mapping[str, Any]]]:
    """The index templates that may rule names of a pattern, those that go before others first."""
    # Without the right to look at templates the answers to rows still tell what one of them does.
    status, body = cluster.ask(LOOKING, "GET", "/_index_template", allow=(403, 404))
    found = body.get("index_templates", ()) if status == 200 else ()
    for one in sorted(found, key=lambda one: -one["index_template"].get("priority", 0)):
        patterns = one["index_template"]["index_patterns"]
        if any(meet(each, pattern) for each in patterns):
            yield one["name"], one["index_template"]
        # A star of ours is matched by a star alone, so that all of our names are among its own.
        if any(fnmatchcase(pattern, each) for each in patterns):
            return


def _of_new(cluster: Cluster, pattern: str, option: str) -> Iterator[Mapping[str, Any]]:
    for name, about in _matching(cluster, pattern):
        if "data_stream" in about:
            raise OptionError(
                f"Option index={option!r}: index template {name} makes data streams of such names",
                why="a data stream takes new documents only, and behind a rollover a row that is"
                " sent again would be there twice",
                todo="choose names that the template does not match, such as a beginning of their"
                " own, or name one data stream in option index with writeMode=append",
            )
        # A role that may look at templates may lack the right to have one tried.
        simulate = path("_index_template", "_simulate", name)
        made = cluster.ask(LOOKING, "POST", simulate, allow=(403,))
        template = made.body["template"] if made.status == 200 else about.get("template", {})
        kept = template.get("settings", {}).get("index", {})
        yield {f"index.{setting}": value for setting, value in kept.items()}
    status, body = cluster.ask(LOOKING, "GET", "/_template", params=FLAT, allow=(403, 404))
    for about in body.values() if status == 200 else ():
        if any(meet(each, pattern) for each in about["index_patterns"]):
            yield about.get("settings", {})
