"""What a manifest keeps of a plan for Elasticsearch."""

from __future__ import annotations

from pyspark_elasticsearch.write.documents import Documents
from sparkonce import codec
from sparkonce.change import Append

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
