"""What is said where a sink and who writes to it disagree: what, why, and what to do."""

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
    """The error for a driver that another one has overtaken."""
    return errors.ConcurrentDriver(
        f"Another driver commits to {ledger.name!r}: run {ledger.owner.run_id} has epoch"
        f" {ledger.decision.epoch}, while run {driver.run_id} commits epoch {driver.epoch}",
        why="two drivers on one checkpoint would each apply their own rows",
        todo="stop one of them; the one that goes on needs nothing",
    )


def replaced(old: Ledger, driver: Driver, override: str) -> errors.CheckpointReplaced:
    """The error for a query that is new to a sink.

    `override` is the value of ``onNewCheckpoint`` by which it would go on from what `old` holds.
    """
    reached = (
        f"up to epoch {old.decision.epoch}" if old.decision.epoch >= 0 else "or by those before it"
    )
    return errors.CheckpointReplaced(
        f"Query {driver.query_id} at checkpoint {driver.checkpoint or 'not known'} is new to sink"
        f" {old.name!r}, which was written by query {old.owner.query_id} at checkpoint"
        f" {old.owner.checkpoint or 'not known'} {reached}",
        why="either the checkpoint was deleted or swapped, or a pipeline fully refreshed, and rows"
        " that are read again would be applied again; or both queries run, with one id or path",
        todo="if both queries shall run, give this one a sinkId and a checkpoint path of its own"
        " (on machines with disks of their own, too); else bring the old checkpoint back, or, if"
        f" reading rows again does no harm, set option onNewCheckpoint={override}; to begin anew,"
        f" empty the target and run sparkonce forget URL {old.name}",
    )


def renamed(known: Ledger, driver: Driver) -> errors.SinkRenamed:
    """The error for a query that names its sink otherwise than before."""
    return errors.SinkRenamed(
        f"Query {driver.query_id} writes to sink {known.name!r}, but now names {driver.name!r}",
        why="a new sink id has no memory of what this checkpoint has committed",
        todo=f"set option sinkId={known.sink_id} (or leave it out, if that is the query id);"
        " to write under another name, start a new checkpoint, whose rows are applied again",
    )


def retired(known: Ledger, driver: Driver) -> errors.QueryRetired:
    """The error for a query that another one has replaced."""
    named = (
        f" and a sinkId (not {known.sink_id!r})" if known.sink_id != known.owner.query_id else ""
    )
    anew = (
        f"with another txnAppId{named}"
        if driver.named
        else f"with a checkpoint path{named} of its own"
    )
    return errors.QueryRetired(
        f"Query {driver.query_id} was replaced as the owner of sink {known.name!r}",
        why="another query has gone on from there, or is about to: it takes the sink over before"
        " its first epoch; both would apply the same rows",
        todo=f"stop this query; if both shall run, begin this one anew, {anew}; what it reads again"
        " is applied again",
    )


def diverged(ledger: Ledger, driver: Driver) -> errors.CheckpointDiverged:
    """The error for an epoch that was decided with other offsets."""
    return errors.CheckpointDiverged(
        f"Epoch {ledger.decision.epoch} of checkpoint {driver.checkpoint} is not the epoch"
        f" {ledger.decision.epoch} that sink {ledger.name!r} holds: their offsets differ",
        why="the checkpoint was restored or copied, or its host crashed and lost"
        f" offsets/{ledger.decision.epoch}, which Spark does not sync to disk; it has since read"
        " other rows"
        " under this number",
        todo="go on with the checkpoint that wrote last; if offsets were lost, `sparkonce offsets"
        f" URL {ledger.name}` shows those that were decided, and --restore puts them back",
    )


def checkpoint_behind(ledger: Ledger, driver: Driver) -> errors.CheckpointBehindSink:
    """The error for an epoch of a stream that comes after a later one."""
    epoch = ledger.decision.epoch
    return errors.CheckpointBehindSink(
        f"Epoch {driver.epoch} of query {driver.query_id} comes after sink {ledger.name!r} has"
        f" decided epoch {epoch}",
        why="either the checkpoint was restored to an earlier state, or a second driver runs on"
        " it; the rows of this epoch have already taken effect",
        todo=f"stop the second driver, or bring back the checkpoint as it was at epoch {epoch}"
        f"{_or_its_offsets(ledger) if driver.follows is Follows.NEXT else ''}",
    )


