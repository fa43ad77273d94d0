"""The options of the Redis connector, and how their texts are read."""

from __future__ import annotations

from pyspark_redis.models import MODELS
from pyspark_redis.server import client
from sparkonce.option_values import choice, pattern, seconds
from sparkonce.options import COMMON, Option

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
