"""What all models share: how a plan is made, and what of it is stored and read by Lua."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from pyspark_redis.models.template import Key, parse_key
from sparkonce import change, checks
from sparkonce.change import Change, Delete, Increment, Names, Upsert
from sparkonce.protocol import Plan, Stored

if TYPE_CHECKING:
    import pyarrow as pa

    from sparkonce.options import Options


@dataclass(frozen=True)
class Values:
    """The detail of a plan: what is written under the key of each row.

    Attributes:
        model: name of the model.
        change: what is done with it.
        key: makes the key of a row.
        fields: columns that are written or added, in the order of a chunk.
        floats: which of them are added as floats.
        ttl: of a written key, in milliseconds; None for ever.
        prefix: of the connector's own keys, where no row may lie.
        overwrites: whether all keys that begin as `key` does are deleted first.
    """

    model: str
    change: Change
    key: Key
    fields: Names
    floats: tuple[bool, ...]
    ttl: int | None
    prefix: str
    overwrites: bool = False

    @property
    def library(self) -> str:
        """The Lua that applies rows."""
        return f"{self.model}_{change.mode_of(self.change)}"

    @property
    def cost(self) -> int:
        """What a row costs the server: one for each field, and two more for its key and call."""
        return len(self.fields) + 2

    def stored(self) -> Stored:
        """As JSON values, which the manifest keeps and Lua reads."""
        return {
            "model": self.model,
            "mode": change.mode_of(self.change),
            "key": list(self.key.parts),
            "escaped": self.key.escaped,
            "fields": list(self.fields),
            "floats": list(self.floats),
            "nulls": getattr(self.change, "nulls", "write"),
            "prefix": self.prefix,
            **({"ttl": str(self.ttl)} if self.ttl else {}),
            "overwrites": self.overwrites,
        }

    @classmethod
    def load(cls, stored: Stored) -> Values:
        """Read what `stored` gave, of this release or an earlier one."""
        key = Key(tuple(stored["key"]), stored["escaped"])
        fields = tuple(stored["fields"])
        return cls(
            model=stored["model"],
            change=change.make(stored["mode"], key.columns, nulls=stored["nulls"], added=fields),
            key=key,
            fields=fields,
            floats=tuple(stored["floats"]),
            ttl=int(stored["ttl"]) if "ttl" in stored else None,
            prefix=stored["prefix"],
            overwrites=stored.get("overwrites", False),
        )


@dataclass(frozen=True)
class Model:
    """What a row becomes.

    Attributes:
        name: of the option's value, and of its Lua: ``<name>_<write mode>.lua``.
        changes: what it can do.
        written: gives the columns that are written, of a key and a schema.
        added: gives those that are added.
    """

    name: str
    changes: tuple[type[Change], ...]
    written: Callable[[Key, pa.Schema], Names]
    added: Callable[[Key, pa.Schema], Names] = lambda _key, _schema: ()

    def plan(self, options: Options, schema: pa.Schema) -> Plan[Values]:
        """The plan that options describe.

        Raises:
            OptionError: they don't fit each other, the schema or this model.
        """
        key = parse_key(options["key"], schema)
        does = change.parse(options, schema, key.columns, lambda: self.added(key, schema))
        checks.refuse((*change.contradictions(does, options), *self._contradictions(does, options)))
        fields = self._fields(does, key, schema)
        ttl = int(options["ttl"] * 1000) if options["ttl"] else None
        values = Values(
            model=self.name,
            change=does,
            key=key,
            fields=fields,
            floats=tuple(_is_float(schema, name) for name in fields),
            ttl=ttl,
            prefix=options["keyPrefix"],
        )
        return Plan(
            target=f"{self.name}:{key.name}",
            repeatable=isinstance(does, Upsert) and ttl is None,  # what expired would come back
            columns=len(fields) + 1,
            detail=values,
            stored=values.stored(),
            key=key.columns,
        )

    def _fields(self, does: Change, key: Key, schema: pa.Schema) -> Names:
        if isinstance(does, Upsert):
            return self.written(key, schema)
        return does.added if isinstance(does, Increment) else ()

    def _contradictions(self, does: Change, options: Options) -> Iterator[checks.Contradiction]:
        yield (
            not isinstance(does, self.changes),
            f"Option model={self.name} can't do writeMode={change.mode_of(does)}",
            f"its write modes are {', '.join(one.__name__.lower() for one in self.changes)}",
            "take one of those, or another model",
        )
        yield (
            isinstance(does, Delete) and options["ttl"],
            "Options writeMode=delete and ttl contradict each other",
            "a deleted key has no expiry",
            "leave ttl out",
        )


def overwriting(plan: Plan[Values]) -> Plan[Values]:
    """The plan that first deletes what lies under the fixed text with which keys begin.

    Raises:
        OptionError: keys begin with none, or nothing is written.
    """
    values = plan.detail
    checks.refuse(
        [
            change.deletes(values.change),
            (
                not values.key.parts[0],
                f"Mode overwrite needs a fixed text before the columns of key={values.key.name!r}",
                "what begins with it is deleted: without one that is all of the database",
                "write the key as a template, such as user:{id}",
            ),
        ]
    )
    values = replace(values, overwrites=True)
    # An increment, too: it adds to a target that was just emptied.
    return replace(plan, detail=values, stored=values.stored(), repeatable=values.ttl is None)


def _is_float(schema: pa.Schema, name: str) -> bool:
    from pyarrow import types

    return bool(types.is_floating(schema.field(name).type))
