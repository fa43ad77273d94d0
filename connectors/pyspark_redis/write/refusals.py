"""The errors of a delivery."""

from __future__ import annotations

from pyspark_redis.server.failures import refusal
from sparkonce.errors import (
    RowRefused,
    SinkBehindCheckpoint,
    StagedDataMissing,
    StoreLostData,
    StoreUnreachable,
)
from sparkonce.exactly_once import conflicts
from sparkonce.protocol import Manifest

ANEW = (
    "write all rows again under a new name: with a new checkpoint, or another txnAppId; and another"
    " sinkId if one is set"
)
LESS = "waitReplicas and waitAof make it less likely"


def missing(manifest: Manifest, attempt: str, seq: int) -> StagedDataMissing:
    """A chunk is gone that is to be decided."""
    why = "the server was emptied or restarted without persistence while the epoch was staged"
    return conflicts.missing(manifest, attempt, seq, why)


def lost(manifest: Manifest, attempt: str, seq: int) -> StoreLostData:
    """A chunk is gone that is decided."""
    return conflicts.lost(
        manifest,
        attempt,
        seq,
        why="the server lost data, or someone deleted the connector's keys",
        todo="restore the server from a backup and restart the query; without one, the rows of"
        " this epoch must be written by hand, see docs/redis.md",
    )


def taken_back(epoch: int) -> StoreUnreachable:
    """What was applied is not, and is applied again."""
    return StoreUnreachable(
        f"Progress of epoch {epoch} was taken back, by a failover or by another driver",
        why="replication is asynchronous: a replica may lack what was written last",
        todo="the epoch is applied again, and nothing is doubled",
    )


def letter_reason(manifest: Manifest, key: bytes, reason: bytes) -> str:
    """What a dead letter says of a row that the server refused."""
    named, why = (one.decode(errors="replace") for one in (key, reason))
    return f"Redis refused key {named!r} in epoch {manifest.epoch}: {why}"


def refused(manifest: Manifest, key: bytes, reason: bytes) -> RowRefused:
    """The server refused a row."""
    known = refusal(reason.decode(errors="replace"))
    how = "" if manifest.detail.get("dead_letter") else ", with onBadRow=fail"
    return RowRefused(
        f"{letter_reason(manifest, key, reason)}. The epoch stays decided{how}; the rows before"
        " this one have taken effect",
        why=known.why,
        todo=known.todo,
    )


def lane_behind(sink: str, epoch: int) -> SinkBehindCheckpoint:
    """A node lacks what it has acknowledged."""
    return SinkBehindCheckpoint(
        f"A node of the cluster lacks rows of sink {sink!r} that it had acknowledged",
        why="replication is asynchronous: a replica that took over, or a node that was restarted,"
        " had not got what came last",
        todo=f"bring those rows back from a backup, or {ANEW}; or, to go on without them, set"
        f" option onLostCommit=continue@{epoch}. {LESS}",
    )


def ledger_behind(sink: str, epoch: int) -> SinkBehindCheckpoint:
    """The node of the ledger lacks a decision that others have seen."""
    return SinkBehindCheckpoint(
        f"The cluster holds rows of an epoch of sink {sink!r} that its ledger does not know",
        why="the node of the ledger lost what it had acknowledged (a failover): to write the epoch"
        " again could double those rows",
        todo=f"{ANEW}, into an emptied target if rows add up; or, to go on and write that epoch and"
        f" those after it again, set option onLostCommit=continue@{epoch}. {LESS}",
    )


def stored_too(sink: str, epoch: int) -> SinkBehindCheckpoint:
    """A row is stored by a driver that did not know of its letter."""
    return SinkBehindCheckpoint(
        f"Rows of epoch {epoch} of sink {sink!r} are dead letters, and are stored, too",
        why="a node went back to an earlier state (a failover) while another driver wrote",
        todo="delete those letters (`sparkonce letters`), then set option"
        f" onLostCommit=continue@{epoch}; or give up the rows of the epoch that are not applied, by"
        f" `sparkonce recover URL --sink {sink} --drop`. {LESS}",
    )
