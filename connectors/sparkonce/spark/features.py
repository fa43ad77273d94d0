"""Features of the present PySpark, detected by their presence and never by its version.

Platforms backport features of later releases. Spark imports every ``pyspark_*`` module to look up
formats, and an error in one hides the formats of all others. So neither this module nor the imports
of a connector's entry module raise an error for a missing feature.
"""

from __future__ import annotations

import logging
import os
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING, Any

from sparkonce.errors import MissingExtra, SparkonceError, UnsupportedQuery, this_python

log = logging.getLogger("sparkonce")

__all__ = [
    "ArrowWriter",
    "AvailableNow",
    "DataSource",
    "InputPartition",
    "Reader",
    "Shipped",
    "StreamArrowWriter",
    "StreamReader",
    "WriterCommitMessage",
    "errors_first",
    "keeps_filters_apart",
    "limits",
    "require_arrow",
]

try:
    from pyspark.sql import datasource as api
except ImportError:
    api = None  # type: ignore[assignment]

limits: Any = None
"""Spark's module of read limits, which readers of streams receive since 4.2; None before."""
with suppress(ImportError):
    from pyspark.sql.streaming import datasource as limits

keeps_filters_apart = hasattr(getattr(api, "DataSourceReader", None), "pushLimit")
"""Whether pushed conditions stay with their query. Before Spark could push limits, it applied them
to all other reads of the same DataFrame: https://github.com/apache/spark/pull/57752
"""


def _stream_writer() -> Any:
    """The base of a writer of streams that receives Arrow batches; None if Spark has none.

    Spark 4.0 has no class for it, and passes batches to any subclass of `DataSourceArrowWriter`.
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
    StreamArrowWriter = _stream_writer() or object  # `require_arrow` names the missing feature


def require_arrow() -> None:
    """Reject a Python in which Spark cannot pass Arrow batches to a sink.

    Raises:
        UnsupportedQuery: PySpark does not support it.
        MissingExtra: PyArrow is not installed.
    """
    if _stream_writer() is None:
        raise UnsupportedQuery(
            "The installed PySpark passes no Arrow batches to a Python data source",
            why="sparkonce accepts rows only in that form, which Spark has since 4.0",
            todo="use Spark 4.0 or newer, with the PySpark of the same release",
        )
    try:
        import pyarrow  # noqa: F401
    except ImportError as error:
        raise MissingExtra(
            f"Spark's Python can't import pyarrow ({this_python()}): {error}",
            why="Spark passes rows to a Python data source as Arrow batches",
            todo="pip install 'pyarrow>=15' on the driver and every executor",
        ) from None


class Shipped:
    """A reader or a writer, which Spark creates on the driver and sends to executors.

    Attributes:
        connector: the path of the connector.
        options: as the user set them.
        schema: of the rows: Spark's for a reader, Arrow's for a writer.
    """

    def __init__(self, connector: str, options: dict[str, str], schema: Any) -> None:
        self.connector, self.options, self.schema = connector, options, schema

    def __reduce__(self) -> tuple[Any, ...]:
        """The function that rebuilds it on an executor, without attributes that begin with ``_``.

        By default pickle names only the class, and an executor without sparkonce would say just
        ``No module named 'sparkonce'``. This function is pickled by value, and names the extra to
        install.
        """
        from sparkonce.store import extra

        kind = type(self)
        release = sys.modules[kind.__module__.partition(".")[0]].__version__
        made = kind.__module__, kind.__qualname__, release, extra(self.connector)
        return _maker(), made, {n: one for n, one in vars(self).items() if not n.startswith("_")}


def _maker() -> Callable[[str, str, str, str], Any]:
    """The function that creates an empty object in another process.

    Pickle includes the code, since no module has the function by name. So the function must use
    nothing of this module.
    """

    def make(module: str, name: str, release: str, extra: str) -> Any:
        import os
        import platform
        import sys
        from importlib import import_module

        here = f"{sys.executable} on {platform.node()}"
        todo = (
            f"What to do: install the wheel of sparkonce {release} with extra [{extra}] in it, on"
            " every node (docs/deploy.md). Or ship an environment that has it to the executors,"
            " with --archives and PYSPARK_PYTHON."
        )
        try:
            found = getattr(import_module(module.partition(".")[0]), "__version__", "of no release")
            # Another release may lack the module or the class.
            kind = getattr(import_module(module), name) if found == release else None
        except ModuleNotFoundError as error:
            os.environ["SPARK_HIDE_TRACEBACK"] = "1"  # as in `errors_first`, which is missing here
            raise ModuleNotFoundError(
                f"The Python of an executor has no package {error.name!r}: {here}."
                f" Why: part of the sink runs in tasks. {todo}"
            ) from None
        if kind is None:
            os.environ["SPARK_HIDE_TRACEBACK"] = "1"
            raise ImportError(
                f"An executor has sparkonce {found}, and the driver {release}: {here}."
                f" Why: the driver applies what tasks stage, and reads only its own format. {todo}"
            )
        # Not by __init__, which calls the server: pickle fills in the state.
        return kind.__new__(kind)

    return make


HIDE = "SPARK_HIDE_TRACEBACK"
"""The variable that passes ``spark.sql.execution.pyspark.udf.hideTraceback.enabled`` to workers."""


@contextmanager
def errors_first() -> Iterator[None]:
    """Make Spark report an error of the sink in three lines, and leave all other errors unchanged.

    Spark reads the setting when it reports the error (`pyspark.util.handle_worker_exception`). The
    worker then exits, so the setting hides nothing else.
    """
    try:
        yield
    except SparkonceError as error:
        spec = getattr(sys.modules["__main__"], "__spec__", None)
        if spec is not None and spec.name.startswith("pyspark."):  # Spark's, of a source or task
            log.debug("%s", error, exc_info=error)
            os.environ[HIDE] = "1"
            error.separator = "\n"
        raise
