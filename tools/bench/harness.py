"""Shared by the benchmarks: the same rows for all, writers and readers in turns, medians, tables.

The first round never counts, because Java compiles and workers start in it.
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import subprocess
import tempfile
import time
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar

import pyarrow as pa
from demo.java import java_home
from integration.support.environments import Environment
from integration.support.servers import spark as local_spark
from integration.support.servers.cache import CACHE
from pyspark.sql.datasource import DataSource, DataSourceReader, InputPartition
from rich.console import Console
from rich.progress import track
from rich.table import Table
from tools.spark_for_tests import Nowhere

if TYPE_CHECKING:
    from integration.support.epochs import DirectQuery
    from pyspark.sql import DataFrame, Row, SparkSession
    from pyspark.sql.streaming import DataStreamWriter

SCHEMA = "id bigint, name string, price double, at timestamp"
ARROW = pa.schema(
    [
        ("id", pa.int64()),
        ("name", pa.string()),
        ("price", pa.float64()),
        ("at", pa.timestamp("us", "UTC")),
    ]
)
PARTS = 4
"""The number of files in an epoch, and of splits of a reader."""

OWN, OWN_BATCH, BY_HAND = "sparkonce", "sparkonce, df.write", "by hand"
COUNTING = "counting"
"""`Nowhere`, which stores nothing: the least cost of any sink in Python."""

Writer = Callable[["DataFrame"], "DataStreamWriter"]
Way = Callable[[], list[float]]
"""Runs one way; returns the seconds of each round that counts."""


# -- rows


def rows_of(numbers: DataFrame) -> DataFrame:
    """The rows of every benchmark, from a column `id`."""
    return numbers.selectExpr(
        "id",
        "concat('customer ', id % 9973) as name",
        "id * 0.123457D as price",
        "timestamp_micros(1600000000000000 + id * 1000003) as at",
    )


def batches_of(ids: range) -> list[pa.RecordBatch]:
    """The same rows as Arrow."""
    columns = [
        ids,
        [f"customer {at % 9973}" for at in ids],
        [at * 0.123457 for at in ids],
        [1_600_000_000_000_000 + at * 1_000_003 for at in ids],
    ]
    arrays = [pa.array(values, kind) for values, kind in zip(columns, ARROW.types, strict=True)]
    return pa.table(arrays, schema=ARROW).to_batches(10_000)


def make_epochs(spark: SparkSession, home: Path, epochs: Iterable[range]) -> Path:
    """A folder for the rows of each epoch."""
    for at, ids in enumerate(epochs):
        files = PARTS if len(ids) > 1 else 1
        rows_of(spark.range(ids.start, ids.stop, 1, files)).write.parquet(f"{home}/{at:03d}")
    return home


# -- writers


def stream(form: str, **options: str) -> Writer:
    return lambda rows: rows.writeStream.format(form).options(**options)


def in_batches(form: str, **options: str) -> Writer:
    """Write each epoch as a batch in foreachBatch."""

    def write(batch: DataFrame, _: int) -> None:
        batch.write.format(form).mode("append").options(**options).save()

    return lambda rows: rows.writeStream.foreachBatch(write)


def in_partitions(send: Callable[[Iterator[Row]], None]) -> Writer:
    """A common solution: foreachBatch, and a function for the rows of each partition."""
    return lambda rows: rows.writeStream.foreachBatch(lambda batch, _: batch.foreachPartition(send))


def epochs(spark: SparkSession, source: Path, writer: Writer, files: int = PARTS) -> list[float]:
    """The seconds of each epoch of a stream, without the first."""
    rows = spark.readStream.schema(SCHEMA).option("maxFilesPerTrigger", files)
    with tempfile.TemporaryDirectory(prefix="sparkonce-bench-") as checkpoint:
        started = writer(rows.parquet(f"{source}/*")).option("checkpointLocation", checkpoint)
        query = started.trigger(availableNow=True).start()
        query.awaitTermination()
    return [one.durationMs["addBatch"] / 1000 for one in query.recentProgress[1:]]


def way(
    spark: SparkSession,
    source: Path,
    writer: Writer,
    fresh: Callable[[], object],
    files: int = PARTS,
) -> Way:
    """Writes all epochs of the source into a new target."""

    def run() -> list[float]:
        fresh()
        return epochs(spark, source, writer, files)

    return run


def show_single_rows(
    spark: SparkSession, home: Path, writers: Mapping[str, Writer], fresh: Callable[[], object]
) -> None:
    """Show how long an epoch of one row takes, and how much longer than `Nowhere`."""
    source = make_epochs(spark, home / "single", (range(at, at + 1) for at in range(25)))
    ways = {name: way(spark, source, writer, fresh, 1) for name, writer in writers.items()}
    small = medians(in_turns(ways, 1))
    lines = ((name, each * 1000, (each - small[COUNTING]) * 1000) for name, each in small.items())
    show("an epoch of one row", ("", "ms", "more than counting"), lines)


def in_turns(ways: Mapping[str, Way], passes: int, uncounted: int = 0) -> dict[str, list[float]]:
    """The seconds of each way in all passes except the first `uncounted` ones."""
    took = defaultdict[str, list[float]](list)
    for turn in track(range(uncounted + passes), "passes"):
        for name, way in ways.items():
            seconds = way()
            took[name] += seconds if turn >= uncounted else []
    return took


def medians(took: Mapping[str, list[float]]) -> dict[str, float]:
    return {name: statistics.median(each) for name, each in took.items()}


def timed(step: Callable[[], object]) -> float:
    began = time.perf_counter()
    step()
    return time.perf_counter() - began


def once(step: Callable[[], object]) -> Way:
    return lambda: [timed(step)]


def stage_and_commit(
    query: DirectQuery, epoch: int, batches: list[pa.RecordBatch]
) -> tuple[float, float]:
    """The seconds of staging and of the commit."""
    receipts: list[Any] = []
    staged = timed(lambda: receipts.extend(query.stage_batches(epoch, batches)))
    return staged, timed(lambda: query.commit(epoch, receipts))


def show_driver(store: str, query: DirectQuery, given: argparse.Namespace) -> None:
    """Show the rows of a commit per second of the driver's CPU time.

    A driver waits for its server most of the time. With an infinitely fast server only its CPU time
    would remain, so that limits the rows of one driver with any number of servers.
    """
    query.sink.check()
    rows, found = given.rows or 500_000, []
    for epoch in range(given.rounds):
        receipts = query.stage_batches(epoch, batches_of(range(rows)))
        began = time.process_time()
        query.commit(epoch, receipts)
        found.append(rows / (time.process_time() - began))
    lines = [(store, statistics.median(found))]
    show("What one driver can move", ("", "rows for each second of CPU"), lines)


# -- large epochs

LARGE = ("mode", "rows", "s", "rows/s", "largest Python process")


def large(
    rows: DataFrame, writer: Writer, total: Callable[[], tuple[int, float]], of: int
) -> tuple[str, ...]:
    """Write one epoch of `of` rows: seconds, rows/s, the peak memory of a Python process."""
    with tempfile.TemporaryDirectory(prefix="sparkonce-bench-") as checkpoint:
        started = writer(rows).option("checkpointLocation", checkpoint)
        query = started.trigger(availableNow=True).start()
        query.awaitTermination()
    assert total() == (of, of * (of - 1) // 2)
    took = query.recentProgress[0].durationMs["addBatch"] / 1000
    return f"{of:,}", f"{took:.1f}", f"{of / took:,.0f}", f"{_peak():,.0f} MiB"


def numbers(spark: SparkSession, rows: int) -> DataFrame:
    """A stream of one epoch, with a column `id`."""
    made = spark.readStream.format("rate-micro-batch").option("rowsPerBatch", rows)
    return made.option("numPartitions", PARTS).load().selectExpr("value as id")


def _peak() -> float:
    """The peak memory of Spark's largest Python process, in MiB."""
    found = [0]
    for process in Path("/proc").glob("[0-9]*"):
        try:
            if b"pyspark.daemon" in (process / "cmdline").read_bytes():
                lines = (process / "status").read_text().splitlines()
                found += [int(line.split()[1]) for line in lines if line.startswith("VmHWM")]
        except OSError:
            continue
    return max(found) / 1024


