"""The data source behind every format: Spark's calls, and the queries that it rejects."""

from __future__ import annotations

import importlib
import logging
import pkgutil
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType
from typing import TYPE_CHECKING, ClassVar

from sparkonce.errors import UnsupportedQuery
from sparkonce.spark.features import DataSource, errors_first, require_arrow

if TYPE_CHECKING:
    from pyspark.sql import SparkSession
    from pyspark.sql.types import StructType

    from sparkonce.spark.feed_reader import FeedReader
    from sparkonce.spark.reader import BatchReader
    from sparkonce.spark.writer import BatchWriter, StreamWriter


class SinkSource(DataSource):
    """The base of every connector's ``DefaultSource``."""

    connector: ClassVar[str]
    """``module:Class`` of the connector; a query imports it at its first use."""

    @classmethod
    def name(cls) -> str:
        """The name of the format: the name of the package in which Spark finds the class."""
        return cls.__module__.partition(".")[0].removeprefix("pyspark_")

    @errors_first()
    def streamWriter(  # noqa: N802 (Spark's name)
        self, schema: StructType, overwrite: bool
    ) -> StreamWriter:
        """See pyspark. Checks options, schema and server before Spark reads any row.

        Raises:
            UnsupportedQuery: complete output mode.
            SparkonceError: any other error that is known by now.
        """
        require_arrow()
        if overwrite:
            raise UnsupportedQuery(
                "Output mode complete can't be written",
                why="it replaces the whole target in every epoch, which this sink does not support",
                todo="use outputMode('append'), for an aggregate with a watermark",
            )
        # Not at the top: Spark imports this module to look up formats, with or without PyArrow.
        from sparkonce.spark.types import arrow_schema
        from sparkonce.spark.writer import StreamWriter

        return StreamWriter(self.connector, dict(self.options), arrow_schema(schema))

    def _require_usable(self) -> None:
        """Reject a Python without Arrow, and a table of Spark's catalog.

        The options of a table reach no Python data source. While Spark creates the table, `schema`
        finds the properties of the table among the options. A read or a write of an existing table
        has no options at all, and Spark does not say which of the two it is.
        """
        require_arrow()
        if self.options and "provider" not in self.options:
            return
        from sparkonce.store import load

        if not any(option.required for option in load(self.connector).options):
            return
        of_catalog = "A table of Spark's catalog can't be of this format"
        raise UnsupportedQuery(
            of_catalog if self.options else "No option is given",
            why="options say where the store is, and those of a table of the catalog (CREATE"
            " TABLE ... USING, saveAsTable) reach no Python data source",
            todo="set them on spark.read or df.write and finish with load() or save(), or create a"
            " view: CREATE TEMPORARY VIEW name USING format OPTIONS (...)",
        )

    @errors_first()
    def schema(self) -> StructType:
        """See pyspark. Spark calls it for a read without a schema, and does not name its kind."""
        self._require_usable()
        from sparkonce.spark import feed_reader, reader

        of = feed_reader if feed_reader.is_stream(self.options) else reader
        found: StructType = of.inferred(self.connector, dict(self.options))
        return found

    @errors_first()
    def reader(self, schema: StructType) -> BatchReader:
        """See pyspark."""
        self._require_usable()
        from sparkonce.spark.reader import reader

        return reader(self.connector, dict(self.options), schema)

    def streamReader(self, schema: StructType) -> FeedReader:  # noqa: N802 (Spark's name)
        """See pyspark. Errors are raised later: Spark shows none of this call."""
        from sparkonce.spark.feed_reader import reader

        return reader(self.connector, dict(self.options), schema)

    @errors_first()
    def writer(self, schema: StructType, overwrite: bool) -> BatchWriter:
        """See pyspark. Checks options, schema and server before Spark reads any row."""
        self._require_usable()
        from sparkonce.spark.types import arrow_schema
        from sparkonce.spark.writer import BatchWriter

        columns = arrow_schema(schema)
        return BatchWriter(self.connector, dict(self.options), columns, overwrite=overwrite)


log = logging.getLogger("sparkonce")


def register(spark: SparkSession) -> list[str]:
    """Register the formats of all installed connectors in a session.

    Spark finds them itself in the ``pyspark_*`` modules of its Python. Register them where that
    lookup fails because of another package, or is switched off. Register them also where the
    packages arrive through ``--py-files`` or ``addArtifact``, which Spark does not search.

    Args:
        spark: classic, or through Connect, where the formats belong to this session alone.

    Returns:
        The names, for example ``redis`` and ``sparkonce_redis``.

    Raises:
        UnsupportedQuery: this Spark has no Python data sources, or Python imported this package
            from a wheel, which no worker of a data source can do.
    """
    _require_no_wheel(Path(__file__))
    registry = getattr(spark, "dataSource", None)
    if registry is None:
        raise UnsupportedQuery(
            f"Spark {spark.version} has no Python data sources",
            why="Spark has them since 4.0",
            todo="use Spark 4.0 or newer, with the PySpark of the same release",
        )
    sources = list(installed())
    for source in sources:
        registry.register(source)
    return [source.name() for source in sources]


def _require_no_wheel(here: Path) -> None:
    if wheel := next((place.name for place in here.parents if place.suffix == ".whl"), None):
        raise UnsupportedQuery(
            f"Python imported sparkonce from {wheel}, which is not installed",
            why="Spark passes a wheel among --py-files to the driver's program, and to no worker",
            todo="pip install it on all nodes; or pass the same file under a name with .zip",
        )


def _imported(name: str) -> ModuleType | None:
    try:
        return importlib.import_module(name)
    except Exception as error:  # of another package; with it Spark finds no format at all
        log.warning("Skipping package %s, which can't be imported: %s", name, error)
        return None


def installed() -> Iterator[type[SinkSource]]:
    """The data sources of all connectors on Python's path, by the lookup that Spark uses."""
    for module in pkgutil.iter_modules():
        if module.name.startswith("pyspark_"):
            source = getattr(_imported(module.name), "DefaultSource", None)
            if isinstance(source, type) and issubclass(source, SinkSource):
                yield source
