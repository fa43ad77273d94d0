"""What the errors of a store ask for, in words that all connectors share.

Each connector has a table of its own: by number in MySQL, by status and type in Elasticsearch, by
the first words in Redis.
"""

from __future__ import annotations

import enum
from typing import NamedTuple

from sparkonce.errors import StoreError, StoreRefused, StoreUnreachable

AGAIN = "check option url and the server; what is started again loses and doubles nothing"
RESTART = "then restart the query; it goes on where it stopped"


class FailureKind(enum.Enum):
    """What an error asks for."""

    LOST = "no answer, or none that says what became of the request"
    PASSING = "nothing was done; the same may work in a moment"
    CONFLICT = "what is stored has a version that is as high"
    LATE = "what is stored has a higher fence"
    ROW = "a row can't be stored"
    INDEX = "this part of the target takes no writes, and others may"
    TOO_LARGE = "the request is larger than the server takes"
    REFUSED = "someone must change something"


class KnownFailure(NamedTuple):
    """What is known of an error."""

    kind: FailureKind
    why: str
    todo: str = AGAIN

    @property
    def passes(self) -> bool:
        """Whether the same request may succeed later, and may have succeeded already."""
        return self.kind in (FailureKind.LOST, FailureKind.PASSING)

    def error(self, store: str, doing: str, words: str) -> StoreError:
        """The error for the reader.

        Args:
            store: its name.
            doing: what was tried.
            words: the server's own.
        """
        made, how = (StoreUnreachable, "failed") if self.passes else (StoreRefused, "refused")
        return made(f"{store} {how} while {doing}: {words}", self.why, self.todo)


def refused(why: str, todo: str, kind: FailureKind = FailureKind.REFUSED) -> KnownFailure:
    """A failure after which someone must change something, and restart the query."""
    return KnownFailure(kind, why, f"{todo}, {RESTART}")
