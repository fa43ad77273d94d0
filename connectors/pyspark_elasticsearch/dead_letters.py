"""Rows that can't be stored, written to an index of their own, each once."""

from __future__ import annotations

import json
import time
from collections.abc import Mapping
from typing import Any, NamedTuple
from urllib.parse import unquote

import pyarrow as pa

from pyspark_elasticsearch import bulk, indices
from pyspark_elasticsearch.client import Cluster, path
from pyspark_elasticsearch.failures import Kind, known, message, of_answer
from pyspark_elasticsearch.models.chunks import action
from pyspark_elasticsearch.models.documents import Documents, Guard
from pyspark_elasticsearch.models.values import of_version
from pyspark_elasticsearch.sending import Refusal
from sparkonce import letters, untext
from sparkonce.letters import Letter

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
        for name, letter in named.items():
            _send(cluster, index, about, {name: letter}, ROOM)
        return
    if isinstance(items, int):
        raise of_answer(items, {"type": "413", "reason": f"{len(text):,} bytes"}, DOING)
    for item in items:
        if not item.done and known(item.status, item.error).kind is not Kind.CONFLICT:
            raise of_answer(item.status, item.error, DOING)


def of_refusal(one: Refusal, index: str) -> Verdict:
    """The verdict on an operation that was refused.

    Args:
        one: what was sent, and the answer.
        index: to which it went if it does not say so itself.
    """
    told = action(one.operation.lines)
    reason = f"{one.item.status} {message(one.item.error)}"
    return Verdict(told.get("_index") or index, told["_id"], reason)


def of_lines(reason: str, lines: bytes, documents: Documents) -> Letter:
    """The letter of an operation that was refused."""
    schema = documents.arrow
    trees = _trees(lines, documents, schema)
    schema = schema or pa.schema([(name, pa.string()) for name in trees])
    return letters.of_trees(reason, trees, schema, documents.key)


def _trees(lines: bytes, documents: Documents, schema: pa.Schema) -> dict[str, untext.Tree]:
    """What the row holds: of a delete, what its action says."""
    document = lines.partition(b"\n")[2]
    op = {documents.op: "u" if document else "d"} if documents.op else {}
    if not document:
        return {**_of_action(action(lines), documents, schema), **op}
    found = untext.parsed(document)
    if documents.way.guard is Guard.SCRIPT:
        found = {**found["upsert"], **found["script"]["params"]["a"]}
    routing = documents.routing
    if routing and routing not in found:  # an increment does not store it
        found = {**found, routing: str(action(lines)["routing"])}
    return {**found, **op}


def _of_action(
    told: Mapping[str, Any], documents: Documents, schema: pa.Schema
) -> dict[str, untext.Tree]:
    key, version, routing = documents.key, documents.order, documents.routing
    texts = [told["_id"]] if len(key) == 1 else map(unquote, told["_id"].split(":"))
    found = dict(zip(key, texts, strict=False))
    if version and schema:
        found[version] = of_version(told["version"], schema.field(version).type)
    if routing:
        found[routing] = str(told["routing"])
    return found
