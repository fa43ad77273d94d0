"""The detail of a plan, which the manifest stores and Lua reads."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from itertools import combinations
from typing import TYPE_CHECKING, Any

import pyarrow as pa
from pyarrow import types

from pyspark_redis.target.keys import Key
from sparkonce import checks, codec
from sparkonce.change import Change, Increment, Names, Replace
from sparkonce.errors import OptionError
from sparkonce.protocol import Stored
from sparkonce.values import spark_types

if TYPE_CHECKING:
    from sparkonce.options import Options

FIRST = 3  # place of the first column in a chunk, counted from 1: after keys and `has_nulls`
PACKED = 128  # fields up to which Redis 7 packs a hash (hash-max-listpack-entries)

OF_LUA = (
    *("width", "score_place", "op_place", "expiry_place", "entry_place", "letters_place", "order"),
)
"""Values for Lua only, besides the fields of `PlanDetail`: most are places in a chunk."""

JOINED = "\0"  # the name of the column that is JSON of several; no other column has that name


@dataclass(frozen=True)
class ControlColumns:
    """Columns that control how a row is written, and are not stored; None if not set."""

    op: str | None = None  # says whether the row is written or deleted
    order: str | None = None  # of two rows with one key the higher one stays; stored as well
    by_number: bool = False  # whether `order` compares as a number, not as a date
    score: str | None = None  # the score of a member of a sorted set
    whole: bool = False  # whether scores are whole numbers
    expiry: str | None = None  # when the row's key expires
    expires_at: bool = False  # whether `expiry` is an instant, not a duration
    entry: str | None = None  # the id of a stream's entry

    @classmethod
    def parse(cls, options: Options, schema: pa.Schema) -> ControlColumns:
        """The columns that options name; OptionError if one is missing or has the wrong type."""
        op = options["opColumn"] and checks.column("opColumn", options["opColumn"], schema)
        order, by_number = _typed("sequenceColumn", options, schema)
        score, whole = _typed("scoreColumn", options, schema)
        expiry, expires_at = _typed("ttlColumn", options, schema)
        entry, _ = _typed("idColumn", options, schema)
        found = {"opColumn": op, "sequenceColumn": order, "scoreColumn": score}
        found |= {"ttlColumn": expiry, "idColumn": entry}
        for (one, name), (other, same) in combinations(found.items(), 2):
            if name is not None and name == same:
                raise OptionError(
                    f"Options {one} and {other} both name column {name!r}",
                    why="each option gives the column another meaning",
                    todo="name a different column in each option",
                )
        return cls(op, order, by_number, score, whole, expiry, expires_at, entry)


_TYPES: dict[str, tuple[str, Any, tuple[Any, ...]]] = {
    "sequenceColumn": (
        "the option orders rows by whole numbers, dates and timestamps",
        types.is_integer,
        (types.is_date, types.is_timestamp),
    ),
    "scoreColumn": ("a score is a whole number or a float", types.is_integer, (types.is_floating,)),
    "ttlColumn": (
        "a key expires after whole seconds or an interval, or at a timestamp",
        lambda kind: types.is_timestamp(kind) and kind.tz,
        (types.is_integer, types.is_duration),
    ),
    "idColumn": (
        "an id is milliseconds, or a text like 1526919030474-55",
        types.is_integer,
        (types.is_string,),
    ),
}
"""By option: what its column means, the type that `_typed` reports, and other valid types."""


def _typed(option: str, options: Options, schema: pa.Schema) -> tuple[str | None, bool]:
    """The column of an option, and whether it has the first type of `_TYPES`."""
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
    """How rows are written under their keys."""

    model: str  # name of the model
    change: Change  # the write mode
    key: Key  # builds the key of a row
    fields: Names  # columns that are written or added
    floats: tuple[bool, ...]  # which of them are added as floats
    prefix: str  # prefix of the connector's keys, which no row may use
    controls: ControlColumns  # columns that control how a row is written
    ttl: int | None = None  # time to live of a written key, in milliseconds; None: no expiry
    overwrites: bool = False  # whether all keys with the fixed text of `key` are deleted first
    joined: bool = False  # whether `fields` become one value, a JSON object
    length: int | None = None  # the most elements of a list or a stream; None: no limit
    # The stream for rows that can't be stored; empty if a bad row stops the epoch.
    dead_letter: str = ""
    schema: str = ""  # schema of the query, as DDL, if rows may become dead letters
    lanes: bool = False  # whether the store is a cluster, see `pyspark_redis.write.chunks.Segment`

    @property
    def expires(self) -> bool:
        """Whether written keys expire."""
        return self.ttl is not None or self.controls.expiry is not None

    @property
    def collects(self) -> bool:
        """Whether a row is an element of its key's value, and so can't be null."""
        return self.model in ("list", "set", "zset")

    @property
    def cost(self) -> int:
        """The server's cost of a row: two for its key and call, one for each field.

        To replace a hash takes one more call. Fields cost twice as much if they are added one by
        one or belong to a stream entry. So do the fields of a hash that is too large for the packed
        encoding of Redis.
        """
        dear = self.model == "stream" or isinstance(self.change, Increment)
        of_key = 3 if isinstance(self.change, Replace) else 2
        return (2 if dear or len(self.fields) > PACKED else 1) * len(self.fields) + of_key

    @cached_property
    def arrow(self) -> pa.Schema:
        """The schema of the query; empty if rows cannot become letters."""
        return spark_types.parse(self.schema) if self.schema else pa.schema([])

    @cached_property
    def columns(self) -> Names:
        """The columns of a chunk, in order: first the written columns, then others.

        With dead letters, the chunk has all columns of the query, unchanged.
        """
        written = (JOINED,) if self.joined else self.fields
        score = (self.controls.score,) if self.controls.score is not None else ()
        return tuple(dict.fromkeys((*written, *score, *self.arrow.names)))

    @cached_property
    def places(self) -> dict[str, int]:
        """The places, in a chunk, of the control columns and of the letters."""
        roles = [
            role for role in ("op", "expiry", "entry") if getattr(self.controls, role) is not None
        ]
        behind = enumerate((*roles, "letters"), FIRST + len(self.columns))
        places = {f"{role}_place": place for place, role in behind}
        if self.controls.score is not None:
            places["score_place"] = FIRST + self.columns.index(self.controls.score)
        return places

    def stored(self) -> Stored:
        """The detail as JSON values, which the manifest stores and Lua reads."""
        for_lua: dict[str, object] = {"width": len(self.columns), **self.places}
        if name := self.controls.order:
            place = FIRST + self.columns.index(name)
            for_lua["order"] = {"name": name, "place": place, "number": self.controls.by_number}
        return {**codec.dump(self), **for_lua}

    @classmethod
    def load(cls, stored: Stored) -> PlanDetail:
        """Read the result of `stored`."""
        return codec.load(cls, {name: one for name, one in stored.items() if name not in OF_LUA})
