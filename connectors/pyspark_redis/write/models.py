"""The models and their write modes, and the plan from options and schema.

A new model needs an entry in `MODELS`, its Lua in ``write/<name>.lua``, and a reader in
`read.models`.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import pyarrow as pa

from pyspark_redis.server.address import is_cluster
from pyspark_redis.target.keys import parse_key
from pyspark_redis.write.detail import ControlColumns, PlanDetail
from sparkonce import change, checks
from sparkonce.change import Append, Change, Delete, Increment, Names, Replace, Upsert
from sparkonce.errors import OptionError
from sparkonce.protocol import Plan
from sparkonce.values import spark_types

if TYPE_CHECKING:
    from sparkonce.options import Options

Fields = Sequence[pa.Field]

OF_SOME = ("opColumn", "sequenceColumn", "scoreColumn", "maxLength", "idColumn", "nulls")
"""Options that apply to some models only."""

LARGER = 32
"""How many times larger chunks for a cluster are: a slot costs the same with more rows."""


@dataclass(frozen=True)
class Model:
    """What a row becomes."""

    name: str  # the value of the option, and the name of the Lua file
    changes: tuple[type[Change], ...]  # its write modes; the first is the default
    takes: Collection[str] = ()  # the options of `OF_SOME` that apply to it
    # The most fields; 0 if the columns become one value: the column that is not the key's, or a
    # JSON object.
    most: int = 0
    adds: bool = False  # whether its fields are numbers that can be incremented
    collects: bool = False  # whether a key holds many rows, distinguished by their value

    def plan(self, options: Options, schema: pa.Schema) -> Plan[PlanDetail]:
        """The plan; OptionError if options contradict each other, the schema or this model."""
        checks.refuse(self._strangers(options))
        key = parse_key(options["key"], schema)
        controls = ControlColumns.parse(options, schema)
        unwritten = controls.op, controls.score, controls.expiry, controls.entry
        free = [field for field in schema if field.name not in unwritten]
        beside = [field for field in free if field.name not in key.columns]
        does = change.parse(
            options, schema, key.columns, lambda: self._added(beside), usual=self.changes[0]
        )
        checks.refuse((*change.contradictions(does, options), *self._contradictions(does, options)))
        fields = self._fields(does, free, beside)
        if options["deadLetter"]:
            checks.require_texts(schema, "Redis")
        detail = PlanDetail(
            model=self.name,
            change=does,
            key=key,
            fields=fields,
            floats=tuple(pa.types.is_floating(schema.field(name).type) for name in fields),
            ttl=int(options["ttl"] * 1000) if options["ttl"] else None,
            prefix=options["keyPrefix"],
            controls=controls,
            joined=not self.most and len(fields) > 1,
            length=options["maxLength"],
            dead_letter=options["deadLetter"] or "",
            schema=spark_types.to_ddl(schema) if options["deadLetter"] else "",
            lanes=is_cluster(options["url"]),
        )
        return _planned(detail, f"{self.name}:{key.name}")

    def _fields(self, does: Change, free: Fields, beside: Fields) -> Names:
        if not self.collects and isinstance(does, Increment | Delete):
            return does.added if isinstance(does, Increment) else ()
        return self._each(free, beside) if self.most else self._one_value(free, beside)

    def _each(self, free: Fields, beside: Fields) -> Names:
        """All columns; each becomes a field."""
        if len(free) == len(beside):
            raise OptionError(
                "Option ttlColumn, opColumn or idColumn names the column of option key",
                why="the key column is then not written, and a row of nulls would be a"
                f" {self.name} of no field",
                todo="copy it into another column, and name that column",
            )
        return self._few(checks.require_texts(free, "Redis"))

    def _one_value(self, free: Fields, beside: Fields) -> Names:
        """The columns of a value: the one that is not the key's, or all columns, joined."""
        if not beside:
            raise OptionError(
                f"Option model={self.name} needs a column besides the key, and the query has none",
                why="that column is the value",
                todo="add a column",
            )
        return tuple(checks.require_texts(beside if len(beside) == 1 else free, "Redis"))

    def _added(self, beside: Fields) -> Names:
        """The columns that are added, from those that are not the key's."""
        if not self.adds:
            return ()
        adds = "Redis adds 64-bit integers and binary floats only"
        names = checks.require_addable(beside, checks.is_number, adds)
        if self.most == 1 < len(names):
            raise OptionError(
                f"Option model=counter needs one column besides the key, and the query has {names}",
                why="a counter is one number",
                todo="select one of them; model=hash adds several",
            )
        return self._few(names)

    def _few(self, names: list[str]) -> Names:
        if len(names) > self.most:
            raise OptionError(
                f"The query has {len(names):,} columns to write",
                why=f"a command that writes a {self.name} in Redis can have {self.most:,} at most",
                todo="collect some of them in a struct, an array or a map",
            )
        return tuple(names)

    def _strangers(self, options: Options) -> Iterator[checks.Contradiction]:
        """Options that do not apply to this model."""
        for name in OF_SOME:
            given = options[name] not in (None, "write")
            yield (
                given and name not in self.takes,
                f"Options model={self.name} and {name} contradict each other",
                f"{name} does not apply to a {self.name}",
                f"remove {name}, or set another model",
            )

    def _contradictions(self, does: Change, options: Options) -> Iterator[checks.Contradiction]:
        yield (
            type(does) not in self.changes,
            f"Option model={self.name} can't do writeMode={change.mode_of(does)}",
            f"its write modes are {', '.join(one.__name__.lower() for one in self.changes)}",
            "set one of those, or another model",
        )
        yield (
            isinstance(does, Replace) and options["nulls"] == "keep",
            "Options writeMode=replace and nulls=keep contradict each other",
            "a replaced hash has no field of a null",
            "remove nulls, or set writeMode=upsert",
        )
        for name in ("ttl", "ttlColumn", "sequenceColumn", "scoreColumn"):
            yield (
                isinstance(does, Delete) and options[name],
                f"Options writeMode=delete and {name} contradict each other",
                "a delete stores nothing of a row",
                f"remove {name}",
            )
        yield (
            isinstance(does, Increment) and options["sequenceColumn"],
            "Options writeMode=increment and sequenceColumn contradict each other",
            "an increment adds all rows",
            "remove sequenceColumn",
        )
        yield (
            "scoreColumn" in self.takes
            and not isinstance(does, Delete)
            and not options["scoreColumn"],
            f"Option scoreColumn is missing, and model={self.name} needs it",
            "the option names the score, which sorts the members",
            'add .option("scoreColumn", ...), a column of numbers',
        )


