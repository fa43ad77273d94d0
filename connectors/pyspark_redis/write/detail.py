"""The detail of a plan: what of it the manifest keeps, and Lua reads."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from itertools import combinations
from typing import TYPE_CHECKING, Any

import pyarrow as pa
from pyarrow import types

from pyspark_redis.target.keys import Key
from sparkonce import checks, codec
from sparkonce.change import Change, Increment, Names
from sparkonce.errors import OptionError
from sparkonce.protocol import Stored
from sparkonce.values import spark_types

if TYPE_CHECKING:
    from sparkonce.options import Options

FIRST = 3  # place of the first column in a chunk, as Lua counts: behind keys and `has_nulls`
PACKED = 128  # fields up to which Redis 7 packs a hash (hash-max-listpack-entries)

OF_LUA = ("width", "score_place", "op_place", "expiry_place", "letters_place", "order")
"""What is stored for Lua alone, beside the fields of `PlanDetail`: most are places in a chunk."""

JOINED = "\0"  # what stands for a column that is JSON of several; no column has that name


@dataclass(frozen=True)
class ControlColumns:
    """Columns that say something about a row and are not written; None where none does."""

    op: str | None = None  # whether it is written or deleted
    order: str | None = None  # the higher one of two rows with one key stays; it is written, too
    by_number: bool = False  # whether `order` is compared as a number, and not as a date
    score: str | None = None  # of a member of a sorted set
    whole: bool = False  # whether scores are whole numbers
    expiry: str | None = None  # when its key expires
    expires_at: bool = False  # whether that is an instant, and not a time from now

    @classmethod
    def parse(cls, options: Options, schema: pa.Schema) -> ControlColumns:
        """The columns that options name; OptionError where one is not there, or of no fit type."""
        op = options["opColumn"] and checks.column("opColumn", options["opColumn"], schema)
        order, by_number = _typed("sequenceColumn", options, schema)
        score, whole = _typed("scoreColumn", options, schema)
        expiry, expires_at = _typed("ttlColumn", options, schema)
        found = {"opColumn": op, "sequenceColumn": order, "scoreColumn": score, "ttlColumn": expiry}
        for (one, name), (other, same) in combinations(found.items(), 2):
            if name is not None and name == same:
                raise OptionError(
                    f"Options {one} and {other} both name column {name!r}",
                    why="each says something else about a row",
                    todo="name a column of its own in each",
                )
        return cls(op, order, by_number, score, whole, expiry, expires_at)


_TYPES: dict[str, tuple[str, Any, tuple[Any, ...]]] = {
    "sequenceColumn": (
        "it orders by whole numbers, dates and timestamps",
        types.is_integer,
        (types.is_date, types.is_timestamp),
    ),
    "scoreColumn": ("a score is a whole number or a float", types.is_integer, (types.is_floating,)),
    "ttlColumn": (
        "a key expires after whole seconds or an interval, or at a timestamp",
        lambda kind: types.is_timestamp(kind) and kind.tz,
        (types.is_integer, types.is_duration),
    ),
}
"""What the column of an option means; the type that is kept of it, and others it may have."""


def _typed(option: str, options: Options, schema: pa.Schema) -> tuple[str | None, bool]:
    """The column of an option, and whether its type is the first of `_TYPES`."""
    if not options[option]:
        return None, False
    meaning, first, others = _TYPES[option]
    name = checks.column(option, options[option], schema)
    field = schema.field(name)
    if not any(is_one(field.type) for is_one in (first, *others)):
        raise OptionError(
            f"Option {option} names column {name!r} of type {spark_types.spark_type(field)}",
            why=meaning,
            todo="name another column, or cast it before the sink",
        )
    return name, bool(first(field.type))


@dataclass(frozen=True)
class PlanDetail:
    """What is written under the key of each row."""

    model: str  # name of the model
    change: Change  # what is done with it
    key: Key  # makes the key of a row
    fields: Names  # columns that are written or added
    floats: tuple[bool, ...]  # which of them are added as floats
    prefix: str  # of the connector's own keys, where no row may lie
    controls: ControlColumns  # columns that say something else about a row
    ttl: int | None = None  # of a written key, in milliseconds; None for ever
    overwrites: bool = False  # whether all keys that begin as `key` does are deleted first
    joined: bool = False  # whether `fields` become one value, a JSON object
    length: int | None = None  # of a list or a stream, at most; None for any
    # The stream of rows that can't be stored; empty if one of them stops the epoch.
    dead_letter: str = ""
    schema: str = ""  # of the query, as DDL, if rows may become dead letters
    lanes: bool = False  # whether the store is a cluster, see `pyspark_redis.write.chunks.Segment`

    @property
    def expires(self) -> bool:
        """Whether keys do that are written."""
        return self.ttl is not None or self.controls.expiry is not None

    @property
    def collects(self) -> bool:
        """Whether a row is an element of what lies under its key, and so can't be null."""
        return self.model in ("list", "set", "zset")

    @property
    def cost(self) -> int:
        """What a row costs the server: two for its key and call, one for each field.

        Fields that are added one by one, or make the entry of a stream, cost twice as much; so do
        those of a hash so large that Redis makes a table of it.
        """
        dear = self.model == "stream" or isinstance(self.change, Increment)
        return (2 if dear or len(self.fields) > PACKED else 1) * len(self.fields) + 2

    @cached_property
    def arrow(self) -> pa.Schema:
        """The schema of the query; empty where rows become no letters."""
        return spark_types.parse(self.schema) if self.schema else pa.schema([])

    @cached_property
    def columns(self) -> Names:
        """The columns of a chunk, in their order: those that are written, then others.

        With dead letters all of the query are there, as they are.
        """
        written = (JOINED,) if self.joined else self.fields
        score = (self.controls.score,) if self.controls.score is not None else ()
        return tuple(dict.fromkeys((*written, *score, *self.arrow.names)))

    @cached_property
    def places(self) -> dict[str, int]:
        """Where Lua finds in a chunk what says something about a row, and the letters."""
        roles = [role for role in ("op", "expiry") if getattr(self.controls, role) is not None]
        behind = enumerate((*roles, "letters"), FIRST + len(self.columns))
        places = {f"{role}_place": place for place, role in behind}
        if self.controls.score is not None:
            places["score_place"] = FIRST + self.columns.index(self.controls.score)
        return places

    def stored(self) -> Stored:
        """As JSON values, which the manifest keeps and Lua reads."""
        for_lua: dict[str, object] = {"width": len(self.columns), **self.places}
        if name := self.controls.order:
            place = FIRST + self.columns.index(name)
            for_lua["order"] = {"name": name, "place": place, "number": self.controls.by_number}
        return {**codec.dump(self), **for_lua}

    @classmethod
    def load(cls, stored: Stored) -> PlanDetail:
        """Read what `stored` gave."""
        return codec.load(cls, {name: one for name, one in stored.items() if name not in OF_LUA})
