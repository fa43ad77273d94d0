"""Errors for chunks and progress that are not there any more."""

from __future__ import annotations

from sparkonce import losses
from sparkonce.errors import StagedDataMissing, StoreLostData, StoreUnreachable
from sparkonce.protocol import Manifest


def progress_lost(manifest: Manifest) -> StoreUnreachable:
    """The decision is there, and less of it is applied than was."""
    return StoreUnreachable(f"The server lost progress of epoch {manifest.epoch} (failover)")


def missing(manifest: Manifest, attempt: str, seq: int) -> StagedDataMissing:
    """A chunk is gone before its epoch was decided."""
    why = "someone dropped it, or the server lost what was staged"
    return losses.missing(manifest, attempt, seq, why)


def lost(manifest: Manifest, attempt: str, seq: int) -> StoreLostData:
    """A chunk is gone of an epoch that is decided."""
    return losses.lost(
        manifest,
        attempt,
        seq,
        why="the server lost data, or someone deleted from sparkonce_log",
        todo="restore the server from a backup and restart the query; or run `sparkonce recover`"
        " with --accept-loss, which leaves the rest of that epoch out",
    )
