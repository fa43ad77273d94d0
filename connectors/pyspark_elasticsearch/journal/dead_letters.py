"""Writes bad rows to an index of dead letters, each once, and reads them."""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from itertools import islice
from typing import Any, NamedTuple, TypeVar

from pyspark_elasticsearch.journal import indices
from pyspark_elasticsearch.server import bulk, reads
from pyspark_elasticsearch.server.client import Cluster, path
from sparkonce.codec import require_kinds
from sparkonce.letterbox import LetterKind, StoredLetter, kinds, moment, readable
from sparkonce.values.letters import Letter

WRITING, READING = "writing dead letters", "reading dead letters"
DROPPING = "deleting dead letters"
KEPT = "1m"
LONGEST = 32_000
ROOM = 400_000  # characters for all reasons of a chunk's letters, which are cut to fit
REQUEST = 8 * 1024 * 1024  # bytes above which letters go in several requests
LONGEST_ROW = 20_000_000  # characters of a text that every release can read
CUT = "cut, because it was larger than the cluster accepts: "
FIELDS = ("sink", "reason", "key", "row", "base64", "partition")
"""The fields by which `boxes` finds an index of dead letters."""

KINDS = {
    "at": int,
    "epoch": int,
    "partition": int | None,
    "base64": tuple[str, ...],
    **dict.fromkeys(("sink", "index", "reason", "key", "row"), str),
}
"""The fields that `write` writes, with their types."""

T = TypeVar("T")


class DocumentLetter(NamedTuple):
    """A letter, and the document of its row; the id is empty if the row has none."""

    index_name: str
    id: str
    letter: Letter

    def document(self, about: Mapping[str, Any], most: int) -> bytes:
        """The stored form, with at most `most` characters of the row."""
        reason, row, key, base64 = self.letter
        if len(row) > most:
            key, row, reason = key[:most], row[:most], CUT + reason
        of = {"index": self.index_name, "id": self.id, "reason": reason}
        return json.dumps({**about, **of, "key": key, "row": row, "base64": base64}).encode()


def cut(reason: str, of: int) -> str:
    """A reason, cut for storage with all `of` reasons of a chunk."""
    return reason[: max(200, min(LONGEST, ROOM // of))]


Letters = Mapping[str, DocumentLetter]  # by id in the index of dead letters


def write(cluster: Cluster, index: str, about: Mapping[str, Any], letters: Letters) -> None:
    """Write letters under their ids; those of an earlier try are written again."""
    # Each time: in a deleted index, the first letter would create it with guessed mappings.
    indices.ensure(cluster, index, "dead_letter")
    about = {**about, "at": time.time_ns() // 1_000_000}
    waiting: dict[str, DocumentLetter] = {}
    size = 0
    for id_, one in letters.items():
        if waiting and size + len(one.letter.row) > REQUEST:
            _send(cluster, index, about, waiting)
            waiting, size = {}, 0
        waiting[id_] = one
        size += len(one.letter.row)
    _send(cluster, index, about, waiting)


def _send(
    cluster: Cluster, index: str, about: dict[str, Any], letters: Letters, most: int = LONGEST_ROW
) -> None:
    # Not `create`: a conflict would not prove that all copies have the letter (see `write.proof`).
    text = b"".join(
        b"%s\n%s\n" % (json.dumps({"index": {"_id": id_}}).encode(), one.document(about, most))
        for id_, one in letters.items()
    )
    items = bulk.send(cluster, WRITING, path(index, "_bulk"), text, len(letters))
    if any(item.status == 413 for item in items) and most == LONGEST_ROW:
        # The answer does not say which of them is too large.
        for id_, letter in letters.items():
            _send(cluster, index, about, {id_: letter}, ROOM)
        return
    for item in items:
        if not item.done:
            raise cluster.error_of(item.status, item.error, WRITING)


def boxes(cluster: Cluster) -> Iterator[LetterBox]:
    """The indices that have the fields of dead letters."""
    target = f"/_all/_mapping/field/{','.join(FIELDS)}"
    status, body = cluster.ask("searching for dead letters", "GET", target, allow=(404,))
    for index, about in sorted(body.items()) if status == 200 else ():
        if set(FIELDS) <= set(about["mappings"]):
            yield LetterBox(cluster, index)


class LetterBox:
    """See `sparkonce.letterbox.Letterbox`."""

    def __init__(self, cluster: Cluster, index: str) -> None:
        self.cluster, self.name = cluster, index

    def kinds(self) -> list[LetterKind]:
        """See `Letterbox.kinds`."""
        return kinds(self._readable(self._hits(None, ["sink", "reason", "at"]), _kind))

    def read(self, sink: str | None, most: int) -> list[StoredLetter]:
        """See `Letterbox.read`."""
        return list(islice(self._readable(self._hits(sink, True, most), _letter), most))

    def drop(self, ids: Collection[str]) -> int:
        """See `Letterbox.drop`."""
        # A search finds the last writes only after a refresh.
        self.cluster.ask(DROPPING, "POST", path(self.name, "_refresh"))
        body = {"query": {"ids": {"values": list(ids)}}}
        params = {"refresh": "true", "conflicts": "proceed", **self.cluster.dialect.searching}
        target = path(self.name, "_delete_by_query")
        answer = self.cluster.ask(DROPPING, "POST", target, params=params, body=body)
        return int(answer.body["deleted"])

    def _readable(self, hits: Iterable[dict[str, Any]], read: Callable[[Any], T]) -> Iterator[T]:
        def look(id_: str) -> str:
            document = path(self.name, "_doc", id_)
            return f"GET {document}, then DELETE {document}"

        return readable(f"index {self.name}", ((hit["_id"], hit) for hit in hits), read, look)

    def _hits(
        self, sink: str | None, source: list[str] | bool, most: int = reads.PAGE
    ) -> Iterator[dict[str, Any]]:
        # A search misses the last writes and deletes without a refresh.
        self.cluster.ask(READING, "POST", path(self.name, "_refresh"))
        body = {
            "query": {"match_all": {}} if sink is None else {"term": {"sink": sink}},
            "sort": ["at", self.cluster.dialect.tie],
            "size": min(most, reads.PAGE),
            "_source": source,
        }
        # Only a point in time gives each hit a place.
        point = reads.open_point(self.cluster, self.name, KEPT)
        body["pit"] = {"id": point, "keep_alive": KEPT}
        try:
            for hits in reads.pages(self.cluster, READING, None, body):
                yield from hits
        finally:
            reads.close_point(self.cluster, point)


def _kind(hit: dict[str, Any]) -> tuple[str, str, str]:
    source = hit["_source"]
    require_kinds(source, KINDS)
    return source["sink"], source["reason"], moment(source["at"])


def _letter(hit: dict[str, Any]) -> StoredLetter:
    source = {name: hit["_source"][name] for name in KINDS}
    require_kinds(source, KINDS)
    at, target = moment(source.pop("at")), source.pop("index")
    base64 = tuple(source.pop("base64"))
    return StoredLetter(id=hit["_id"], at=at, target=target, base64=base64, **source)
