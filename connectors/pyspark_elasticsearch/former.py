"""Decisions of earlier releases that used what is gone: their rest can't be applied as decided."""

from __future__ import annotations

from pyspark_elasticsearch.guarded import SCRIPTED
from sparkonce.errors import StoreRefused
from sparkonce.protocol import Manifest


def require_known(manifest: Manifest) -> None:
    """Refuse to go on with an epoch of which this release would make something else.

    Raises:
        StoreRefused: it names what the decision used.
    """
    used = [name for name, is_used in _uses(manifest).items() if is_used]
    if used:
        raise StoreRefused(
            f"Epoch {manifest.epoch} of {manifest.sink} was decided with {used[0]} and is not"
            " applied yet",
            why="this release has that no more, and would leave other rows than were decided",
            todo="finish it with the release that decided it (`sparkonce recover`), then go on",
        )


def _uses(manifest: Manifest) -> dict[str, bool]:
    detail = manifest.detail
    return {
        "recover --to": "before" in manifest.notes,
        "sequenceColumn": bool(detail.get("sequence")),
        "versioning=none": detail.get("versioning") == "none",
        f"writeMode={detail['mode']} into a template of names": bool(
            detail["parts"] and detail["mode"] in SCRIPTED
        ),
    }
