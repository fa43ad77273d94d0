"""Errors and warnings for conflicts between a sink and its writers."""

from __future__ import annotations

import re
from datetime import datetime, timezone
from typing import TYPE_CHECKING

from sparkonce import errors
from sparkonce.protocol import Follows, Manifest

if TYPE_CHECKING:
    from collections.abc import Sequence

    from sparkonce.exactly_once.driver import Driver, Policy
    from sparkonce.exactly_once.ledger import Ledger


def concurrent_driver(ledger: Ledger, driver: Driver) -> errors.ConcurrentDriver:
    """The error for a driver that another driver has superseded."""
    return errors.ConcurrentDriver(
        f"Another driver commits to {ledger.name!r}: run {ledger.owner.run_id} has epoch"
        f" {ledger.decision.epoch}, while run {driver.run_id} commits epoch {driver.epoch}",
        why="two drivers on the same checkpoint would each apply their own rows",
        todo="stop one of them; the other one needs nothing",
    )


def replaced(old: Ledger, driver: Driver, override: str) -> errors.CheckpointReplaced:
    """The error for a query that is new to a sink.

    `override` is the value of ``onNewCheckpoint`` that lets the query continue from `old`.
    """
    reached = (
        f"up to epoch {old.decision.epoch}" if old.decision.epoch >= 0 else "or by its predecessors"
    )
    return errors.CheckpointReplaced(
        f"Query {driver.query_id} at checkpoint {driver.checkpoint or 'unknown'} is new to sink"
        f" {old.name!r}, which was written by query {old.owner.query_id} at checkpoint"
        f" {old.owner.checkpoint or 'unknown'} {reached}",
        why="someone deleted or replaced the checkpoint, or fully refreshed the pipeline; this"
        " query would then apply the same rows again. Or both queries share a sink id or path",
        todo="to run both queries, give this one its own sinkId and checkpoint path, also on"
        " machines with separate disks. Otherwise restore the old checkpoint. If duplicate reads do"
        f" no harm, set option onNewCheckpoint={override}. To start over, empty the target and run"
        f" sparkonce forget URL {old.name}",
    )


def renamed(known: Ledger, driver: Driver) -> errors.SinkRenamed:
    """The error for a query that changed the name of its sink."""
    return errors.SinkRenamed(
        f"Query {driver.query_id} writes to sink {known.name!r}, but now names {driver.name!r}",
        why="the ledger of a new sink id does not know what this checkpoint has committed",
        todo=f"set option sinkId={known.sink_id} (or omit the option if that is the query id);"
        " to write under another name, start a new checkpoint, which applies its rows again",
    )


def retired(known: Ledger, driver: Driver) -> errors.QueryRetired:
    """The error for a query that another query has replaced."""
    named = (
        f" and a sinkId (not {known.sink_id!r})" if known.sink_id != known.owner.query_id else ""
    )
    anew = (
        f"with another txnAppId{named}" if driver.named else f"with its own checkpoint path{named}"
    )
    return errors.QueryRetired(
        f"Query {driver.query_id} was replaced as the owner of sink {known.name!r}",
        why="another query took the sink over, which it does before its first epoch; both would"
        " apply the same rows",
        todo=f"stop this query; to run both, start this one over, {anew}; it then reads earlier"
        " rows again and applies them a second time",
    )


def diverged(ledger: Ledger, driver: Driver) -> errors.CheckpointDiverged:
    """The error for an epoch that the sink has decided with other offsets."""
    return errors.CheckpointDiverged(
        f"Epoch {ledger.decision.epoch} of checkpoint {driver.checkpoint} is not the epoch"
        f" {ledger.decision.epoch} that sink {ledger.name!r} holds: their offsets differ",
        why="the checkpoint was restored or copied, or its host crashed and lost"
        f" offsets/{ledger.decision.epoch}, which Spark does not sync to disk; the query has since"
        " read other rows under this number",
        todo="continue with the checkpoint that wrote last; if it lost its offsets, `sparkonce"
        f" offsets URL {ledger.name}` shows the decided ones, and --restore writes them back",
    )


