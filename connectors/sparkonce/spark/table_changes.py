"""The changes of one table of a stream that has several."""

from __future__ import annotations

from pyspark.sql import DataFrame
from pyspark.sql import functions as f
from pyspark.sql import types as spark

from sparkonce.errors import OptionError
from sparkonce.replay import LONGEST

TABLE, ROW = "_table", "_row"
AS_JSON = (TABLE, "_key", ROW, "_before")
"""The columns that describe a row of any table."""


def changes(stream: DataFrame, table: str, schema: spark.StructType | str) -> DataFrame:
    """The changes of one table, with typed columns.

    Args:
        stream: of several tables, as ``spark.readStream.format("mysql")`` loads it.
        table: ``orders``, or ``shop.orders`` if other databases have a table of that name.
        schema: of the table's columns, as a type or as DDL. A column that a row lacks is null;
            one that the schema lacks is left out.

    Returns:
        The columns of `schema`, and ``_op``, ``_gtid``, ``_ts`` as far as the stream has them.

    Spark's ``from_json`` converts the values, and fails if it can't: a decimal with another scale
    is rounded. So declare the types of the table.

    Raises:
        OptionError: the stream is not of several tables.
    """
    if not {TABLE, ROW} <= {*stream.columns}:
        raise OptionError(
            "sparkonce.changes needs a stream with the columns _table and _row",
            why=f"the stream has {', '.join(stream.columns)}",
            todo="name several tables in option dbtable, and keep both columns",
        )
    kind = f.lit(schema) if isinstance(schema, str) else schema
    name = f.col(TABLE)
    known = f.col(TABLE) if "." in table else f.substring_index(name, ".", -1)
    read = f.from_json(f.col(ROW), kind, {"mode": "FAILFAST", "maxStringLen": LONGEST})
    others = [one for one in stream.columns if one not in AS_JSON]
    return stream.where(known == table).withColumn(ROW, read).select(f"{ROW}.*", *others)
