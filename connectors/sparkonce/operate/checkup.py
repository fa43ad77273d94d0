"""What can be known of a sink before there are rows: options, server and target, without Spark."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping

import pyarrow as pa

from sparkonce import options
from sparkonce.errors import OptionError
from sparkonce.store import Connector
from sparkonce.values import schema_text

UNREADABLE = (
    AssertionError,
    AttributeError,
    ImportError,
    KeyError,
    RecursionError,
    TypeError,
    ValueError,
)
"""What Spark raises for JSON that is no schema."""


def checkup(connector: Connector, raw: Mapping[str, str], schema: str | None) -> Iterator[str]:
    """Yield what was looked at and is fit, part by part; it does what the start of a query does.

    Args:
        connector: of the sink.
        raw: options as a query gives them.
        schema: of the query, as Spark's DDL or as the JSON of ``df.schema.json()``; None if only
            options and server are to be looked at.

    Raises:
        SparkonceError: a query would be refused.
    """
    parsed = options.parse(connector.options, raw)
    yield f"options: all {len(raw)} are known, and can be read"
    plan = None
    if schema is not None:
        columns = read_schema(schema)
        plan = connector.plan(parsed, columns)
        yield f"schema: options and columns fit; {len(columns)} columns go to {plan.target}"
    connector.connect(parsed).check(plan)
    yield "server: it can be reached, and its settings and the connector's rights suffice"
    if plan is not None:
        yield f"target: {plan.target} takes such rows"
    else:
        yield "target: not looked at, as no --schema is given"


def read_schema(text: str) -> pa.Schema:
    """The schema that a text is: DDL, or Spark's JSON.

    Raises:
        OptionError: it is neither, or has a column that can't be written.
    """
    if not text.lstrip().startswith("{"):
        return schema_text.parse(text)
    # Only JSON needs PySpark: DDL is read without it.
    from pyspark.sql.types import StructType

    from sparkonce.spark.types import arrow_schema

    try:
        schema = StructType.fromJson(json.loads(text))
    except UNREADABLE as error:
        raise OptionError(
            "The schema can't be read",
            why=f"it begins as JSON does, and is not what df.schema.json() gives: {error}",
            todo='give that, or names and types, such as "id bigint, tags array<string>"',
        ) from None
    return arrow_schema(schema)