def _or_its_offsets(ledger: Ledger) -> str:
    """What a stream can do, of which the store keeps offsets."""
    return (
        f"; if it lost offsets in a crash of its host, `sparkonce offsets URL {ledger.name}` shows"
        " those that were decided, and --restore puts them back"
    )


def sink_behind(ledger: Ledger, driver: Driver, policy: Policy) -> errors.SinkBehindCheckpoint:
    """The error for an epoch of a stream whose predecessors the sink lacks."""
    clean = "" if policy.repeatable else " (into an emptied target, as all rows are added again)"
    has = (
        f"ends at epoch {ledger.decision.epoch}" if ledger.decision.epoch >= 0 else "holds no epoch"
    )
    return errors.SinkBehindCheckpoint(
        f"Epoch {driver.epoch} is next for query {driver.query_id}, but sink {ledger.name!r} {has}",
        why="the store lost commits that it had acknowledged (a failover, a restored backup), or"
        " the target or sinkId is new to this checkpoint; the rows in between are missing there",
        todo=f"restore the store; or start a new checkpoint to write all rows{clean}; or, to go"
        f" on without them, set option onLostCommit=continue@{driver.epoch}",
    )


def version_behind(ledger: Ledger, driver: Driver) -> errors.VersionBehindSink:
    """The error for a version that is lower than the last one of its application."""
    return errors.VersionBehindSink(
        f"Version {driver.epoch} of {driver.query_id!r} comes after sink {ledger.name!r} has"
        f" version {ledger.decision.epoch}",
        why="its rows may have taken effect long ago, or be those of an application that counts"
        " anew; neither can be told from the other",
        todo=f"go on with a txnVersion above {ledger.decision.epoch}, or, to count anew, with"
        " another"
        " txnAppId",
    )


def version_taken(ledger: Ledger, driver: Driver) -> errors.VersionTaken:
    """The error for a version that another query has written under the same name."""
    before, now = (_writer(one) for one in (ledger.decision.stream, driver.stream))
    return errors.VersionTaken(
        f"Version {driver.epoch} of {driver.query_id!r} was written into {ledger.target!r} by"
        f" {before}, and comes now from {now}",
        why="to skip it, as a repetition, would lose rows if it is another batch",
        todo="give each query a txnAppId of its own; where this one takes the other's place, go on"
        f" with a txnVersion above {ledger.decision.epoch}",
    )


def _writer(stream: str | None) -> str:
    return f"foreachBatch of query {stream}" if stream else "a batch outside a stream"


def written_twice(ledger: Ledger, driver: Driver) -> errors.WrittenTwice:
    """The error for a second write into one target, of one run at one epoch."""
    job = driver.named and not driver.stream
    who = f"Version {driver.epoch} of" if driver.named else f"Batch {driver.epoch} of query"
    return errors.WrittenTwice(
        f"{who} {driver.query_id} writes to target {ledger.target!r} for the second time in one"
        f" {'session' if job else 'run'}",
        why="two writes of one batch into one target can't be told from a repetition of the first,"
        " whose rows must not count twice",
        todo="leave the first one as it is, which has taken effect; give each of the others a"
        " sinkId of its own, or a txnAppId that no other write has; "
        + ("if this is the first one tried again, go on" if job else "then restart the query"),
    )


def unfinished_batch(error: errors.StoreError, driver: Driver) -> errors.BatchUnfinished:
    """The error for a batch without a name that is decided, and can't be applied."""
    return errors.BatchUnfinished(
        f"A batch into {driver.target} is decided, and has not taken effect whole: {error.what}",
        why=error.why,
        todo=f"{_before_a_restart(error.todo)}; then run `sparkonce recover URL --sink"
        f" {driver.name}`, which finishes it, in place of running the job again, which would apply"
        " its rows once more",
    )


def _before_a_restart(todo: str) -> str:
    """What an error advises before its query, which a batch does not have, is restarted."""
    return re.split(r"(?:[,;]? ?(?:then|and) )?restart the query", todo)[0] or "mend that"