# -- readers


class Hand(DataSource):
    """A reader as users write it in Python; subclasses read rows as tuples."""

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


def reads(readers: Mapping[str, DataFrame], rows: int, rounds: int) -> dict[str, float]:
    """The median seconds of each reader into `noop`."""
    for name, frame in readers.items():
        assert frame.count() == rows, name
    ways = {
        name: once(lambda frame=frame: frame.write.format("noop").mode("append").save())  # type: ignore[misc]
        for name, frame in readers.items()
    }
    return medians(in_turns(ways, rounds, uncounted=1))


def follow(spark: SparkSession, form: str, **options: str) -> Callable[[], int]:
    """A function that runs a query over all existing rows into `noop`; returns the rows read."""

    def run() -> int:
        source = spark.readStream.format(form).options(**options)
        source = source.schema(SCHEMA) if form == "redis" else source
        with tempfile.TemporaryDirectory() as checkpoint:
            writer = source.load().writeStream.format("noop")
            writer = writer.option("checkpointLocation", checkpoint)
            query = writer.trigger(availableNow=True).start()
            query.awaitTermination()
            return sum(one["numInputRows"] for one in query.recentProgress)

    return run


def rates(ways: Mapping[str, Callable[[], int]], rounds: int) -> dict[str, float]:
    """Rows per second of each way; a way returns the number of rows that it read."""

    def way(read: Callable[[], int]) -> Way:
        def seconds_of_a_row() -> list[float]:
            began = time.monotonic()
            rows = read()
            return [(time.monotonic() - began) / rows]

        return seconds_of_a_row

    took = in_turns({name: way(read) for name, read in ways.items()}, rounds, uncounted=1)
    return {name: 1 / each for name, each in medians(took).items()}


