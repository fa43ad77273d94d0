"""The Redis connector: its options, and where plan, store and encoder come from."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pyspark_redis.models import MODELS
from pyspark_redis.models.chunks import ChunkEncoder
from pyspark_redis.models.model import Values, overwriting
from pyspark_redis.server import client
from pyspark_redis.store import RedisStore
from sparkonce.option_values import choice, pattern, seconds
from sparkonce.options import COMMON, Option, Options
from sparkonce.protocol import Encoder, Plan

if TYPE_CHECKING:
    import pyarrow as pa

OPTIONS = (
    Option("url", "`redis://host:6379/0`, or `rediss://` for TLS.", client.address, required=True),
    Option(
        "model",
        "What a row becomes: `hash`, of all its columns; `string`, of the one beside the key's.",
        choice(*MODELS),
        next(iter(MODELS)),
    ),
    Option(
        "key",
        "The key of a row: a template such as `user:{id}`, or columns such as `order_id,line_no`.",
        required=True,
    ),
    Option(
        "writeMode",
        "`upsert` writes a row under its key; `increment` (hash) adds its numeric columns to the"
        " hash's fields; `delete` deletes the key.",
        choice("upsert", "increment", "delete"),
        "upsert",
    ),
    Option(
        "nulls",
        "Upsert: `write` deletes what a null stands for, `keep` leaves what is stored.",
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


class RedisConnector:
    """See `sparkonce.store.Connector`."""

    name = "redis"
    options = OPTIONS

    def plan(self, options: Options, schema: pa.Schema) -> Plan[Values]:
        """See `Connector.plan`."""
        return MODELS[options["model"]].plan(options, schema)

    def overwriting(self, plan: Plan[Values], options: Options) -> Plan[Values]:  # noqa: ARG002
        """See `Overwriting`. Readers see old keys go, and new ones come, chunk by chunk."""
        return overwriting(plan)

    def encoder(self, plan: Plan[Values]) -> Encoder:
        """See `Connector.encoder`."""
        return ChunkEncoder(plan.detail)

    def connect(self, options: Options) -> RedisStore:
        """See `Connector.connect`."""
        return RedisStore(client.connect(options), options["keyPrefix"])

    def ddl(self) -> list[str]:
        """See `Connector.ddl`. Redis has no tables."""
        return []
