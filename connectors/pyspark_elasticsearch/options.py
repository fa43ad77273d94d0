"""The options of the Elasticsearch connector, and how their texts are read."""

from __future__ import annotations

import json
from typing import Any

from pyspark_elasticsearch.read.fields import names
from pyspark_elasticsearch.server import address
from pyspark_elasticsearch.target.templates import index_name, plain_name
from pyspark_elasticsearch.write.documents import MODES
from sparkonce.exactly_once.bad_rows import max_bad_rows
from sparkonce.option_values import boolean, choice, columns, integer, is_object, pattern
from sparkonce.options import COMMON, Option
from sparkonce.reading import FOLLOWS, READS, STARTS

URL = Option(
    "url",
    "`https://host:9200`, or several nodes of one cluster with commas between. Without a port:"
    " 443 for https, 9200 for http.",
    address.url,
    required=True,
)
ACCESS = (
    Option("apiKey", "An API key, in its encoded form.", secret=True),
    Option(
        "tlsCaFile",
        "CA certificates (PEM) by which the cluster's is verified; default: the system's.",
    ),
    Option("tlsCertFile", "Client certificate (PEM)."),
    Option("tlsKeyFile", "Key of the client certificate (PEM)."),
)


def query(text: str) -> Any:
    """Read option ``query``; `ValueError` if it is no object of JSON."""
    if not is_object(text):
        raise ValueError("a query as the cluster has it, a JSON object")
    found = json.loads(text)
    return found["query"] if [*found] == ["query"] else found


OPTIONS = (
    URL,
    Option(
        "index",
        "The target: an index, an alias of one, a data stream (append), or a template,"
        " `events-{country}-{at:yyyy.MM.dd}`.",
        index_name,
        required=True,
    ),
    Option(
        "writeMode",
        f"{'; '.join(f'`{mode}` {way.meaning}' for mode, way in MODES.items())}."
        " Default: `upsert` where a key is given, else `append`.",
        choice(*MODES),
    ),
    Option(
        "key",
        "Columns whose values are the document's id: `order_id,line_no`. Without a key (append)"
        " ids are made from what was staged.",
        columns,
    ),
    Option(
        "nulls",
        "Update: `write` stores a null, `keep` leaves what is stored.",
        choice("write", "keep"),
        "write",
    ),
    Option(
        "opColumn",
        "Upsert: a column that says what each row does, and is not stored: I, U, D; insert, update,"
        " delete; Debezium's c, u, d, r; `_change_type` of Spark and Delta.",
    ),
    Option(
        "versionColumn",
        "Upsert and delete: a column of whole numbers, dates or timestamps that is the document's"
        " version; a row whose version is not higher than the stored one changes nothing, in its"
        " epoch and any other.",
    ),
    Option("routing", "A column whose value routes the document to a shard."),
    Option("pipeline", "An ingest pipeline that every document goes through."),
    Option(
        "onBadRow",
        "A row that can't be stored: `fail` stops the query at it, and the error names it;"
        " `deadLetter` writes it to an index, and the others go on.",
        choice("fail", "deadLetter"),
        "fail",
    ),
    Option("deadLetter", "The index for `onBadRow=deadLetter`.", plain_name),
    Option(
        "maxBadRows",
        "How many rows of an epoch `onBadRow=deadLetter` puts aside: a number, or a share and"
        " always 10 rows. With more the query stops, as the index may be at fault. Epochs of which"
        " no row is stored count together.",
        max_bad_rows,
        max_bad_rows("10%"),
    ),
    Option(
        "visibleAlias",
        "Append: an alias of this query alone, by which readers see whole epochs; it needs a"
        " sinkId.",
        plain_name,
    ),
    Option("createIndex", "Whether to create a target that is not there.", boolean, False),
    Option(
        "indexPrefix",
        "Begins the names of the connector's own indices, `<prefix>-ledger` and `<prefix>-log`.",
        pattern(r"[a-z0-9.][a-z0-9._-]{0,63}", "1 to 64 of the characters a-z 0-9 . _ -"),
        "sparkonce",
    ),
    Option("parallelism", "Bulk requests that the driver sends at once.", integer(1, 64), 4),
    *ACCESS,
    *COMMON,
)

WHICH = (
    Option(
        "query",
        'Which documents, in the cluster\'s own words: `{"term": {"country": "FR"}}`.',
        query,
        {"match_all": {}},
    ),
    Option(
        "arrayFields",
        "Fields that are arrays, which no mapping tells: `tags,items.codes`.",
        columns,
    ),
    Option(
        "keepAlive",
        "For how long the cluster keeps the read's point in time after its last page.",
        pattern(r"[1-9]\d*(s|m|h)", "a time such as 90s, 10m or 2h"),
        "10m",
    ),
)
"""Which documents are read, and how."""

READING = (
    URL,
    Option(
        "index",
        "What is read: indices, aliases, data streams and patterns, `orders,logs-*`.",
        names("#?/"),
        required=True,
    ),
    *WHICH,
    Option(
        "numPartitions",
        "Most splits. Default: as many as there are shards, and not below 4.",
        integer(1, 1024),
    ),
    *ACCESS,
    *READS,
)
"""Of `spark.read`."""

FOLLOWING = (
    URL,
    Option(
        "index",
        "What is followed: indices, aliases, data streams and patterns, `orders,logs-*`. Indices"
        " that come to match it later are read from their beginning.",
        names("#?/:", "names in this cluster"),
        required=True,
    ),
    Option(
        STARTS,
        "Where a new query begins: `earliest`, with all documents that are there, or `latest`.",
        choice("earliest", "latest"),
        required=True,
    ),
    *WHICH,
    Option("numPartitions", "Most splits of a shard.", integer(1, 1024), 2),
    *ACCESS,
    *FOLLOWS,
)
"""Of `spark.readStream`."""