def checkpoint_behind(ledger: Ledger, driver: Driver) -> errors.CheckpointBehindSink:
    """The error for an epoch of a stream that follows a later one."""
    epoch = ledger.decision.epoch
    return errors.CheckpointBehindSink(
        f"Query {driver.query_id} commits epoch {driver.epoch}, but sink {ledger.name!r} has"
        f" already decided epoch {epoch}",
        why="either the checkpoint was restored to an earlier state, or a second driver runs on"
        " it; the rows of this epoch have already taken effect",
        todo=f"stop the second driver, or restore the checkpoint of epoch {epoch}"
        f"{_or_its_offsets(ledger) if driver.follows is Follows.NEXT else ''}",
    )


def _or_its_offsets(ledger: Ledger) -> str:
    """What to do where the store keeps the offsets of a stream."""
    return (
        f"; if a crash of its host lost offsets, `sparkonce offsets URL {ledger.name}` shows"
        " the decided ones, and --restore writes them back"
    )


def without_epochs(ledger: Ledger, driver: Driver) -> str:
    """The value of ``onLostCommit`` that names the epochs between this ledger and this epoch.

    A store that loses more of them after the error makes another one.
    """
    return f"continue@{ledger.decision.epoch + 1}-{driver.epoch - 1}"


def sink_behind(ledger: Ledger, driver: Driver, policy: Policy) -> errors.SinkBehindCheckpoint:
    """The error for an epoch of a stream whose predecessors the sink lacks."""
    clean = "" if policy.repeatable else " (into an emptied target, as it adds all rows again)"
    has = (
        f"ends at epoch {ledger.decision.epoch}" if ledger.decision.epoch >= 0 else "holds no epoch"
    )
    return errors.SinkBehindCheckpoint(
        f"Epoch {driver.epoch} is next for query {driver.query_id}, but sink {ledger.name!r} {has}",
        why="the store lost commits that it had acknowledged (a failover, a restored backup), or"
        " the target or sinkId is new to this checkpoint; the target lacks the rows in between",
        todo=f"restore the store; or start a new checkpoint to write all rows{clean}; or, to"
        f" continue without these epochs, set option onLostCommit={without_epochs(ledger, driver)}",
    )


def version_behind(ledger: Ledger, driver: Driver) -> errors.VersionBehindSink:
    """The error for a version that is lower than the last one of its application."""
    return errors.VersionBehindSink(
        f"Version {driver.epoch} of {driver.query_id!r} is too low: sink {ledger.name!r} has"
        f" version {ledger.decision.epoch}",
        why="either its rows took effect long ago, or the application restarted its count;"
        " sparkonce cannot distinguish the two",
        todo=f"use a txnVersion above {ledger.decision.epoch}, or, to restart the count, another"
        " txnAppId",
    )


def version_taken(ledger: Ledger, driver: Driver) -> errors.VersionTaken:
    """The error for a version that another query has written under the same name."""
    before, now = (_writer(one) for one in (ledger.decision.stream, driver.stream))
    return errors.VersionTaken(
        f"Version {driver.epoch} of {driver.query_id!r} was written into {ledger.target!r} by"
        f" {before}, and now {now} writes it",
        why="skipping it as a repetition would lose rows if it is another batch",
        todo="give each query its own txnAppId; if this query replaces the other, use a txnVersion"
        f" above {ledger.decision.epoch}",
    )


def _writer(stream: str | None) -> str:
    return f"foreachBatch of query {stream}" if stream else "a batch outside a stream"


def written_twice(ledger: Ledger, driver: Driver) -> errors.WrittenTwice:
    """The error for the second write of one run and epoch into one target."""
    job = driver.named and not driver.stream
    who = f"Version {driver.epoch} of" if driver.named else f"Batch {driver.epoch} of query"
    return errors.WrittenTwice(
        f"{who} {driver.query_id} writes to target {ledger.target!r} for the second time in one"
        f" {'session' if job else 'run'}",
        why="a second write of the same batch looks like a repetition of the first, whose rows must"
        " not count twice",
        todo="keep the first one, which has taken effect; give each of the others its own sinkId,"
        " or a txnAppId that no other write has; "
        + ("if this is a retry of the first one, continue" if job else "then restart the query"),
    )


def unfinished_batch(error: errors.StoreError, driver: Driver) -> errors.BatchUnfinished:
    """The error for a batch without a name that the driver has decided and cannot apply."""
    return errors.BatchUnfinished(
        f"A batch into {driver.target} is decided, but only partly applied: {error.what}",
        why=error.why,
        todo=f"{_before_a_restart(error.todo)}; then finish it with `sparkonce recover URL --sink"
        f" {driver.name}`; do not run the job again, which would apply its rows a second time",
    )


