"""The limits of a subject: abilities that it lacks."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from unittest import SkipTest


class Limited:
    """A subject with limits; the kit skips checks that need more.

    Attributes:
        abilities: all abilities that a subject of this kind may lack.
        limits: the abilities that this subject lacks, with the reason.
    """

    abilities: Collection[str]
    limits: Mapping[str, str] = {}

    def need(self, ability: str) -> None:
        """Skip a check that needs an ability which this subject lacks.

        Raises:
            unittest.SkipTest: with the reason.
        """
        unknown = set(self.limits).difference(self.abilities)
        if unknown:
            raise ValueError(f"limits names {sorted(unknown)}; known: {sorted(self.abilities)}")
        if ability in self.limits:
            raise SkipTest(f"{ability}: {self.limits[ability]}")
