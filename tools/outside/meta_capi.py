"""The writer `meta_capi` of pyspark-data-sources, which posts to a local server here.

The address is an attribute of the writer without an option; this module sets the attribute.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from pyspark_datasources.meta_capi import MetaCapiDataSource, MetaCapiStreamWriter
from tools.outside.events import EventServer

from sparkonce.tck.streaming import StreamingSink

if TYPE_CHECKING:
    from pyspark.sql.streaming import DataStreamWriter
    from pyspark.sql.types import StructType


class LocalMetaCapi(MetaCapiDataSource):
    def streamWriter(  # noqa: N802
        self, schema: StructType, overwrite: bool
    ) -> MetaCapiStreamWriter:
        writer = super().streamWriter(schema, overwrite)
        writer.api_url = self.options["api_url"]
        return writer


def attach(writer: DataStreamWriter, options: Mapping[str, str]) -> DataStreamWriter:
    """Attach the sink to a query."""
    from pyspark.sql import SparkSession

    SparkSession.active().dataSource.register(LocalMetaCapi)
    return writer.format("meta_capi").options(**options)


def sink(server: EventServer, env: Mapping[str, str]) -> StreamingSink:
    """Describe the sink to the kit."""
    return StreamingSink(
        read=server.events,
        name="meta_capi of pyspark-data-sources",
        attach=f"{__name__}:attach",
        options={"access_token": "none", "pixel_id": "1", "api_url": server.url},
        columns=("id AS event_id", "'Purchase' AS event_name", "n AS value"),
        env=env,
    )
