"""What a subject of the kit says that it can't do."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from unittest import SkipTest


class Limited:
    """A subject with limits, by which checks that need more are skipped.

    Attributes:
        abilities: what some subject may not be able to do.
        limits: those of them that this one can't, with the reason.
    """

    abilities: Collection[str]
    limits: Mapping[str, str] = {}

    def need(self, ability: str) -> None:
        """Skip a check that needs what this subject can't do.

        Raises:
            unittest.SkipTest: with the reason.
        """
        unknown = set(self.limits).difference(self.abilities)
        if unknown:
            raise ValueError(f"limits names {sorted(unknown)}; there are {sorted(self.abilities)}")
        if ability in self.limits:
            raise SkipTest(f"{ability}: {self.limits[ability]}")
