"""The options of the Elasticsearch connector, and the parsers of their values."""

from __future__ import annotations

import json
from typing import Any

from pyspark_elasticsearch.read.fields import names
from pyspark_elasticsearch.server import address
from pyspark_elasticsearch.target.templates import index_name, plain_name
from pyspark_elasticsearch.write.documents import MODES
from sparkonce.exactly_once.bad_rows import MAX_BAD_ROWS
from sparkonce.option_values import boolean, choice, columns, integer, is_object, pattern
from sparkonce.options import ADD_COLUMNS, COMMON, Option
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
        "CA certificates (PEM) to verify the cluster's certificate. Default: the system's.",
    ),
    Option("tlsCertFile", "Client certificate (PEM)."),
    Option("tlsKeyFile", "Key of the client certificate (PEM)."),
)


def query(text: str) -> Any:
    """Parse option ``query``; `ValueError` if it is not a JSON object."""
    if not is_object(text):
        raise ValueError("a query, a JSON object")
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
        " Default: `upsert` with a key, else `append`.",
        choice(*MODES),
    ),
    Option(
        "key",
        "Columns whose values are the document's id: `order_id,line_no`. Without a key (append)"
        " ids are made from the staged chunks.",
        columns,
    ),
    Option(
        "nulls",
        "Update: `write` stores a null, `keep` leaves the stored value.",
        choice("write", "keep"),
        "write",
    ),
    Option(
        "script",
        "Update: a Painless script that changes the document by each row, once and in order."
        " `params` has the columns: `ctx._source.total += params.amount`. A new document has the"
        " key's columns.",
    ),
    Option(
        "opColumn",
        "Upsert: a column with the operation of each row, which is not stored: I, U, D; insert,"
        " update, delete; Debezium's c, u, d, r; `_change_type` of Spark and Delta.",
    ),
    Option(
        "versionColumn",
        "Upsert and delete: a column of whole numbers, dates or timestamps that is the document's"
        " version. A row changes nothing unless its version is higher than the stored one, in its"
        " epoch and any other.",
    ),
    Option(
        "rowColumn",
        "Append and upsert: a column that has the whole document as JSON, such as `_row` of a"
        " stream of several tables. No other column is stored.",
    ),
    Option("routing", "A column whose value routes the document to a shard."),
    Option("pipeline", "An ingest pipeline for every document."),
    Option(
        "onBadRow",
        "A row that can't be stored: `fail` stops the query, and the error names the row;"
        " `deadLetter` writes it to an index, and the query continues.",
        choice("fail", "deadLetter"),
        "fail",
    ),
    Option("deadLetter", "The index for `onBadRow=deadLetter`.", plain_name),
    MAX_BAD_ROWS,
    Option(
        "visibleAlias",
        "Append: an alias for this query alone, through which readers see whole epochs; it needs"
        " sinkId.",
        plain_name,
    ),
    Option("createIndex", "Whether to create a missing target.", boolean, False),
    ADD_COLUMNS,
    Option(
        "indexPrefix",
        "The prefix of the connector's own indices, `<prefix>-ledger` and `<prefix>-log`.",
        pattern(r"[a-z0-9.][a-z0-9._-]{0,63}", "1 to 64 of the characters a-z 0-9 . _ -"),
        "sparkonce",
    ),
    Option("parallelism", "Bulk requests that the driver sends in parallel.", integer(1, 64), 4),
    *ACCESS,
    *COMMON,
)

WHICH = (
    Option(
        "query",
        'The documents to read, as a query of Elasticsearch: `{"term": {"country": "FR"}}`.',
        query,
        {"match_all": {}},
    ),
    Option(
        "arrayFields",
        "Fields that are arrays, as mappings do not show this: `tags,items.codes`.",
        columns,
    ),
    Option(
        "onUnreadable",
        "For a value that does not fit its type, such as an empty text in a number: `fail` stops"
        " the read. `null` reads it as null, and a log line counts such values.",
        choice("fail", "null"),
        "fail",
    ),
    Option(
        "keepAlive",
        "How long the cluster keeps the point in time of a read after its last page.",
        pattern(r"[1-9]\d*(s|m|h)", "a time such as 90s, 10m or 2h"),
        "10m",
    ),
)
"""Options of both reads and streams."""

READING = (
    URL,
    Option(
        "index",
        "The indices, aliases, data streams and patterns to read: `orders,logs-*`; also date math,"
        " `<logs-{now/d}>`.",
        names("#?/", dated=True),
        required=True,
    ),
    *WHICH,
    Option(
        "numPartitions",
        "The maximum number of splits. Default: the number of shards, at least 4.",
        integer(1, 1024),
    ),
    *ACCESS,
    *READS,
)
"""The options of `spark.read`."""

FOLLOWING = (
    URL,
    Option(
        "index",
        "The indices, aliases, data streams and patterns to follow: `orders,logs-*`. The stream"
        " reads indices that match later from their beginning.",
        names("#?/:", "names in this cluster"),
        required=True,
    ),
    Option(
        STARTS,
        "Where a new query begins: `earliest`, with all existing documents, or `latest`.",
        choice("earliest", "latest"),
        required=True,
    ),
    *WHICH,
    Option("numPartitions", "The maximum number of splits of a shard.", integer(1, 1024), 2),
    *ACCESS,
    *FOLLOWS,
)
"""The options of `spark.readStream`."""
