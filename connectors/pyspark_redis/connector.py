"""The Redis connector: creates plan, store, encoder and sources."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pyspark_redis.cluster.store import ClusterStore
from pyspark_redis.follow.feed import RedisFeed
from pyspark_redis.options import FOLLOWING, OPTIONS, READING
from pyspark_redis.read import servers
from pyspark_redis.read.columns import inferred, inferred_of_streams
from pyspark_redis.read.source import RedisSource
from pyspark_redis.server import client
from pyspark_redis.server.address import is_cluster
from pyspark_redis.server.nodes import ClusterSession
from pyspark_redis.server.session import Durability, RedisSession
from pyspark_redis.store import RedisStore
from pyspark_redis.write.chunks import ChunkEncoder
from pyspark_redis.write.detail import PlanDetail
from pyspark_redis.write.models import MODELS, overwriting
from sparkonce.options import Options
from sparkonce.protocol import Encoder, Plan
from sparkonce.reading import Scan

if TYPE_CHECKING:
    import pyarrow as pa


class RedisConnector:
    """See `sparkonce.store.Connector`."""

    name = "redis"
    options, reads, follows = OPTIONS, READING, FOLLOWING
    overwriting = staticmethod(overwriting)

    def plan(self, options: Options, schema: pa.Schema) -> Plan[PlanDetail]:
        """See `Connector.plan`."""
        return MODELS[options["model"]].plan(options, schema)

    def encoder(self, plan: Plan[PlanDetail], store: object) -> Encoder:  # noqa: ARG002
        """See `Connector.encoder`."""
        return ChunkEncoder(plan.detail)

    def connect(self, options: Options) -> RedisStore | ClusterStore:
        """See `Connector.connect`."""
        own = options["keyPrefix"], Durability.of(options)
        if is_cluster(options["url"]):
            return ClusterStore(ClusterSession(client.cluster(options), *own), options)
        there = client.connect(options)
        return RedisStore(RedisSession(lambda: there, *own), options)

    def infer(self, options: Options) -> pa.Schema:
        """See `Readable.infer`. From a sample of the keys."""
        return inferred(_servers(options), options)

    def source(self, options: Options, scan: Scan) -> RedisSource:
        """See `Readable.source`."""
        return RedisSource(_servers(options), options, scan)

    def infer_feed(self, options: Options) -> pa.Schema:
        """See `Followable.infer_feed`. From a sample of each stream."""
        return inferred_of_streams(_servers(options), options)

    def feed(self, options: Options, scan: Scan) -> RedisFeed:
        """See `Followable.feed`."""
        return RedisFeed(_servers(options), options, scan)


def _servers(options: Options) -> servers.Servers:
    """The servers that hold the keys of a read."""
    if is_cluster(options["url"]):
        return servers.ClusterServers(client.cluster(options))
    return servers.OneServer(client.connect(options))
