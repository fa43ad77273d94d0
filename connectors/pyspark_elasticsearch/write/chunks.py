"""Encodes rows as the compressed lines of a ``_bulk`` request, and decodes rows from lines.

A chunk is a header (count of operations; bytes of JSON, and in total) and zstd of the JSON and of
the lines. The JSON has the bad rows and the indices that the chunk empties first; it is empty
without both. The lines have marks for values that are unknown when a task stages.
"""

from __future__ import annotations

import base64
import json
import struct
from collections.abc import Iterable, Mapping, Sequence
from functools import partial
from typing import Any, NamedTuple, TypeAlias
from urllib.parse import unquote

import pyarrow as pa
import pyarrow.compute as pc

from pyspark_elasticsearch.server import bulk
from pyspark_elasticsearch.target import templates
from pyspark_elasticsearch.write import values
from pyspark_elasticsearch.write.documents import Documents, RowGuard, script
from sparkonce.change import UNORDERED, Emptied, behind_emptying, split_operations
from sparkonce.exactly_once.bad_rows import reasons
from sparkonce.protocol import Reasons
from sparkonce.templates import filled_by
from sparkonce.values import from_json, letters
from sparkonce.values.json_text import all_bytes
from sparkonce.values.letters import Letter
from sparkonce.values.rows import separate_bad_rows

# The marks: JSON text contains none of these control characters unescaped.
VERSION_MARK = "\x01"  # the version of the chunk
NAME_MARK = "\x02"  # the name of the chunk, the prefix of ids made from it
SCRIPT_MARK = "\x03"  # `begun_script`
STAMP_MARK = "\x04"  # the decision of a document

# _gte: a repeated chunk has the same version, and must not conflict.
FENCED = f',"version":{VERSION_MARK},"version_type":"external_gte"'

HEAD = struct.Struct("<IIQ")


class Slot(NamedTuple):
    """The part of a line that a row fills."""

    what: str
    """A part of the line; or a column's JSON: ``value``, ``left`` (out if null), ``document``."""
    column: str = ""


ID, INDEX, VERSION, ROUTING = Slot("id"), Slot("index"), Slot("version"), Slot("routing")
ROWS = Slot("rows")  # of the user's script
Line: TypeAlias = tuple[str | Slot, ...]


class DocumentChunk(NamedTuple):
    """A decoded chunk."""

    operations: int  # the number of operations in its lines
    lines: bytes  # of the request, with marks
    bad: list[Letter]  # rows without lines
    emptied: list[str]  # the indices to empty first; an empty name is that of the target

    def weight(self, rows: int, at: int) -> int:
        """The number of rows of the operation `at` in a chunk that was made from `rows`.

        The chunk folds rows of a key without their counts, so each operation has an equal share.
        """
        sent = rows - len(self.bad)
        return sent * (at + 1) // self.operations - sent * at // self.operations

    def filled(self, name: str, version: int, script: str, stamp: str = "") -> bytes:
        """The lines with marks replaced."""
        lines = self.lines
        for mark, text in (
            (VERSION_MARK, str(version)),
            (NAME_MARK, name),
            (SCRIPT_MARK, script),
            (STAMP_MARK, stamp),
        ):
            lines = lines.replace(mark.encode(), text.encode())
        return lines


def packed(texts: Any, bad: list[Letter], emptied: Sequence[str] = ()) -> bytes:
    """The chunk with these lines."""
    about = json.dumps({"bad": bad, "emptied": emptied}).encode() if bad or emptied else b""
    lines = all_bytes(texts)
    body = b"".join([about, lines]) if about else lines
    squeezed: bytes = pa.Codec("zstd", 1).compress(body, asbytes=True)
    return HEAD.pack(len(texts), len(about), len(about) + len(lines)) + squeezed


def unpacked(payload: bytes) -> DocumentChunk:
    """Decode a chunk; `ValueError` if it is invalid."""
    try:
        count, begin, size = HEAD.unpack_from(payload)
        raw = pa.Codec("zstd").decompress(
            memoryview(payload)[HEAD.size :], decompressed_size=size, asbytes=True
        )
    except (struct.error, pa.ArrowException) as error:
        raise ValueError(str(error)) from None
    about = json.loads(raw[:begin]) if begin else {"bad": [], "emptied": []}
    bad = [Letter(*one) for one in about["bad"]]
    return DocumentChunk(count, raw[begin:], bad, about["emptied"])


def chunk_name(attempt: str, seq: int) -> str:
    """The prefix of ids made from a chunk: short, and the same in every release."""
    token = attempt.rpartition("-")[2]
    try:
        short = base64.urlsafe_b64encode(bytes.fromhex(token)).decode().rstrip("=")
    except ValueError:
        short = attempt
    return f"{short}.{seq}."


