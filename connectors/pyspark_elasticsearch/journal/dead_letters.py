"""Rows that can't be stored, written to an index of their own, each once."""

from __future__ import annotations

import json
import time
from collections.abc import Mapping
from typing import Any, NamedTuple

from pyspark_elasticsearch.journal import indices
from pyspark_elasticsearch.server import bulk
from pyspark_elasticsearch.server.client import Cluster, path
from pyspark_elasticsearch.server.failures import Kind, known, of_answer
from sparkonce.values.letters import Letter

DOING = "writing dead letters"
LONGEST = 32_000
ROOM = 400_000
"""Characters for the reasons of a chunk's letters, which are cut so that they fit."""

REQUEST = 8 * 1024 * 1024
"""Bytes from which letters are written by several requests."""

LONGEST_ROW = 20_000_000
"""Characters of a text that every release reads."""

CUT = "larger than the cluster takes, and cut: "


class Verdict(NamedTuple):
    """That a row can't be stored: its index and id, and why."""

    place: str
    id: str
    reason: str

    def cut(self, of: int) -> Verdict:
        """The verdict as it is kept, as one of so many of a chunk."""
        return self._replace(reason=self.reason[: max(200, min(LONGEST, ROOM // of))])


class Addressed(NamedTuple):
    """A letter, and the verdict that it is about."""

    verdict: Verdict
    letter: Letter

    def document(self, about: Mapping[str, Any], most: int) -> bytes:
        """What is stored of it, with so many characters of the row."""
        key, row, reason = self.letter.key, self.letter.row, self.verdict.reason
        if len(row) > most:
            key, row, reason = key[:most], row[:most], CUT + reason
        source = {
            **about,
            "index": self.verdict.place,
            "id": self.verdict.id,
            "reason": reason,
            "key": key,
            "row": row,
            "base64": self.letter.base64,
        }
        return json.dumps(source).encode()


def write(
    cluster: Cluster, index: str, about: Mapping[str, Any], named: Mapping[str, Addressed]
) -> None:
    """Write letters under their ids; those that are there already stay as they are."""
    # Each time: were it deleted meanwhile, the first letter would make it with guessed mappings.
    indices.ensure(cluster, index, "dead_letter")
    about = {**about, "at": time.time_ns() // 1_000_000}
    waiting: dict[str, Addressed] = {}
    size = 0
    for name, letter in named.items():
        if waiting and size + len(letter.letter.row) > REQUEST:
            _send(cluster, index, about, waiting)
            waiting, size = {}, 0
        waiting[name] = letter
        size += len(letter.letter.row)
    _send(cluster, index, about, waiting)


def _send(
    cluster: Cluster,
    index: str,
    about: Mapping[str, Any],
    named: Mapping[str, Addressed],
    most: int = LONGEST_ROW,
) -> None:
    text = b"".join(
        b"%s\n%s\n" % (json.dumps({"create": {"_id": name}}).encode(), one.document(about, most))
        for name, one in named.items()
    )
    items = bulk.send(cluster, DOING, path(index, "_bulk"), text, len(named))
    if isinstance(items, int) and most == LONGEST_ROW:
        # Which of them is too large the answer does not tell.
        for name, letter in named.items():
            _send(cluster, index, about, {name: letter}, ROOM)
        return
    if isinstance(items, int):
        raise of_answer(items, {"type": "413", "reason": f"{len(text):,} bytes"}, DOING)
    for item in items:
        if not item.done and known(item.status, item.error).kind is not Kind.CONFLICT:
            raise of_answer(item.status, item.error, DOING)
