"""A job of an orchestrator: named batches, version after version, until a file tells it to end.

`python -m tools.chaos.orchestrator FILE`; the file holds a `Jobs` as JSON.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING
from uuid import uuid4

from tools.chaos.query import Write

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

ROWS = 200
"""The rows of a version."""


@dataclass(frozen=True)
class Jobs:
    """The batches of an orchestrator.

    Attributes:
        name: the `txnAppId` of its appends, and the column `writer` of their rows.
        settings: of Spark.
        appends: the writes of every version.
        overwrites: of which each version replaces the content of one.
        home: a folder with the last finished version.
    """

    name: str
    settings: Mapping[str, str]
    appends: Sequence[Write]
    overwrites: Sequence[Write]
    home: str

    def write(self, path: Path) -> None:
        path.write_text(json.dumps(asdict(self)))

    @property
    def done(self) -> int:
        """The last version of which all writes have returned; -1 before the first."""
        file = Path(self.home) / "done"
        return int(file.read_text()) if file.exists() else -1

    @property
    def must_end(self) -> Path:
        """A file that ends the program before the next version."""
        return Path(self.home) / "end"


def main(path: str) -> None:
    from pyspark.sql import SparkSession

    jobs = Jobs(**json.loads(Path(path).read_text()))
    builder = SparkSession.builder.appName(jobs.name)
    for key, value in jobs.settings.items():
        builder = builder.config(key, value)
    spark = builder.getOrCreate()
    spark.sparkContext.setLogLevel("WARN")
    while not jobs.must_end.exists():
        version = jobs.done + 1
        run(spark, jobs, version)
        new = Path(jobs.home) / "new"
        new.write_text(str(version))
        new.replace(Path(jobs.home) / "done")


def run(spark: SparkSession, jobs: Jobs, version: int) -> None:
    """Write one version. A process that dies here repeats it, with another value in each row."""
    draw = uuid4()
    rows = spark.range(version * ROWS, (version + 1) * ROWS, numPartitions=2).selectExpr(
        f"'{jobs.name}' as writer", "id as n", "1L as one", f"'{draw}' as draw"
    )
    named = {"txnVersion": str(version)}
    for sink, columns, options in jobs.appends:
        once = {**named, "txnAppId": jobs.name}
        rows.select(*columns).write.format(sink).mode("append").options(**options, **once).save()
    sink, columns, options = jobs.overwrites[version % len(jobs.overwrites)]
    latest = rows.selectExpr("n", f"{version}L as version").select(*columns)
    once = {**named, "txnAppId": f"{jobs.name}-latest"}
    latest.write.format(sink).mode("overwrite").options(**options, **once).save()


if __name__ == "__main__":
    main(sys.argv[1])
