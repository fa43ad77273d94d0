"""The detail of a plan: the documents that rows are about, and how they are written."""

from __future__ import annotations

import enum
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from importlib.resources import files

import pyarrow as pa

from pyspark_elasticsearch.target.templates import Segment
from sparkonce.change import Append, Change, Delete, Increment, Names, Update, Upsert
from sparkonce.protocol import Stored
from sparkonce.values import spark_types


class RowGuard(enum.Enum):
    """What keeps a row from taking effect twice."""

    ID = "its document's id, made from what was staged"
    VERSION = "its document's version"
    SCRIPT = "a field of its document, which the script of the change compares"


@dataclass(frozen=True)
class BulkMode:
    """How a write mode writes."""

    meaning: str  # in words, for the option
    verb: str  # of the operation in a bulk request
    guard: RowGuard  # what keeps a row from taking effect twice
    repeatable: bool = False  # see `Plan.repeatable`
    script: str = ""  # what the script does behind its guard
    in_order: bool = False  # whether a chunk waits for the one before it


BULK_MODES: Mapping[type[Change], BulkMode] = {
    Append: BulkMode("adds documents", "create", RowGuard.ID),
    Upsert: BulkMode("writes whole documents by key", "index", RowGuard.VERSION, repeatable=True),
    Update: BulkMode(
        "writes the columns into the document, and leaves its other fields",
        "update",
        RowGuard.SCRIPT,
        repeatable=True,
        script="update",
        in_order=True,
    ),
    Increment: BulkMode(
        "adds all columns but the key's to the document's fields",
        "update",
        RowGuard.SCRIPT,
        script="increment",
    ),
    Delete: BulkMode("deletes the documents with these keys", "delete", RowGuard.VERSION),
}

MODES = {one.__name__.lower(): mode for one, mode in BULK_MODES.items()}
"""By the value of option ``writeMode``."""


@dataclass(frozen=True)
class Documents:
    """The documents that rows are about."""

    index: str  # as the option says
    parts: tuple[Segment, ...]  # of its template, if it is one
    reserved: Names  # names that no row may make from it
    change: Change  # what is done with a row
    columns: Names  # that are stored
    routing: str | None  # the column that routes a document
    pipeline: str | None  # that rows go through
    alias: str | None  # that shows whole epochs
    aside: bool  # whether bad rows are put into chunks as such
    schema: str  # of the query, as Spark's DDL
    create: Stored | None  # settings and mappings of an index that may be made
    overwrites: bool = False  # whether they take the place of all that an alias shows

    @property
    def mode(self) -> BulkMode:
        """How they are written."""
        return BULK_MODES[type(self.change)]

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
        return self.mode.guard is RowGuard.ID and not self.overwrites

    @property
    def is_fenced(self) -> bool:
        """Whether the versions of documents are fences."""
        return self.mode.guard is RowGuard.VERSION and self.order is None

    @property
    def arrow(self) -> pa.Schema:
        """The schema of the query."""
        return spark_types.parse(self.schema)


def key_of(does: Change) -> Names:
    """The columns that name a document; none where rows are added."""
    return () if isinstance(does, Append) else does.key


@cache
def script(mode: BulkMode) -> str:
    """The script of a write mode: a guard, and what it guards."""
    folder = files(__package__)
    texts = [
        folder.joinpath(f"{name}.painless").read_text("utf-8") for name in ("guard", mode.script)
    ]
    lines = (line.strip() for text in texts for line in text.splitlines())
    return " ".join(" ".join(line for line in lines if not line.startswith("//")).split())
