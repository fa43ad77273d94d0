"""The driver's program: all pipelines, until one of them fails or somebody ends it."""

from __future__ import annotations

import json
import sys
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import ClassVar

from tools.chaos.query import session


@dataclass(frozen=True)
class Pipeline:
    """A query from one store to another.

    Attributes:
        formats: of its source and its sink.
        reads: the source's options.
        schema: of what is read; empty where the source knows it.
        columns: that are written, as SQL expressions.
        writes: the sink's options.
    """

    formats: tuple[str, str]
    reads: Mapping[str, str]
    schema: str
    columns: tuple[str, ...]
    writes: Mapping[str, str]


@dataclass(frozen=True)
class Job:
    """What a driver runs: pipelines by name, where their checkpoints are, settings of Spark."""

    program: ClassVar[str] = "tools.chaos.pipelines.query"

    pipelines: Mapping[str, Pipeline]
    checkpoints: str
    settings: Mapping[str, str]

    def write(self, path: Path) -> None:
        path.write_text(json.dumps(asdict(self)))


def main(path: str) -> None:
    told = json.loads(Path(path).read_text())
    spark = session(told["settings"])
    for name, one in told["pipelines"].items():
        source, sink = one["formats"]
        reader = spark.readStream.format(source).options(**one["reads"])
        rows = (reader.schema(one["schema"]) if one["schema"] else reader).load()
        (
            rows.selectExpr(*one["columns"])
            .writeStream.format(sink)
            .queryName(name)
            .options(**one["writes"])
            .option("checkpointLocation", f"{told['checkpoints']}/{name}")
            .start()
        )
    spark.streams.awaitAnyTermination()


if __name__ == "__main__":
    main(sys.argv[1])
