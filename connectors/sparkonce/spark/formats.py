"""Every format that is installed, for sessions that don't look formats up by themselves."""

from __future__ import annotations

import importlib
import logging
import pkgutil
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType
from typing import TYPE_CHECKING

from sparkonce.errors import UnsupportedQuery
from sparkonce.spark.source import SinkSource

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

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
