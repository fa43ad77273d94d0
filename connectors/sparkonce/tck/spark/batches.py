"""Batches on the driver: a job in its own thread, and the function of a ``foreachBatch``."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from importlib import import_module
from threading import Thread
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from pyspark.sql import DataFrame
    from pyspark.sql.streaming.readwriter import DataStreamWriter

Write = Callable[["DataFrame", str, Mapping[str, str]], None]


def imported(path: str) -> Any:
    """The object that ``module:function`` names."""
    module, _, function = path.partition(":")
    return getattr(import_module(module), function)


def write(named: str, attach: str) -> Write:
    """The function that writes a batch: the sink's own, or Spark's writer of its format."""
    if attach:
        own: Write = imported(attach)
        return own
    return lambda rows, mode, options: rows.write.format(named).mode(mode).options(**options).save()


def attach(writer: DataStreamWriter, options: Mapping[str, str]) -> DataStreamWriter:
    """Attach a batch sink to a stream, as `BatchSink.in_foreach_batch` describes."""
    content = json.loads(options["batch"])
    own = write(content["format"], content["attach"])
    return writer.foreachBatch(lambda rows, _: own(rows, "append", content["options"]))


class Job:
    """A running batch, with the methods of a `StreamingQuery`."""

    def __init__(self, run: Callable[[], None]) -> None:
        self._error: Exception | None = None
        self._thread = Thread(target=self._run, args=(run,), daemon=True)
        self._thread.start()

    @property
    def isActive(self) -> bool:  # noqa: N802
        """Whether it still runs."""
        return self._thread.is_alive()

    def awaitTermination(self, timeout: float) -> None:  # noqa: N802
        """Wait for its end, for this number of seconds at most."""
        self._thread.join(timeout)

    def exception(self) -> Exception | None:
        """The error with which it failed."""
        return self._error

    def _run(self, run: Callable[[], None]) -> None:
        try:
            run()
        except Exception as error:
            self._error = error