def begun_script(documents: Documents, sink: str, fence: int, ordinal: int) -> str:
    """The beginning of a chunk's script, up to member ``a``, the changes of a row."""
    if not documents.mode.script:
        return ""
    source, name = json.dumps(script(documents)), json.dumps(sink)
    return f'"lang":"painless","source":{source},"params":{{"s":{name},"f":{fence},"o":{ordinal},'


class ChunkEncoder:
    """Encodes the rows of one plan."""

    def __init__(self, documents: Documents) -> None:
        self.documents = documents
        self.written = _written(documents)
        self.deleted = (*_action(documents, "delete"), "}}\n")
        self.row = ("{", *_members(documents.columns), "}") if documents.script else ()
        line = (*self.written, *self.row)
        slots = [piece for piece in line if isinstance(piece, Slot) and piece.column]
        self.left = {one: f",{_member(one.column)}" for one in slots if one.what == "left"}
        held = [*(one.column for one in slots if one.what != "document"), documents.routing]
        self.columns = list(dict.fromkeys(filter(None, held)))
        self.naming = {*documents.key, documents.order, documents.routing}
        self.naming |= {part[0] for part in documents.parts if not isinstance(part, str)}

    def __call__(self, rows: pa.RecordBatch) -> bytes:
        """Encode rows as a chunk; `BadRow` or `ValueError` if one cannot be a document."""
        if self.documents.aside:
            return self.split(rows)[0]
        rows, emptied = self._behind_emptying(rows)
        return packed(self._lines(rows), [], emptied)

    def _behind_emptying(self, rows: pa.RecordBatch) -> Emptied:
        """The rows behind the last TRUNCATE of their index, and these indices."""
        documents, parts = self.documents, self.documents.parts
        named = partial(templates.names, parts, reserved=documents.reserved) if parts else None
        refused = UNORDERED if documents.order else ""
        return behind_emptying(rows, documents.op, named, refused=refused)

    def split(self, rows: pa.RecordBatch) -> tuple[bytes, Reasons]:
        """See `BadRowSplitter.split`."""
        rows, emptied = self._behind_emptying(rows)
        fit, bad = separate_bad_rows(rows, lambda part: (part, self._lines(part)))
        schema = self.documents.arrow if bad else pa.schema([])
        aside = [letters.of_row(one.reason, one.row, schema, self.documents.key) for one in bad]
        if len(fit) == 1:
            lines = fit[0][1]
        else:  # only good rows count for the last row of a key, or the sum of its rows
            whole = pa.Table.from_batches([part for part, _ in fit], rows.schema).combine_chunks()
            lines = self._lines(whole.to_batches()[0]) if fit else pa.array([], pa.string())
        return packed(lines, aside, emptied), reasons(bad)

    def _lines(self, rows: pa.RecordBatch) -> Any:
        """One text for each row with an effect: its action and its document."""
        documents = self.documents
        doing = split_operations(rows, documents.op)
        rows, deleted = doing.keyed(self.naming), doing.deleted
        if documents.row:
            rows = values.with_documents(rows, documents.row, doing)
        ids, parts = values.ids(rows, documents.key), documents.parts
        index = templates.names(parts, rows, documents.reserved) if parts else None
        if documents.script:
            return self._scripted(rows, ids)
        if documents.key and documents.order is None:
            # With versions of a column the server keeps the highest one, in any order.
            place = ids if index is None else values.joined(index, "/", ids)
            rows, kept = values.folded(rows, place, documents.added, keeps=documents.keeps)
            if kept is not None:
                ids, index, deleted = (
                    one if one is None else one.take(kept) for one in (ids, index, deleted)
                )
        held = self._held(rows, ids, index)
        written = _filled(self.written, held)
        if deleted is None:
            return written
        return pc.if_else(deleted, _filled(self.deleted, held), written)

    def _scripted(self, rows: pa.RecordBatch, ids: Any) -> Any:
        """A line for each document, with all its rows: a part of them must not repeat."""
        held = self._held(rows, ids, None)
        kept, lists = values.listed(ids, _filled(self.row, held))
        held = {slot: one.take(kept) for slot, one in held.items() if one is not None}
        return _filled(self.written, {**held, ROWS: lists})

    def _held(self, rows: pa.RecordBatch, ids: Any, index: Any | None) -> dict[Any, Any]:
        """The values of the slots in each row's line."""
        texts, routing = values.texts(rows, self.columns), self.documents.routing
        held: dict[Any, Any] = {ID: ids, INDEX: index}
        held |= {Slot("value", name): text for name, text in texts.items()}
        if name := self.documents.row:
            held[Slot("document", name)] = rows.column(name)
        if self.documents.order:
            held[VERSION] = values.versions(rows, self.documents.order)
        if routing:
            held[ROUTING] = values.routing(rows, routing, texts[routing])
        for slot, begun in self.left.items():
            member = pc.binary_join_element_wise(begun, texts[slot.column], "")
            held[slot] = pc.fill_null(member, "")
        return held


