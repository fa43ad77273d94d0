"""Conditions that Spark pushes, in the words of the core: what is left out widens what is read."""

from __future__ import annotations

import datetime
import math
from decimal import Decimal
from typing import Any

import pytest

from sparkonce.reading import Compare, Filter, Like, Null, OneOf
from sparkonce.spark.reader import understood

spark: Any = pytest.importorskip("pyspark.sql.datasource")
if not hasattr(spark, "EqualTo"):
    pytest.skip("this Spark pushes no conditions", allow_module_level=True)
A, DAY = ("a",), datetime.date(2026, 1, 1)

KNOWN: list[tuple[Any, Filter]] = [
    (spark.EqualTo(A, 1), Compare("a", "=", 1)),
    (spark.EqualTo(A, "x"), Compare("a", "=", "x")),
    (spark.EqualTo(A, value=True), Compare("a", "=", value=True)),
    (spark.EqualNullSafe(A, 1), Compare("a", "=", 1)),
    (spark.EqualNullSafe(A, None), Null("a")),
    (spark.LessThan(A, 1.5), Compare("a", "<", 1.5)),
    (spark.LessThanOrEqual(A, Decimal("1.50")), Compare("a", "<=", Decimal("1.50"))),
    (spark.GreaterThan(A, DAY), Compare("a", ">", DAY)),
    (spark.GreaterThanOrEqual(A, math.inf), Compare("a", ">=", math.inf)),
    (spark.In(A, (1, None, 2)), OneOf("a", (1, 2))),
    (spark.IsNull(A), Null("a")),
    (spark.IsNotNull(A), Null("a", inverted=True)),
    (spark.StringStartsWith(A, "x%"), Like("a", "begins", "x%")),
    (spark.StringEndsWith(A, "x"), Like("a", "ends", "x")),
    (spark.StringContains(A, "x"), Like("a", "contains", "x")),
]
LEFT_OUT = [
    spark.EqualTo(("a", "b"), 1),  # a field inside a column
    spark.LessThan(A, "x"),  # the order of texts differs between collations
    spark.GreaterThan(A, math.nan),
    spark.EqualTo(A, [1]),
    spark.In(A, (None,)),
    spark.In(A, ([1], [2])),
    spark.Not(spark.EqualTo(A, 1)),
]


@pytest.mark.parametrize(("given", "known"), KNOWN, ids=lambda one: str(one)[:40])
def test_a_condition_is_understood(given: Any, known: Filter) -> None:
    assert [*understood([given])] == [known]


@pytest.mark.parametrize("given", LEFT_OUT, ids=lambda one: str(one)[:40])
def test_a_condition_that_stores_read_otherwise_is_left_out(given: Any) -> None:
    assert [*understood([given, spark.IsNull(A)])] == [Null("a")]
