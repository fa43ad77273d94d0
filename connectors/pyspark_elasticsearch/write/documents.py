"""The detail of a plan: the documents that rows are about, and how they are written."""

from __future__ import annotations

import enum
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from importlib.resources import files

import pyarrow as pa

from pyspark_elasticsearch.write.names import Part
from sparkonce.change import Append, Change, Delete, Increment, Names, Update, Upsert
from sparkonce.protocol import Stored
from sparkonce.values import spark_types


class Guard(enum.Enum):
    """What keeps a row from taking effect twice."""

    ID = "its document's id, made from what was staged"
    VERSION = "its document's version"
    SCRIPT = "a field of its document, which the script of the change compares"


@dataclass(frozen=True)
class Way:
    """How a write mode writes.

    Attributes:
        meaning: in words, for the option.
        verb: of the operation in a bulk request.
        guard: what keeps a row from taking effect twice.
        repeatable: see `Plan.repeatable`.
        script: what the script does behind its guard.
        in_order: whether a chunk waits for the one before it.
    """

    meaning: str
    verb: str
    guard: Guard
    repeatable: bool = False
    script: str = ""
    in_order: bool = False


WAYS: Mapping[type[Change], Way] = {
    Append: Way("adds documents", "create", Guard.ID),
    Upsert: Way("writes whole documents by key", "index", Guard.VERSION, repeatable=True),
    Update: Way(
        "writes the columns into the document, and leaves its other fields",
        "update",
        Guard.SCRIPT,
        repeatable=True,
        script="update",
        in_order=True,
    ),
    Increment: Way(
        "adds all columns but the key's to the document's fields",
        "update",
        Guard.SCRIPT,
        script="increment",
    ),
    Delete: Way("deletes the documents with these keys", "delete", Guard.VERSION),
}

MODES = {one.__name__.lower(): way for one, way in WAYS.items()}
"""By the value of option ``writeMode``."""


@dataclass(frozen=True)
class Documents:
    """The documents that rows are about.

    Attributes:
        index: as the option says.
        parts: of its template, if it is one.
        reserved: names that no row may make from it.
        change: what is done with a row.
        columns: that are stored.
        routing: the column that routes a document.
        pipeline: that rows go through.
        alias: that shows whole epochs.
        aside: whether bad rows are put into chunks as such.
        schema: of the query, as Spark's DDL.
        create: settings and mappings of an index that may be made.
        overwrites: whether they take the place of all that an alias shows.
    """

    index: str
    parts: tuple[Part, ...]
    reserved: Names
    change: Change
    columns: Names
    routing: str | None
    pipeline: str | None
    alias: str | None
    aside: bool
    schema: str
    create: Stored | None
    overwrites: bool = False

    @property
    def way(self) -> Way:
        """How they are written."""
        return WAYS[type(self.change)]

    @property
    def key(self) -> Names:
        """The columns that an id is made from."""
        return key_of(self.change)

    @property
    def op(self) -> str | None:
        """The column of operations."""
        return self.change.op if isinstance(self.change, Upsert) else None

    @property
    def order(self) -> str | None:
        """The column that is a document's version."""
        return self.change.order if isinstance(self.change, Upsert | Delete) else None

    @property
    def keeps(self) -> bool:
        """Whether a null leaves what is stored."""
        return isinstance(self.change, Update) and self.change.nulls == "keep"

    @property
    def added(self) -> Names:
        """The columns that are added."""
        return self.change.added if isinstance(self.change, Increment) else ()

    @property
    def follows_aliases(self) -> bool:
        """Whether the index may be another one tomorrow: rows are added wherever they go."""
        return self.way.guard is Guard.ID and not self.overwrites

    @property
    def is_fenced(self) -> bool:
        """Whether the versions of documents are fences."""
        return self.way.guard is Guard.VERSION and self.order is None

    @property
    def arrow(self) -> pa.Schema:
        """The schema of the query."""
        return spark_types.parse(self.schema)


def key_of(does: Change) -> Names:
    """The columns that name a document; none where rows are added."""
    return () if isinstance(does, Append) else does.key


@cache
def script(way: Way) -> str:
    """The script of a write mode: a guard, and what it guards."""
    folder = files("pyspark_elasticsearch").joinpath("write")
    texts = [
        folder.joinpath(f"{name}.painless").read_text("utf-8") for name in ("guard", way.script)
    ]
    lines = (line for text in texts for line in text.splitlines())
    return " ".join(" ".join(line for line in lines if not line.startswith("//")).split())
