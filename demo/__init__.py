"""The demo: a year of flights streamed into Redis exactly once, though the driver is killed.

`python -m demo` runs it (`make demo` also installs its needs). `driver.py` is the program that a
user would write; the other modules start it, kill it, restart it and check its results.
"""

from pathlib import Path

ROOT = Path(__file__).parents[1]
URL = "SPARKONCE_DEMO_REDIS_URL"
"""The variable that names a Redis, for the demo and for its driver."""


class Trouble(Exception):
    """An error that ends the demo; its text says what happened and what to do."""
