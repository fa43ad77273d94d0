"""What sparkonce logs, in a process in which nobody has set up logging.

Such are Spark's own Python processes, on the driver as on executors: Python then prints a message
alone, and in Spark's logs nobody sees whose it is, or that it is a warning.
"""

from __future__ import annotations

import logging
from functools import lru_cache

FORM = "%(asctime)s %(levelname)s %(name)s: %(message)s"


@lru_cache(maxsize=1)
def set_up() -> None:
    """Have warnings printed with time, level and logger, unless the process has handlers."""
    handler = logging.StreamHandler()
    handler.setLevel(logging.WARNING)
    handler.setFormatter(logging.Formatter(FORM))
    # Asked at each message: Spark's own, or the user's, may be set up later.
    handler.addFilter(lambda _: not logging.getLogger().handlers)
    logging.getLogger("sparkonce").addHandler(handler)
