"""Rows that can't be stored, written to an index of their own, each once."""

from __future__ import annotations

import json
import time
from collections.abc import Mapping
from typing import NamedTuple

from pyspark_elasticsearch import bulk, indices
from pyspark_elasticsearch.chunks import chunk_name
from pyspark_elasticsearch.client import Cluster, path
from pyspark_elasticsearch.failures import of_answer
from pyspark_elasticsearch.log import Place
from sparkonce.errors import StoreUnreachable
from sparkonce.protocol import Manifest

DOING = "writing dead letters"
LONGEST = 32_000
ROOM = 400_000
"""Characters for all letters of a chunk; a reason and a row are cut so that they fit."""


class Letter(NamedTuple):
    """A row that can't be stored: its index and id, why, and what it holds as JSON."""

    place: str
    id: str
    reason: str
    row: str

    def cut(self, of: int) -> Letter:
        """The letter as it is kept, as one of so many of a chunk."""
        most = max(200, min(LONGEST, ROOM // of))
        return self._replace(reason=self.reason[:most], row=self.row[:most])


class DeadLetters:
    """The index of such rows.

    Args:
        cluster: where.
        index: its name.
    """

    def __init__(self, cluster: Cluster, index: str) -> None:
        self.cluster, self.index = cluster, index
        self._there = False

    def ensure(self, *, create: bool) -> None:
        """Make the index unless it is there: a first letter would guess its mappings."""
        if not self._there:
            indices.ensure(self.cluster, self.index, "dead_letter", create=create)
            self._there = True

    def write(self, manifest: Manifest, place: Place, letters: Mapping[str, Letter]) -> None:
        """Write the letters of a chunk; those that are there already stay as they are."""
        name, now = chunk_name(place.attempt, place.seq), time.time_ns() // 1_000_000
        lines = []
        for at, letter in letters.items():
            about = {
                "sink": manifest.sink,
                "epoch": manifest.epoch,
                "index": letter.place or manifest.detail["index"],
                "id": letter.id,
                "reason": letter.reason,
                "row": letter.row,
                "at": now,
            }
            lines += [json.dumps({"create": {"_id": f"{name}{at}"}}), json.dumps(about)]
        text = "".join(f"{line}\n" for line in lines).encode()
        items = bulk.send(self.cluster, DOING, path(self.index, "_bulk"), text, len(letters))
        if isinstance(items, int):
            raise StoreUnreachable(f"Elasticsearch is too busy while {DOING}: {items}")
        for item in items:
            if not item.done and item.status != 409:
                raise of_answer(item.status, item.error, DOING)
