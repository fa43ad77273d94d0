"""The letter of a row that the server refused, which is known by its literals alone."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pyarrow as pa

from pyspark_mysql.server.literals import value
from pyspark_mysql.write.plan import TableRows
from sparkonce.values import from_json, letters, spark_types
from sparkonce.values.letters import Letter


def of_literals(reason: str, row: Sequence[str], detail: TableRows) -> Letter:
    """The letter of a row that the server refused.

    Args:
        reason: why.
        row: its literals, and a flag behind them if rows of its plan are folded.
        detail: of the manifest.
    """
    named = dict(zip(detail.columns, row, strict=False))
    trees: dict[str, Any] = {name: value(literal) for name, literal in named.items()}
    schema = spark_types.parse(detail.schema)
    for field in schema:
        if pa.types.is_nested(field.type) and isinstance(trees.get(field.name), str):
            trees[field.name] = from_json.parse_tree(trees[field.name])
    if detail.op:
        trees[detail.op] = "d" if row[-1] == "1" else "u"
    return letters.of_trees(reason, trees, schema, detail.key)
