"""What all models share: how a plan is made of options and schema."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from pyspark_redis.server.address import is_cluster
from pyspark_redis.write import special
from pyspark_redis.write.template import parse_key
from pyspark_redis.write.values import Values
from sparkonce import change, checks
from sparkonce.change import Change, Delete, Increment, Names, Upsert
from sparkonce.errors import OptionError
from sparkonce.protocol import Plan
from sparkonce.values import spark_types

if TYPE_CHECKING:
    import pyarrow as pa

    from sparkonce.options import Options

Fields = Sequence["pa.Field"]

LARGER = 32
"""How many times larger chunks for a cluster are: what a slot costs does not grow with its rows."""


@dataclass(frozen=True)
class Model:
    """What a row becomes.

    Attributes:
        name: of the option's value, and of its Lua: ``<name>_<write mode>.lua``.
        changes: what it can do; the first is the default.
        written: gives the columns that are written, of those that no option names; also of those
            beside the key's.
        added: gives those that are added, of the latter.
        takes: those of `special.OF_SOME` that mean something to it.
        joins: whether several columns become one value, a JSON object.
        collects: whether a key holds many rows, told apart by their value.
    """

    name: str
    changes: tuple[type[Change], ...]
    written: Callable[[Fields, Fields], Names]
    added: Callable[[Fields], Names] = lambda _: ()
    takes: Collection[str] = ()
    joins: bool = False
    collects: bool = False

    def plan(self, options: Options, schema: pa.Schema) -> Plan[Values]:
        """The plan that options describe.

        Raises:
            OptionError: they don't fit each other, the schema or this model.
        """
        checks.refuse(self._strangers(options))
        key = parse_key(options["key"], schema)
        named = special.parse(options, schema)
        free = [field for field in schema if field.name not in named.unwritten]
        beside = [field for field in free if field.name not in key.columns]
        does = change.parse(
            options, schema, key.columns, lambda: self.added(beside), usual=self.changes[0]
        )
        checks.refuse((*change.contradictions(does, options), *self._contradictions(does, options)))
        fields = self._fields(does, free, beside)
        values = Values(
            model=self.name,
            change=does,
            key=key,
            fields=fields,
            floats=tuple(_is_float(schema, name) for name in fields),
            ttl=int(options["ttl"] * 1000) if options["ttl"] else None,
            prefix=options["keyPrefix"],
            special=named,
            joined=self.joins and len(fields) > 1,
            length=options["maxLength"],
            dead_letter=options["deadLetter"] or "",
            schema=_schema_of_letters(options, schema),
            lanes=is_cluster(options["url"]),
        )
        return _planned(values, f"{self.name}:{key.name}")

    def _fields(self, does: Change, free: Fields, beside: Fields) -> Names:
        if self.collects or not isinstance(does, Increment | Delete):
            return self.written(free, beside)
        return does.added if isinstance(does, Increment) else ()

    def _strangers(self, options: Options) -> Iterator[checks.Contradiction]:
        """Options that say nothing about this model."""
        for name in special.OF_SOME:
            given = options[name] not in (None, "write")
            yield (
                given and name not in self.takes,
                f"Options model={self.name} and {name} contradict each other",
                f"{name} says nothing about a {self.name}",
                f"leave {name} out, or take another model",
            )

    def _contradictions(self, does: Change, options: Options) -> Iterator[checks.Contradiction]:
        yield (
            not isinstance(does, self.changes),
            f"Option model={self.name} can't do writeMode={change.mode_of(does)}",
            f"its write modes are {', '.join(one.__name__.lower() for one in self.changes)}",
            "take one of those, or another model",
        )
        for name in ("ttl", "ttlColumn", "sequenceColumn", "scoreColumn"):
            yield (
                isinstance(does, Delete) and options[name],
                f"Options writeMode=delete and {name} contradict each other",
                "nothing of a row is stored",
                f"leave {name} out",
            )
        yield (
            isinstance(does, Increment) and options["sequenceColumn"],
            "Options writeMode=increment and sequenceColumn contradict each other",
            "all rows are added",
            "leave sequenceColumn out",
        )
        yield (
            "scoreColumn" in self.takes
            and not isinstance(does, Delete)
            and not options["scoreColumn"],
            f"Option scoreColumn is missing, and model={self.name} needs it",
            "it says by what members are sorted",
            'add .option("scoreColumn", ...), a column of numbers',
        )


def all_columns(model: str, most: int, free: Fields, beside: Fields) -> Names:
    """All columns, each of which becomes a field.

    Raises:
        OptionError: there are too many, one has no text, or all may be null.
    """
    checks.refuse(
        [
            (
                len(free) == len(beside),
                "Option ttlColumn or opColumn names the column of option key",
                f"it is not written then, and a row of nulls would be a {model} of no field",
                "copy it into a column of its own, and name that one",
            )
        ]
    )
    return few(model, most, checks.require_texts(free, "Redis"))


def few(model: str, most: int, names: list[str]) -> Names:
    """These columns, which become fields.

    Raises:
        OptionError: there are too many for Lua.
    """
    if len(names) > most:
        raise OptionError(
            f"The query has {len(names):,} columns to write",
            why=f"what writes a {model} in Redis can have {most:,} at most",
            todo="collect some of them in a struct, an array or a map",
        )
    return tuple(names)


def one_value(model: str, free: Fields, beside: Fields) -> Names:
    """The columns of a value: the one beside the key's, or all, which are joined.

    Raises:
        OptionError: there is none.
    """
    if not beside:
        raise OptionError(
            f"Option model={model} needs a column beside the key's, and the query has none",
            why="it is the value",
            todo="add a column",
        )
    return tuple(checks.require_texts(beside if len(beside) == 1 else free, "Redis"))


def overwriting(plan: Plan[Values]) -> Plan[Values]:
    """The plan that first deletes what lies under the fixed text with which keys begin.

    Raises:
        OptionError: keys begin with none, nothing is written, or the store is a cluster.
    """
    values = plan.detail
    checks.refuse(
        [
            (
                values.lanes,
                "Mode overwrite can't be used with redis+cluster://",
                "the nodes of a cluster can't be emptied in one step with the ledger",
                "delete the keys before, and append; or write to a single server",
            ),
            change.deletes(values.change),
            (
                not values.key.parts[0],
                f"Mode overwrite needs a fixed text before the columns of key={values.key.name!r}",
                "what begins with it is deleted: without one that is all of the database",
                "write the key as a template, such as user:{id}",
            ),
        ]
    )
    # An increment, too: it adds to a target that was just emptied.
    return _planned(replace(values, overwrites=True), plan.target)


def _planned(values: Values, target: str) -> Plan[Values]:
    writes = values.overwrites or isinstance(values.change, Upsert)
    plan = Plan(
        target=target,
        repeatable=writes and not values.expires,  # what expired would come back
        columns=values.cost - 1,
        detail=values,
        stored=values.stored(),
        key=values.key.columns,
        commutes=change.commutes(values.change) and not values.length,  # it drops older elements
    )
    if not values.lanes:
        return plan
    return replace(plan, cells=LARGER * plan.cells, rows=LARGER * plan.rows, bytes=4 * plan.bytes)


def _schema_of_letters(options: Options, schema: pa.Schema) -> str:
    """The schema of rows that become letters, by which each of their columns must have a text.

    Raises:
        OptionError: one has none.
    """
    if not options["deadLetter"]:
        return ""
    checks.require_texts(schema, "Redis")
    return spark_types.shown(schema)


def _is_float(schema: pa.Schema, name: str) -> bool:
    from pyarrow import types

    return bool(types.is_floating(schema.field(name).type))
