"""The detail of a plan: the documents of rows, and how the connector writes them."""

from __future__ import annotations

import enum
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from importlib.resources import files

import pyarrow as pa

from sparkonce.change import Append, Change, Delete, Increment, Names, Update, Upsert
from sparkonce.protocol import Stored
from sparkonce.templates import Segment
from sparkonce.values import spark_types


class RowGuard(enum.Enum):
    """What keeps a row from taking effect twice."""

    ID = "its document's id, made from the staged chunk"
    VERSION = "its document's version"
    SCRIPT = "a field of its document, which the script of the change compares"


@dataclass(frozen=True)
class BulkMode:
    """How a write mode uses bulk requests."""

    meaning: str  # for the description of the option
    verb: str  # the action in a bulk request
    guard: RowGuard  # what keeps a row from taking effect twice
    repeatable: bool = False  # see `Plan.repeatable`
    script: str = ""  # the script after the guard
    in_order: bool = False  # whether a chunk waits for the one before it


BULK_MODES: Mapping[type[Change], BulkMode] = {
    Append: BulkMode("adds documents", "create", RowGuard.ID),
    Upsert: BulkMode("writes whole documents by key", "index", RowGuard.VERSION, repeatable=True),
    Update: BulkMode(
        "writes the columns into the document, and keeps its other fields",
        "update",
        RowGuard.SCRIPT,
        repeatable=True,
        script="update",
        in_order=True,
    ),
    Increment: BulkMode(
        "adds all columns except the key to the document's fields",
        "update",
        RowGuard.SCRIPT,
        script="increment",
    ),
    Delete: BulkMode("deletes the documents with these keys", "delete", RowGuard.VERSION),
}

SCRIPTED = BulkMode("", "update", RowGuard.SCRIPT, script="script", in_order=True)
"""An update by a script of the user's."""

MODES = {one.__name__.lower(): mode for one, mode in BULK_MODES.items()}
"""The modes by the value of option ``writeMode``."""


@dataclass(frozen=True)
class Documents:
    """The documents of rows."""

    index: str  # the value of the option
    parts: tuple[Segment, ...]  # of the template, if it is one
    reserved: Names  # names that the template must not make
    change: Change  # what a row does
    columns: Names  # the stored columns
    routing: str | None  # the column that routes a document
    pipeline: str | None  # the ingest pipeline of rows
    alias: str | None  # the alias that shows whole epochs
    aside: bool  # whether chunks also carry bad rows
    schema: str  # of the query, as Spark's DDL
    create: Stored | None  # settings and mappings of a new index, if one may be created
    overwrites: bool = False  # whether they replace everything that an alias shows
    row: str | None = None  # the column that has the whole document as JSON
    adds: bool = False  # whether to map columns that the index lacks
    script: str = ""  # the user's script, which changes a document by a row

    @property
    def mode(self) -> BulkMode:
        """How to write them."""
        return SCRIPTED if self.script else BULK_MODES[type(self.change)]

    @property
    def fields(self) -> Names:
        """The columns that are fields of documents."""
        return self.key if self.script else self.columns

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
        """Whether a null keeps the stored value."""
        return isinstance(self.change, Update) and self.change.nulls == "keep"

    @property
    def added(self) -> Names:
        """The columns that are added."""
        return self.change.added if isinstance(self.change, Increment) else ()

    @property
    def follows_aliases(self) -> bool:
        """Whether an alias may move to another index: appended rows need no earlier ones."""
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
    """The columns that identify a document; none for appends."""
    return () if isinstance(does, Append) else does.key


def script(documents: Documents, first: str = "") -> str:
    """The script of an operation: statements to run first, the guard, and the change after it."""
    return _declared(documents.script) + first + _guarded(documents.mode.script)


def _declared(own: str) -> str:
    """The user's script as a function; empty if none exists."""
    if not own:
        return ""
    # Before a second function a brace too many can't compile.
    return f"void change(Map ctx, Map params) {{\n{own}\n}}\nboolean changed() {{ return true; }}\n"


@cache
def _guarded(change: str) -> str:
    folder = files(__package__)
    texts = [folder.joinpath(f"{name}.painless").read_text("utf-8") for name in ("guard", change)]
    lines = (line.strip() for text in texts for line in text.splitlines())
    return " ".join(" ".join(line for line in lines if not line.startswith("//")).split())
