"""Whether Spark may mix two computations of one epoch, before its rows reach a sink.

A query that draws at random before a shuffle (a UDF, ``uuid()``) computes other rows each time.
Where an executor is lost, Spark computes its part of the shuffle anew, and joins it to what tasks
have read of the first computation: rows are lost and doubled, and no sink can see it. Since 4.1
Spark can compare checksums, and give such an epoch up, so that it is replayed as a whole.
See https://issues.apache.org/jira/browse/SPARK-53575
"""

from __future__ import annotations

import logging
import re
from collections.abc import Callable
from functools import lru_cache

SETTINGS = (
    "spark.sql.shuffle.orderIndependentChecksum.enabled",
    "spark.sql.shuffle.orderIndependentChecksum.enableFullRetryOnMismatch",
)
ON_SINCE = (4, 2)
"""The first release that has both on by default."""

log = logging.getLogger("sparkonce")


def may_mix(setting: Callable[[str], str | None], release: str) -> bool:
    """Whether one of the settings is off.

    Args:
        setting: gives the value of a setting that was set, else None.
        release: of Spark, whose default holds else.
    """
    numbers = re.match(r"(\d+)\.(\d+)", release)
    default = numbers is None or (int(numbers[1]), int(numbers[2])) >= ON_SINCE
    return not all((setting(name) or str(default)).lower() == "true" for name in SETTINGS)


@lru_cache(maxsize=64)
def warn(run_id: str) -> None:
    """Say, once a run, what can't be guarded."""
    log.warning(
        "Run %s: Spark may mix two computations of an epoch. What: %s are not both true. Why:"
        " where an executor is lost, and the query draws at random before a shuffle, rows are lost"
        " or doubled before they reach the sink. What to do: set both to true (since Spark 4.2 they"
        " are, unless changed; before 4.1 there are none), or let the query draw nothing",
        run_id,
        " and ".join(SETTINGS),
    )
