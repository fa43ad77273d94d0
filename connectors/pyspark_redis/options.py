"""The options of the Redis connector, and how their texts are read."""

from __future__ import annotations

import re

from pyspark_redis.server.address import address
from pyspark_redis.target import keys
from pyspark_redis.write.models import MODELS
from sparkonce.exactly_once.bad_rows import max_bad_rows
from sparkonce.option_values import choice, integer, pattern, seconds
from sparkonce.options import COMMON, Option
from sparkonce.reading import FOLLOWS, READS, STARTS


def streams(text: str) -> list[str]:
    """Read option ``streams``; ValueError if a name is empty or there twice."""
    names = [name.strip() for name in text.split(",")]
    if not all(names) or len({*names}) < len(names):
        raise ValueError("names of streams with commas between, such as orders,refunds")
    return names


def entries(text: str) -> frozenset[tuple[bytes, bytes]]:
    """Read option ``skipEntries``; or raise ValueError."""
    found = [re.fullmatch(r"(.+):(\d+-\d+)", one.strip()) for one in text.split(",")]
    if not all(found):
        raise ValueError("entries with commas between, as errors name them: orders:1526919030474-0")
    return frozenset((one[1].encode(), one[2].encode()) for one in found if one)


URL = Option(
    "url",
    "`redis://host:6379/0`, or `rediss://` for TLS; behind Sentinel"
    " `redis+sentinel://host1:26379,host2:26379/mymaster/0`, of a cluster"
    " `redis+cluster://host1:6379,host2:6379`.",
    address,
    required=True,
)
PREFIX = Option(
    "keyPrefix",
    "Hash tag of the connector's own keys (ledger and staged rows).",
    pattern(keys.PREFIX, "1 to 64 of the characters A-Z a-z 0-9 . _ -"),
    "sparkonce",
)
TLS = (
    Option("tlsCaFile", "CA certificates (PEM) for `rediss://`; default: the system's."),
    Option("tlsCertFile", "Client certificate (PEM) for `rediss://`."),
    Option("tlsKeyFile", "Key of the client certificate (PEM)."),
)

OPTIONS = (
    URL,
    Option(
        "model",
        "What a row becomes: `hash`, of all its columns; `string`; `counter`; an element of a"
        " `list`, a `set` or a `zset`; an entry of a `stream`. A value is the one column beside the"
        " key's, or JSON of the row.",
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
        "`upsert` writes a row under its key; `increment` adds numbers; `append` adds an element;"
        " `delete` deletes what a row names. Default: what the model can do, `upsert` first.",
        choice("append", "upsert", "increment", "delete"),
    ),
    Option(
        "nulls",
        "Upsert of a hash or a string: `write` deletes what a null stands for, `keep` leaves what"
        " is stored.",
        choice("write", "keep"),
        "write",
    ),
    Option(
        "opColumn",
        "A column that says what each row does, and is not stored: I, U, D; insert, update, delete;"
        " Debezium's c, u, d, r; `_change_type` of Spark and Delta.",
    ),
    Option(
        "sequenceColumn",
        "Of a hash: a row is passed over if this column of it, a whole number, a date or a"
        " timestamp, is lower than the stored one.",
    ),
    Option("scoreColumn", "Of a `zset`: the number by which a member is sorted, or that is added."),
    Option(
        "maxLength",
        "Of a `list` or a `stream`: only so many of the last elements stay (of a stream, a few"
        " more).",
        integer(1, 2**53),
    ),
    Option(
        "ttl",
        "Each written key expires so long after its last write, for example `7d`.",
        seconds(0.001, 100 * 365 * 86400),
    ),
    Option(
        "ttlColumn",
        "A column that says when the key of a row expires, and is not stored: after whole seconds"
        " or an interval, or at a timestamp; where it is null, as `ttl` says, or never.",
    ),
    Option(
        "onBadRow",
        "A row that can't be stored: `fail` stops the query, and the error names the row;"
        " `deadLetter` writes it to a stream, and the others go on.",
        choice("fail", "deadLetter"),
        "fail",
    ),
    Option(
        "deadLetter",
        "For `onBadRow=deadLetter`: the stream `{sparkonce}:letters:<deadLetter>`.",
        pattern(r"[A-Za-z0-9._-]{1,100}", "1 to 100 of the characters A-Z a-z 0-9 . _ -"),
    ),
    Option(
        "maxBadRows",
        "How many rows of an epoch `onBadRow=deadLetter` puts aside: a number, or a share and"
        " always 10 rows. With more the query stops, as the target may be at fault. Epochs of which"
        " no row is stored count together.",
        max_bad_rows,
        max_bad_rows("10%"),
    ),
    Option(
        "waitReplicas",
        "An epoch counts as done once so many replicas have it (WAIT).",
        integer(0, 100),
        0,
    ),
    Option(
        "waitAof",
        "An epoch counts as done once it is on the disk of the server, and of so many replicas"
        " (WAITAOF, Redis 7.2 or newer): `0` for the server's alone.",
        integer(0, 100),
    ),
    PREFIX,
    *TLS,
    *COMMON,
)

READING = (
    URL,
    Option(
        "key",
        "Which keys are read, as option `key` of the query that wrote them: a template such as"
        " `user:{id}`, or columns such as `order_id,line_no`. Its columns come back.",
    ),
    Option("keyPattern", "Or a pattern as SCAN has it, `user:*`; column `_key` is the key."),
    Option(
        "model",
        "What a key holds: `hash`, `string`, `counter`, `list`, `set`, `zset` or `stream`. A row is"
        " a key, an element, a member or an entry.",
        choice(*MODELS),
        next(iter(MODELS)),
    ),
    Option("scoreColumn", "Of a `zset`: the column of the score.", str, "score"),
    Option(
        "numPartitions",
        "Most splits. Default: 2 of a server, one of each primary of a cluster; more where there"
        " are millions of keys.",
        integer(1, 10_000),
    ),
    PREFIX,
    *TLS,
    *READS,
)
"""Of `spark.read`."""

FOLLOWING = (
    URL,
    Option(
        "streams",
        "The streams that are followed, with commas between: `orders,refunds`. Column `_key` is the"
        " stream, `_id` the id of an entry.",
        streams,
        required=True,
    ),
    Option(
        STARTS,
        "Where a new query begins: `earliest`, with all entries that are there, or `latest`.",
        choice("earliest", "latest"),
        required=True,
    ),
    Option("numPartitions", "Most splits of a stream.", integer(1, 10_000), 2),
    Option(
        "skipEntries",
        "Entries that are passed over, as those that can't be read: the error names them,"
        " `orders:1526919030474-55`. With commas between.",
        entries,
    ),
    *TLS,
    *FOLLOWS,
)
"""Of `spark.readStream`."""
