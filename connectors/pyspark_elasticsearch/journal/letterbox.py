"""Indices of dead letters, as ``sparkonce letters`` shows them."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator
from contextlib import contextmanager
from itertools import islice
from typing import Any, TypeVar

from pyspark_elasticsearch.server import reads
from pyspark_elasticsearch.server.client import Cluster, path
from sparkonce.codec import require_kinds
from sparkonce.letterbox import Kind, StoredLetter, kinds, moment, readable

READING, DROPPING = "reading dead letters", "deleting dead letters"
KEPT = "1m"
FIELDS = ("sink", "reason", "key", "row", "base64", "partition")
"""By which an index of dead letters is known."""

KINDS = {
    "at": int,
    "sink": str,
    "epoch": int,
    "partition": int | None,
    "index": str,
    "reason": str,
    "key": str,
    "row": str,
    "base64": tuple[str, ...],
}
"""What `dead_letters` writes."""

T = TypeVar("T")


def boxes(cluster: Cluster) -> Iterator[Box]:
    """The indices that have the fields of dead letters."""
    target = f"/_all/_mapping/field/{','.join(FIELDS)}"
    found = cluster.ask("looking for dead letters", "GET", target, allow=(403, 404))
    told = found.body if found.status == 200 else {}
    for index, about in sorted(told.items()):
        if set(FIELDS) <= set(about["mappings"]):
            yield Box(cluster, index)


class Box:
    """See `sparkonce.letterbox.Letterbox`."""

    def __init__(self, cluster: Cluster, index: str) -> None:
        self.cluster, self.name = cluster, index

    def kinds(self) -> list[Kind]:
        """See `Letterbox.kinds`."""
        hits = self._hits(None, ["sink", "reason", "at"])
        return kinds(self._readable(hits, _kind))

    def read(self, sink: str | None, most: int) -> list[StoredLetter]:
        """See `Letterbox.read`."""
        hits = self._hits(sink, True, most)
        return list(islice(self._readable(hits, _letter), most))

    def drop(self, ids: Collection[str]) -> int:
        """See `Letterbox.drop`."""
        # A search finds what was written a moment ago only after that.
        self.cluster.ask(DROPPING, "POST", path(self.name, "_refresh"))
        body = {"query": {"ids": {"values": list(ids)}}}
        params = {"refresh": "true", "conflicts": "proceed"}
        target = path(self.name, "_delete_by_query")
        told = self.cluster.ask(DROPPING, "POST", target, params=params, body=body)
        return int(told.body["deleted"])

    def _readable(self, hits: Iterable[dict[str, Any]], read: Callable[[Any], T]) -> Iterator[T]:
        def look(id_: str) -> str:
            document = path(self.name, "_doc", id_)
            return f"GET {document}, then DELETE {document}"

        return readable(f"index {self.name}", ((hit["_id"], hit) for hit in hits), read, look)

    def _hits(
        self, sink: str | None, source: list[str] | bool, most: int = reads.PAGE
    ) -> Iterator[dict[str, Any]]:
        # What was dropped or written a moment ago is not shown without it.
        self.cluster.ask(READING, "POST", path(self.name, "_refresh"))
        body = {
            "query": {"match_all": {}} if sink is None else {"term": {"sink": sink}},
            "sort": ["at", "_shard_doc"],
            "size": min(most, reads.PAGE),
            "_source": source,
        }
        with self._frozen() as pit:
            body["pit"] = {"id": pit, "keep_alive": KEPT}
            for hits in reads.pages(self.cluster, READING, None, body):
                yield from hits

    @contextmanager
    def _frozen(self) -> Iterator[str]:
        """A point in time: only there each hit has a place of its own, whatever the shards."""
        target, kept = path(self.name, "_pit"), {"keep_alive": KEPT}
        opened = self.cluster.ask(READING, "POST", target, params=kept).body["id"]
        try:
            yield str(opened)
        finally:
            self.cluster.ask(READING, "DELETE", "/_pit", body={"id": opened}, allow=(404,))


def _kind(hit: dict[str, Any]) -> tuple[str, str, str]:
    told = hit["_source"]
    require_kinds(told, KINDS)
    return told["sink"], told["reason"], moment(told["at"])


def _letter(hit: dict[str, Any]) -> StoredLetter:
    told = hit["_source"]
    told = {name: told[name] for name in KINDS}
    require_kinds(told, KINDS)
    at, target, base64 = moment(told.pop("at")), told.pop("index"), tuple(told.pop("base64"))
    return StoredLetter(id=hit["_id"], at=at, target=target, base64=base64, **told)
