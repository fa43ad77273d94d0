"""The Redis connector: its options, its plan, and where store and encoder come from.

The plan's detail, which the manifest keeps and the Lua scripts read:
``model``, ``mode``, ``key`` (literals and columns in turn), ``escaped``, ``fields`` (columns that
are written or added), ``floats`` (which of them are added as floats), ``ttl`` (ms, as text),
``nulls``, ``prefix``.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pyarrow as pa

from pyspark_redis import client
from pyspark_redis.chunks import ChunkEncoder
from pyspark_redis.store import RedisStore
from pyspark_redis.template import Key, parse_key
from sparkonce import checks
from sparkonce.errors import OptionError
from sparkonce.options import COMMON, Option, choice, pattern, seconds
from sparkonce.protocol import Encoder, Plan

OPTIONS = (
    Option("url", "`redis://host:6379/0`, or `rediss://` for TLS.", client.address, required=True),
    Option("model", "The Redis type that a row becomes.", choice("hash"), "hash"),
    Option(
        "key",
        "The key of a row: a template such as `user:{id}`, or columns such as `order_id,line_no`.",
        required=True,
    ),
    Option(
        "writeMode",
        "`upsert` writes a row's columns into its hash; `increment` adds its numeric columns to"
        " the hash's fields; `delete` deletes the hash.",
        choice("upsert", "increment", "delete"),
        "upsert",
    ),
    Option(
        "nulls",
        "Upsert: `write` deletes the field of a null, `keep` leaves what is stored.",
        choice("write", "keep"),
        "write",
    ),
    Option(
        "ttl",
        "Each written key expires so long after its last write, for example `7d`.",
        seconds(0.001, 100 * 365 * 86400),
    ),
    Option(
        "keyPrefix",
        "Hash tag of the connector's own keys (ledger and staged rows).",
        pattern(r"[A-Za-z0-9._-]{1,64}", "1 to 64 of the characters A-Z a-z 0-9 . _ -"),
        "sparkonce",
    ),
    Option("tlsCaFile", "CA certificates (PEM) for `rediss://`; default: the system's."),
    Option("tlsCertFile", "Client certificate (PEM) for `rediss://`."),
    Option("tlsKeyFile", "Key of the client certificate (PEM)."),
    *COMMON,
)

MOST_FIELDS = 5000


class RedisConnector:
    """See `sparkonce.protocol.Connector`."""

    name = "redis"
    options = OPTIONS

    def plan(self, options: Mapping[str, Any], schema: pa.Schema) -> Plan:
        """See `Connector.plan`."""
        mode, ttl = options["writeMode"], options["ttl"]
        key = parse_key(options["key"], schema)
        _require_no_contradiction(options)
        fields = _fields(mode, key, schema)
        _require_narrow(fields)
        floats = [pa.types.is_floating(schema.field(name).type) for name in fields]
        return Plan(
            target=f"{options['model']}:{key.name}",
            repeatable=mode == "upsert" and not ttl,
            columns=len(fields) + 1,
            detail={
                "model": options["model"],
                "mode": mode,
                "key": list(key.parts),
                "escaped": key.escaped,
                "fields": fields,
                "floats": floats,
                "nulls": options["nulls"],
                "prefix": options["keyPrefix"],
                **({"ttl": str(int(ttl * 1000))} if ttl else {}),
            },
            key=key.columns,
        )

    def encoder(self, plan: Plan) -> Encoder:
        """See `Connector.encoder`."""
        return ChunkEncoder(plan.detail)

    def connect(self, options: Mapping[str, Any], plan: Plan | None = None) -> RedisStore:
        """See `Connector.connect`."""
        expiring = plan is not None and "ttl" in plan.detail
        return RedisStore(client.connect(options), options["keyPrefix"], expiring=expiring)

    def ddl(self) -> list[str]:
        """See `Connector.ddl`. Redis has no tables."""
        return []


def _fields(mode: str, key: Key, schema: pa.Schema) -> list[str]:
    if mode == "delete":
        return []
    if mode == "upsert":
        return checks.require_texts(schema, "Redis")
    added = [field for field in schema if field.name not in key.columns]
    adds = "Redis adds 64-bit integers and binary floats only"
    return checks.require_addable(added, checks.is_number, adds)


def _require_narrow(fields: list[str]) -> None:
    if len(fields) > MOST_FIELDS:
        raise OptionError(
            f"The query has {len(fields):,} columns to write",
            why=f"the loop that writes a hash in Redis can have {MOST_FIELDS:,} at most",
            todo="collect some of them in a struct, an array or a map",
        )


def _require_no_contradiction(options: Mapping[str, Any]) -> None:
    mode = options["writeMode"]
    if mode == "delete" and options["ttl"]:
        raise OptionError(
            "Options writeMode=delete and ttl contradict each other",
            why="a deleted key has no expiry",
            todo="leave ttl out",
        )
    if mode != "upsert" and options["nulls"] == "keep":
        raise OptionError(
            f"Options writeMode={mode} and nulls=keep contradict each other",
            why="nulls says what an upsert does with a null; a null adds nothing",
            todo="leave nulls out",
        )
