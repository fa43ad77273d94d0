"""A query over a source, on the driver: all its rows pass the board, and files keep them."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING

from sparkonce.tck.spark.batches import imported
from sparkonce.tck.spark.faults import RECORDED, SIDE, Board, Note, watch
from sparkonce.tck.spark.query import FollowedQuery
from sparkonce.tck.spark.records import Delivery, Records

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession
    from pyspark.sql.streaming.query import StreamingQuery

Attach = Callable[["SparkSession", Mapping[str, str]], "DataFrame"]
ROW = "id string"
NULL = "(null)"


def follow(spark: SparkSession, query: FollowedQuery) -> StreamingQuery:
    """Start a query."""
    side = Path(os.environ[SIDE])
    ids = f"COALESCE(CAST({query.column} AS STRING), '{NULL}') AS id"
    rows = _rows(spark, query).selectExpr(ids).mapInArrow(watch(side, 0.0), ROW)
    writer = rows.writeStream.option("checkpointLocation", query.checkpoint)
    if query.ends:
        writer = writer.trigger(availableNow=True)
    return writer.foreachBatch(_keep(Records(Path(query.records)), Board(side))).start()


def _rows(spark: SparkSession, query: FollowedQuery) -> DataFrame:
    if query.attach:
        attach: Attach = imported(query.attach)
        return attach(spark, query.options)
    reader = spark.readStream.format(query.format).options(**query.options)
    return (reader.schema(query.schema) if query.schema else reader).load()


def _keep(records: Records, board: Board) -> Callable[[DataFrame, int], None]:
    def keep(rows: DataFrame, epoch: int) -> None:
        records.add(Delivery(epoch, [row.id for row in rows.collect()]))
        board.reached(Note(RECORDED, epoch, 0, 0, os.getpid()))

    return keep