# -- connectors of the JVM, on the newest Spark that they support

OLD_SPARK = "pyspark==3.4.4"
OLD_PROGRAM = Path(__file__).with_name("old_spark_program.py")


def jvm(jars: Sequence[Path], form: str, **given: object) -> list[float]:
    """The seconds of each written folder, or of each read; see `old_spark_program`."""
    home = CACHE / "hadoop-spark"
    python = home / "bin" / "python"
    if not python.exists():
        Environment(home).install(OLD_SPARK, "setuptools")
    task = {"jars": ",".join(map(str, jars)), "format": form, **given}
    said = subprocess.run(
        [python, OLD_PROGRAM, json.dumps(task)],
        env={**os.environ, "JAVA_HOME": str(java_home(home)), "PYSPARK_PYTHON": str(python)},
        check=True,
        stdout=subprocess.PIPE,
    )
    took: list[float] = json.loads(said.stdout.splitlines()[-1])
    return took[1:]


def folders(source: Path) -> list[str]:
    return sorted(map(str, source.iterdir()))


# -- programs


def show(title: str, head: Sequence[str], lines: Iterable[Sequence[object]]) -> None:
    """Print a table; numbers above a thousand have commas."""
    table = Table(title=title)
    for at, column in enumerate(head):
        table.add_column(column, justify="right" if at else "left", no_wrap=True)
    for line in lines:
        table.add_row(*(one if isinstance(one, str) else f"{one:,.0f}" for one in line))
    Console(width=120).print(table)


def show_rates(title: str, found: Mapping[str, float], *against: str) -> None:
    """Print rows per second, and the ratio to others."""
    head = ("", "rows/s", *(f"against {other}" for other in against))
    lines = (
        (name, rate, *(f"{rate / found[other]:.2f}" for other in against))
        for name, rate in found.items()
    )
    show(title, head, lines)


@contextmanager
def session(
    settings: Mapping[str, str] | None = None, hand: type[Hand] = Hand
) -> Iterator[tuple[SparkSession, Path]]:
    """A session with the sources of the benchmarks registered, and a folder for rows."""
    with (
        tempfile.TemporaryDirectory(prefix="sparkonce-bench-") as scratch,
        local_spark.session(Path(scratch), settings) as spark,
    ):
        spark.dataSource.register(Nowhere)
        spark.dataSource.register(hand)
        yield spark, Path(scratch)


def main(doc: str | None, commands: Mapping[str, Callable[[argparse.Namespace], None]]) -> None:
    """Run one of the commands; by default with the number of rows in docs/speed.md."""
    parser = argparse.ArgumentParser(
        description=doc, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("command", choices=commands)
    parser.add_argument("--rows", type=int, help="number of rows; default: as in docs/speed.md")
    parser.add_argument("--rounds", type=int, default=3, help="number of rounds that count")
    parser.add_argument("--server", choices=["mysql", "mariadb"], default="mysql")
    given = parser.parse_args()
    commands[given.command](given)