def _before_a_restart(todo: str) -> str:
    """What an error advises before the restart of the query; a batch has no query."""
    return re.split(r"(?:[,;]? ?(?:then|and) )?restart the query", todo)[0] or "remove the cause"


def in_the_way(error: errors.SparkonceError, name: str, target: str) -> errors.SparkonceError:
    """An error of another sink whose epoch a batch must finish first; it names that sink."""
    command = f"sparkonce status URL {name}"
    return type(error)(
        f"This batch cannot finish the epoch that sink {name!r} has decided for {target}:"
        f" {error.what}",
        why=error.why,
        todo=f"for sink {name!r}, not for this batch: {error.todo or 'remove the cause'};"
        f" `{command}` shows its epoch. This batch has written nothing",
    )


def overtaken(ledger: Ledger, others: Sequence[Ledger]) -> errors.BatchOvertaken:
    """The error for an old decision that would overwrite newer ones of other sinks."""
    first = min(one.decision.decided_at for one in others)
    command = f"sparkonce recover URL --sink {ledger.name}"
    return errors.BatchOvertaken(
        f"Epoch {ledger.decision.epoch} of sink {ledger.name!r} was decided at"
        f" {moment(ledger.decision.decided_at)}"
        f" and is only partly applied; {_named([one.name for one in others])} wrote to"
        f" {ledger.target} since {moment(first)}",
        why="its rows are older than theirs, and would overwrite them",
        todo=f"if its driver runs, wait for it. Otherwise `{command} --drop` gives up those of its"
        f" rows that are not applied yet, and `{command} --over-newer` applies them over the newer"
        " ones. A job with txnAppId whose keys no other writer has may run again with ownKeys=true",
    )


def written_beside(ledger: Ledger, names: Sequence[str]) -> tuple[str, str, str]:
    """The warning where others decided while this driver applied an old decision."""
    return (
        f"Epoch {ledger.decision.epoch} of sink {ledger.name!r} was finished late, and meanwhile"
        f" {_named(names)} wrote to {ledger.target}",
        "if they share keys, either of the two may have written last",
        "write the newer rows of these keys again",
    )


def given_up(now: Ledger, driver: Driver) -> errors.DecisionDropped:
    """The error for a decision that an operator dropped while its driver applied it."""
    return errors.DecisionDropped(
        f"An operator dropped epoch {driver.epoch} of sink {driver.name!r} while this driver"
        " applied it",
        why="somebody ran sparkonce recover --drop, which gives up the rows that are not applied",
        todo="if you need those rows, write them again under another number or name; the applied"
        f" rows stay, and status counts {now.totals.dropped:,} rows as dropped",
    )


def lost_decision(now: Ledger, driver: Driver) -> errors.DecisionLost:
    """The error for a decision that the store acknowledged and then lost."""
    return errors.DecisionLost(
        f"Epoch {driver.epoch} was decided, but sink {driver.name!r} now ends at"
        f" {now.decision.epoch}",
        why="the store lost its last writes during the commit (a failover)",
        todo="restart the query or the job that wrote it; it then decides the epoch again",
    )


def moment(seconds: float) -> str:
    """A Unix time as text, in UTC."""
    return f"{datetime.fromtimestamp(seconds, timezone.utc):%Y-%m-%d %H:%M:%S} UTC"


def _named(names: Sequence[str], most: int = 5) -> str:
    more = [f"{len(names) - most} more"] if len(names) > most else []
    return ", ".join([*map(repr, sorted(names)[:most]), *more])


def missing(manifest: Manifest, attempt: str, seq: int, why: str) -> errors.StagedDataMissing:
    """The error for a chunk that is missing or incomplete before the decision of its epoch."""
    return errors.StagedDataMissing(
        f"Chunk {seq} of attempt {attempt} of epoch {manifest.epoch} is missing or incomplete in"
        " the log",
        why=why,
        todo="restart the query; nothing of the epoch took effect, and Spark replays it",
    )


def lost(manifest: Manifest, attempt: str, seq: int, why: str, todo: str) -> errors.StoreLostData:
    """The error for a decided chunk that the store lost before it took effect."""
    return errors.StoreLostData(
        f"Chunk {seq} of attempt {attempt} is missing, but epoch {manifest.epoch} is decided and"
        " not yet applied",
        why=why,
        todo=todo,
    )
