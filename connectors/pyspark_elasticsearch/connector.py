"""The Elasticsearch connector: its options, its plan, and where store and encoder come from.

The plan's detail, which the manifest keeps: ``index`` (as the option says),
``parts`` (of its template, if it is one), ``reserved`` (names it may not make), ``mode``, ``key``,
``columns`` (that are stored), ``added`` (that an increment adds), ``nulls``, ``op`` (the column of
operations), ``versionColumn``, ``routing``, ``pipeline``, ``visibleAlias``, ``aside`` (bad rows are
put into chunks as such), ``create`` (settings and mappings of a target that may be made),
``schema`` (of the query, as Spark's DDL).
"""

from __future__ import annotations

from typing import Any

import pyarrow as pa

from pyspark_elasticsearch import apart, fitness, mappings, names
from pyspark_elasticsearch.client import Cluster
from pyspark_elasticsearch.encoder import ChunkEncoder
from pyspark_elasticsearch.indices import OwnIndices
from pyspark_elasticsearch.options import OPTIONS
from pyspark_elasticsearch.store import ElasticsearchStore
from sparkonce import checks, schema_text
from sparkonce.options import Options
from sparkonce.protocol import Encoder, Plan

CELLS = 48_000
"""Values in a chunk: each is a request, which the cluster syncs to disk."""


class ElasticsearchConnector:
    """See `sparkonce.store.Connector`."""

    name = "elasticsearch"
    options = OPTIONS

    def plan(self, options: Options, schema: pa.Schema) -> Plan[Any]:
        """See `Connector.plan`."""
        key = [checks.key_column("key", name, schema) for name in options["key"] or []]
        named = {
            option: checks.column(option, options[option], schema) if options[option] else None
            for option in ("opColumn", "versionColumn", "routing")
        }
        op, routing = named["opColumn"], named["routing"]
        mode = options["writeMode"] or ("upsert" if key or op else "append")
        parts = names.parse(options["index"], schema)
        apart.require_names_apart(options)
        fitness.require_no_contradiction(mode, key, parts, options)
        fitness.require_columns_fit(mode, key, named, schema)
        stored = [] if mode == "delete" else [name for name in schema.names if name != op]
        detail = {
            "index": options["index"],
            "parts": parts,
            "reserved": apart.reserved(options),
            "mode": mode,
            "key": key,
            "columns": stored,
            "added": fitness.added(key, routing, schema) if mode == "increment" else [],
            "nulls": options["nulls"],
            "op": op,
            "versionColumn": named["versionColumn"],
            "routing": routing,
            "pipeline": options["pipeline"],
            "visibleAlias": options["visibleAlias"],
            "aside": options["onBadRow"] == "deadLetter",
            "schema": schema_text.shown(schema),
        }
        new = mappings.definition(detail, schema) if options["createIndex"] else None
        return Plan(
            target=f"index:{options['index']}",
            repeatable=mode in ("upsert", "update"),
            columns=len(stored),
            cells=CELLS,
            detail={**detail, "create": new},
            stored={**detail, "create": new},
            key=tuple(key),
        )

    def encoder(self, plan: Plan[Any]) -> Encoder:
        """See `Connector.encoder`."""
        return ChunkEncoder(plan.detail)

    def connect(self, options: Options) -> ElasticsearchStore:
        """See `Connector.connect`."""
        checks.require_dead_letter(options, "an index", "orders-bad")
        cluster = Cluster(options)
        return ElasticsearchStore(cluster, OwnIndices(cluster, options["indexPrefix"]), options)

    def ddl(self) -> list[str]:
        """See `Connector.ddl`. Elasticsearch has no such statements; the docs show requests."""
        return []