def in_the_way(error: errors.SparkonceError, name: str, target: str) -> errors.SparkonceError:
    """An error of another sink, which a batch has to finish first: it says whose it is."""
    command = f"sparkonce status URL {name}"
    return type(error)(
        f"Sink {name!r} has decided an epoch for {target}, which this batch must finish first, and"
        f" can't: {error.what}",
        why=error.why,
        todo=f"of that sink, not of this batch: {error.todo or 'mend that'}; `{command}` shows its"
        " epoch, and this batch has written nothing",
    )


def overtaken(ledger: Ledger, others: Sequence[Ledger]) -> errors.BatchOvertaken:
    """The error for a decision that is finished late, over what others have decided."""
    first = min(one.decision.decided_at for one in others)
    command = f"sparkonce recover URL --sink {ledger.name}"
    return errors.BatchOvertaken(
        f"Epoch {ledger.decision.epoch} of sink {ledger.name!r} was decided at"
        f" {moment(ledger.decision.decided_at)}"
        f" and is not wholly applied; {_named([one.name for one in others])} wrote to"
        f" {ledger.target} since {moment(first)}",
        why="its rows are older than theirs, and would take effect over them",
        todo=f"if its driver runs, wait for it; else `{command} --drop` gives up those of its rows"
        f" that are not applied yet, and `{command} --over-newer` applies them over the newer ones;"
        " a job with txnAppId whose keys no other writer has may run again with ownKeys=true",
    )


def written_beside(ledger: Ledger, names: Sequence[str]) -> tuple[str, str, str]:
    """The warning where others decided while a late decision was applied."""
    return (
        f"Epoch {ledger.decision.epoch} of sink {ledger.name!r} was finished late, and meanwhile"
        f" {_named(names)} wrote to {ledger.target}",
        "where they share keys, either of the two may have written last",
        "write the newer rows of these keys again",
    )


def given_up(now: Ledger, driver: Driver) -> errors.DecisionDropped:
    """The error for a decision that an operator dropped while its driver applied it."""
    return errors.DecisionDropped(
        f"Epoch {driver.epoch} of sink {driver.name!r} was dropped while it was applied",
        why="somebody ran sparkonce recover --drop, which gives up the rows that are not applied",
        todo="write those rows again under another number or name, if they are wanted; what was"
        f" applied stays, and status counts {now.totals.dropped:,} rows as dropped",
    )


def lost_decision(now: Ledger, driver: Driver) -> errors.DecisionLost:
    """The error for a decision that the store acknowledged, and has no more."""
    return errors.DecisionLost(
        f"Epoch {driver.epoch} was decided, but sink {driver.name!r} now ends at"
        f" {now.decision.epoch}",
        why="the store lost its last writes during the commit (a failover)",
        todo="start again what wrote it, a query or a job; then the epoch is decided anew",
    )


def moment(seconds: float) -> str:
    """A Unix time as people write it, in UTC."""
    return f"{datetime.fromtimestamp(seconds, timezone.utc):%Y-%m-%d %H:%M:%S} UTC"


def _named(names: Sequence[str], most: int = 5) -> str:
    more = [f"{len(names) - most} more"] if len(names) > most else []
    return ", ".join([*map(repr, sorted(names)[:most]), *more])


def missing(manifest: Manifest, attempt: str, seq: int, why: str) -> errors.StagedDataMissing:
    """The error for a chunk that is not there, or not whole, before its epoch is decided."""
    return errors.StagedDataMissing(
        f"Chunk {seq} of attempt {attempt} of epoch {manifest.epoch} is not whole in the log",
        why=why,
        todo="restart the query; nothing of the epoch took effect, and Spark replays it",
    )


def lost(manifest: Manifest, attempt: str, seq: int, why: str, todo: str) -> errors.StoreLostData:
    """The error for a chunk that is gone once its epoch is decided, and before it took effect."""
    return errors.StoreLostData(
        f"Chunk {seq} of attempt {attempt} is gone, but epoch {manifest.epoch} is decided and"
        " not yet applied",
        why=why,
        todo=todo,
    )
