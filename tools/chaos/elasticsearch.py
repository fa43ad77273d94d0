"""Elasticsearch as the target of a chaos run."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any

from elasticsearch.helpers import scan
from integration.support.servers.elasticsearch import (
    ElasticsearchProcess,
    connect,
    private_tree,
    version_at,
)
from tools.chaos.target import COUNTERS, ROWS, Counts, Target, Witness, has

if TYPE_CHECKING:
    from pathlib import Path


LONG, WORD = {"type": "long"}, {"type": "keyword"}
GUARD = {"sparkonce": {"type": "object", "enabled": False}}
FIELDS = {
    ROWS: {"part": LONG, "place": LONG, "amount": LONG, "draw": WORD},
    COUNTERS: {"side": WORD, "bucket": LONG, "n": LONG, "amount": LONG, **GUARD},
}
AT_ONCE = 10_000
VISIBLE = "chaos-visible"
BY_FENCE = {"fences": {"terms": {"field": "sparkonce.fence", "size": 65_000}}}
"""Counts the rows of each epoch: each decision has its own fence."""

LEDGER, LOG = b"/sparkonce-ledger/_doc/record", b"/sparkonce-log/"
POINTS = {
    "stage": has(b"PUT " + LOG + b"_create/"),
    "prepare": has(b"POST " + LOG + b"_mget", b"_source=false"),
    "decide": has(b"PUT " + LEDGER, rb"\"manifest\":{"),
    "apply": has(b"POST /chaos-", b"/_bulk"),
    "show": has(b"POST /_aliases"),
    "finish": has(b"PUT " + LEDGER, rb"\"manifest\":null"),
    "clean": has(b"POST " + LOG + b"_bulk"),
}


class ElasticsearchTarget(Target):
    name = format = "elasticsearch"
    replicas = 0
    points = POINTS
    in_driver = ("prepare", "decide", "apply", "show", "finish", "clean")
    columns = ("part", "place", "amount", "cast(draw as string) as draw")

    def __init__(self, disk: Path | None) -> None:
        self._seen: dict[int, int] = {}
        super().__init__(ElasticsearchProcess(private_tree()), disk)

    @property
    def version(self) -> str:
        return version_at(self.url)

    def prepare(self) -> None:
        with connect(self.url) as client:
            for name, fields in FIELDS.items():
                client.indices.create(
                    index=f"chaos-{name}",
                    settings={"number_of_replicas": self.replicas},
                    mappings={"dynamic": "strict", "properties": fields},
                )

    def options(self, query: str) -> dict[str, str]:
        how = {
            # Without a key, a row that two attempts write becomes two documents.
            ROWS: {
                "writeMode": "append",
                "visibleAlias": VISIBLE,
                "sinkId": "chaos",
            },
            COUNTERS: {"writeMode": "increment", "key": "side,bucket"},
        }
        return {"index": f"chaos-{query}", **how[query]}

    def rows(self) -> Iterator[Witness]:
        """One witness for each document."""
        with connect(self.url) as client:
            client.indices.refresh(index="chaos-rows")
            for row in _documents(client, "chaos-rows"):
                yield Witness(row["part"], row["place"], 1, row["amount"])

    def counters(self) -> Counts:
        with connect(self.url) as client:
            client.indices.refresh(index="chaos-counters")
            return _summed(_documents(client, "chaos-counters"))

    def watch(self) -> Callable[[], tuple[int, int]]:
        """Connect a reader of the alias, where an epoch that it saw must never grow."""
        client = connect(self.url)

        def sides() -> tuple[int, int]:
            found = client.search(index=VISIBLE, size=0, aggs=BY_FENCE)
            fences = found["aggregations"]["fences"]["buckets"]
            now = {fence["key"]: fence["doc_count"] for fence in fences}
            before = sum(self._seen.get(fence, rows) for fence, rows in now.items())
            self._seen.update(now)
            return before, sum(now.values())

        return sides

    def residue(self) -> list[str]:
        with connect(self.url) as client:
            client.indices.refresh(index="sparkonce-*")
            log = client.search(index="sparkonce-log", size=AT_ONCE)["hits"]["hits"]
            known = {"sparkonce-log", "sparkonce-ledger"}
            own = set(client.indices.get(index="sparkonce-*"))
            return [hit["_id"] for hit in log] + sorted(own - known)


def _summed(rows: Iterator[dict[str, Any]]) -> Counts:
    """The counters; adds up several documents of one counter, so that none is hidden."""
    counts: Counts = {}
    for row in rows:
        at = row["side"], row["bucket"]
        n, amount = counts.get(at, (0, 0))
        counts[at] = n + row["n"], amount + row["amount"]
    return counts


def _documents(client: Any, index: str) -> Iterator[dict[str, Any]]:
    """All documents of an index at one moment."""
    return (hit["_source"] for hit in scan(client, index=index, size=AT_ONCE))
