"""The data source behind every format: what Spark asks it for, and what it refuses."""

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
    """``module:Class`` of the connector, imported when a query first uses it."""

    @classmethod
    def name(cls) -> str:
        """The name of the format: that of the package in which Spark finds the class."""
        return cls.__module__.partition(".")[0].removeprefix("pyspark_")

    @errors_first()
    def streamWriter(  # noqa: N802 (Spark's name)
        self, schema: StructType, overwrite: bool
    ) -> StreamWriter:
        """See pyspark. Checks options, schema and server before any row is read.

        Raises:
            UnsupportedQuery: complete output mode.
            SparkonceError: whatever else can be known now.
        """
        require_arrow()
        if overwrite:
            raise UnsupportedQuery(
                "Output mode complete can't be written",
                why="it replaces the whole target at every epoch, which this sink does not do",
                todo="use outputMode('append'), for an aggregate with a watermark",
            )
        # Not at the top: Spark imports this module to look formats up, with or without PyArrow.
        from sparkonce.spark.types import arrow_schema
        from sparkonce.spark.writer import StreamWriter

        return StreamWriter(self.connector, dict(self.options), arrow_schema(schema))

    def _require_usable(self) -> None:
        """Refuse a Python without Arrow, and a table of Spark's catalog.

        Its options reach no Python data source. `schema` finds the table's properties among them,
        where Spark is about to make it. A read or a write of a table that is there has none at all,
        and Spark does not say what it is for.
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
            why="they say where the store is; and the options of a table of the catalog (CREATE"
            " TABLE ... USING, saveAsTable) reach no Python data source",
            todo="name them at spark.read or df.write and end it by load() or save(), or make a"
            " view: CREATE TEMPORARY VIEW name USING format OPTIONS (...)",
        )

    @errors_first()
    def schema(self) -> StructType:
        """See pyspark. Spark asks for it to read, where a user gives none, and not what for."""
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
        """See pyspark. What is wrong is told later: Spark shows no error of this call."""
        from sparkonce.spark.feed_reader import reader

        return reader(self.connector, dict(self.options), schema)

    @errors_first()
    def writer(self, schema: StructType, overwrite: bool) -> BatchWriter:
        """See pyspark. Checks options, schema and server before any row is read."""
        self._require_usable()
        from sparkonce.spark.types import arrow_schema
        from sparkonce.spark.writer import BatchWriter

        columns = arrow_schema(schema)
        return BatchWriter(self.connector, dict(self.options), columns, overwrite=overwrite)


log = logging.getLogger("sparkonce")


def register(spark: SparkSession) -> list[str]:
    """Make the formats of all installed connectors known to a session.

    Spark does that by itself, from the ``pyspark_*`` modules that its Python finds. It does not
    where that lookup fails for another package's error, or is switched off, or where the packages
    came with ``--py-files`` or ``addArtifact``, which it does not search.

    Args:
        spark: classic, or through Connect; there it is of use for this session alone.

    Returns:
        The names, for example ``redis`` and ``sparkonce_redis``.

    Raises:
        UnsupportedQuery: the session is of a Spark without Python data sources, or this package was
            imported from a wheel, which no worker of a data source does.
    """
    _require_no_wheel(Path(__file__))
    registry = getattr(spark, "dataSource", None)
    if registry is None:
        raise UnsupportedQuery(
            f"Spark {spark.version} has no Python data sources",
            why="they came with Spark 4.0",
            todo="use Spark 4.0 or newer, with the PySpark of the same release",
        )
    sources = list(installed())
    for source in sources:
        registry.register(source)
    return [source.name() for source in sources]


def _require_no_wheel(here: Path) -> None:
    if wheel := next((place.name for place in here.parents if place.suffix == ".whl"), None):
        raise UnsupportedQuery(
            f"sparkonce was imported from {wheel}, without being installed",
            why="Spark gives a wheel among --py-files to the driver's program, and to no worker",
            todo="pip install it on all nodes; or give the same file under a name with .zip",
        )


def _imported(name: str) -> ModuleType | None:
    try:
        return importlib.import_module(name)
    except Exception as error:  # another package's, for which Spark finds no format at all
        log.warning("Package %s can't be imported, and is left out: %s", name, error)
        return None


def installed() -> Iterator[type[SinkSource]]:
    """The data sources of all connectors on Python's path, found as Spark finds them."""
    for module in pkgutil.iter_modules():
        if module.name.startswith("pyspark_"):
            source = getattr(_imported(module.name), "DefaultSource", None)
            if isinstance(source, type) and issubclass(source, SinkSource):
                yield source
