"""A sink of batches that is exactly once, in files: each mutant of it breaks a rule of the kit.

Tasks stage their rows in files of their own. The target is one file that names the staged files
which took effect, and the batches which they were of; a rename replaces it.
"""

from __future__ import annotations

import json
import time
import uuid
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

import pyarrow as pa
from pyspark import TaskContext
from pyspark.sql import DataFrame
from pyspark.sql.datasource import DataSource, DataSourceArrowWriter, WriterCommitMessage
from pyspark.sql.types import StructType

from sparkonce.spark.session import EPOCH, QUERY
from sparkonce.tck.batch import BatchSink

MUTANTS = {
    "B01": "a task's rows are forgotten",
    "B02": "tasks write into the target",
    "B03": "attempts of a task share a file",
    "B04": "a job takes effect task by task",
    "B05": "whatever is staged takes effect",
    "B07": "a batch of a stream has no name",
    "B08": "names are not looked at",
    "B09": "the target is emptied first",
    "B10": "a job takes effect task by task",
}
"""What is wrong in a sink that breaks a rule; all else is right. B05's breaks B06, too."""


@dataclass
class Target:
    """What took effect, as the file has it."""

    files: list[str]
    names: list[str]


@dataclass
class Staged(WriterCommitMessage):
    """What a task has staged, and the batch that it belongs to."""

    file: str
    name: str


class Writer(DataSourceArrowWriter):
    """Stages in tasks, decides on the driver."""

    def __init__(self, options: Mapping[str, str], *, overwrite: bool) -> None:
        self.home, self.broken = Path(options["home"]), options.get("broken")
        self.name, self.overwrite = options.get("name") or uuid.uuid4().hex, overwrite
        if overwrite and self.broken == "the target is emptied first":
            replace_target(self.home, Target([], []))

    def write(self, iterator: Iterator[pa.RecordBatch]) -> Staged:
        context = TaskContext.get()
        assert context is not None
        name = self._name(context)
        attempt = uuid.uuid4().hex
        if self.broken == "attempts of a task share a file":
            attempt = str(context.partitionId())
        file = self.home / f"{name}-{attempt}"
        with file.open("a") as out:
            for batch in iterator:
                out.writelines(f"{one}\n" for one in batch.column("id").to_pylist())
                out.flush()
        if self.broken == "tasks write into the target":
            self._take(Staged(file.name, f"{name}-{attempt}"))
        return Staged(file.name, name)

    def commit(self, messages: Sequence[WriterCommitMessage | None]) -> None:
        staged = [message for message in messages if isinstance(message, Staged)]
        if self.broken == "tasks write into the target":
            return
        if self.broken == "a task's rows are forgotten":
            staged.pop()
        if self.broken == "whatever is staged takes effect":
            name = staged[0].name
            staged = [Staged(path.name, name) for path in self.home.glob(f"{name}-*")]
        if self.broken == "a job takes effect task by task":
            for one in staged[:-1]:
                self._take(Staged(one.file, uuid.uuid4().hex))
                time.sleep(1)
            staged = staged[-1:]
        self._take(*staged)

    def abort(self, messages: Sequence[WriterCommitMessage | None]) -> None:
        for message in messages:
            if isinstance(message, Staged) and self.broken != "tasks write into the target":
                (self.home / message.file).unlink(missing_ok=True)

    def _take(self, *staged: Staged) -> None:
        """Let files take effect, unless their batch already has."""
        target, name = read_target(self.home), staged[0].name
        if name not in target.names or self.broken == "names are not looked at":
            kept = [] if self.overwrite else target.files
            files = [*kept, *(one.file for one in staged)]
            replace_target(self.home, Target(files, [*target.names, name]))

    def _name(self, context: TaskContext) -> str:
        query, epoch = map(context.getLocalProperty, (QUERY, EPOCH))
        if query and epoch and self.broken != "a batch of a stream has no name":
            return f"{query}.{epoch}"
        return self.name


class Files(DataSource):
    """The format."""

    @classmethod
    def name(cls) -> str:
        return "files_once"

    def writer(self, schema: StructType, overwrite: bool) -> Writer:  # noqa: ARG002
        return Writer(dict(self.options), overwrite=overwrite)


def attach(rows: DataFrame, mode: str, options: Mapping[str, str]) -> None:
    """Write a batch."""
    rows.sparkSession.dataSource.register(Files)
    rows.write.format("files_once").mode(mode).options(**options).save()


def sink(home: Path, env: Mapping[str, str], broken: str = "") -> BatchSink:
    """Describe it to the kit."""
    return BatchSink(
        read=lambda: effects(home),
        attach=f"{__name__}:attach",
        options={"home": str(home), "broken": broken},
        named={"name": "{job}.{version}"},
        env=env,
    )


def effects(home: Path) -> Counter[str]:
    """How often each id took effect."""
    files = read_target(home).files
    return Counter(one for file in files for one in (home / file).read_text().splitlines())


def read_target(home: Path) -> Target:
    path = home / "target"
    return Target(**json.loads(path.read_text())) if path.exists() else Target([], [])


def replace_target(home: Path, target: Target) -> None:
    hidden = home / f".{uuid.uuid4().hex}"
    hidden.write_text(json.dumps(asdict(target)))
    hidden.rename(home / "target")
