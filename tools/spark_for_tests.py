"""A Spark for tests that starts quickly; otherwise equal to the Spark that pip installed.

`python -m tools.spark_for_tests home FOLDER` makes its home: links to the installed Spark, and a
zip of PySpark that also has the compiled modules. Python workers import PySpark from that zip.
Python does not cache modules that it compiles from a zip of sources. So the first worker of each
kind would compile for a second, and a streaming query has five kinds:
https://docs.python.org/3/library/zipimport.html

`python -m tools.spark_for_tests classes FILE` makes an archive of Spark's classes, which Java maps
into memory. It halves the time in which a driver starts.
https://docs.oracle.com/en/java/javase/17/docs/specs/man/java.html#application-class-data-sharing
"""

from __future__ import annotations

import compileall
import re
import shutil
import sys
import tempfile
from collections.abc import Iterable, Iterator
from pathlib import Path
from py_compile import PycInvalidationMode
from zipfile import ZIP_DEFLATED, ZipFile

import pyarrow as pa
import pyspark
from integration.support.servers.spark import session
from pyspark.sql import SparkSession
from pyspark.sql.types import StructType
from typing_extensions import override

from sparkonce.spark.features import DataSource, StreamArrowWriter, WriterCommitMessage
from sparkonce.tck.spark.setup import SHORT_LIVED

INSTALLED = Path(pyspark.__file__).parent
LIBRARIES = Path("python") / "lib"
TESTS = re.compile(r"/pyspark/(.*/)?tests/")
COLUMNS = "n long, s string"


def home(folder: Path) -> None:
    """Make the home again; if two runs race, one of the two complete homes remains."""
    folder.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=folder.parent) as made:
        new = Path(made) / "spark"
        (new / LIBRARIES).mkdir(parents=True)
        archive = INSTALLED / LIBRARIES / "pyspark.zip"
        _link(new, leaving_out=[INSTALLED / "python"])
        _link(new, "python", leaving_out=[INSTALLED / LIBRARIES])
        _link(new, str(LIBRARIES), leaving_out=[archive])
        shutil.copy(archive, new / LIBRARIES)
        _compile(new / LIBRARIES / archive.name, shown=folder / LIBRARIES / archive.name)
        shutil.rmtree(folder, ignore_errors=True)
        new.rename(folder)


def _link(new: Path, folder: str = "", *, leaving_out: Iterable[Path]) -> None:
    for there in {*(INSTALLED / folder).iterdir()} - {*leaving_out}:
        (new / folder / there.name).symlink_to(there)


def _compile(archive: Path, shown: Path) -> None:
    """Add the compiled modules; tracebacks name the sources by the shown path."""
    with tempfile.TemporaryDirectory() as scratch, ZipFile(archive, "a", ZIP_DEFLATED) as both:
        both.extractall(scratch)
        compileall.compile_dir(
            scratch,
            quiet=1,
            rx=TESTS,
            legacy=True,  # beside the source: imports from a zip ignore __pycache__
            invalidation_mode=PycInvalidationMode.UNCHECKED_HASH,
            stripdir=scratch,
            prependdir=str(shown),
        )
        for one in sorted(Path(scratch).rglob("*.pyc")):
            both.write(one, one.relative_to(scratch))


class Nowhere(DataSource):
    """A sink that looks to Spark like those of sparkonce."""

    @classmethod
    def name(cls) -> str:
        return "nowhere"

    @override
    def streamWriter(self, schema: StructType, overwrite: bool) -> ToNowhere:
        return ToNowhere()


class ToNowhere(StreamArrowWriter):
    def write(self, iterator: Iterator[pa.RecordBatch]) -> WriterCommitMessage:
        for _ in iterator:
            pass
        return WriterCommitMessage()


def classes(archive: Path) -> None:
    """Run a typical test in a Java that records the classes that it loads."""
    new = archive.with_suffix(".new")
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as scratch:
        java = f"{SHORT_LIVED} -Xlog:disable -Xlog:all=error:stderr -XX:ArchiveClassesAtExit={new}"
        with session(Path(scratch), java=java) as spark:
            _exercise(spark, Path(scratch))
    new.rename(archive)


def _exercise(spark: SparkSession, home: Path) -> None:
    rows = spark.createDataFrame([(1, "a"), (2, "b"), (3, "a")], COLUMNS)
    rows.write.parquet(str(home / "rows"))
    rows.createOrReplaceTempView("rows")
    spark.sql("SELECT s, max(r.n) FROM rows JOIN rows r USING (s) GROUP BY s ORDER BY s").collect()
    spark.dataSource.register(Nowhere)
    source = spark.readStream.schema(COLUMNS).parquet(str(home / "rows"))
    sink = source.repartition(2).writeStream.format("nowhere")
    sink = sink.option("checkpointLocation", str(home / "checkpoint")).trigger(availableNow=True)
    sink.start().awaitTermination()


if __name__ == "__main__":
    {"home": home, "classes": classes}[sys.argv[1]](Path(sys.argv[2]).absolute())
