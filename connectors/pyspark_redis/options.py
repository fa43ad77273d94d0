"""The options of the Redis connector and their parsers."""

from __future__ import annotations

import re

from pyspark_redis.read.models import READERS
from pyspark_redis.server.address import address
from pyspark_redis.target import keys
from pyspark_redis.write.models import MODELS
from sparkonce.exactly_once.bad_rows import MAX_BAD_ROWS
from sparkonce.option_values import choice, integer, pattern, seconds
from sparkonce.options import COMMON, Option
from sparkonce.reading import FOLLOWS, READS, STARTS


def streams(text: str) -> list[str]:
    """Read option ``streams``; ValueError if a name is empty or occurs twice."""
    names = [name.strip() for name in text.split(",")]
    if not all(names) or len({*names}) < len(names):
        raise ValueError("names of streams, separated by commas, for example orders,refunds")
    return names


def entries(text: str) -> frozenset[tuple[bytes, bytes]]:
    """Read option ``skipEntries``; or raise ValueError."""
    found = [re.fullmatch(r"(.+):(\d+-\d+)", one.strip()) for one in text.split(",")]
    if not all(found):
        raise ValueError(
            "entries, separated by commas, as errors name them: orders:1526919030474-0"
        )
    return frozenset((one[1].encode(), one[2].encode()) for one in found if one)


URL = Option(
    "url",
    "`redis://host:6379/0`, or `rediss://` for TLS; with Sentinel"
    " `redis+sentinel://host1:26379,host2:26379/mymaster/0`, for a cluster"
    " `redis+cluster://host1:6379,host2:6379`.",
    address,
    required=True,
)
PREFIX = Option(
    "keyPrefix",
    "Hash tag of the connector's keys (ledger and staged rows).",
    pattern(keys.PREFIX, "1 to 64 of the characters A-Z a-z 0-9 . _ -"),
    "sparkonce",
)
ACCESS = (
    Option("sentinelUser", "User name at the Sentinels; `user` is that at the servers."),
    Option("sentinelPassword", "Password at the Sentinels.", secret=True),
    Option(
        "sentinelPasswordFile",
        "File with that password, on the driver and every executor, instead of `sentinelPassword`.",
    ),
    Option("tlsCaFile", "CA certificates (PEM) for `rediss://`; default: the system's."),
    Option("tlsCertFile", "Client certificate (PEM) for `rediss://`."),
    Option("tlsKeyFile", "Key of the client certificate (PEM)."),
)

OPTIONS = (
    URL,
    Option(
        "model",
        "What a row becomes: a `hash` of all its columns; a `string`; a `counter`; an element of a"
        " `list`, a `set` or a `zset`; an entry of a `stream`. The value is the only column besides"
        " the key, or JSON of the row.",
        choice(*MODELS),
        next(iter(MODELS)),
    ),
    Option(
        "key",
        "The key of a row: a template like `user:{id}`, or columns like `order_id,line_no`.",
        required=True,
    ),
    Option(
        "writeMode",
        "`upsert` writes a row under its key; `replace` also removes all other fields of a hash;"
        " `increment` adds numbers; `append` adds an element; `delete` deletes the key or the"
        " element. Default: `upsert` if the model allows it, else the model's first mode.",
        choice("append", "upsert", "replace", "increment", "delete"),
    ),
    Option(
        "nulls",
        "Upsert of a hash or a string: for a null, `write` deletes the stored field or key, `keep`"
        " keeps it.",
        choice("write", "keep"),
        "write",
    ),
    Option(
        "opColumn",
        "A column with the operation of each row, which is not stored: I, U, D; insert, update,"
        " delete; c, u, d, r of Debezium; `_change_type` of Spark and Delta.",
    ),
    Option(
        "sequenceColumn",
        "For a hash: skips a row if this column, a whole number, a date or a timestamp, is lower"
        " than the stored value.",
    ),
    Option("scoreColumn", "For a `zset`: the score that sorts a member, or the number to add."),
    Option(
        "maxLength",
        "For a `list` or a `stream`: the number of last elements that stay (a few more in a"
        " stream).",
        integer(1, 2**53),
    ),
    Option(
        "idColumn",
        "For a `stream`: a column with the id of each entry, which is not stored as a field: a text"
        " like `1526919030474-55`, or milliseconds. Without it the server assigns ids.",
    ),
    Option(
        "ttl",
        "The time after its last write when a key expires, for example `7d`.",
        seconds(0.001, 100 * 365 * 86400),
    ),
    Option(
        "ttlColumn",
        "A column with the expiry of a row's key, which is not stored: whole seconds, an interval,"
        " or a timestamp. For a null, `ttl` applies; without `ttl` the key never expires.",
    ),
    Option(
        "onBadRow",
        "For a row that can't be stored: `fail` stops the query, and the error names the row;"
        " `deadLetter` writes the row to a stream, and stores the others.",
        choice("fail", "deadLetter"),
        "fail",
    ),
    Option(
        "deadLetter",
        "For `onBadRow=deadLetter`: the stream `{sparkonce}:letters:<deadLetter>`.",
        pattern(r"[A-Za-z0-9._-]{1,100}", "1 to 100 of the characters A-Z a-z 0-9 . _ -"),
    ),
    MAX_BAD_ROWS,
    Option(
        "waitReplicas",
        "The number of replicas that must have an epoch before it counts as done (WAIT).",
        integer(0, 100),
        0,
    ),
    Option(
        "waitAof",
        "The number of replicas that, besides the server, must have an epoch on disk before it"
        " counts as done (WAITAOF, Redis 7.2 or newer); `0` for the server alone.",
        integer(0, 100),
    ),
    PREFIX,
    *ACCESS,
    *COMMON,
)

READING = (
    URL,
    Option(
        "key",
        "The keys to read, as in option `key` of the query that wrote them: a template like"
        " `user:{id}`, or columns like `order_id,line_no`. The read returns these columns.",
    ),
    Option("keyPattern", "Or a pattern of SCAN, `user:*`; column `_key` is the key."),
    Option(
        "model",
        "What a key holds: `hash`, `string`, `counter`, `list`, `set`, `zset` or `stream`. A row is"
        " a key, an element, a member or an entry; with `entries` a field of a hash, by columns"
        " `field` and `value`.",
        choice(*READERS),
        next(iter(MODELS)),
    ),
    Option("scoreColumn", "For a `zset`: the column of the score.", str, "score"),
    Option(
        "numPartitions",
        "The most splits. Default: 2 for a server, one for each primary of a cluster; more with"
        " millions of keys.",
        integer(1, 10_000),
    ),
    PREFIX,
    *ACCESS,
    *READS,
)
"""The options of `spark.read`."""

FOLLOWING = (
    URL,
    Option(
        "streams",
        "The streams to follow, separated by commas: `orders,refunds`. Column `_key` is the stream,"
        " `_id` the id of an entry.",
        streams,
        required=True,
    ),
    Option(
        STARTS,
        "Where a new query begins: `earliest`, with all existing entries, or `latest`.",
        choice("earliest", "latest"),
        required=True,
    ),
    Option("numPartitions", "The most splits of a stream.", integer(1, 10_000), 2),
    Option(
        "skipEntries",
        "Entries to skip because they can't be read: the error names them,"
        " `orders:1526919030474-55`. Separated by commas.",
        entries,
    ),
    *ACCESS,
    *FOLLOWS,
)
"""The options of `spark.readStream`."""
