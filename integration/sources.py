"""Our sources of streams, as the kit wants them described."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from integration.servers.redis import connect

from sparkonce.tck.spark.source import StreamingSource


def redis_stream(url: str, key: str, env: Mapping[str, str]) -> StreamingSource:
    """A stream of Redis with this key."""
    client = connect(url)

    def append(ids: Sequence[str]) -> None:
        with client.pipeline(transaction=False) as pipeline:
            for one in ids:
                pipeline.xadd(key, {"id": one})
            pipeline.execute()

    def lose(ids: Sequence[str]) -> None:
        gone = [entry for entry, fields in client.xrange(key) if fields[b"id"].decode() in ids]
        client.xdel(key, *gone)

    return StreamingSource(
        format="redis",
        options={"url": url, "streams": key, "startingPosition": "earliest"},
        schema="id string",
        latest={"startingPosition": "latest"},
        limit="maxRowsPerBatch",
        ordered=True,
        tolerant={"failOnDataLoss": "false"},
        env=env,
        append=append,
        lose=lose,
        change=append,
    )
