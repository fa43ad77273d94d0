"""Queries by which indices can be followed."""

from __future__ import annotations

import pytest

from pyspark_elasticsearch.follow import fitness
from pyspark_elasticsearch.read.fields import IndexFields
from sparkonce.errors import StoreRefused

BY_F = {"bool": {"filter": [{"term": {"f": "x"}}]}}


def test_a_field_whose_one_value_is_not_set_yet_may_match_later() -> None:
    """`constant_keyword`, which not every build of the server has."""
    unset = {"properties": {"f": {"type": "constant_keyword"}}}
    there = IndexFields([unset], unset["properties"], 10)
    with pytest.raises(StoreRefused, match="not set yet"):
        fitness.require_settled(BY_F, there)
    known = {"properties": {"f": {"type": "constant_keyword", "value": "x"}}}
    fitness.require_settled(BY_F, IndexFields([known], known["properties"], 10))
    fitness.require_settled({"term": {"n": 1}}, there)
