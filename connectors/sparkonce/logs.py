"""What sparkonce logs, in a process in which nobody has set up logging.

Such are Spark's own Python processes, on the driver as on executors: Python then prints warnings
alone, and in Spark's logs nobody sees whose they are. A line an epoch says how it went.
"""

from __future__ import annotations

import logging
from functools import lru_cache

FORM = "%(asctime)s %(levelname)s %(name)s: %(message)s"


@lru_cache(maxsize=1)
def set_up() -> None:
    """Have messages printed with time, level and logger, unless the process has handlers."""
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
