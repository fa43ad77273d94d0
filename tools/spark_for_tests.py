"""A Spark for tests that starts quickly; all else of it is as pip has installed it.

`python -m tools.spark_for_tests home FOLDER` makes its home: links to the installed one, but for a
zip of PySpark that has the compiled modules too. Python workers take PySpark from that zip. Python
keeps nothing that it compiles from a zip of sources, so the first worker of each kind compiles for
a second, and a streaming query has five kinds: https://docs.python.org/3/library/zipimport.html

`python -m tools.spark_for_tests classes FILE` makes an archive of Spark's classes, as Java maps
them into memory: a driver that starts with it is there in half the time.
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
    """Make it anew; two runs at once leave one of the two whole ones."""
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
    """Add what its sources compile to; tracebacks name them by the place that is shown."""
    with tempfile.TemporaryDirectory() as scratch, ZipFile(archive, "a", ZIP_DEFLATED) as both:
        both.extractall(scratch)
        compileall.compile_dir(
            scratch,
            quiet=1,
            rx=TESTS,
            legacy=True,  # beside its source: an import from a zip does not look into __pycache__
            invalidation_mode=PycInvalidationMode.UNCHECKED_HASH,
            stripdir=scratch,
            prependdir=str(shown),
        )
        for one in sorted(Path(scratch).rglob("*.pyc")):
            both.write(one, one.relative_to(scratch))


class Nowhere(DataSource):
    """A sink as those of sparkonce are for Spark."""

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
    """Run what most tests run, in a Java that writes down which classes that takes."""
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
