"""Truly random values: Spark draws new ones whenever it computes rows again, even in part.

``F.rand()`` is not random: its seed is that of the plan and the partition, so a task that runs
again draws the same values.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from sparkonce.tck.spark.faults import DRAWN, SIDE, Board, note, watching

if TYPE_CHECKING:
    import pyarrow as pa
    from pyspark.sql import DataFrame

DRAW = "draw"


def with_draw(rows: DataFrame) -> DataFrame:
    """The rows, and a bigint column `DRAW`."""
    from pyspark.sql.types import LongType, StructField, StructType

    drawn = partial(_drawn, os.environ.get(SIDE))
    return rows.mapInArrow(drawn, StructType([*rows.schema, StructField(DRAW, LongType())]))


def _drawn(side: str | None, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    import pyarrow as pa
    from pyspark import TaskContext

    watching()
    for batch in batches:
        noise = pa.py_buffer(os.urandom(8 * batch.num_rows))
        column = pa.Array.from_buffers(pa.int64(), batch.num_rows, [None, noise])
        names = [*batch.schema.names, DRAW]
        yield pa.RecordBatch.from_arrays([*batch.columns, column], names)
    context = TaskContext.get()
    if context is not None and side:
        Board(Path(side)).reached(note(DRAWN, context))
