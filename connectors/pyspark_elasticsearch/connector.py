"""The Elasticsearch connector: its options, its plan, and where store and encoder come from.

The plan's detail, which the manifest keeps: ``index`` (as the option says),
``parts`` (of its template, if it is one), ``mode``, ``key``,
``columns`` (that are stored), ``added`` (that an increment adds), ``nulls``, ``op`` (the column of
operations), ``sequence`` (the column to compare by), ``versioning``, ``versionColumn``,
``routing``, ``pipeline``, ``visibleAlias``, ``aside`` (bad rows are put into chunks as such),
``create`` (settings and mappings of a target that may be made).
"""

from __future__ import annotations

import difflib
from collections.abc import Mapping, Sequence
from typing import Any

import pyarrow as pa
from pyarrow import types

from pyspark_elasticsearch import mappings, names
from pyspark_elasticsearch.client import Cluster
from pyspark_elasticsearch.encoder import ChunkEncoder
from pyspark_elasticsearch.indices import OwnIndices
from pyspark_elasticsearch.options import OPTIONS
from pyspark_elasticsearch.store import ElasticsearchStore, Settings
from pyspark_elasticsearch.targets import GUARD
from sparkonce import text
from sparkonce.errors import OptionError
from sparkonce.protocol import Encoder, Plan

KEYED = ("upsert", "update", "increment", "delete")
FIXED = {
    "opColumn": ("upsert",),
    "sequenceColumn": ("upsert",),
    "versionColumn": ("upsert", "delete"),
}
"""Options that only some write modes know."""


class ElasticsearchConnector:
    """See `sparkonce.protocol.Connector`."""

    name = "elasticsearch"
    options = OPTIONS

    def plan(self, options: Mapping[str, Any], schema: pa.Schema) -> Plan:
        """See `Connector.plan`."""
        key = [_column("key", name, schema) for name in options["key"] or []]
        op, version, routing, order = (
            _column(option, options[option], schema) if options[option] else None
            for option in ("opColumn", "versionColumn", "routing", "sequenceColumn")
        )
        mode = options["writeMode"] or ("upsert" if key or op or order else "append")
        parts = names.parse(options["index"], schema)
        _require_no_contradiction(mode, key, options)
        _require_template_fits(mode, parts, options)
        _require_visible(mode, parts, options)
        for field in schema:
            _require_writable(field)
        _require_types(schema, key, op, version, order)
        stored = [] if mode == "delete" else [name for name in schema.names if name != op]
        return Plan(
            target=f"index:{options['index']}",
            repeatable=mode in ("upsert", "update", "delete"),
            columns=max(1, len(stored)),
            detail={
                "index": options["index"],
                "parts": parts,
                "mode": mode,
                "key": key,
                "columns": stored,
                "added": _added(key, routing, schema) if mode == "increment" else [],
                "nulls": options["nulls"],
                "op": op,
                "versioning": options["versioning"],
                "versionColumn": version,
                "sequence": order,
                "routing": routing,
                "pipeline": options["pipeline"],
                "visibleAlias": options["visibleAlias"],
                "aside": options["onBadRow"] == "deadLetter",
                "create": _new_index(options, mode, op, schema),
            },
        )

    def encoder(self, plan: Plan) -> Encoder:
        """See `Connector.encoder`."""
        return ChunkEncoder(plan.detail)

    def connect(self, options: Mapping[str, Any], plan: Plan | None = None) -> ElasticsearchStore:
        """See `Connector.connect`."""
        cluster = Cluster(options)
        create = bool(options["createIndices"])
        settings = Settings(
            on_conflict=options["onConflict"],
            dead_letter=options["deadLetter"],
            new_index=plan.detail["create"] if plan else None,
        )
        own = OwnIndices(cluster, options["indexPrefix"], create=create)
        return ElasticsearchStore(cluster, own, plan, settings)

    def ddl(self) -> list[str]:
        """See `Connector.ddl`. Elasticsearch has no such statements; the docs show requests."""
        return []


def _require_template_fits(
    mode: str, parts: Sequence[names.Part], options: Mapping[str, Any]
) -> None:
    if parts and mode in ("update", "increment"):
        raise OptionError(
            f"Options writeMode={mode} and a template as index contradict each other",
            why="the documents' guard needs a mapping in each index, before its first document",
            todo="name one index",
        )
    if parts and options["createIndex"]:
        raise OptionError(
            "Option createIndex and a template as index contradict each other",
            why="such indices come to be with their first row",
            todo="leave createIndex out, and make an index template (PUT _index_template/...)",
        )


def _require_visible(mode: str, parts: Sequence[names.Part], options: Mapping[str, Any]) -> None:
    if (options["visibility"] == "epoch") != bool(options["visibleAlias"]):
        raise OptionError(
            "Options visibility=epoch and visibleAlias belong together",
            why="the one says that readers see whole epochs, the other by which name",
            todo="set both, for example visibleAlias=orders-visible, or none",
        )
    if options["visibleAlias"] and not options["sinkId"]:
        raise OptionError(
            "Option visibility=epoch needs sinkId",
            why="the alias shows what this sink has written; under the name of a query, a new"
            " checkpoint would begin with an empty one",
            todo="set sinkId, for example sinkId=orders",
        )
    if options["visibleAlias"] and (mode != "append" or parts):
        raise OptionError(
            f"Option visibility=epoch is for writeMode=append and one index, not for {mode} into"
            f" {options['index']}",
            why="a document that is written over can't be hidden, and neither can other indices",
            todo="leave visibility out",
        )


