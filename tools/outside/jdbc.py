"""Spark's own JDBC writer with MySQL's Connector/J, as its documentation shows it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from urllib.parse import urlsplit

from integration.support.servers import mysql
from integration.support.servers.cache import jars

from sparkonce.tck.batch import BatchSink

CONNECTOR_J = "com.mysql:mysql-connector-j:9.7.0"


def sink(url: str, table: str, env: Mapping[str, str]) -> BatchSink:
    """Describe the sink to the kit, with a new table."""
    with mysql.connect(url) as client, client.cursor() as cursor:
        cursor.execute(f"CREATE TABLE {table} (id VARCHAR(100), n BIGINT)")
    return BatchSink(
        read=lambda: rows(url, table),
        name="Spark's JDBC writer with Connector/J",
        format="jdbc",
        options={**_options(url), "dbtable": table, "truncate": "true"},
        settings={"spark.jars": ",".join(map(str, jars(CONNECTOR_J, whole=False)))},
        env=env,
    )


def _options(url: str) -> dict[str, str]:
    parts = urlsplit(url)
    return {
        "url": f"jdbc:mysql://{parts.hostname}:{parts.port}{parts.path}?allowPublicKeyRetrieval=true",
        "user": parts.username or "",
        "password": parts.password or "",
        "driver": "com.mysql.cj.jdbc.Driver",
    }


def rows(url: str, table: str) -> Counter[str]:
    """The number of rows of each id."""
    with mysql.connect(url) as client, client.cursor() as cursor:
        cursor.execute(f"SELECT id, COUNT(*) FROM {table} GROUP BY id")
        return Counter({name: int(times) for name, times in cursor.fetchall()})
