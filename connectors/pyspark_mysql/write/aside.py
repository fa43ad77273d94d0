"""Rows of one epoch that can't be stored: counted, and written as dead letters."""

from __future__ import annotations

from dataclasses import dataclass

from pyspark_mysql.journal.dead_letters import DeadLetters
from sparkonce.exactly_once.bad_rows import BadRowCounter
from sparkonce.protocol import Manifest
from sparkonce.values.letters import Letter


@dataclass(frozen=True)
class Aside:
    """Takes the rows of one epoch that can't be stored, while there are not too many."""

    letters: DeadLetters
    manifest: Manifest
    tally: BadRowCounter

    def take(self, letter: Letter, partition: int | None, kind: str) -> None:
        """Put a row aside.

        Args:
            letter: of the row.
            partition: that it came in, if that is known.
            kind: why it can't be stored, in words that others share.

        Raises:
            TooManyBadRows: more can't be stored than may go aside.
        """
        self.tally.add(kind, letter.reason)
        self.letters.write(self.manifest, letter, partition)
