"""What sparkonce logs, in a process in which nobody has set up logging.

Such are Spark's own Python processes, on the driver as on executors: Python then prints warnings
alone, and in Spark's logs nobody sees whose they are. A line an epoch says how it went.
"""

from __future__ import annotations

import logging
from functools import lru_cache

from sparkonce.errors import in_one_line

FORM = "%(asctime)s %(levelname)s %(name)s: %(message)s"


@lru_cache(maxsize=1)
def tame() -> None:
    """Have messages escaped: they tell of names and values that others chose."""
    logging.getLogger("sparkonce").addFilter(_in_one_line)


def _in_one_line(record: logging.LogRecord) -> bool:
    record.msg, record.args = in_one_line(record.getMessage()), ()
    return True


@lru_cache(maxsize=1)
def set_up() -> None:
    """Have messages printed with time, level and logger, unless the process has handlers."""
    tame()
    handler = logging.StreamHandler()
    handler.setLevel(logging.INFO)
    handler.setFormatter(logging.Formatter(FORM))
    logger, root = logging.getLogger("sparkonce"), logging.getLogger()
    # Asked at each message: Spark's own, or the user's, may be set up later.
    handler.addFilter(lambda _: not root.handlers)
    logger.addHandler(handler)
    if logger.level == logging.NOTSET:
        logger.setLevel(logging.INFO)
        logger.addFilter(lambda record: not root.handlers or record.levelno >= root.level)
