"""Plans, rows and chunks for Elasticsearch, without a server."""

from __future__ import annotations

import json
from typing import Any

import pyarrow as pa

from pyspark_elasticsearch.connector import ElasticsearchConnector
from pyspark_elasticsearch.server.bulk import operations
from pyspark_elasticsearch.write.chunks import ChunkEncoder, unpacked
from pyspark_elasticsearch.write.documents import Documents
from sparkonce import codec, options
from sparkonce.change import Append

ROWS = pa.schema([("k", pa.string()), ("j", pa.string()), ("n", pa.int64())])


def encoder(schema: pa.Schema = ROWS, **given: str) -> ChunkEncoder:
    raw = {"url": "http://localhost", "index": "orders", **given}
    parsed = options.parse(ElasticsearchConnector.options, raw)
    return ChunkEncoder(ElasticsearchConnector().plan(parsed, schema).detail)


def batch(rows: list[dict[str, Any]], schema: pa.Schema = ROWS) -> pa.RecordBatch:
    return pa.RecordBatch.from_pylist(rows, schema)


def sent(encode: ChunkEncoder, rows: pa.RecordBatch) -> list[tuple[str, dict[str, Any], Any]]:
    """What a chunk of these rows asks for: operation, its action, its document."""
    chunk = unpacked(encode(rows))
    lines = chunk.filled("name.0.", 7, '"params":{', '"sparkonce":{}')
    found = []
    for operation in operations(lines):
        action, _, document = operation.partition(b"\n")
        ((name, about),) = json.loads(action).items()
        found.append((name, about, json.loads(document) if document else None))
    assert len(found) == chunk.operations
    return found


APPENDED = Documents(
    index="x",
    parts=(),
    reserved=(),
    change=Append(),
    columns=(),
    routing=None,
    pipeline=None,
    alias=None,
    aside=False,
    schema="v BIGINT",
    create=None,
)
STORED = codec.dump(APPENDED)
