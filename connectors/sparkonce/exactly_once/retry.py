"""Trying again where repeating is harmless."""

from __future__ import annotations

import logging
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import TypeVar

from sparkonce.errors import StoreUnreachable

log = logging.getLogger("sparkonce")
T = TypeVar("T")


@dataclass(frozen=True)
class Patience:
    """How long to wait for a store that does not answer.

    Attributes:
        max_retries: tries after the first one.
        first: seconds before the first retry; each next wait is twice as long.
        longest: seconds that no single wait exceeds.
    """

    max_retries: int = 8
    first: float = 0.1
    longest: float = 5.0

    def wait(self, tried: int) -> float:
        """Seconds to wait after so many failed tries."""
        return min(self.longest, self.first * 2.0 ** (tried - 1))

    def run(self, step: Callable[[], T]) -> T:
        """Call an idempotent `step` until it answers.

        Raises:
            StoreUnreachable: it never did.
        """
        tried = 0
        while True:
            try:
                return step()
            except StoreUnreachable as error:  # any other error is an answer
                tried += 1
                if tried > self.max_retries:
                    raise
                log.warning("%s; try %d of %d", error.what, tried + 1, self.max_retries + 1)
                time.sleep(self.wait(tried))
