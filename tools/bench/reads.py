"""Readers in turns, on the same rows: what the benches of reads share."""

from __future__ import annotations

import argparse
import statistics
import time
from collections import defaultdict
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any, ClassVar

from pyspark.sql.datasource import DataSource, DataSourceReader, InputPartition
from rich.console import Console
from rich.table import Table

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

SCHEMA = "id bigint, name string, price double, at timestamp"
PARTS = 4
"""Splits of each reader."""

BY_HAND, OWN = "by hand", "sparkonce"
Reader = Callable[["SparkSession"], "DataFrame"]


class Hand(DataSource):
    """What users write, in Python; a subclass says how rows are read, as tuples."""

    reads: ClassVar[type[HandReader]]

    @classmethod
    def name(cls) -> str:
        return "by_hand"

    def schema(self) -> str:
        return SCHEMA

    def reader(self, schema: Any) -> DataSourceReader:  # noqa: ARG002
        return self.reads(dict(self.options))


class HandReader(DataSourceReader):
    def __init__(self, options: dict[str, str]) -> None:
        self.options = options

    def partitions(self) -> list[InputPartition]:
        return [InputPartition(at) for at in range(PARTS)]


def by_hand(spark: SparkSession, **options: Any) -> DataFrame:
    return spark.read.format("by_hand").options(**options).load()


def made(spark: SparkSession, rows: int) -> DataFrame:
    """The rows of every bench."""
    return spark.range(rows).selectExpr(
        "id",
        "concat('customer ', id % 9973) as name",
        "double(id * 0.37) as price",
        "timestamp_micros(1767225600000000 + id * 1000003) as at",
    )


def in_turns(
    spark: SparkSession, readers: Mapping[str, Reader], rows: int, rounds: int
) -> dict[str, float]:
    """The seconds that each reader takes into `noop`: the median of the rounds after the first."""
    took = defaultdict[str, list[float]](list)
    for number in range(rounds + 1):
        for name, reader in readers.items():
            began = time.monotonic()
            reader(spark).write.format("noop").mode("append").save()
            if number:  # in the first one Java compiles and workers start
                took[name].append(time.monotonic() - began)
            assert number or reader(spark).count() == rows
    return {name: statistics.median(each) for name, each in took.items()}


def show(took: Mapping[str, float], rows: int, other: str, title: str) -> None:
    """Rows a second, and how many times those of a reader by hand and of another one."""
    table = Table("reader", "rows/s", f"against {BY_HAND}", f"against {other}", title=title)
    for name, each in took.items():
        ratios = (f"{took[than] / each:.2f}" for than in (BY_HAND, other))
        table.add_row(name, f"{rows / each:,.0f}", *ratios)
    Console(width=100).print(table)


def arguments(doc: str | None, rows: int) -> argparse.ArgumentParser:
    """Those that all benches of reads have."""
    parser = argparse.ArgumentParser(description=doc)
    parser.add_argument("--rows", type=int, default=rows)
    parser.add_argument("--rounds", type=int, default=3)
    return parser
