"""What a bulk request is sent for."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from pyspark_elasticsearch.records import Aim


@dataclass(frozen=True)
class Errand:
    """What is sent, and for whom.

    Attributes:
        epoch: whose rows they are.
        detail: of the plan.
        aim: where they go.
        counter: the target whose counter drew their fence.
        outcome: what an error says about the epoch.
        is_overtaken: whether there is nothing left to do, since others have done it.
        fresh_until: by `time.monotonic()`, until when nothing of it was sent by others.
        piped: whether rows go, or may go, through ingest pipelines.
    """

    epoch: int
    detail: Mapping[str, Any]
    aim: Aim
    counter: str
    outcome: str
    is_overtaken: Callable[[], bool]
    fresh_until: float = 0.0
    piped: bool = False

    @property
    def fresh(self) -> bool:
        """Whether nothing of it can have been sent before: nobody has taken it over by now."""
        return time.monotonic() < self.fresh_until
