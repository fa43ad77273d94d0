"""All errors that sparkonce raises, with cause and cure, also those of servers.

A message says what happened, why that matters and what to do. It is one line, even if the rows,
keys and replies of servers in it are not. A terminal shows each of the three parts on its own line.
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
    r"""The text, with each character that a terminal does not show escaped as in Python (``\n``).

    Otherwise a value with line breaks or colours could forge lines of a log.
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
        separator: the text between the parts of a shown error.
    """

    separator = " "

    def __init__(self, what: str, why: str = "", todo: str = "") -> None:
        self.what, self.why, self.todo = map(in_one_line, (what, why, todo))
        super().__init__(self.what, self.why, self.todo)

    def __str__(self) -> str:
        return self.separator.join(self.lines())

    def lines(self) -> list[str]:
        """The parts, one line each."""
        return _parts(self.what, self.why, self.todo)

    def to_json(self) -> dict[str, Any]:
        """The type and the three parts."""
        parts = {"what": self.what, "why": self.why, "todo": self.todo}
        return {"type": type(self).__name__, **parts}


def _sentence(text: str) -> str:
    """The text with exactly one full stop or question mark."""
    return text if text.endswith("?") else f"{text.rstrip('. ')}."


def this_python() -> str:
    """The Python of this process, one of several in a cluster."""
    return f"{sys.executable} on {platform.node()}"


class OptionError(SparkonceError):
    """An option is unknown, missing or ill-typed, or contradicts another option or the schema.

    Cause: a spelling mistake, or an option that the connector, the write mode or the schema
        does not allow. Where several options are wrong, `problems` has one error for each.
    Cure: change the options that the message names, and start the query again.
    """

    problems: Sequence[OptionError] = ()

    def lines(self) -> list[str]:
        """See `SparkonceError`; one line for each option if several are wrong."""
        several = (f"({number}) {one}" for number, one in enumerate(self.problems, start=1))
        return [*super().lines(), *several]

    def to_json(self) -> dict[str, Any]:
        """See `SparkonceError`; with all problems if several options are wrong."""
        several = {"problems": [one.to_json() for one in self.problems]} if self.problems else {}
        return super().to_json() | several


class MissingExtra(SparkonceError):
    """The client library of the connector is not installed.

    Cause: the Python of the driver or of an executor has sparkonce without the extra of the
        store.
    Cure: install the wheel of sparkonce with the extra that the message names, on the driver
        and every executor.
    """


class UnsupportedQuery(SparkonceError):
    """The query needs something that the connector cannot do.

    Cause: a trigger, an output mode, a Spark release, or offsets of another source.
    Cure: change the query as the message says.
    """


class BadRow(SparkonceError):
    """The store cannot hold a row. The driver had not decided the epoch, so no row took effect.

    Cause: a value does not fit its column, key or field.
    Cure: correct the row, or set ``onBadRow=deadLetter``; then restart the query.
    """


class ChunkTooLarge(BadRow):
    """One row is larger than the store accepts.

    Cause: staging splits a chunk that is too large, down to a single row, and this row still
        exceeds the limit.
    Cure: drop or shorten large columns, or raise the limit that the message names. The row
        can't become a dead letter.
    """


class StoreError(SparkonceError):
    """The store cannot do what the connector asks.

    Cause: a state of the store that the message names, for example a record of a newer release.
    Cure: as the message says.
    """


class BatchUnfinished(StoreError):
    """A batch without a name is decided, and part of it has not taken effect.

    Cause: the driver lost the store, or a row was rejected, while it applied the batch.
    Cure: remove the cause, then run ``sparkonce recover``; the next batch into the target does
        the same.
    """


class StoreUnreachable(StoreError):
    """The store did not reply in time. A request may or may not have taken effect.

    Cause: the network, the address, or a server that restarts or fails over.
    Cure: make the store reachable, then restart the query. Nothing is lost or duplicated.
    """


class StoreRefused(StoreError):
    """The store replied with an error.

    Cause: credentials, rights, settings, memory, a read-only server, or a name that does not exist.
    Cure: correct what the message names, then restart the query.
    """


class StoreUnsafe(StoreError):
    """A setting of the store can lose what a commit has acknowledged.

    Cause: eviction, asynchronous durability, a missing index, or an engine without
        transactions.
    Cure: change the setting that the message names, or accept the risk with the option that it
        names.
    """


class StoreLostData(StoreError):
    """The store lost chunks of a decided epoch, so the rest of the epoch cannot be applied.

    Cause: a failover or a restored backup dropped data that the store had acknowledged.
    Cure: restore a backup and restart the query, or give the rows up with ``sparkonce recover
        --accept-loss``.
    """


class DecisionLost(StoreError):
    """The store lost a decision during the commit, after it had acknowledged it.

    Cause: a failover to a replica that lacks the last writes.
    Cure: restart the query once the store is stable; Spark replays the epoch.
    """


class RecordDamaged(StoreError):
    """A record of sparkonce is not readable.

    Cause: another program changed the record.
    Cure: restore the record from a backup, or give the sink up with ``sparkonce forget``.
    """


class StagedDataMissing(StoreError):
    """Staged chunks disappeared before the decision. No row of the epoch took effect.

    Cause: a failover, an eviction, or ``sparkonce gc`` with a ``--grace`` that is too short.
    Cure: restart the query; Spark replays the epoch.
    """


class RowRefused(StoreError):
    """The server rejected a row after the driver had decided the epoch.

    Cause: the target changed between the check and the write, or only the server can judge the
        row.
    Cure: remove the cause, then restart the query or run ``sparkonce recover``; both resume at
        this row.
    """


class ValueUnreadable(StoreError):
    """A stored value is not of the type that the read asks for.

    Cause: the schema of the read does not match the stored values.
    Cure: read the column as the type that the message names, for example as a string.
    """


class SnapshotBroken(StoreError):
    """Parts of one read saw different states of the store.

    Cause: the table or index changed while tasks read it.
    Cure: start the read again, or choose a consistent mode of the read.
    """


class UnreadLost(StoreError):
    """The store no longer has changes that the stream has not read, or has others in their place.

    Cause: the server purged its log, trimmed the stream, or lost writes in a failover.
    Cure: keep the log for longer; then start from a new position with a new checkpoint, or set
        ``failOnDataLoss=false``.
    """


class CommitRefused(SparkonceError):
    """Applying the epoch could lose rows or duplicate them.

    Cause: the checkpoint and the ledger contradict each other.
    Cure: as the message says.
    """


class CheckpointReplaced(CommitRefused):
    """Another query writes to this sink.

    Cause: someone deleted or replaced the checkpoint.
    Cure: restore the old checkpoint, set ``onNewCheckpoint``, or set another ``sinkId``.
    """


class SinkRenamed(CommitRefused):
    """The query of this checkpoint writes under another sink id.

    Cause: option ``sinkId`` or the target changed.
    Cure: set the former ``sinkId``, or start with a new checkpoint.
    """


class QueryRetired(CommitRefused):
    """Another query replaced this one, so this one can never commit again.

    Cause: ``onNewCheckpoint``, a takeover, or ``sparkonce forget``.
    Cure: stop this query. To write again, start a query with a new checkpoint.
    """


class CheckpointDiverged(CommitRefused):
    """The checkpoint has other offsets for an epoch that the sink has.

    Cause: a restored or copied checkpoint, or a crash of the driver's host before it had synced
        the file.
    Cure: run ``sparkonce offsets --restore``, or use the checkpoint that wrote last.
    """


class CheckpointUnreadable(CommitRefused):
    """The driver cannot read the checkpoint from Python.

    Cause: a file system without an fsspec client, missing rights, or an outage.
    Cure: install the client or correct the rights, then restart; Spark replays the epoch.
    """


class CheckpointBehindSink(CommitRefused):
    """The sink has a later epoch than this checkpoint.

    Cause: a restored checkpoint, or a second checkpoint that writes to the same sink.
    Cure: use the checkpoint that wrote last.
    """


class VersionBehindSink(CommitRefused):
    """The sink has a later ``txnVersion`` of this application.

    Cause: versions arrived out of order.
    Cure: use a ``txnVersion`` that grows.
    """


class BatchOvertaken(CommitRefused):
    """A batch is decided and partly applied, and other sinks of the target have decided since.

    Cause: the driver of the batch died, and others wrote on.
    Cure: wait for its driver, or end the batch with ``sparkonce recover --drop`` or
        ``--over-newer``.
    """


class DecisionDropped(CommitRefused):
    """An operator dropped the epoch while its driver applied it.

    Cause: ``sparkonce recover --drop`` or ``--accept-loss``.
    Cure: restart the query; it continues with the next epoch.
    """


class VersionTaken(CommitRefused):
    """Another query has written this ``txnVersion`` under the same ``txnAppId``.

    Cause: two jobs use the same ``txnAppId``.
    Cure: give each job its own ``txnAppId``.
    """


class WrittenTwice(CommitRefused):
    """A run wrote the same batch twice into the same target under the same name.

    Cause: two writes in one ``foreachBatch`` share a name.
    Cure: give each write its own ``sinkId`` or ``txnAppId``.
    """


class SinkBehindCheckpoint(CommitRefused):
    """The sink lacks epochs that this checkpoint has committed.

    Cause: the store lost acknowledged commits, or was restored from a backup.
    Cure: restore the store, or accept the loss with ``onLostCommit``.
    """


class ConcurrentDriver(CommitRefused):
    """A second driver runs the same checkpoint.

    Cause: a job was started twice, or an old driver woke up.
    Cure: keep the superseded driver stopped; the other one needs nothing.
    """


class StaleSkip(CommitRefused):
    """A task skipped its rows for a decision that the ledger no longer has.

    Cause: the store lost the decision after the task had read it.
    Cure: restart the query; Spark replays the epoch.
    """


AGAIN = "check option url and the server; a restart loses and duplicates nothing"
RESTART = "then restart the query; it resumes where it stopped"


class FailureKind(enum.Enum):
    """The reaction to an error of a server.

    Each connector has its own table: by number in MySQL, by status and type in Elasticsearch, by
    the first words in Redis.
    """

    LOST = "no reply, or a reply that leaves the outcome open"
    PASSING = "the request had no effect; a retry may succeed soon"
    CONFLICT = "the stored version is equal or higher"
    LATE = "the stored fence is higher"
    ROW = "a row can't be stored"
    INDEX = "this part of the target rejects writes; others may accept them"
    TOO_LARGE = "the request exceeds the limit of the server"
    REFUSED = "someone must change something"


class KnownFailure(NamedTuple):
    """An error of a server: its kind, why it occurs, and what to do."""

    kind: FailureKind
    why: str
    todo: str = AGAIN

    @property
    def passes(self) -> bool:
        """Whether the same request may succeed later, and may have succeeded already."""
        return self.kind in (FailureKind.LOST, FailureKind.PASSING)

    def error(self, store: str, doing: str, words: str) -> StoreError:
        """The error for the reader.

        `store` is the name of the store, `doing` the failed request, `words` the server's message.
        """
        made, how = (StoreUnreachable, "failed") if self.passes else (StoreRefused, "refused")
        return made(f"{store} {how} while {doing}: {words}", self.why, self.todo)


def refused(why: str, todo: str, kind: FailureKind = FailureKind.REFUSED) -> KnownFailure:
    """A failure after which someone must change something, and restart the query."""
    return KnownFailure(kind, why, f"{todo}, {RESTART}")


FORM = "%(asctime)s %(levelname)s %(name)s: %(message)s"


@lru_cache(maxsize=1)
def escape_log_messages() -> None:
    """Escape all log messages, since others choose their names and values."""

    def escape(record: logging.LogRecord) -> bool:
        record.msg, record.args = in_one_line(record.getMessage()), ()
        return True

    logging.getLogger("sparkonce").addFilter(escape)


@lru_cache(maxsize=1)
def set_up_logging() -> None:
    """Print messages with time, level and logger, unless the process has log handlers."""
    escape_log_messages()
    handler = logging.StreamHandler()
    handler.setLevel(logging.INFO)
    handler.setFormatter(logging.Formatter(FORM))
    logger, root = logging.getLogger("sparkonce"), logging.getLogger()
    # Evaluated for each message: Spark or the user may add handlers later.
    handler.addFilter(lambda _: not root.handlers)
    logger.addHandler(handler)
    if logger.level == logging.NOTSET:
        logger.setLevel(logging.INFO)
        logger.addFilter(lambda record: not root.handlers or record.levelno >= root.level)
