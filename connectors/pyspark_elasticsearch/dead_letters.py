"""Rows that can't be stored, written to an index of their own, each once."""

from __future__ import annotations

import json
import time
from collections.abc import Mapping
from typing import Any, NamedTuple

from pyspark_elasticsearch import bulk, indices
from pyspark_elasticsearch.client import Cluster, path
from pyspark_elasticsearch.failures import Kind, known, message, of_answer
from pyspark_elasticsearch.sending import Refusal

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

    def write(self, sink: str, epoch: int, letters: Mapping[str, Letter]) -> None:
        """Write letters under their ids; those that are there already stay as they are."""
        now, lines = time.time_ns() // 1_000_000, []
        for name, letter in letters.items():
            about = {
                "sink": sink,
                "epoch": epoch,
                "index": letter.place,
                "id": letter.id,
                "reason": letter.reason,
                "row": letter.row,
                "at": now,
            }
            lines += [json.dumps({"create": {"_id": name}}), json.dumps(about)]
        text = "".join(f"{line}\n" for line in lines).encode()
        items = bulk.send(self.cluster, DOING, path(self.index, "_bulk"), text, len(letters))
        if isinstance(items, int):
            raise of_answer(items, {"type": "413", "reason": f"{len(text):,} bytes"}, DOING)
        for item in items:
            if not item.done and known(item.status, item.error).kind is not Kind.CONFLICT:
                raise of_answer(item.status, item.error, DOING)


def of_refusal(one: Refusal, index: str) -> Letter:
    """The letter of an operation that was refused.

    Args:
        one: what was sent, and the answer.
        index: to which it went if it does not say so itself.
    """
    place, id_, row = described(one.operation.lines)
    return Letter(place or index, id_, f"{one.item.status} {message(one.item.error)}", row)


def described(lines: bytes) -> tuple[str, str, str]:
    """The index and the id that an operation names, and what the row holds."""
    action, _, document = lines.partition(b"\n")
    (told,) = json.loads(action).values()
    index, id_ = told.get("_index", ""), told["_id"]
    if not document:
        return index, id_, "{}"
    found: Any = json.loads(document)
    if isinstance(found, dict) and "script" in found and "scripted_upsert" in found:
        found = {**found["upsert"], **found["script"]["params"]["a"]}
        return index, id_, json.dumps(found, ensure_ascii=False)
    return index, id_, document.decode(errors="replace").rstrip("\n")
