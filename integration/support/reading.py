"""What tests of readers share, whatever the store."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from sparkonce import options
from sparkonce.tck.read_contract import ReadSubject

if TYPE_CHECKING:
    import pyarrow as pa
    from integration.support.proxy import Proxy
    from pyspark.sql import SparkSession

    from sparkonce.reading import Scan, Source


class ConnectorReads(ReadSubject):
    """A connector's reader, behind a proxy that makes the network fail.

    Attributes:
        connector: makes it.
        raw: options of a read.
    """

    connector: Any
    proxy: Proxy
    raw: dict[str, str]

    def _options(self) -> options.Options:
        return options.parse(self.connector.reads, {"timeout": "5", **self.raw})

    def infer(self) -> pa.Schema:
        return self.connector.infer(self._options())

    def source(self, scan: Scan) -> Source:
        found: Source = self.connector.source(self._options(), scan)
        return found

    @contextmanager
    def outage(self) -> Iterator[Callable[[], None]]:
        def begin() -> None:
            self.proxy.refuse()
            self.proxy.disconnect()

        try:
            yield begin
        finally:
            self.proxy.restore()


@contextmanager
def pushing(spark: SparkSession) -> Iterator[None]:
    """Let Spark push conditions, for the time of the block."""
    name = "spark.sql.python.filterPushdown.enabled"
    spark.conf.set(name, "true")
    try:
        yield
    finally:
        spark.conf.unset(name)
