"""Documents of the log index: staged chunks, and verdicts on rows that can't be stored.

The id of a chunk names its row count and size, so that to find it is to know that it is whole.
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

CLOCK = 10.0
"""Seconds for which the difference of the clocks holds, by that of this host: it may be set."""
VERDICTS = 20
"""Verdicts that are read at once: each may have 400 kB."""
LISTING = "listing staged rows"
ABOUT = {"attempt": str, "query": str, "epoch": int, "at": float}
DROPPING = "dropping staged rows"


class Place(NamedTuple):
    """One chunk of a manifest, and where it lies."""

    sink: str
    attempt: str
    seq: int
    rows: int
    size: int

    @property
    def id(self) -> str:
        """Of the chunk's document."""
        return f"{self.sink}/{self.attempt}/{self.seq}/{self.rows}/{self.size}"

    @property
    def verdict(self) -> str:
        """The id of the verdict on its rows."""
        return f"{self.sink}/{self.attempt}/{self.seq}/verdict"


class Found(NamedTuple):
    """A chunk, and the verdict on its rows if there is one.

    Attributes:
        payload: None if the chunk is not there.
        verdict: what is written of its bad rows; empty if there is nothing.
        guard: what a write over the verdict must name.
    """

    payload: bytes | None
    verdict: dict[str, Any]
    guard: dict[str, Any]

    @property
    def letters(self) -> dict[str, Any]:
        """The bad rows by their operation; those that a task has put aside have none."""
        found: dict[str, Any] = self.verdict.get("letters", {})
        return found

    @property
    def judged(self) -> frozenset[int]:
        """The operations that go aside, whatever the cluster says of them now."""
        return frozenset(int(at) for at in self.letters if at.isdigit())


def places(sink: str, parts: Iterable[Part]) -> list[Place]:
    """The chunks of these attempts of a sink, in their order."""
    return [
        Place(sink, part.attempt, seq, part.rows[seq], part.sizes[seq])
        for part in parts
        for seq in range(len(part.rows))
    ]


