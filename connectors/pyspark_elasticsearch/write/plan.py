"""Plans a query, and checks its options and schema without a server."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace

import pyarrow as pa
from pyarrow import types

from pyspark_elasticsearch.journal.indices import own_names
from pyspark_elasticsearch.server.dialect import Dialect
from pyspark_elasticsearch.target import lookup
from pyspark_elasticsearch.target.templates import LIKE
from pyspark_elasticsearch.write.documents import BULK_MODES, Documents, RowGuard, key_of
from sparkonce import change, checks, codec, templates
from sparkonce.change import Append, Change, Delete, Names, Update, Upsert
from sparkonce.errors import OptionError
from sparkonce.options import Options
from sparkonce.protocol import Plan
from sparkonce.values import spark_types
from sparkonce.values.spark_types import spark_type

CELLS = 48_000  # values in a chunk: each chunk is a request, which the cluster syncs to disk
METADATA = (
    *("_data_stream_timestamp", "_field_names", "_id", "_ignored", "_ignored_source", "_index"),
    *("_inference_fields", "_nested_path", "_routing", "_seq_no", "_source", "_tier", "_version"),
)
"""Fields that documents cannot set, in some releases."""


def plan(options: Options, schema: pa.Schema, dialect: Dialect) -> Plan[Documents]:
    """See `Connector.plan`."""
    own = own_names(options["indexPrefix"])
    _require_names_apart(options, own)
    key = tuple(checks.key_column("key", name, schema) for name in options["key"] or ())
    routing, row = (
        checks.column(name, options[name], schema) if options[name] else None
        for name in ("routing", "rowColumn")
    )
    does = change.parse(options, schema, key, lambda: _added(key, routing, schema))
    parts = templates.parse("index", options["index"], schema, LIKE)
    checks.refuse(_of_modes(does, options))
    checks.refuse(change.contradictions(does, options))
    checks.refuse(_of_index(does, parts, options))
    _require_columns_fit(does, routing, row, schema, scripted=bool(options["script"]))
    op = does.op if isinstance(does, Upsert) else None
    stored = pa.schema([] if row else [field for field in schema if field.name != op])
    own_field = lookup.STAMP if options["visibleAlias"] else None
    if BULK_MODES[type(does)].guard is RowGuard.SCRIPT:
        own_field = lookup.GUARD
    documents = Documents(
        index=options["index"],
        parts=parts,
        reserved=(*own, *filter(None, [options["deadLetter"]])),  # no row makes such a name
        change=does,
        columns=() if isinstance(does, Delete) else tuple(stored.names),
        routing=routing,
        pipeline=options["pipeline"],
        alias=options["visibleAlias"],
        aside=options["onBadRow"] == "deadLetter",
        schema=spark_types.to_ddl(schema),
        create=lookup.definition(stored, own_field, dialect) if options["createIndex"] else None,
        row=row,
        adds=options["addColumns"],
        script=options["script"] or "",
    )
    return Plan(
        target=f"index:{documents.index}",
        repeatable=documents.mode.repeatable,
        columns=len(documents.columns),
        detail=documents,
        stored=codec.dump(documents),
        cells=CELLS,
        key=key,
        commutes=change.commutes(does),
    )


def _require_names_apart(options: Options, own: Names) -> None:
    named = [name for name in ("index", "deadLetter", "visibleAlias") if options[name]]
    for at, option in enumerate(named):
        if options[option] in own:
            raise own_index(option, options[option])
        for other in named[:at]:
            if options[option] == options[other]:
                raise named_twice(f"{other}={options[other]}", f"{option}={options[option]}")


def own_index(option: str, name: str) -> OptionError:
    """The error for an option that names an index of the connector's own."""
    return OptionError(
        f"Option {option}={name} is an index of the connector's own",
        why="it holds decisions and staged chunks, and rows would mix with them or overwrite them",
        todo="name another index, or choose another indexPrefix for a new checkpoint",
    )


def named_twice(one: str, other: str) -> OptionError:
    """The error for two options that name the same index."""
    return OptionError(
        f"Options {one} and {other} name the same index",
        why="readers would find documents that are not meant for them",
        todo="name another index",
    )


