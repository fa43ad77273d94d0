"""The errors for chunks that are gone, as every connector raises them."""

from __future__ import annotations

from sparkonce.errors import StagedDataMissing, StoreLostData
from sparkonce.protocol import Manifest


def missing(manifest: Manifest, attempt: str, seq: int, why: str) -> StagedDataMissing:
    """The error for a chunk that is not there, or not whole, before its epoch is decided."""
    return StagedDataMissing(
        f"Chunk {seq} of attempt {attempt} of epoch {manifest.epoch} is not whole in the log",
        why=why,
        todo="restart the query; nothing of the epoch took effect, and Spark replays it",
    )


def lost(manifest: Manifest, attempt: str, seq: int, why: str, todo: str) -> StoreLostData:
    """The error for a chunk that is gone once its epoch is decided, and before it took effect."""
    return StoreLostData(
        f"Chunk {seq} of attempt {attempt} is gone, but epoch {manifest.epoch} is decided and"
        " not yet applied",
        why=why,
        todo=todo,
    )
