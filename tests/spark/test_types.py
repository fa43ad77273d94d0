"""Types of Spark that Arrow has no equal of: written, or refused by the column's name."""

from __future__ import annotations

import pyarrow as pa
import pytest
from pyspark.sql.types import ArrayType, LongType, MapType, NullType, StructField, StructType

from sparkonce.errors import OptionError
from sparkonce.spark.types import arrow_schema

NOTHING = ArrayType(NullType(), containsNull=False)
"""What ``array()`` is."""


def made(kind: object) -> pa.DataType:
    return arrow_schema(StructType([StructField("tags", kind, nullable=False)])).field("tags").type


def test_an_array_without_elements_is_one() -> None:
    assert made(NOTHING) == pa.list_(pa.null())
    assert made(ArrayType(NOTHING)) == pa.list_(pa.list_(pa.null()))
    assert made(NullType()) == pa.null()
    nested = StructType([StructField("inner", NOTHING, nullable=False)])
    assert made(nested).field("inner").type == pa.list_(pa.null())


@pytest.mark.parametrize("value", [NullType(), LongType()])
def test_a_map_without_entries_is_refused_by_its_name(value: object) -> None:
    with pytest.raises(OptionError, match=r"Column 'tags' has type map<void,\w+>"):
        made(MapType(NullType(), value))