def overwriting(plan: Plan[Documents], options: Options) -> Plan[Documents]:  # noqa: ARG001
    """See `Overwriting`. Readers see the old index until the new one is whole."""
    documents = plan.detail
    template = f"option index={documents.index!r}, a template of names,"
    both = (documents.parts, template), (documents.alias, "option visibleAlias")
    of_index = (
        (
            when,
            f"Mode overwrite and {given} contradict each other",
            "the rows of a batch go into one new index, which takes over an alias",
            "leave it out, or use mode append",
        )
        for when, given in both
    )
    checks.refuse((change.deletes(documents.change), *of_index))
    documents = replace(documents, overwrites=True)
    return replace(plan, detail=documents, stored=codec.dump(documents), repeatable=True)


def _added(key: Names, routing: str | None, schema: pa.Schema) -> Names:
    """The columns that an increment adds: all but the key and the routing."""
    fields = [field for field in schema if field.name not in (*key, routing)]
    adds = "the connector adds 64-bit integers and binary floats only"
    return tuple(checks.require_addable(fields, checks.is_number, adds))


def _of_modes(does: Change, options: Options) -> Iterator[checks.Contradiction]:
    guard = BULK_MODES[type(does)].guard
    both = f"Options writeMode={change.mode_of(does)} and {{}} contradict each other"
    yield (
        isinstance(does, Append) and options["key"],
        both.format("key"),
        "an existing document could be an earlier copy of this row, or another row",
        "leave key out, or use writeMode=upsert",
    )
    yield (
        options["nulls"] == "keep" and not isinstance(does, Update),
        both.format("nulls=keep"),
        "nulls defines what an update does with a null; an upsert writes the whole document",
        "leave nulls out, or use writeMode=update",
    )
    yield (
        options["versionColumn"] and guard is not RowGuard.VERSION,
        both.format("versionColumn"),
        "versionColumn is for upsert and delete",
        "leave versionColumn out",
    )
    yield (
        options["pipeline"] and guard is RowGuard.SCRIPT,
        both.format("pipeline"),
        "a pipeline would see only the key of each row, and a row that it drops changes nothing",
        "leave pipeline out",
    )
    yield (
        options["rowColumn"] and not isinstance(does, Append | Upsert),
        both.format("rowColumn"),
        "a document from rowColumn replaces the stored one as a whole",
        "leave rowColumn out, or use writeMode=upsert",
    )
    yield (
        options["script"] and not isinstance(does, Update),
        both.format("script"),
        "a script changes the stored document by a row",
        "leave script out, or use writeMode=update",
    )
    yield (
        options["script"] and options["nulls"] == "keep",
        "Options script and nulls=keep contradict each other",
        "the script decides what a null does",
        "leave nulls out, and compare with null in the script",
    )
    for other in ("createIndex", "addColumns"):
        yield (
            options["script"] and options[other],
            f"Options script and {other} contradict each other",
            "only the script tells the fields of documents",
            f"leave {other} out, and create the index with its mapping (PUT <index>)",
        )
    yield (
        options["createIndex"] and isinstance(does, Delete),
        both.format("createIndex"),
        "a new index would hold nothing to delete",
        "leave createIndex out",
    )


def _of_index(
    does: Change, parts: Sequence[templates.Segment], options: Options
) -> Iterator[checks.Contradiction]:
    mode, guard = change.mode_of(does), BULK_MODES[type(does)].guard
    alias, index, is_template = options["visibleAlias"], options["index"], "{" in options["index"]
    yield (
        is_template and guard is RowGuard.SCRIPT,
        f"Options writeMode={mode} and index={index}, a template, contradict each other",
        "the first row would create such an index, without the mapping of the guard, which keeps"
        " a row from taking effect twice",
        "name one index, or use writeMode=upsert",
    )
    yield (
        is_template and options["createIndex"],
        "Option createIndex and a template as index contradict each other",
        "their first row creates such indices",
        "leave createIndex out, and create an index template (PUT _index_template/...)",
    )
    yield (
        alias and not options["sinkId"],
        "Option visibleAlias needs sinkId",
        "the alias shows the rows of one sink; without sinkId, a new checkpoint would begin with an"
        " empty alias",
        "set sinkId, for example sinkId=orders",
    )
    yield (
        options["rowColumn"] and parts and not templates.is_invertible(parts),
        f"Options rowColumn and index={index} contradict each other",
        "a dead letter takes the column of the template from the name of the index, so there must"
        " be one, without a date",
        "make the name in one column before the sink",
    )
    for other, wrong in (("rowColumn", options["rowColumn"]), (f"index={index}", is_template)):
        yield (
            wrong and options["addColumns"],
            f"Options addColumns and {other} contradict each other",
            "only the rows tell the fields or the indices",
            "leave addColumns out, and map fields by an index template (PUT _index_template/...)",
        )
    yield (
        alias and options["rowColumn"],
        "Options visibleAlias and rowColumn contradict each other",
        "the alias finds the rows of an epoch by a field that a document of yours lacks",
        "leave visibleAlias out",
    )
    yield (
        alias and (is_template or not isinstance(does, Append)),
        f"Option visibleAlias is for writeMode=append and one index, not for {mode} into {index}",
        "an alias can hide neither overwritten documents nor other indices",
        "leave visibleAlias out",
    )


