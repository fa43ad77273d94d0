"""Streaming queries over a directory of input files: one file is one epoch."""

from __future__ import annotations

import json
import os
import shutil
from collections import Counter
from collections.abc import Callable, Iterable
from pathlib import Path

import redis
from pyspark.errors import StreamingQueryException
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.streaming import StreamingQuery

from sparkonce.operate.admin import SinkStatus
from sparkonce.operate.arguments import admin_of

Transform = Callable[[DataFrame], DataFrame]


def unchanged(rows: DataFrame) -> DataFrame:
    return rows


class Job:
    """A streaming query that can be run again and again over its input and its checkpoint."""

    format = "redis"

    def __init__(self, spark: SparkSession, home: Path, url: str, name: str) -> None:
        self.spark, self.home, self.url, self.name = spark, home, url, name
        self.input, self.checkpoint = home / "input", home / "checkpoint"
        self.input.mkdir(parents=True)
        self.files = 0
        self.options = {"url": url, "key": f"{name}:{{id}}"}
        self.transform: Transform = unchanged
        self.query_name, self.named = "", ""  # or "source", or "sink"

    def put(self, ids: Iterable[int]) -> None:
        """Add one input file, so one epoch."""
        text = "".join(json.dumps({"id": i, "n": 1}) + "\n" for i in ids)
        hidden = self.input / f".{self.files:05d}"
        hidden.write_text(text)
        # Spark reads files in the order of their times.
        os.utime(hidden, (1e9 + self.files, 1e9 + self.files))
        hidden.rename(self.input / f"{self.files:05d}.json")
        self.files += 1

    def rows_in(self) -> DataFrame:
        """The stream of the job's input."""
        reader = self.spark.readStream.schema("id bigint, n bigint").option("maxFilesPerTrigger", 1)
        return (reader.name("rides") if self.named == "source" else reader).json(str(self.input))

    def start(
        self, *, mode: str = "append", checkpoint: Path | str | None = None
    ) -> StreamingQuery:
        writer = self.transform(self.rows_in()).writeStream.format(self.format).outputMode(mode)
        if self.named == "sink":  # PySpark 4.3 has no method for it
            writer._jwrite.name("counters")
        if self.query_name:  # then the session sets the checkpoint's path
            writer = writer.queryName(self.query_name)
        else:
            writer = writer.option("checkpointLocation", str(checkpoint or self.checkpoint))
        return writer.options(**self.options).trigger(availableNow=True).start()

    def run(self, **start: object) -> StreamingQuery:
        """Run until the input is used up."""
        query = self.start(**start)
        query.awaitTermination()
        return query

    def run_batches(self, write: Callable[[DataFrame, int], None]) -> None:
        """Pass the batches of its input to a function, until the input is used up."""
        writer = self.rows_in().writeStream.foreachBatch(write)
        writer = writer.option("checkpointLocation", str(self.checkpoint))
        writer.trigger(availableNow=True).start().awaitTermination()

    def refused(self, **start: object) -> str:
        """Run a query that must fail; return its message."""
        try:
            self.run(**start)
        except StreamingQueryException as error:
            return str(error)
        raise AssertionError("the query did not fail")

    # -- the checkpoint

    def uncommit(self, epoch: int) -> None:
        """Make Spark replay an epoch, as after a crash before it recorded the commit."""
        (self.checkpoint / "commits" / str(epoch)).unlink()
        (self.checkpoint / "commits" / f".{epoch}.crc").unlink(missing_ok=True)

    def copy_checkpoint(self, name: str) -> Path:
        return Path(shutil.copytree(self.checkpoint, self.home / name))

    def query_id(self, checkpoint: Path | None = None) -> str:
        return json.loads(((checkpoint or self.checkpoint) / "metadata").read_text())["id"]

    # -- the target

    def rows(self) -> dict[str, dict[str, str]]:
        """Every hash that the job has written, by the id in its key."""
        return hashes(self.url, self.name)

    def counts(self) -> Counter[int]:
        """The number of effects of each id, if the job increments: a multiset."""
        return counts(self.url, self.name)

    def sink(self, sink_id: str | None = None) -> SinkStatus:
        """The status of this job's sink; the store also has sinks of other tests."""
        admin, start = admin_of(self.url, ()), f"{sink_id or self.query_id()}@"
        (name,) = [name for name in admin.store.names() if name.startswith(start)]
        return admin.sink(name)


def hashes(url: str, name: str) -> dict[str, dict[str, str]]:
    """The hashes whose keys have this prefix, by the rest of their keys."""
    with redis.Redis.from_url(url, decode_responses=True) as client:
        keys = list(client.scan_iter(f"{name}:*", count=10_000))
        with client.pipeline(transaction=False) as pipe:
            for key in keys:
                pipe.hgetall(key)
            return {k.split(":", 1)[1]: v for k, v in zip(keys, pipe.execute(), strict=True)}


def counts(url: str, name: str) -> Counter[int]:
    """The number of effects of each id, if rows increment a field `n`: a multiset."""
    return Counter({int(key): int(fields["n"]) for key, fields in hashes(url, name).items()})


def once(ids: Iterable[int]) -> Counter[int]:
    """Each id exactly once."""
    return Counter(list(ids))
