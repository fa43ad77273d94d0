"""Names of options that people bring by habit, and what is meant by them here.

They are those of Spark's JDBC and Kafka sources, elasticsearch-hadoop, spark-redis, Kafka Connect's
JDBC sink, Debezium and Flink's connectors, each as its own documentation has it.
"""

from __future__ import annotations

from collections.abc import Collection

MEANT = {
    "url": (
        *("host", "hostname", "hosts", "port", "server", "servers", "database", "dbname", "db"),
        *("connection.url", "spark.redis.host", "spark.redis.port", "spark.redis.db", "dbnum"),
        *("es.nodes", "es.port", "nodes", "ssl", "es.net.ssl", "spark.redis.ssl"),
    ),
    "user": ("username", "connection.user", "spark.redis.user", "es.net.http.auth.user"),
    "password": (
        *("pass", "auth", "connection.password", "spark.redis.auth"),
        "es.net.http.auth.pass",
    ),
    "apiKey": ("es.net.http.header.authorization",),
    "tlsCaFile": ("es.net.ssl.truststore.location", "trustcertificatekeystoreurl", "sslca"),
    "dbtable": (
        "table",
        "table.include.list",
        "table-name",
        "tablename",
        "table.name.format",
        "path",
    ),
    "index": ("es.resource", "es.resource.write", "resource", "path"),
    "key": (
        *("key.column", "primarykey", "primary_key", "upsertkey", "upsertkeys"),
        *("pk.fields", "mergekey", "es.mapping.id", "idfield", "table", "key.prefix"),
    ),
    "writeMode": ("mode", "savemode", "insert.mode", "es.write.operation", "operation"),
    "createTable": ("auto.create", "createtableoptions", "createtablecolumntypes"),
    "createIndex": ("es.index.auto.create",),
    "routing": ("es.mapping.routing",),
    "pipeline": ("es.ingest.pipeline",),
    "versionColumn": ("es.mapping.version", "version.field"),
    "chunkRows": (
        *("batchsize", "batch.size", "batch_size", "iterator.grouping.size"),
        *("max.pipeline.size", "es.batch.size.entries", "sink.buffer-flush.max-rows"),
    ),
    "timeout": ("querytimeout", "socket_timeout", "es.http.timeout", "connecttimeout"),
    "maxRetries": (
        "retries",
        "sink.max-retries",
        "max.retries",
        "es.batch.write.retry.count",
        "es.http.retries",
    ),
    "startingPosition": (
        *("startingoffsets", "startingtimestamp", "snapshot.mode", "scan.startup.mode"),
        "auto.offset.reset",
    ),
    "maxRowsPerBatch": ("maxoffsetspertrigger", "maxfilespertrigger", "max.batch.size"),
    "streams": ("stream.keys", "stream", "stream.key"),
    "onBadRow": ("errors.tolerance", "es.write.rest.error.handlers"),
    "deadLetter": ("errors.deadletterqueue.topic.name", "deadletterqueue"),
    "checkpointLocation": ("checkpoint", "checkpoint.location"),
}
"""By the option that is meant; a name may stand at several, of which a connector has one."""

NOTHING = {
    "server-id": "each request for the binary log draws one",
    "database.server.id": "each request for the binary log draws one",
    "driver": "the client is a Python package, which the extra installs",
    "isolationlevel": "an epoch is one transaction",
    "rewritebatchedstatements": "rows are sent by the statement already",
    "truncate": "df.write.mode('overwrite') replaces the rows of a table",
    "numpartitions": "repartition() the query instead",
    "es.batch.size.bytes": "requests are cut to what the cluster takes",
    "es.nodes.wan.only": "the hosts of url are asked, and no others",
    "es.nodes.discovery": "the hosts of url are asked, and no others",
    "es.nodes.client.only": "the hosts of url are asked, and no others",
    "es.nodes.data.only": "the hosts of url are asked, and no others",
    "es.batch.write.refresh": "index.refresh_interval of the index applies",
    **dict.fromkeys(
        ("filter.keys.by.type", "keys.pattern", "infer.schema", "scan.count", "partitions.number"),
        "it is for reading",
    ),
}
"""What needs no option here, and why."""


def answer(name: str, known: Collection[str]) -> str:
    """What to do instead of an option that others have; empty if none of them has it.

    Args:
        name: as it was given.
        known: the options of the connector.
    """
    given = name.casefold()
    for option, names in MEANT.items():
        if option in known and given in names:
            return f"here it is option {option!r}"
    why = NOTHING.get(given)
    return f"leave it out: {why}" if why else ""
