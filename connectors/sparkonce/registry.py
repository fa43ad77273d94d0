"""How a connector is found: by its import path (Spark), or by the scheme of a URL (the CLI)."""

from __future__ import annotations

import importlib
import re
from importlib.metadata import entry_points

from sparkonce.errors import MissingExtra, OptionError, this_python
from sparkonce.option_values import suggestion
from sparkonce.store import Connector
from sparkonce.urls import spelled

GROUP = "sparkonce.connectors"
"""Entry points of this group are named by URL schemes; a third party's connectors join so."""


def load(path: str) -> Connector:
    """The connector at ``module:Class``.

    Raises:
        MissingExtra: its client library is not installed, or is of a release that does not fit.
    """
    module, _, name = path.partition(":")
    needed = extra(path)
    try:
        connector: Connector = getattr(importlib.import_module(module), name)()
    except ImportError as error:
        raise _misfit(needed, error) from None
    return connector


def _misfit(needed: str, error: ImportError) -> MissingExtra:
    only_a_folder = error.name and not error.path  # as a checkpoint's may be, of the same name
    if isinstance(error, ModuleNotFoundError) or only_a_folder:
        return MissingExtra(
            f'format("{needed}") needs the Python package {error.name!r} ({this_python()})',
            why="sparkonce installs the client of a store only where its extra is asked for",
            todo=f"pip install 'sparkonce[{needed}]' on the driver and every executor",
        )
    return MissingExtra(
        f'format("{needed}") can\'t use the Python package that is installed: {error}',
        why="it is of a release that sparkonce does not know",
        todo=f"pip install --upgrade 'sparkonce[{needed}]' on the driver and every executor",
    )


def extra(path: str) -> str:
    """The extra that installs what the connector at ``module:Class`` needs."""
    return path.partition(".")[0].removeprefix("pyspark_")


def names() -> list[str]:
    """Those of the connectors that are installed."""
    return sorted({extra(point.value) for point in entry_points(group=GROUP)})


def for_name(name: str) -> Connector:
    """The connector that ``format(name)`` or a URL's scheme means.

    Raises:
        OptionError: no installed connector has that name.
    """
    schemes = {point.name: point.value for point in entry_points(group=GROUP)}
    if name not in schemes:
        raise OptionError(
            f"No connector is named {name!r}",
            why=f"installed are {', '.join(names())}",
            todo=suggestion(name, sorted(schemes)) or "name one of them",
        )
    return load(schemes[name])


def for_url(url: str) -> Connector:
    """The connector for a URL, such as ``redis://localhost:6379``.

    Raises:
        OptionError: no installed connector knows its scheme.
    """
    scheme, found, _ = spelled(url).removeprefix("jdbc:").partition("://")
    scheme = scheme if found else ""
    schemes = {point.name: point.value for point in entry_points(group=GROUP)}
    if scheme not in schemes:
        shown = scheme if re.fullmatch(r"[\w+.-]*", scheme) else "***"
        raise OptionError(
            f"No connector knows the URL scheme {shown!r}",
            why=f"URLs begin with {', '.join(f'{known}://' for known in sorted(schemes))}",
            todo="check the URL; it looks like redis://localhost:6379/0",
        )
    return load(schemes[scheme])
