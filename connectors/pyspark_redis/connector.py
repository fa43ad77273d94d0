"""The Redis connector: where plan, store and encoder come from."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pyspark_redis.cluster.store import LaneStore
from pyspark_redis.follow.feed import RedisFeed
from pyspark_redis.journal.dead_letters import DeadLetters
from pyspark_redis.options import FOLLOWING, OPTIONS, READING
from pyspark_redis.read import places
from pyspark_redis.read.sample import inferred, inferred_of_streams
from pyspark_redis.read.source import RedisSource
from pyspark_redis.server import client
from pyspark_redis.server.address import is_cluster
from pyspark_redis.server.durability import Durability
from pyspark_redis.server.nodes import ClusterSession
from pyspark_redis.server.own_keys import begins
from pyspark_redis.server.session import Session
from pyspark_redis.store import RedisStore
from pyspark_redis.write import MODELS
from pyspark_redis.write.chunks import ChunkEncoder
from pyspark_redis.write.model import overwriting
from pyspark_redis.write.values import Values
from sparkonce.options import Options
from sparkonce.protocol import Encoder, Plan
from sparkonce.reading import Scan

if TYPE_CHECKING:
    import pyarrow as pa


class RedisConnector:
    """See `sparkonce.store.Connector`."""

    name = "redis"
    options, reads, follows = OPTIONS, READING, FOLLOWING

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
        own = options["keyPrefix"], Durability.of(options)
        name, most = options["deadLetter"], options["maxBadRows"]
        if is_cluster(options["url"]):
            nodes = ClusterSession(client.cluster(options), *own)
            aside = DeadLetters(nodes, name) if name else None
            return LaneStore(nodes, aside, most, options["onLostCommit"])
        there = client.connect(options)
        session = Session(lambda: there, *own)
        return RedisStore(session, DeadLetters(session, name) if name else None, most)

    def infer(self, options: Options) -> pa.Schema:
        """See `Readable.infer`. By a sample of the keys."""
        return inferred(_places(options), options, begins(options["keyPrefix"]))

    def source(self, options: Options, scan: Scan) -> RedisSource:
        """See `Readable.source`."""
        return RedisSource(_places(options), options, scan, begins(options["keyPrefix"]))

    def infer_feed(self, options: Options) -> pa.Schema:
        """See `Followable.infer_feed`. By a sample of each stream."""
        return inferred_of_streams(_places(options), options)

    def feed(self, options: Options, scan: Scan) -> RedisFeed:
        """See `Followable.feed`."""
        return RedisFeed(_places(options), options, scan)

    def ddl(self) -> list[str]:
        """See `Connector.ddl`. Redis has no tables."""
        return []


def _places(options: Options) -> places.Places:
    """Where the keys lie that are read."""
    if is_cluster(options["url"]):
        return places.Cluster(client.cluster(options))
    return places.OneServer(client.connect(options))
