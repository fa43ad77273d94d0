"""Translates conditions of a query for the cluster, which finds all matching documents, or more.

An index keeps less of a value than the document: a date to the millisecond, a long keyword not at
all. So this module widens each condition, and omits those that it cannot widen.
"""

from __future__ import annotations

import datetime
import math
from collections.abc import Callable, Iterator, Mapping
from typing import Any

from pyspark_elasticsearch.read.fields import WHOLE, Mapped, kind_of
from sparkonce.reading import Compare, Filter, Filters, Like, Null, OneOf

LONGEST = 1000  # values in a list of a search
Query = dict[str, Any]
BOUNDS = {"<": "lt", "<=": "lte", ">": "gt", ">=": "gte"}
MILLISECOND = datetime.timedelta(milliseconds=1)


def conditions(filters: Filters, fields: Mapping[str, Mapped]) -> Iterator[Query]:
    """The conditions that the cluster can evaluate.

    The columns of `filters` have their natural types; every index has the mapping of `fields`.
    """
    for one in filters:
        if one.column == "_id":
            yield from _by_id(one)
        elif (mapping := fields.get(one.column)) and (found := _condition(one, mapping)):
            # Documents whose field the index ignored match as well, see
            # https://www.elastic.co/guide/en/elasticsearch/reference/current/mapping-ignored-field.html
            yield {"bool": {"should": [found, {"term": {"_ignored": one.column}}]}}


def _by_id(one: Filter) -> Iterator[Query]:
    match one:
        case Compare(operator="=", value=str(value)):
            yield {"ids": {"values": [value]}}
        case OneOf(values=values) if len(values) <= LONGEST and all(map(_is_text, values)):
            yield {"ids": {"values": [*values]}}


def _is_text(value: Any) -> bool:
    return isinstance(value, str)


def _condition(one: Filter, mapping: Mapped) -> Query | None:
    field, kind = one.column, kind_of(mapping)
    # Only if the index holds the values of documents, which needs a mapping of known parameters.
    known = {*ALWAYS, *PARAMETERS.get(kind, ())}
    if kind not in PROVEN or not {*mapping} <= known or mapping.get("index", True) is not True:
        return None
    match one:
        case Null(inverted=inverted) if "null_value" not in mapping:
            there = {"exists": {"field": field}}
            return there if inverted else {"bool": {"must_not": [there]}}
        case Compare(operator=operator, value=value) if _is_proven(operator, value, kind):
            return _compared(field, operator, value)
        case OneOf(values=values) if len(values) <= LONGEST:
            exact = all(_is_proven("in", each, kind) for each in values)
            return {"terms": {field: [*values]}} if exact else None
        case Like(how="begins", text=text) if "normalizer" not in mapping:
            found = {"prefix": {field: {"value": text}}}
            return found if _is_proven("begins", text, kind) else None
    return None


def _is_moment(value: Any) -> bool:
    is_instant = isinstance(value, datetime.datetime) and value.tzinfo is not None
    return is_instant and 1 < value.year < 9999


ORDER = ("=", *BOUNDS)
PROVEN: Mapping[str, tuple[tuple[str, ...], Callable[[Any], bool]]] = {
    **dict.fromkeys(WHOLE, ((*ORDER, "in"), lambda one: type(one) is int)),
    "double": (ORDER, lambda one: isinstance(one, float) and not math.isinf(one)),
    "boolean": (("=", "in"), lambda one: isinstance(one, bool)),
    "keyword": (("=", "in", "begins"), _is_text),
    "date": (ORDER, _is_moment),
}
"""By type of field, the operators and values for which the cluster finds all that Spark finds."""

ALWAYS = ("type", "index", "doc_values", "store", "meta", "fields", "copy_to")
NUMERIC = (
    *("coerce", "ignore_malformed", "null_value"),
    *("time_series_dimension", "time_series_metric", "synthetic_source_keep"),
)
PARAMETERS: Mapping[str, tuple[str, ...]] = {
    **dict.fromkeys((*WHOLE, "double", "boolean"), NUMERIC),
    "keyword": (
        *("ignore_above", "null_value", "normalizer", "split_queries_on_whitespace"),
        *("eager_global_ordinals", "index_options", "norms", "similarity"),
        *("time_series_dimension", "synthetic_source_keep"),
    ),
    "date": ("format", "locale", "ignore_malformed", "null_value", "synthetic_source_keep"),
}
"""Parameters of mappings under which searches find a field, or list it as ignored."""


def _is_proven(operator: str, value: Any, kind: str) -> bool:
    """Whether the cluster compares this value with a field as Spark does."""
    operators, fits = PROVEN[kind]
    return operator in operators and fits(value)


def _compared(field: str, operator: str, value: Any) -> Query:
    if isinstance(value, datetime.datetime):
        return {"range": {field: _around(operator, value)}}
    if isinstance(value, float) and not value:  # in the index, 0.0 is greater than -0.0
        low, high = {"gte": -0.0}, {"lte": 0.0}
        bounds = {"=": low | high, "<": high, "<=": high, ">": low, ">=": low}[operator]
        return {"range": {field: bounds}}
    if operator == "=":
        return {"term": {field: {"value": value}}}
    return {"range": {field: {BOUNDS[operator]: value}}}


def _around(operator: str, moment: datetime.datetime) -> dict[str, str]:
    """A range of whole milliseconds with all moments that match the comparison."""
    found = {"format": "strict_date_optional_time"}
    if operator in ("=", ">", ">="):
        found["gte"] = (moment - MILLISECOND).astimezone(datetime.timezone.utc).isoformat()
    if operator in ("=", "<", "<="):
        found["lte"] = (moment + MILLISECOND).astimezone(datetime.timezone.utc).isoformat()
    return found