MODELS = {
    model.name: model
    for model in (
        Model(
            "hash",
            (Upsert, Replace, Increment, Delete),
            ("opColumn", "sequenceColumn", "nulls"),
            most=5000,
            adds=True,
        ),
        Model("string", (Upsert, Delete), ("opColumn", "nulls")),
        Model("counter", (Increment,), most=1, adds=True),
        Model("list", (Append,), ("maxLength",), collects=True),
        Model("set", (Upsert, Delete), ("opColumn",), collects=True),
        Model("zset", (Upsert, Increment, Delete), ("opColumn", "scoreColumn"), collects=True),
        # Lua passes at most 8,000 arguments in one call, and one call writes an entry.
        Model("stream", (Append,), ("maxLength", "idColumn"), most=3900),
    )
}
"""Models by the value of option ``model``. The first one is the default."""


def overwriting(plan: Plan[PlanDetail], options: Options) -> Plan[PlanDetail]:  # noqa: ARG001
    """See `Overwriting`. First deletes all keys that begin with the fixed text of option ``key``.

    Readers see old keys disappear and new keys appear, chunk by chunk.
    """
    detail = plan.detail
    checks.refuse(
        [
            (
                detail.lanes,
                "Mode overwrite can't be used with redis+cluster://",
                "no single step can empty the nodes of a cluster and write the ledger",
                "delete the keys first, then append; or write to a single server",
            ),
            change.deletes(detail.change),
            (
                not detail.key.parts[0],
                f"Mode overwrite needs a fixed text before the columns of key={detail.key.name!r}",
                "the connector deletes all keys with that text: without it, the whole database",
                "write the key as a template, for example user:{id}",
            ),
        ]
    )
    # An increment is allowed: it adds to an empty target.
    return _planned(replace(detail, overwrites=True), plan.target)


def _planned(detail: PlanDetail, target: str) -> Plan[PlanDetail]:
    writes = detail.overwrites or isinstance(detail.change, Upsert)
    plan = Plan(
        target=target,
        repeatable=writes and not detail.expires,  # a repeat would restore expired keys
        columns=detail.cost - 1,
        detail=detail,
        stored=detail.stored(),
        key=detail.key.columns,
        # A limit drops older entries, and their own ids must grow.
        commutes=change.commutes(detail.change) and not (detail.length or detail.controls.entry),
    )
    if not detail.lanes:
        return plan
    return replace(plan, cells=LARGER * plan.cells, rows=LARGER * plan.rows, bytes=4 * plan.bytes)
