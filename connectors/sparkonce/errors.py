"""Every error that sparkonce raises, and what each one asks of the reader; those of servers, too.

A message says what happened, why that matters and what to do. It is one line, whatever rows, keys
and servers' answers are told in it; a terminal gets the three parts in lines of their own.
"""

from __future__ import annotations

import enum
import logging
import platform
import sys
from collections.abc import Sequence
from functools import lru_cache
from typing import Any, NamedTuple


def in_one_line(text: str) -> str:
    r"""The text with every character that a terminal does not show escaped as in Python (``\n``).

    A value that is told may hold line breaks and colours, and would make up lines of a log.
    """
    return "".join(one if one.isprintable() else repr(one)[1:-1] for one in text)


def error_text(what: str, why: str = "", todo: str = "") -> str:
    """The line of an error or of a warning; see `SparkonceError`."""
    return " ".join(_parts(what, why, todo))


def _parts(what: str, why: str, todo: str) -> list[str]:
    parts = ("", what), ("Why: ", why), ("What to do: ", todo)
    return [in_one_line(f"{said}{_sentence(part)}") for said, part in parts if part]


class SparkonceError(Exception):
    """The root of all errors of this package.

    Args:
        what: what happened, a sentence without its full stop.
        why: why it is an error.
        todo: what to do about it.

    Attributes:
        separator: stands between its parts where it is shown.
    """

    separator = " "

    def __init__(self, what: str, why: str = "", todo: str = "") -> None:
        self.what, self.why, self.todo = map(in_one_line, (what, why, todo))
        super().__init__(self.what, self.why, self.todo)

    def __str__(self) -> str:
        return self.separator.join(self.lines())

    def lines(self) -> list[str]:
        """Its parts, each of which is one line."""
        return _parts(self.what, self.why, self.todo)

    def to_json(self) -> dict[str, Any]:
        """Its type and its three parts."""
        parts = {"what": self.what, "why": self.why, "todo": self.todo}
        return {"type": type(self).__name__, **parts}


def _sentence(text: str) -> str:
    """The text with one end."""
    return text if text.endswith("?") else f"{text.rstrip('. ')}."


def this_python() -> str:
    """Which Python runs here, of the several that a cluster has."""
    return f"{sys.executable} on {platform.node()}"


class OptionError(SparkonceError):
    """An option is unknown, missing, ill-typed, or contradicts another or the schema.

    Where several are wrong, `problems` says what is wrong with each.
    """

    problems: Sequence[OptionError] = ()

    def lines(self) -> list[str]:
        """See `SparkonceError`; a line for each option where several are wrong."""
        several = (f"({number}) {one}" for number, one in enumerate(self.problems, start=1))
        return [*super().lines(), *several]

    def to_json(self) -> dict[str, Any]:
        """See `SparkonceError`; with all problems where there are several."""
        several = {"problems": [one.to_json() for one in self.problems]} if self.problems else {}
        return super().to_json() | several


class MissingExtra(SparkonceError):
    """The client library of this connector is not installed."""


class UnsupportedQuery(SparkonceError):
    """What is asked for can't be done: a trigger, an output mode, offsets of another source."""


class BadRow(SparkonceError):
    """A row that can't be stored. Found before the decision: nothing of the epoch took effect."""


class ChunkTooLarge(BadRow):
    """A chunk is too large for the store. Staging cuts it in two, down to a single row."""


class StoreError(SparkonceError):
    """The store can't do what is asked."""


class BatchUnfinished(StoreError):
    """A batch without a name is decided, and not all of it has taken effect."""


class StoreUnreachable(StoreError):
    """No connection, or no answer in time; whether a request took effect may be unknown."""


class StoreRefused(StoreError):
    """The store answered, and said no: credentials, rights, memory, read-only."""


class StoreUnsafe(StoreError):
    """A setting of the store could lose what a commit has acknowledged."""


class StoreLostData(StoreError):
    """A decided epoch can't be applied any more, since its chunks are gone from the store."""


class DecisionLost(StoreError):
    """The store lost, during a commit, a decision that it had acknowledged; Spark replays it."""