class Log:
    """Appends, reads and drops chunks."""

    def __init__(self, cluster: Cluster, indices: OwnIndices) -> None:
        self.cluster, self.indices, self.clock = cluster, indices, Clock(cluster)

    def append(self, chunk: Chunk) -> None:
        """Write a chunk. Repeating it changes nothing."""
        task = chunk.task
        place = Place(task.sink, task.attempt, chunk.seq, chunk.rows, len(chunk.payload))
        about = {
            "kind": "chunk",
            "seq": chunk.seq,
            "sink": task.sink,
            "attempt": task.attempt,
            "query": task.query_id,
            "epoch": task.epoch,
            "at": self.clock.now(),
        }
        head = json.dumps(about).encode()[:-1] + b',"payload":"'
        body = b"".join([head, base64.b64encode(chunk.payload), b'"}'])
        target = path(self.indices.log, "_create", place.id)
        # A conflict is this very chunk, staged before: its id names rows and size.
        answer = self.cluster.ask("staging rows", "PUT", target, body=body, allow=(409, 413))
        if answer.status == 413:
            raise ChunkTooLarge(
                f"Elasticsearch refused a row of {len(body):,} bytes",
                why="that is more than http.max_content_length of the server, or of a proxy",
                todo="raise that limit, or drop or cut the row's large columns before the sink",
            )

    def missing(self, wanted: Sequence[Place]) -> Place | None:
        """The first of these chunks that is not there; None if all are, whole."""
        for start in range(0, len(wanted), reads.PAGE):
            page = wanted[start : start + reads.PAGE]
            docs = self._get("checking staged rows", [place.id for place in page])
            for place, doc in zip(page, docs, strict=True):
                if not doc.get("found"):
                    return place
        return None

    def fetch(self, place: Place) -> Found:
        """A chunk and the verdict on it."""
        chunk, verdict = self._get("reading staged rows", [place.id, place.verdict], source=True)
        payload = None
        if chunk.get("found"):
            try:
                payload = binascii.a2b_base64(chunk["_source"]["payload"])
            except (KeyError, binascii.Error):
                # As one that is gone: its size is not the one that was decided.
                payload = b""
        if not verdict.get("found"):
            return Found(payload, {}, {"op_type": "create"})
        guard = {"if_seq_no": verdict["_seq_no"], "if_primary_term": verdict["_primary_term"]}
        return Found(payload, verdict["_source"], guard)

    def aside(self, wanted: Sequence[Place]) -> int:
        """How many rows of these chunks went aside, by their verdicts."""
        rows = 0
        for start in range(0, len(wanted), VERDICTS):
            ids = [place.verdict for place in wanted[start : start + VERDICTS]]
            docs = self._get("counting rows that can't be stored", ids, source=True)
            found = [doc["_source"] for doc in docs if doc.get("found")]
            with reading(ids[0]):
                rows += sum(int(one["rows"]) for one in found)
        return rows

    def judge(self, place: Place, verdict: dict[str, Any], guard: dict[str, Any]) -> bool:
        """Write a verdict; False if another one came first."""
        source = {**verdict, "kind": "verdict", "sink": place.sink, "attempt": place.attempt}
        target = path(self.indices.log, "_doc", place.verdict)
        answer = self.cluster.ask(
            "noting rows that can't be stored",
            "PUT",
            target,
            params=guard,
            body=source,
            allow=(409,),
        )
        # An answer without a result is not the cluster's: `Told` raises.
        return answer.status != 409 and bool(answer.body["result"])

    def attempts(self, sink: str, *, fresh: bool) -> list[Staged]:
        """What is staged for a sink, and is still there.

        Args:
            sink: its name.
            fresh: with what was staged in the last seconds. Without that, the refresh, which costs
                more than a small commit, is left to the index.
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
        """The sinks that have something staged."""
        self.refresh()
        first: dict[str, Any] = {"collapse": {"field": "sink"}, "sort": ["sink"], "_source": False}
        found = reads.pages(self.cluster, LISTING, self.indices.log, first)
        return [hit["sort"][0] for hits in found for hit in hits]

    def drop(self, sink: str, attempts: Iterable[str], known: Sequence[Place] = ()) -> None:
        """Drop attempts, as far as they are there.

        Args:
            sink: whose they are.
            attempts: by name.
            known: chunks that need no search, which would find them late.
        """
        self._drop_places(known)
        self._drop_listed(sink, sorted({*attempts} - {place.attempt for place in known}))

    def refresh(self) -> None:
        """Let listings show what is there now."""
        target = path(self.indices.log, "_refresh")
        self.cluster.ask(LISTING, "POST", target, allow=(404,))

    def _drop_places(self, known: Sequence[Place]) -> None:
        ids = [id_ for place in known for id_ in (place.id, place.verdict)]
        for start in range(0, len(ids), reads.PAGE):
            page = ids[start : start + reads.PAGE]
            actions = [json.dumps({"delete": {"_id": id_}}) + "\n" for id_ in page]
            target, text = path(self.indices.log, "_bulk"), "".join(actions).encode()
            answer = bulk.send(self.cluster, DROPPING, target, text, len(page))
            if isinstance(answer, int) or not bulk.all_done(answer):
                raise StoreUnreachable(f"Elasticsearch did not do all while {DROPPING}")

    def _drop_listed(self, sink: str, named: Sequence[str]) -> None:
        if named:
            self.refresh()
        for start in range(0, len(named), reads.PAGE):
            page = named[start : start + reads.PAGE]
            query = {"bool": {"filter": [{"term": {"sink": sink}}, {"terms": {"attempt": page}}]}}
            answer = self.cluster.ask(
                DROPPING,
                "POST",
                path(self.indices.log, "_delete_by_query"),
                # A chunk that others drop in the same moment is no failure.
                params={"conflicts": "proceed"},
                body={"query": query},
                allow=(404,),
            )
            if answer.body.get("failures"):
                raise StoreUnreachable(
                    "Elasticsearch could not drop all staged rows", str(answer.body["failures"][0])
                )

    def _get(self, doing: str, ids: Sequence[str], *, source: bool = False) -> list[dict[str, Any]]:
        return reads.by_id(self.cluster, doing, self.indices.log, ids, source=source)

    def _listed(self, sink: str) -> Iterator[dict[str, Any]]:
        """The chunks of a sink that a search finds and that are still there.

        A search shows what was deleted since the last refresh, too; a look-up by id does not.
        """
        body = {
            "query": {"bool": {"filter": [{"term": {"sink": sink}}, {"term": {"kind": "chunk"}}]}},
            "sort": ["attempt", "seq"],
            "_source": False,
            "docvalue_fields": [*ABOUT],
        }
        for hits in reads.pages(self.cluster, LISTING, self.indices.log, body):
            docs = self._get(LISTING, [hit["_id"] for hit in hits]) if hits else []
            for hit, doc in zip(hits, docs, strict=True):
                if doc.get("found"):
                    with reading(hit["_id"]):
                        about = {name: hit["fields"][name][0] for name in ABOUT}
                        require_kinds(about, ABOUT)
                        about["bytes"] = int(hit["_id"].rpartition("/")[2])  # see `Place.id`
                    yield about


class Clock:
    """The cluster's clock, as Elasticsearch puts no time of its own into a document."""

    def __init__(self, cluster: Cluster) -> None:
        self.cluster = cluster
        self._asked, self._ahead = 0.0, 0.0

    def now(self) -> float:
        """Unix time, in seconds."""
        mine = time.time()
        if abs(mine - self._asked) > CLOCK:
            self._ahead = self._told() - mine
            self._asked = mine
        return mine + self._ahead

    def _told(self) -> float:
        answer = self.cluster.ask(
            "asking for the time",
            "GET",
            path("_nodes", "_local", "stats", "http"),
            params={"filter_path": "nodes.*.timestamp"},
            allow=(404,),  # of a proxy, which `ask` tells apart
        )
        (node,) = answer.body["nodes"].values()
        return float(node["timestamp"]) / 1000