def _new_index(
    options: Mapping[str, Any], mode: str, op: str | None, schema: pa.Schema
) -> dict[str, Any] | None:
    if not options["createIndex"]:
        for name in ("shards", "replicas"):
            if options[name] is not None:
                raise OptionError(
                    f"Option {name} needs createIndex=true",
                    why="it is a setting of an index that is made",
                    todo="set createIndex=true, or leave it out",
                )
        return None
    if mode == "delete":
        raise OptionError(
            "Options writeMode=delete and createIndex contradict each other",
            why="a new index would hold nothing to delete",
            todo="leave createIndex out",
        )
    about = {"mode": mode, "op": op, "visibleAlias": options["visibleAlias"]}
    made = mappings.definition(about, schema)
    given = {"number_of_shards": options["shards"], "number_of_replicas": options["replicas"]}
    made["settings"] = {name: value for name, value in given.items() if value is not None}
    return made


def _column(option: str, name: str, schema: pa.Schema) -> str:
    found = [other for other in schema.names if other == name]
    found = found or [other for other in schema.names if other.lower() == name.lower()]
    if len(found) == 1:
        return str(found[0])
    near = difflib.get_close_matches(name, schema.names, n=1)
    raise OptionError(
        f"Option {option} names column {name!r}, which the query does not have",
        why=f"its columns are {', '.join(schema.names)}",
        todo=f"did you mean {near[0]!r}?" if near else "name one of them",
    )


def _require_writable(field: pa.Field) -> None:
    problem = text.check(field.type)
    if problem:
        raise OptionError(
            f"Column {field.name!r} can't be written: {problem}",
            why="its type has no documented form in Elasticsearch",
            todo="cast it, for example to string, or drop it before the sink",
        )
    if field.name == GUARD or field.name in ("", "_id", "_index", "_source"):
        raise OptionError(
            f"Column {field.name!r} can't be written",
            why="Elasticsearch or this connector keep something else under that name",
            todo="rename the column before the sink",
        )


def _require_types(
    schema: pa.Schema, key: Sequence[str], op: str | None, version: str | None, order: str | None
) -> None:
    for name in key:
        kind = schema.field(name).type
        if (
            types.is_floating(kind)
            or types.is_nested(kind)
            or types.is_null(kind)
            or types.is_binary(kind)
        ):
            raise OptionError(
                f"Option key names column {name!r} of type {kind}",
                why="equal values of this type can have different texts, or none, so a row had no"
                " one id",
                todo="cast it to string, decimal or a whole number before the sink",
            )
    for option, column, fits, wanted in (
        ("opColumn", op, types.is_string, "string"),
        ("versionColumn", version, types.is_integer, "a whole number"),
        ("sequenceColumn", order, _is_ordered, "a whole number, decimal, date or timestamp"),
    ):
        if column is not None and not fits(schema.field(column).type):
            raise OptionError(
                f"Option {option} names column {column!r} of type {schema.field(column).type}",
                why=f"it must be {wanted}",
                todo="cast it before the sink",
            )
    if op is not None and op in (*key, version):
        raise OptionError(
            f"Option opColumn names column {op!r}, and so does another option",
            why="operations are not stored",
            todo="name another column",
        )


def _is_ordered(kind: pa.DataType) -> bool:
    exact = types.is_integer(kind) or types.is_decimal(kind)
    return bool(exact or types.is_date(kind) or types.is_timestamp(kind))


def _added(key: Sequence[str], routing: str | None, schema: pa.Schema) -> list[str]:
    added = [field for field in schema if field.name not in (*key, routing)]
    for field in added:
        if not (types.is_integer(field.type) or types.is_floating(field.type)):
            raise OptionError(
                f"Option writeMode=increment can't add column {field.name!r} of type {field.type}",
                why="Elasticsearch adds 64-bit integers and binary floats only",
                todo="drop the column, make it part of the key, or cast it to bigint or double",
            )
    if not added:
        raise OptionError(
            "Option writeMode=increment has nothing to add",
            why="all columns are part of the key",
            todo="add a number column, for example lit(1).alias('count')",
        )
    return [str(field.name) for field in added]


def _require_no_contradiction(mode: str, key: Sequence[str], options: Mapping[str, Any]) -> None:
    if mode in KEYED and not key:
        raise OptionError(
            f"Option key is missing, and writeMode={mode} needs it",
            why="it says which document a row is about",
            todo='add .option("key", ...), the columns that name a row',
        )
    if mode == "append" and key:
        raise OptionError(
            "Options writeMode=append and key contradict each other",
            why="a document that is there already could be this very row, sent before, or another",
            todo="leave key out, or use writeMode=upsert",
        )
    if mode != "update" and options["nulls"] == "keep":
        raise OptionError(
            f"Options writeMode={mode} and nulls=keep contradict each other",
            why="nulls says what an update does with a null; an upsert writes the whole document",
            todo="leave nulls out, or use writeMode=update",
        )
    for option, modes in FIXED.items():
        if options[option] and mode not in modes:
            raise OptionError(
                f"Options writeMode={mode} and {option} contradict each other",
                why=f"{option} is for {' and '.join(modes)}",
                todo=f"leave {option} out",
            )
    if options["sequenceColumn"] and options["versionColumn"]:
        raise OptionError(
            "Options sequenceColumn and versionColumn contradict each other",
            why="both say which row of a key wins, the one in an epoch, the other for ever",
            todo="leave one of them out",
        )
    if options["versioning"] == "none" and options["versionColumn"]:
        raise OptionError(
            "Options versioning=none and versionColumn contradict each other",
            why="the one says that documents get no version, the other which",
            todo="leave one of them out",
        )
    if (options["onBadRow"] == "deadLetter") != bool(options["deadLetter"]):
        raise OptionError(
            "Options onBadRow=deadLetter and deadLetter belong together",
            why="the one says that bad rows go to an index, the other names it",
            todo="set both, for example deadLetter=orders-bad, or none",
        )
