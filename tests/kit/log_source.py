"""A source of streams that keeps all rules, over a table of SQLite; `source_mutants` break them.

Rows are numbered without gaps. An offset says up to which number rows were read, and the end of the
first epoch also where the query began, which Spark keeps nowhere else.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass, replace
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any

from sparkonce.spark import features
from sparkonce.spark.features import AvailableNow, DataSource, InputPartition, StreamReader
from sparkonce.tck.sources import StreamingSource

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

Offset = dict[str, Any]
TABLES = """
PRAGMA journal_mode = WAL;
CREATE TABLE log (n INTEGER PRIMARY KEY AUTOINCREMENT, id TEXT, taken INTEGER DEFAULT 0);
CREATE TABLE planned (n INTEGER);
"""


class Log:
    """The table; each call has a connection of its own."""

    def __init__(self, path: str) -> None:
        self.path = path

    def make(self) -> None:
        with closing(sqlite3.connect(self.path)) as db:
            db.executescript(TABLES)

    def ask(self, query: str, *values: object) -> list[Any]:
        with closing(self._connect()) as db, db:
            return db.execute(query, values).fetchall()

    def append(self, ids: Sequence[str]) -> None:
        with closing(self._connect()) as db, db:
            db.executemany("INSERT INTO log (id) VALUES (?)", [(one,) for one in ids])

    def delete(self, ids: Sequence[str]) -> None:
        with closing(self._connect()) as db, db:
            db.executemany("DELETE FROM log WHERE id = ?", [(one,) for one in ids])

    def move(self, ids: Sequence[str]) -> None:
        """Change rows: they get new numbers."""
        self.delete(ids)
        self.append(ids)

    def end(self) -> int:
        (found,) = self.ask("SELECT MAX(seq) FROM sqlite_sequence") or [(0,)]
        return found[0] or 0

    def between(self, after: int, end: int) -> list[tuple[int, str]]:
        return self.ask("SELECT n, id FROM log WHERE n > ? AND n <= ? ORDER BY n", after, end)

    def _connect(self) -> sqlite3.Connection:
        db = sqlite3.connect(self.path, timeout=30)
        db.execute("PRAGMA synchronous = OFF")
        return db


@dataclass
class Range(InputPartition):
    """A split: the rows behind `after`, up to `end`."""

    after: int
    end: int
    tolerant: bool = False
    parts: tuple[int, ...] = (0, 1)


class LogReader(StreamReader, AvailableNow):
    """The honest one."""

    def __init__(self, options: Mapping[str, str]) -> None:
        self.log, self.options = Log(options["path"]), options
        self.goal: int | None = None
        self.begun, self.last = 0, Offset()
        self.tolerant = not {"tolerant", "newest"}.isdisjoint(options)
        self.parts = (0,) if "fewer" in options else (0, 1)

    def initialOffset(self) -> Offset:  # noqa: N802 (Spark's name)
        self.begun = self.log.end() if self.options.get("from") == "latest" else 0
        return {}

    def latestOffset(  # noqa: N802 (Spark's name)
        self, start: Offset | None = None, limit: Any = None
    ) -> Offset:
        return self.following(start, limit)

    def following(self, start: Offset | None, limit: Any) -> Offset:
        """The end of the epoch behind an offset."""
        start = self.last if start is None else start
        after = start["at"] if start else self.begun
        at = self.limited(after, self.log.end() if self.goal is None else self.goal, limit)
        self.last = start if start and at <= after else self.offset(at, start, after)
        return self.last

    def limited(self, after: int, goal: int, limit: Any) -> int:
        return min(goal, after + getattr(limit, "max_rows", goal))

    def offset(self, at: int, start: Offset, after: int) -> Offset:
        made = {"at": at} if start else {"at": at, "from": after}
        return made if len(self.parts) == 2 else {**made, "left": self.left(start, after)}

    def left(self, start: Offset, after: int) -> int:
        """Where the part is that is left out."""
        return int(start.get("left", after))

    def getDefaultReadLimit(self) -> Any:  # noqa: N802 (Spark's name)
        most = self.options.get("most")
        limits = features.limits
        return limits.ReadMaxRows(int(most)) if most else limits.ReadAllAvailable()

    def reportLatestOffset(self) -> Offset | None:  # noqa: N802 (Spark's name)
        return {"at": self.log.end()}

    def prepareForTriggerAvailableNow(self) -> None:  # noqa: N802 (Spark's name)
        self.goal = self.log.end()

    def partitions(self, start: Offset, end: Offset) -> Sequence[Range]:
        after, at = start["at"] if start else end["from"], end["at"]
        middle = (after + at) // 2
        halves = [(after, middle), (middle, at)]
        parts = (0,) if "left" in end else (0, 1)
        ranges = [Range(*half, self.tolerant, parts) for half in halves if half[0] < half[1]]
        if "left" in start and "left" not in end:
            ranges.insert(0, Range(start["left"], after, self.tolerant, (1,)))
        return ranges

    def read(self, partition: Range) -> Iterator[tuple[str]]:
        rows = self.log.between(partition.after, partition.end)
        lost = partition.end - partition.after - len(rows)
        if lost and not partition.tolerant:
            raise ValueError(f"{lost} rows are gone behind {partition.after}")
        yield from ((row,) for n, row in rows if n % 2 in partition.parts)


class LogSource(DataSource):
    """The format."""

    @classmethod
    def name(cls) -> str:
        return "kit_log"

    def schema(self) -> str:
        return "id string"

    def streamReader(self, schema: Any) -> LogReader:  # noqa: ARG002, N802 (Spark's name)
        kinds = import_module("tests.kit.source_mutants")
        kind: type[LogReader] = getattr(kinds, self.options.get("mutant", "LogReader"))
        return kind(dict(self.options))


def attach(spark: SparkSession, options: Mapping[str, str]) -> DataFrame:
    """The rows of the log."""
    spark.dataSource.register(LogSource)
    return spark.readStream.format("kit_log").options(**options).load()


def source(home: Path, env: Mapping[str, str], mutant: str = "") -> StreamingSource:
    """Describe it to the kit, with a table that is made for it."""
    log = Log(str(home / "log.db"))
    log.make()
    return StreamingSource(
        name=f"a log in SQLite {mutant}".strip(),
        append=log.append,
        attach=f"{__name__}:attach",
        options={"path": log.path, **({"mutant": mutant} if mutant else {})},
        env=env,
        latest={"from": "latest"},
        limit="most",
        ordered=True,
        change=log.append,
        lose=log.delete,
        tolerant={"tolerant": "true"},
        fall_back=log.delete,
        fewer={"fewer": "true"},
    )


def moving(home: Path, env: Mapping[str, str]) -> StreamingSource:
    """The same, where a row that is changed moves to the end."""
    made = source(home, env)
    moves = Log(made.options["path"]).move
    options = {**made.options, "newest": "true"}
    return replace(made, options=options, newest=True, change=moves)
