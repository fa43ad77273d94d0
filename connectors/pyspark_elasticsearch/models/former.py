"""Decisions of earlier releases that used what is gone: their rest can't be applied as decided."""

from __future__ import annotations

from pyspark_elasticsearch.models.documents import Documents, Guard
from sparkonce.errors import StoreRefused
from sparkonce.protocol import Manifest


def require_known(manifest: Manifest, documents: Documents) -> None:
    """Refuse to go on with an epoch of which this release would make something else.

    Raises:
        StoreRefused: it names what the decision used.
    """
    stored = manifest.detail
    scripted = documents.way.guard is Guard.SCRIPT
    used = {
        "recover --to": "before" in manifest.notes,
        "sequenceColumn": stored.get("sequence"),
        "versioning=none": stored.get("versioning") == "none",
        f"writeMode={stored['mode']} into a template of names": scripted and documents.parts,
    }
    for name, is_used in used.items():
        if is_used:
            raise StoreRefused(
                f"Epoch {manifest.epoch} of {manifest.sink} was decided with {name} and is not"
                " applied yet",
                why="this release has that no more, and would leave other rows than were decided",
                todo="finish it with the release that decided it (`sparkonce recover`), then go on",
            )
