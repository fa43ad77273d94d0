"""How a writer gets into tasks, whose Python may lack sparkonce.

Spark sends an object to executors with its class by name alone, so one without sparkonce would only
say ``No module named 'sparkonce'``. What makes the writer there goes by value, and says the rest.
"""

from __future__ import annotations

import logging
import os
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from sparkonce import __version__
from sparkonce.errors import SparkonceError


def reduced(made: object, extra: str) -> tuple[Any, ...]:
    """What ``__reduce__`` gives for an object that Spark sends to executors.

    Args:
        made: of a class of this package.
        extra: the one that the connector needs.
    """
    kind = type(made)
    return _maker(), (kind.__module__, kind.__qualname__, __version__, extra), vars(made)


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
            os.environ["SPARK_HIDE_TRACEBACK"] = "1"  # as in tracebacks.py, which is not there
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

log = logging.getLogger("sparkonce")


@contextmanager
def errors_first() -> Iterator[None]:
    """Have Spark report an error of the sink in three lines, and no other error otherwise.

    The setting is read when the error is reported (`pyspark.util.handle_worker_exception`), and the
    worker ends with it, so that it hides nothing else.
    """
    try:
        yield
    except SparkonceError as error:
        if _is_worker():
            log.debug("%s", error, exc_info=error)
            os.environ[HIDE] = "1"
            error.separator = "\n"
        raise


def _is_worker() -> bool:
    """Whether Spark started this process, to run a data source or a task."""
    spec = getattr(sys.modules["__main__"], "__spec__", None)
    return spec is not None and spec.name.startswith("pyspark.")
