"""How an error of the sink reaches its reader through Spark.

Spark reports a failed Python process with its traceback, up to three times: as the cause, in the
log, and at the head of `StreamingQueryException`. What happened, why and what to do would stand at
the end of each, behind frames that no user wrote.
"""

from __future__ import annotations

import logging
import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager

from sparkonce.errors import SparkonceError

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
