"""The letter of a row that the cluster refused, which is known by the lines of its operation."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any
from urllib.parse import unquote

import pyarrow as pa

from pyspark_elasticsearch.journal.dead_letters import Verdict
from pyspark_elasticsearch.server.bulk import action
from pyspark_elasticsearch.server.failures import message
from pyspark_elasticsearch.write.documents import Documents, Guard
from pyspark_elasticsearch.write.sending import Refusal
from pyspark_elasticsearch.write.values import of_version
from sparkonce.values import from_json, letters
from sparkonce.values.letters import Letter


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


def _trees(lines: bytes, documents: Documents, schema: pa.Schema) -> dict[str, from_json.Tree]:
    """What the row holds: of a delete, what its action says."""
    document = lines.partition(b"\n")[2]
    op = {documents.op: "u" if document else "d"} if documents.op else {}
    if not document:
        return {**_of_action(action(lines), documents, schema), **op}
    found = from_json.parse_tree(document)
    if documents.way.guard is Guard.SCRIPT:
        found = {**found["upsert"], **found["script"]["params"]["a"]}
    routing = documents.routing
    if routing and routing not in found:  # an increment does not store it
        found = {**found, routing: str(action(lines)["routing"])}
    return {**found, **op}


def _of_action(
    told: Mapping[str, Any], documents: Documents, schema: pa.Schema
) -> dict[str, from_json.Tree]:
    key, version, routing = documents.key, documents.order, documents.routing
    texts = [told["_id"]] if len(key) == 1 else map(unquote, told["_id"].split(":"))
    found = dict(zip(key, texts, strict=False))
    if version and schema:
        found[version] = of_version(told["version"], schema.field(version).type)
    if routing:
        found[routing] = str(told["routing"])
    return found
