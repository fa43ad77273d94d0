"""The demo: a year of flights streamed into Redis exactly once, though the driver is killed.

`python -m demo` runs it (`make demo` brings what that needs). `driver.py` is the program that a
user would write; the other modules start it, kill it, start it again and check what it left.
"""

from pathlib import Path

ROOT = Path(__file__).parents[1]
URL = "SPARKONCE_DEMO_REDIS_URL"
"""The variable that names a Redis, for the demo and for its driver."""


class Trouble(Exception):
    """It ends the demo; its text says what happened and what to do."""