class RecordDamaged(StoreError):
    """A record of sparkonce's own is not as sparkonce writes it, so nobody knows what it says."""


class StagedDataMissing(StoreError):
    """Staged chunks are gone before the decision. Nothing took effect; Spark replays the epoch."""


class RowRefused(StoreError):
    """The server refused a row after its epoch was decided; a restart goes on at that row."""


class ValueUnreadable(StoreError):
    """What is stored is no value of the type that it is read as."""


class SnapshotBroken(StoreError):
    """Parts of one read saw different states of the store, and it was to be one."""


class UnreadLost(StoreError):
    """Rows of a stream that were not read are gone from the store, or others are in their place."""


class CommitRefused(SparkonceError):
    """Applying this epoch could lose rows or apply them twice."""


class CheckpointReplaced(CommitRefused):
    """Another query writes to this sink: its checkpoint was deleted or swapped."""


class SinkRenamed(CommitRefused):
    """This checkpoint's query writes under another sink id."""


class QueryRetired(CommitRefused):
    """This query was replaced by another one, on purpose, and can never commit again."""


class CheckpointDiverged(CommitRefused):
    """The same epoch number with other offsets: a restored or copied checkpoint."""


class CheckpointUnreadable(CommitRefused):
    """Python on the driver can't read the checkpoint; Spark replays the epoch once it can."""


class CheckpointBehindSink(CommitRefused):
    """The sink has a later epoch than this checkpoint."""


class VersionBehindSink(CommitRefused):
    """The sink has a later version of this application (``txnVersion``)."""


class BatchOvertaken(CommitRefused):
    """A batch is decided and not wholly applied, and others have decided since."""


class DecisionDropped(CommitRefused):
    """An operator dropped the epoch while its driver applied it."""


class VersionTaken(CommitRefused):
    """Another query has written this ``txnVersion`` under the same ``txnAppId``."""


class WrittenTwice(CommitRefused):
    """One run wrote one batch twice into one target, under one name."""


class SinkBehindCheckpoint(CommitRefused):
    """The sink lacks epochs that this checkpoint has committed."""


class ConcurrentDriver(CommitRefused):
    """A second driver runs the same checkpoint."""


class StaleSkip(CommitRefused):
    """A task skipped its rows for a decision that is not the one in the ledger."""


AGAIN = "check option url and the server; what is started again loses and doubles nothing"
RESTART = "then restart the query; it goes on where it stopped"


class FailureKind(enum.Enum):
    """What a server's error asks for.

    Each connector has a table of its own: by number in MySQL, by status and type in Elasticsearch,
    by the first words in Redis.
    """

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

        `store` is its name, `doing` what was tried, `words` are the server's own.
        """
        made, how = (StoreUnreachable, "failed") if self.passes else (StoreRefused, "refused")
        return made(f"{store} {how} while {doing}: {words}", self.why, self.todo)


def refused(why: str, todo: str, kind: FailureKind = FailureKind.REFUSED) -> KnownFailure:
    """A failure after which someone must change something, and restart the query."""
    return KnownFailure(kind, why, f"{todo}, {RESTART}")


FORM = "%(asctime)s %(levelname)s %(name)s: %(message)s"


@lru_cache(maxsize=1)
def escape_log_messages() -> None:
    """Have messages escaped: they tell of names and values that others chose."""

    def escape(record: logging.LogRecord) -> bool:
        record.msg, record.args = in_one_line(record.getMessage()), ()
        return True

    logging.getLogger("sparkonce").addFilter(escape)


@lru_cache(maxsize=1)
def set_up_logging() -> None:
    """Have messages printed with time, level and logger, unless the process has handlers."""
    escape_log_messages()
    handler = logging.StreamHandler()
    handler.setLevel(logging.INFO)
    handler.setFormatter(logging.Formatter(FORM))
    logger, root = logging.getLogger("sparkonce"), logging.getLogger()
    # Asked at each message: Spark's own, or the user's, may be set up later.
    handler.addFilter(lambda _: not root.handlers)
    logger.addHandler(handler)
    if logger.level == logging.NOTSET:
        logger.setLevel(logging.INFO)
        logger.addFilter(lambda record: not root.handlers or record.levelno >= root.level)
