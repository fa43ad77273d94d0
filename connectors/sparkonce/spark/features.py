"""What the PySpark that runs here can do, found by looking for it and never by its version.

Platforms bring features of later releases to earlier ones. Spark imports every ``pyspark_*``
module to look formats up, and an error in one hides the formats of all the others; so nothing in
here, or in what a connector's entry module imports, raises for what is missing.
"""

from __future__ import annotations

from contextlib import suppress
from typing import TYPE_CHECKING, Any

from sparkonce.errors import MissingExtra, UnsupportedQuery, this_python

__all__ = [
    "ArrowWriter",
    "AvailableNow",
    "DataSource",
    "InputPartition",
    "Reader",
    "StreamArrowWriter",
    "StreamReader",
    "WriterCommitMessage",
    "keeps_filters_apart",
    "limits",
    "require_arrow",
]

try:
    from pyspark.sql import datasource as api
except ImportError:
    api = None  # type: ignore[assignment]

limits: Any = None
"""Where Spark's limits of an epoch are, which a reader of streams is told since 4.2; else None."""
with suppress(ImportError):
    from pyspark.sql.streaming import datasource as limits

keeps_filters_apart = hasattr(getattr(api, "DataSourceReader", None), "pushLimit")
"""Whether conditions that one query pushed stay with it. Spark gave them to whatever else was read
of the same DataFrame, until it learnt to push limits: https://github.com/apache/spark/pull/57752
"""


def _stream_writer() -> Any:
    """The base of a writer of streams that gets Arrow batches; None where there is none.

    Spark 4.0 has no name for it, and gives batches to whatever inherits `DataSourceArrowWriter`.
    """
    newer = getattr(api, "DataSourceStreamArrowWriter", None)
    kinds: Any = [getattr(api, f"DataSource{kind}Writer", None) for kind in ("Stream", "Arrow")]
    if newer is None and all(kinds):
        return type("StreamArrowWriter", tuple(kinds), {"__module__": __name__})
    return newer


if TYPE_CHECKING:
    from pyspark.sql.datasource import DataSource, InputPartition, WriterCommitMessage
    from pyspark.sql.datasource import DataSourceArrowWriter as ArrowWriter
    from pyspark.sql.datasource import DataSourceReader as Reader
    from pyspark.sql.datasource import DataSourceStreamArrowWriter as StreamArrowWriter
    from pyspark.sql.datasource import DataSourceStreamReader as StreamReader
    from pyspark.sql.streaming.datasource import SupportsTriggerAvailableNow as AvailableNow
else:
    ArrowWriter = getattr(api, "DataSourceArrowWriter", object)
    DataSource = getattr(api, "DataSource", object)
    InputPartition = getattr(api, "InputPartition", object)
    Reader = getattr(api, "DataSourceReader", object)
    StreamReader = getattr(api, "DataSourceStreamReader", object)
    WriterCommitMessage = getattr(api, "WriterCommitMessage", object)
    AvailableNow = getattr(limits, "SupportsTriggerAvailableNow", object)
    StreamArrowWriter = _stream_writer() or object  # `require_arrow` tells what is missing


def require_arrow() -> None:
    """Refuse a Python in which Spark can't hand Arrow batches to a sink.

    Raises:
        UnsupportedQuery: PySpark can't.
        MissingExtra: there is no PyArrow.
    """
    if _stream_writer() is None:
        raise UnsupportedQuery(
            "The PySpark that is installed gives no Arrow batches to a Python data source",
            why="sparkonce takes rows in that form alone, which came with Spark 4.0",
            todo="use Spark 4.0 or newer, with the PySpark of the same release",
        )
    try:
        import pyarrow  # noqa: F401
    except ImportError as error:
        raise MissingExtra(
            f"Spark's Python can't import pyarrow ({this_python()}): {error}",
            why="Spark hands rows to a Python data source as Arrow batches",
            todo="pip install 'pyarrow>=15' on the driver and every executor",
        ) from None
