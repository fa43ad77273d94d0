"""The Elasticsearch connector: its options, its plan, and where store and encoder come from.

The plan's detail, which the manifest keeps: ``index`` (as the option says),
``parts`` (of its template, if it is one), ``reserved`` (names it may not make), ``mode``, ``key``,
``columns`` (that are stored), ``added`` (that an increment adds), ``nulls``, ``op`` (the column of
operations), ``sequence`` (the column to compare by), ``versioning``, ``versionColumn``,
``routing``, ``pipeline``, ``visibleAlias``, ``aside`` (bad rows are put into chunks as such),
``create`` (settings and mappings of a target that may be made), ``schema`` (of the query, as
Spark's DDL).
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pyarrow as pa

from pyspark_elasticsearch import apart, fitness, mappings, names
from pyspark_elasticsearch.client import Cluster
from pyspark_elasticsearch.encoder import ChunkEncoder
from pyspark_elasticsearch.indices import OwnIndices
from pyspark_elasticsearch.options import OPTIONS
from pyspark_elasticsearch.store import ElasticsearchStore, Settings
from sparkonce import checks, schema_text
from sparkonce.errors import OptionError
from sparkonce.protocol import Encoder, Plan

CELLS = 48_000
"""Values in a chunk: each is a request, which the cluster syncs to disk."""


class ElasticsearchConnector:
    """See `sparkonce.protocol.Connector`."""

    name = "elasticsearch"
    options = OPTIONS

    def plan(self, options: Mapping[str, Any], schema: pa.Schema) -> Plan:
        """See `Connector.plan`."""
        key = [checks.key_column("key", name, schema) for name in options["key"] or []]
        op, version, routing, order = (
            checks.column(option, options[option], schema) if options[option] else None
            for option in ("opColumn", "versionColumn", "routing", "sequenceColumn")
        )
        mode = options["writeMode"] or ("upsert" if key or op or order else "append")
        parts = names.parse(options["index"], schema)
        apart.require_names_apart(options)
        fitness.require_no_contradiction(mode, key, options)
        fitness.require_template_fits(parts, options)
        fitness.require_visible(mode, parts, options)
        fitness.require_script_fits(mode, schema, options)
        for field in schema:
            fitness.require_writable(field)
        fitness.require_types(schema, key, op, version, order, routing)
        added = fitness.added(key, routing, parts, schema) if mode == "increment" else []
        stored = [] if mode == "delete" else [name for name in schema.names if name != op]
        return Plan(
            target=f"index:{options['index']}",
            repeatable=mode in ("upsert", "update"),
            columns=len(stored),
            cells=CELLS,
            detail={
                "index": options["index"],
                "parts": parts,
                "reserved": apart.reserved(options),
                "mode": mode,
                "key": key,
                "columns": stored,
                "added": added,
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
                "schema": schema_text.shown(schema),
            },
            key=tuple(key),
        )

    def encoder(self, plan: Plan) -> Encoder:
        """See `Connector.encoder`."""
        return ChunkEncoder(plan.detail)

    def connect(self, options: Mapping[str, Any], plan: Plan | None = None) -> ElasticsearchStore:
        """See `Connector.connect`."""
        if plan is None:
            checks.require_dead_letter(options, "an index", "orders-bad")
        cluster = Cluster(options)
        create = bool(options["createIndices"])
        settings = Settings(
            on_conflict=options["onConflict"],
            dead_letter=options["deadLetter"],
            max_bad_rows=options["maxBadRows"],
            new_index=plan.detail["create"] if plan else None,
        )
        own = OwnIndices(cluster, options["indexPrefix"], create=create)
        return ElasticsearchStore(cluster, own, plan, settings)

    def ddl(self) -> list[str]:
        """See `Connector.ddl`. Elasticsearch has no such statements; the docs show requests."""
        return []


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
