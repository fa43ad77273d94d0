"""What tests of `spark.read.format("mysql")` share."""

from __future__ import annotations

from typing import Any

import pyarrow as pa

from pyspark_mysql.connector import MySqlConnector
from sparkonce import options
from sparkonce.reading import Scan


def source(url: str, schema: pa.Schema | None, **raw: str) -> tuple[pa.Schema, Any]:
    """A source, and the schema that it infers."""
    parsed = options.parse(MySqlConnector.reads, {"url": url, **raw})
    known = MySqlConnector().infer(parsed)
    return known, MySqlConnector().source(parsed, Scan(schema or known))


def values(made: Any) -> pa.Table:
    batches = [batch for split in made.splits() for batch in made.read(split)]
    return pa.Table.from_batches(batches, pa.schema([(f.name, f.type) for f in made.scan.schema]))
