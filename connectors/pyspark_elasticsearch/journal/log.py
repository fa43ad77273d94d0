"""Documents of the log index: staged chunks, and verdicts on bad rows.

The id of a chunk contains its row count and size, so a chunk found by its id is complete.
"""

from __future__ import annotations

import base64
import binascii
import json
import time
from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from typing import Any, NamedTuple

from pyspark_elasticsearch.journal.indices import OwnIndices
from pyspark_elasticsearch.server import bulk, reads
from pyspark_elasticsearch.server.client import Cluster, path
from sparkonce.codec import reading, require_kinds
from sparkonce.errors import ChunkTooLarge, StoreUnreachable
from sparkonce.protocol import Chunk, Part, Staged

CLOCK = (
    10.0  # seconds, by this host's clock, for which to use the measured difference of the clocks
)

VERDICTS = 20  # verdicts in a request: each may have 400 kB
LISTING, DROPPING = "listing staged rows", "dropping staged rows"
BY_SINK = {"terms": {"field": "sink"}}
LISTED = {"attempt": str, "query": str, "epoch": int, "at": float}


class ChunkPlace(NamedTuple):
    """One chunk of a manifest, and its place in the log."""

    sink: str
    attempt: str
    seq: int
    rows: int
    size: int

    @property
    def id(self) -> str:
        """The id of the chunk's document."""
        return f"{self.sink}/{self.attempt}/{self.seq}/{self.rows}/{self.size}"

    @property
    def verdict(self) -> str:
        """The id of the verdict on its rows."""
        return f"{self.sink}/{self.attempt}/{self.seq}/verdict"


class StagedChunk(NamedTuple):
    """A chunk, and the verdict on its rows if there is one."""

    payload: bytes | None  # None if the chunk is missing
    verdict: dict[str, Any]  # on its bad rows; empty without one
    guard: dict[str, Any]  # the condition for a write over the verdict

    @property
    def letters(self) -> dict[str, Any]:
        """The reasons of bad rows, by operation, or by ``c`` and a number for rows of a task."""
        return self.verdict.get("letters", {})  # type: ignore[no-any-return]

    @property
    def judged(self) -> frozenset[int]:
        """Operations with a verdict: they are bad rows, even if the cluster accepts them now."""
        return frozenset(int(at) for at in self.letters if at.isdigit())


def places(sink: str, parts: Iterable[Part]) -> list[ChunkPlace]:
    """The chunks of these attempts of a sink, in order."""
    return [
        ChunkPlace(sink, part.attempt, seq, rows, size)
        for part in parts
        for seq, (rows, size) in enumerate(zip(part.rows, part.sizes, strict=True))
    ]


