"""A connector of any dialect: creates plans, encoders, stores and sources."""

from __future__ import annotations

from collections.abc import Sequence

import pyarrow as pa

from pyspark_elasticsearch.follow.feed import ElasticsearchFeed
from pyspark_elasticsearch.journal.indices import OwnIndices
from pyspark_elasticsearch.options import FOLLOWING, OPTIONS, READING
from pyspark_elasticsearch.read.source import ElasticsearchSource, inferred
from pyspark_elasticsearch.server.client import Cluster, ReadCluster
from pyspark_elasticsearch.server.dialect import Dialect
from pyspark_elasticsearch.store import ElasticsearchStore
from pyspark_elasticsearch.write.chunks import ChunkEncoder
from pyspark_elasticsearch.write.documents import Documents
from pyspark_elasticsearch.write.plan import overwriting, plan
from sparkonce import checks
from sparkonce.options import Option, Options
from sparkonce.protocol import Encoder, Plan
from sparkonce.reading import Scan


class SearchConnector:
    """See `sparkonce.store.Connector`."""

    name: str
    dialect: Dialect
    options: Sequence[Option] = OPTIONS
    reads: Sequence[Option] = READING
    follows: Sequence[Option] = FOLLOWING
    overwriting = staticmethod(overwriting)

    def plan(self, options: Options, schema: pa.Schema) -> Plan[Documents]:
        """See `Connector.plan`."""
        return plan(options, schema, self.dialect)

    def encoder(self, plan: Plan[Documents], store: object) -> Encoder:  # noqa: ARG002
        """See `Connector.encoder`."""
        return ChunkEncoder(plan.detail)

    def connect(self, options: Options) -> ElasticsearchStore:
        """See `Connector.connect`."""
        checks.refuse([checks.dead_letter(options)])
        cluster = Cluster(options, self.dialect)
        return ElasticsearchStore(cluster, OwnIndices(cluster, options["indexPrefix"]), options)

    def infer(self, options: Options) -> pa.Schema:
        """See `Readable.infer`."""
        return inferred(ReadCluster(options, self.dialect), options)

    def source(self, options: Options, scan: Scan) -> ElasticsearchSource:
        """See `Readable.source`."""
        return ElasticsearchSource(ReadCluster(options, self.dialect), options, scan)

    infer_feed = infer

    def feed(self, options: Options, scan: Scan) -> ElasticsearchFeed:
        """See `Followable.feed`."""
        return ElasticsearchFeed(ReadCluster(options, self.dialect), options, scan)