def _filled(line: Line, held: Mapping[Any, Any]) -> Any:
    return values.joined(*(held.get(piece, piece) for piece in line))


def _written(documents: Documents) -> Line:
    """The line of a row whose operation is not a delete."""
    mode = documents.mode
    action = _action(documents, mode.verb)
    if mode.verb == "delete":
        return (*action, "}}\n")
    if mode.guard is RowGuard.SCRIPT:
        # Parallel chunks may change one document, so the node retries. With scripted_upsert the
        # script also writes its guard into a new document.
        retried = ',"retry_on_conflict":20}}\n'
        begun = retried + f'{{"scripted_upsert":true,"script":{{{SCRIPT_MARK}"a":'
        changes = ("[", ROWS, "]") if documents.script else ("{", *_changes(documents), "}")
        new = ('}},"upsert":{', *_members(documents.key), "}}\n")
        return (*action, begun, *changes, *new)
    if documents.row:
        return (*action, "}}\n", Slot("document", documents.row), "\n")
    stamp = f"{STAMP_MARK}," if documents.alias else ""
    return (*action, "}}\n{" + stamp, *_members(documents.columns), "}\n")


def _action(documents: Documents, verb: str) -> Line:
    """The action line of a document, with its version if the write mode sets one."""
    line = [f'{{"{verb}":{{', *(('"_index":"', INDEX, '",') if documents.parts else ())]
    line += ['"_id":"' if documents.key else f'"_id":"{NAME_MARK}', ID, '"']
    if documents.routing:
        line += [',"routing":', ROUTING]
    if documents.is_fenced:
        line.append(FENCED)
    elif documents.order:
        # Not _gte: among rows with equal versions the first to arrive stays.
        line += [',"version":', VERSION, ',"version_type":"external"']
    return tuple(line)


def _changes(documents: Documents) -> Line:
    """The changes for the script: the key, never null, precedes columns omitted if null."""
    if not documents.keeps:
        return _members(documents.added or documents.columns)
    rest = [name for name in documents.columns if name not in documents.key]
    return (*_members(documents.key), *(Slot("left", name) for name in rest))


def _members(columns: Iterable[str]) -> Line:
    line: list[str | Slot] = []
    for name in columns:
        line += [f",{_member(name)}" if line else _member(name), Slot("value", name)]
    return tuple(line)


def _member(name: str) -> str:
    return f"{json.dumps(name, ensure_ascii=False)}:"


def dead_letters(reason: str, operation: bytes, documents: Documents) -> list[Letter]:
    """The dead letters of a rejected operation, from its lines alone: one, or one for each row."""
    schema = documents.arrow
    found = scripted_rows(operation) or [_trees(operation, documents, schema)]
    return [
        letters.of_trees(
            reason, one, schema or pa.schema([(name, pa.string()) for name in one]), documents.key
        )
        for one in found
    ]


def scripted_rows(operation: bytes) -> list[dict[str, from_json.Tree]]:
    """The rows of an operation by the user's script; none for others."""
    if not operation.startswith(b'{"update"'):
        return []
    found = from_json.parse_tree(operation.partition(b"\n")[2])["script"]["params"]["a"]
    return found if isinstance(found, list) else []


def _trees(operation: bytes, documents: Documents, schema: pa.Schema) -> dict[str, from_json.Tree]:
    """The values of the row; for a delete, those in its action."""
    document = operation.partition(b"\n")[2]
    op = {documents.op: "u" if document else "d"} if documents.op else {}
    if not document:
        return {**_of_action(bulk.action(operation), documents, schema), **op}
    if documents.row:
        row = {documents.row: document.decode().rstrip("\n")}
        return {**_of_action(bulk.action(operation), documents, schema), **row, **op}
    found = from_json.parse_tree(document)
    if documents.mode.guard is RowGuard.SCRIPT:
        found = {**found["upsert"], **found["script"]["params"]["a"]}
    routing = documents.routing
    if routing and routing not in found:  # an increment does not store the routing
        found = {**found, routing: str(bulk.action(operation)["routing"])}
    return {**found, **op}


def _of_action(
    action: Mapping[str, Any], documents: Documents, schema: pa.Schema
) -> dict[str, from_json.Tree]:
    key, version, routing = documents.key, documents.order, documents.routing
    texts = [action["_id"]] if len(key) == 1 else map(unquote, action["_id"].split(":"))
    found = dict(zip(key, texts, strict=False))
    if version and schema:
        found[version] = values.of_version(action["version"], schema.field(version).type)
    if routing:
        found[routing] = str(action["routing"])
    return {**filled_by(documents.parts, action.get("_index", "")), **found}
