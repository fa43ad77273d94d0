"""What the PySpark that runs here can do, found by looking for it and never by its version.

Platforms bring features of later releases to earlier ones. Spark imports every ``pyspark_*``
module to look formats up, and an error in one hides the formats of all the others; so nothing in
here, or in what a connector's entry module imports, raises for what is missing.
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


class Shipped:
    """What Spark makes on the driver, and sends to executors: a reader or a writer.

    Attributes:
        connector: its path.
        options: as the user gave them.
        schema: of the rows: Spark's for a reader, Arrow's for a writer.
    """

    def __init__(self, connector: str, options: dict[str, str], schema: Any) -> None:
        self.connector, self.options, self.schema = connector, options, schema

    def __reduce__(self) -> tuple[Any, ...]:
        """What makes it there; what begins with ``_`` stays here.

        Spark names its class alone, so an executor without sparkonce would only say ``No module
        named 'sparkonce'``. What makes it goes by value, and says what extra to install.
        """
        from sparkonce.store import extra

        kind = type(self)
        release = sys.modules[kind.__module__.partition(".")[0]].__version__
        made = kind.__module__, kind.__qualname__, release, extra(self.connector)
        return _maker(), made, {n: one for n, one in vars(self).items() if not n.startswith("_")}


def _maker() -> Callable[[str, str, str, str], Any]:
    """What makes an empty object in another process.

    Its code is pickled with it, as no module has it by its name: it must use nothing of this one.
    """

    def make(module: str, name: str, release: str, extra: str) -> Any:
        import os
        import platform
        import sys
        from importlib import import_module

        here = f"{sys.executable} on {platform.node()}"
        todo = (
            f"What to do: pip install 'sparkonce[{extra}]=={release}' into it, on every node; or"
            " give executors an environment that has it, with --archives and PYSPARK_PYTHON"
            " (docs/deploy.md)."
        )
        try:
            found = getattr(import_module(module.partition(".")[0]), "__version__", "of no release")
            # Of another release, the module or what is in it may not be there.
            kind = getattr(import_module(module), name) if found == release else None
        except ModuleNotFoundError as error:
            os.environ["SPARK_HIDE_TRACEBACK"] = "1"  # as in `errors_first`, which is not there
            raise ModuleNotFoundError(
                f"The Python of an executor has no package {error.name!r}: {here}."
                f" Why: a part of the sink runs in tasks. {todo}"
            ) from None
        if kind is None:
            os.environ["SPARK_HIDE_TRACEBACK"] = "1"
            raise ImportError(
                f"An executor has sparkonce {found}, and the driver {release}: {here}."
                f" Why: the driver applies what tasks stage, and reads only its own form. {todo}"
            )
        # Not by __init__, which asks the server: pickle fills in the state.
        return kind.__new__(kind)

    return make


HIDE = "SPARK_HIDE_TRACEBACK"
"""Spark's ``spark.sql.execution.pyspark.udf.hideTraceback.enabled``, as its workers are told."""


@contextmanager
def errors_first() -> Iterator[None]:
    """Have Spark report an error of the sink in three lines, and no other error otherwise.

    The setting is read when the error is reported (`pyspark.util.handle_worker_exception`), and the
    worker ends with it, so that it hides nothing else.
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