class StagingLog:
    """Appends, reads and drops chunks."""

    def __init__(self, cluster: Cluster, indices: OwnIndices) -> None:
        self.cluster, self.indices, self.clock = cluster, indices, Clock(cluster)

    def append(self, chunk: Chunk) -> None:
        """See `Store.stage`."""
        self.indices.ensure()
        task = chunk.task
        place = ChunkPlace(task.sink, task.attempt, chunk.seq, chunk.rows, len(chunk.payload))
        of_task = {"sink": task.sink, "attempt": task.attempt, "query": task.query_id}
        staged = {"epoch": task.epoch, "seq": chunk.seq, "at": self.clock.now()}
        about = {"kind": "chunk", **of_task, **staged}
        # The payload, most of the document, is base64 and needs no escapes.
        head = json.dumps(about).encode()[:-1] + b',"payload":"'
        body = b"".join([head, base64.b64encode(chunk.payload), b'"}'])
        target = path(self.indices.log, "_create", place.id)
        answer = self.cluster.ask("staging rows", "PUT", target, body=body, allow=(409, 413))
        if answer.status == 409:
            # This very chunk, staged before: its id contains rows and size. Only a write proves
            # that all copies have it, see `pyspark_elasticsearch.write.proof`.
            target = path(self.indices.log, "_doc", place.id)
            answer = self.cluster.ask("staging rows", "PUT", target, body=body, allow=(413,))
        if answer.status == 413:
            raise ChunkTooLarge(
                f"{self.cluster.dialect.name} rejected a row of {len(body):,} bytes",
                why="that exceeds http.max_content_length of the server, or the limit of a proxy",
                todo="raise that limit, or drop or shorten large columns before the sink",
            )

    def missing(self, wanted: Sequence[ChunkPlace]) -> ChunkPlace | None:
        """The first missing chunk; None if all chunks are complete."""
        for page in reads.batches(wanted):
            docs = self._get("checking staged rows", [place.id for place in page])
            for place, doc in zip(page, docs, strict=True):
                if not doc.get("found"):
                    return place
        return None

    def fetch(self, place: ChunkPlace) -> StagedChunk:
        """A chunk and the verdict on it."""
        # In one request: a verdict that another driver writes meanwhile is found by `judge`.
        chunk, verdict = self._get("reading staged rows", [place.id, place.verdict], source=True)
        payload = None
        if chunk.get("found"):
            try:
                payload = binascii.a2b_base64(chunk["_source"]["payload"])
            except (KeyError, binascii.Error):
                # Treated as lost: its size differs from the decided one.
                payload = b""
        if not verdict.get("found"):
            return StagedChunk(payload, {}, reads.overwrite_guard(None))
        return StagedChunk(payload, verdict["_source"], reads.overwrite_guard(verdict))

    def exists(self, place: ChunkPlace) -> bool:
        """Whether the log has a decided chunk, by a write.

        A read may reach a copy that is behind, for example on a node that is cut off. A write is
        acknowledged only by the copies that count. Without a chunk it leaves none.
        """
        doing = "looking for a staged chunk"
        body = {"kind": "probe", "sink": place.sink, "attempt": place.attempt}
        target = path(self.indices.log, "_create", place.id)
        if self.cluster.ask(doing, "PUT", target, body=body, allow=(409,)).status == 409:
            return True
        target = path(self.indices.log, "_doc", place.id)
        self.cluster.ask(doing, "DELETE", target, allow=(404,))
        return False

    def aside(self, wanted: Sequence[ChunkPlace]) -> int:
        """The number of bad rows of these chunks, by their verdicts."""
        rows = 0
        for page in reads.batches(wanted, VERDICTS):
            ids = [place.verdict for place in page]
            docs = self._get("counting bad rows", ids, source=True)
            for id_, doc in zip(ids, docs, strict=True):
                with reading(id_):
                    rows += int(doc["_source"]["rows"]) if doc.get("found") else 0
        return rows

    def judge(self, place: ChunkPlace, verdict: dict[str, Any], guard: dict[str, Any]) -> bool:
        """Write a verdict; False if there is already another one."""
        # With sink and attempt, as in a chunk, so that a drop of the attempt drops its verdicts.
        source = {**verdict, "kind": "verdict", "sink": place.sink, "attempt": place.attempt}
        doing, target = (
            "recording bad rows",
            path(self.indices.log, "_doc", place.verdict),
        )
        answer = self.cluster.ask(doing, "PUT", target, params=guard, body=source, allow=(409,))
        # An answer without a result is not the cluster's: `JsonObject` raises.
        return answer.status != 409 and bool(answer.body["result"])

    def attempts(self, sink: str, *, fresh: bool = False) -> list[Staged]:
        """See `Store.staged`.

        Without `fresh`, chunks of the last seconds may be missing: then this waits for no refresh,
        which costs more than a small commit.
        """
        if fresh:
            self.refresh()
        now, found = self.clock.now(), defaultdict[str, list[dict[str, Any]]](list)
        for chunk in self._listed(sink):
            found[chunk["attempt"]].append(chunk)
        return [
            Staged(
                attempt,
                chunks[0]["query"],
                chunks[0]["epoch"],
                len(chunks),
                max(0.0, now - max(chunk["at"] for chunk in chunks)),
                sum(chunk["bytes"] for chunk in chunks),
            )
            for attempt, chunks in found.items()
        ]

    def sinks(self) -> list[str]:
        """The sinks with staged chunks."""
        self.refresh()
        target, found = path(self.indices.log, "_search"), list[str]()
        by_sink: dict[str, Any] = {"size": reads.PAGE, "sources": [{"sink": BY_SINK}]}
        body = {"size": 0, "aggs": {"sinks": {"composite": by_sink}}}
        while True:
            answer = self.cluster.ask(
                LISTING, "POST", target, params=reads.whole(self.cluster), body=body, allow=(404,)
            )
            if answer.status == 404:
                return found
            page = answer.body["aggregations"]["sinks"]
            if not page["buckets"]:
                return found
            found += [one["key"]["sink"] for one in page["buckets"]]
            by_sink["after"] = page["after_key"]

    def drop(self, sink: str, attempts: Iterable[str], known: Sequence[ChunkPlace] = ()) -> None:
        """Drop existing attempts of a sink.

        Chunks in `known` need no search, which would find them late.
        """
        # Known chunks first: after a commit these are all, and cost no refresh.
        self._drop_places(known)
        listed = sorted({*attempts} - {place.attempt for place in known})
        if listed:
            self.refresh()
        for page in reads.batches(listed):
            self._drop_listed(sink, page)

    def refresh(self) -> None:
        """Refresh the index for listings."""
        self.cluster.ask(LISTING, "POST", path(self.indices.log, "_refresh"), allow=(404,))

    def _drop_places(self, known: Sequence[ChunkPlace]) -> None:
        target = path(self.indices.log, "_bulk")
        for page in reads.batches([id_ for place in known for id_ in (place.id, place.verdict)]):
            lines = "".join(json.dumps({"delete": {"_id": id_}}) + "\n" for id_ in page).encode()
            items = bulk.send(self.cluster, DROPPING, target, lines, len(page))
            if not bulk.all_done(items):
                raise StoreUnreachable(
                    f"The cluster did not execute every operation while {DROPPING}"
                )

    def _drop_listed(self, sink: str, attempts: Sequence[str]) -> None:
        query = reads.all_of({"term": {"sink": sink}}, {"terms": {"attempt": attempts}})
        target, body = path(self.indices.log, "_delete_by_query"), {"query": query}
        # A chunk that others drop at the same moment is no failure.
        params = {"conflicts": "proceed", **self.cluster.dialect.searching}
        answer = self.cluster.ask(DROPPING, "POST", target, params=params, body=body, allow=(404,))
        if failures := answer.body.get("failures"):
            raise StoreUnreachable("The cluster could not drop all staged rows", str(failures[0]))

    def _get(self, doing: str, ids: Sequence[str], *, source: bool = False) -> list[dict[str, Any]]:
        return reads.by_id(self.cluster, doing, self.indices.log, ids, source=source)

    def _listed(self, sink: str) -> Iterator[dict[str, Any]]:
        """The chunks of a sink that a search finds and that still exist.

        A search also shows chunks deleted since the last refresh; a look-up by id does not.
        """
        body = {
            "query": reads.all_of({"term": {"sink": sink}}, {"term": {"kind": "chunk"}}),
            "sort": ["attempt", "seq"],
            "_source": False,
            "docvalue_fields": [*LISTED],
        }
        for hits in reads.pages(self.cluster, LISTING, self.indices.log, body):
            docs = self._get(LISTING, [hit["_id"] for hit in hits]) if hits else []
            for hit, doc in zip(hits, docs, strict=True):
                if doc.get("found"):
                    with reading(hit["_id"]):
                        about = {name: hit["fields"][name][0] for name in LISTED}
                        require_kinds(about, LISTED)
                        about["bytes"] = int(hit["_id"].rpartition("/")[2])  # see `ChunkPlace.id`
                    yield about


class Clock:
    """The clock of the cluster, because Elasticsearch adds no time to documents."""

    def __init__(self, cluster: Cluster) -> None:
        self.cluster = cluster
        self._asked, self._ahead = 0.0, 0.0

    def now(self) -> float:
        """Unix time, in seconds."""
        mine = time.time()
        if abs(mine - self._asked) > CLOCK:
            self._asked, self._ahead = mine, self._of_cluster() - mine
        return mine + self._ahead

    def _of_cluster(self) -> float:
        target, params = (
            path("_nodes", "_local", "stats", "http"),
            {"filter_path": "nodes.*.timestamp"},
        )
        # A 404 is from a proxy, which `ask` recognizes.
        answer = self.cluster.ask("reading the clock", "GET", target, params=params, allow=(404,))
        (node,) = answer.body["nodes"].values()
        return float(node["timestamp"]) / 1000