def _require_columns_fit(
    does: Change, routing: str | None, row: str | None, schema: pa.Schema, *, scripted: bool
) -> None:
    for field in () if row else schema:
        _require_writable(field)
        if BULK_MODES[type(does)].guard is RowGuard.SCRIPT:
            _require_scriptable(field, change.mode_of(does), by_user=scripted)
    order = does.order if isinstance(does, Upsert | Delete) else None
    op = does.op if isinstance(does, Upsert) else None
    for option, named, fits, wanted in (
        ("key", key_of(does), _is_unique, "a type whose equal values have the same text form"),
        ("opColumn", (op,), types.is_string, "a string"),
        ("versionColumn", (order,), _is_version, "a whole number, date or timestamp"),
        ("routing", (routing,), _is_flat, "one value, and no array, map or struct"),
        ("rowColumn", (row,), types.is_string, "a string, for example to_json(struct(*))"),
    ):
        for column in filter(None, named):
            if not fits((field := schema.field(column)).type):
                raise OptionError(
                    f"Option {option} names column {column!r} of type {spark_type(field)}",
                    why=f"it must be {wanted}",
                    todo="cast it before the sink, or name another column",
                )


def _is_version(kind: pa.DataType) -> bool:
    return bool(types.is_integer(kind) or types.is_date(kind) or types.is_timestamp(kind))


def _is_flat(kind: pa.DataType) -> bool:
    return not types.is_nested(kind)


def _is_unique(kind: pa.DataType) -> bool:
    many = types.is_floating(kind) or types.is_binary(kind) or types.is_null(kind)
    return _is_flat(kind) and not many


def _require_writable(field: pa.Field) -> None:
    checks.require_texts([field], "the cluster")
    steps = field.name.split(".")
    why = ""
    if not field.name.strip():
        why = "the name of a field must not be blank"
    elif not all(step.strip() for step in steps):
        why = "a dot in the name of a field leads into an object, and no part may be empty"
    elif steps[0] == lookup.OWN or field.name in METADATA:
        why = "the cluster or this connector uses that name"
    if why:
        raise OptionError(
            f"Column {field.name!r} can't be written", why, "rename the column before the sink"
        )


def _require_scriptable(field: pa.Field, mode: str, *, by_user: bool) -> None:
    """Reject columns that the script of an update or increment would write differently."""
    if by_user and types.is_decimal(field.type):
        raise OptionError(
            f"Column {field.name!r} of type {spark_type(field)} can't be a parameter of option"
            " script",
            why="Painless has no decimals: a script would get text, and add it to text",
            todo="cast it before the sink: to double or bigint for sums, to string to keep it",
        )
    wrong = f"can't be written by writeMode={mode}"
    if "." in field.name:
        raise OptionError(
            f"Column {field.name!r} {wrong}",
            why="a script writes it next to the object that the dot leads into, so the field would"
            " have two values",
            todo="rename the column, or with writeMode=update write the whole object, a struct",
        )
    if types.is_nested(field.type) and _has_decimal(field.type):
        raise OptionError(
            f"Column {field.name!r} of type {spark_type(field)} {wrong}",
            why="decimals in it are numbers, of which a script keeps 17 digits",
            todo="cast them to string or double before the sink",
        )


def _has_decimal(kind: pa.DataType) -> bool:
    inner = [kind.field(place).type for place in range(kind.num_fields)]
    return bool(types.is_decimal(kind)) or any(map(_has_decimal, inner))
