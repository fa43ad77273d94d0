"""The detail of a plan: what of it is stored, and read by Lua."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import pyarrow as pa

from pyspark_redis.server.own_keys import begins
from pyspark_redis.write.special import Special
from pyspark_redis.write.template import Key
from sparkonce import change, codec
from sparkonce.change import Change, Increment, Names
from sparkonce.protocol import Stored
from sparkonce.values import spark_types

FIRST = 3
"""Place of the first column in a chunk, as Lua counts: behind keys and flags."""

PACKED = 128
"""Fields up to which Redis 7 packs a hash (hash-max-listpack-entries)."""

JOINED = "\0"
"""What stands for a column that is JSON of several; no column has that name."""

OF_LUA = ("nulls", "width", "score", "op", "expiry", "letters", "order")
"""What is stored for Lua alone, beside the fields of `Values`: most are places in a chunk."""


@dataclass(frozen=True)
class Values:
    """What is written under the key of each row.

    Attributes:
        model: name of the model.
        change: what is done with it.
        key: makes the key of a row.
        fields: columns that are written or added.
        floats: which of them are added as floats.
        prefix: of the connector's own keys, where no row may lie.
        special: columns that say something else about a row.
        ttl: of a written key, in milliseconds; None for ever.
        overwrites: whether all keys that begin as `key` does are deleted first.
        joined: whether `fields` become one value, a JSON object.
        length: of a list or a stream, at most; None for any.
        dead_letter: the stream of rows that can't be stored; empty if one of them stops the epoch.
        schema: of the query, as DDL, if rows may become dead letters.
        lanes: whether the store is a cluster, see `pyspark_redis.write.segments`.
    """

    model: str
    change: Change
    key: Key
    fields: Names
    floats: tuple[bool, ...]
    prefix: str
    special: Special
    ttl: int | None = None
    overwrites: bool = False
    joined: bool = False
    length: int | None = None
    dead_letter: str = ""
    schema: str = ""
    lanes: bool = False

    @property
    def reserved(self) -> tuple[bytes, ...]:
        """What the connector's own keys begin with."""
        return begins(self.prefix)[: 1 + self.lanes]

    @property
    def library(self) -> str:
        """The Lua that applies rows."""
        return f"{self.model}_{change.mode_of(self.change)}"

    @property
    def expires(self) -> bool:
        """Whether keys do that are written."""
        return self.ttl is not None or self.special.expiry is not None

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
        others = [name for name in (self.special.score,) if name is not None]
        others += [name for name in self.arrow.names if name not in (*written, *others)]
        return (*written, *others)

    @cached_property
    def places(self) -> dict[str, int]:
        """Where Lua finds in a chunk what says something about a row, and the letters."""
        places, names = {}, self.columns
        behind = FIRST + len(names)
        if self.special.score is not None:
            places["score"] = FIRST + names.index(self.special.score)
        for role in ("op", "expiry"):
            if getattr(self.special, role) is not None:
                places[role], behind = behind, behind + 1
        return {**places, "letters": behind}

    def stored(self) -> Stored:
        """As JSON values, which the manifest keeps and Lua reads."""
        order, nulls = self.special.order, getattr(self.change, "nulls", "write")
        ordered = {"order": self._order(order)} if order else {}
        for_lua = {"nulls": nulls, "width": len(self.columns), **self.places, **ordered}
        return {**codec.dump(self), **for_lua}

    def _order(self, name: str) -> dict[str, object]:
        place = FIRST + self.columns.index(name)
        return {"name": name, "place": place, "number": self.special.by_number}

    @classmethod
    def load(cls, stored: Stored) -> Values:
        """Read what `stored` gave."""
        return codec.load(cls, {name: one for name, one in stored.items() if name not in OF_LUA})
