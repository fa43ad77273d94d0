"""Documents of the ledger index: records, and a fence counter for each target.

They are read by id, which shows every acknowledged write at once, and written with the sequence
number that was read (or ``op_type=create``), so that a write over anything else fails.

The sequence numbers of their one shard give the order of all decisions: that of a decision is the
number of the write that made it, which each later write of the record keeps as `decided`.
"""

from __future__ import annotations

import json
import time
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, NamedTuple

from pyspark_elasticsearch.journal.indices import OwnIndices
from pyspark_elasticsearch.server import bulk, reads
from pyspark_elasticsearch.server.client import Cluster, path
from pyspark_elasticsearch.server.failures import of_answer
from sparkonce.codec import reading, require_kinds
from sparkonce.errors import StoreUnreachable
from sparkonce.exactly_once.ledger import kin_of
from sparkonce.protocol import AuxiliaryRecord, Manifest, Proposal, Record

RACES = 100
UNDECIDED = -1
KINDS = {"revision": int, "stamp": str, "token": str, "body": str}


class Held(NamedTuple):
    """A document as it was read, and what a write over it must name."""

    id: str
    source: dict[str, Any]
    guard: dict[str, Any]

    @property
    def record(self) -> Record:
        """The record in it."""
        if not self.source:
            return Record()
        with reading(self.id):
            values = {name: self.source[name] for name in KINDS}
            require_kinds(values, KINDS)
            return Record(**values)

    @property
    def decided(self) -> int:
        """The sequence number of the write that made the last decision; -1 before the first."""
        if not self.source:
            return UNDECIDED
        kept = self.source.get("decided")
        with reading(self.id):
            return int(self.guard["if_seq_no"] if kept is None else kept)

    @property
    def applied(self) -> int:
        """Chunks of the decision in it that took effect."""
        with reading(self.id):
            return int(self.source.get("applied", 0))

    @property
    def fence(self) -> int:
        """The last number that was drawn; 0 before the first."""
        with reading(self.id):
            return int(self.source.get("fence", 0))


@dataclass(frozen=True)
class Destination:
    """Where the rows of an epoch go, as its manifest notes it.

    Attributes:
        fence: of the epoch.
        index: the target; empty where each row says so.
        since: of a data stream, the index that took its writes; empty for others.
        replaces: the index in whose place it comes, with its first row; empty for most.
    """

    fence: int
    index: str
    since: str = ""
    replaces: str = ""


class Records:
    """Reads and writes records."""

    def __init__(self, cluster: Cluster, indices: OwnIndices) -> None:
        self.cluster, self.indices = cluster, indices

    def read(self, name: str) -> Record:
        """The record, or ``Record()``."""
        return self._held(_record(name)).record

    def decide(self, decision: Proposal) -> Record:
        """Write a decision, and what is kept beside it."""
        name, beside = decision.manifest.sink, decision.beside
        return self.swap(name, decision.record, decision.over, beside=beside)

    def swap(
        self,
        name: str,
        new: Record,
        over: str,
        applied: int = 0,
        beside: AuxiliaryRecord | None = None,
    ) -> Record:
        """See `Store.swap`."""
        # A note of progress moves the document and not its stamp: then the write is tried anew.
        for _ in range(RACES):
            held = self._held(_record(name))
            there = held.record
            # A cluster that lost writes may show a decision again, and less of it as applied.
            if there.stamp != over or held.applied < applied:
                return there
            if not new.revision:
                if not held.source or self._write(_record(name), None, held):
                    return new
                continue
            goes_on = there.token == new.token
            decides = bool(new.token) and not goes_on
            order = None if decides else held.decided
            source = _source(name, new, held.applied if goes_on else 0, order)
            if self._write_both(name, source, held, beside):
                return new
        raise _contended(name)

    def progress(self, name: str, token: str) -> int | None:
        """Chunks of this decision that took effect; None if it is no longer the last one."""
        held = self._held(_record(name))
        return held.applied if held.source and held.record.token == token else None

    def is_over(self, manifest: Manifest) -> bool:
        """Whether a decision is applied, or no longer the last one."""
        done = self.progress(manifest.sink, manifest.token)
        return done is None or done >= len(manifest.chunks)

    def advance(self, name: str, token: str, applied: int, *, always: bool = False) -> int | None:
        """Write how many chunks took effect, and give what is there then, as `progress` does.

        Args:
            name: of the record.
            token: of the decision.
            applied: chunks from its beginning.
            always: write even what is there already: only a write proves that a read is current.
        """
        for _ in range(RACES):
            held = self._held(_record(name))
            if not held.source or held.record.token != token:
                return None
            reached = max(held.applied, applied)
            if reached == held.applied and not always:
                return reached
            source = _source(name, held.record, reached, held.decided)
            if self._write(_record(name), source, held):
                return reached
        raise _contended(name)

    def draw(self, target: str) -> int:
        """A number higher than any that was drawn for this target before.

        It is at least the time in milliseconds, so that it does not go back where the counter is
        lost while the documents that carry such numbers are still there.
        """
        for _ in range(RACES):
            held = self._held(_fence(target))
            fence = max(held.fence + 1, time.time_ns() // 1_000_000)
            source = {"kind": "fence", "name": target, "fence": fence}
            if self._write(_fence(target), source, held):
                return fence
        raise _contended(target)

    def last_drawn(self, target: str) -> int:
        """The last number that `draw` gave for a target."""
        return self._held(_fence(target)).fence

    def names(self) -> list[str]:
        """The names of all records."""
        return [name for name, _ in self._found("listing the ledgers")]

    def unfinished(self, kin: str) -> list[str]:
        """The names that end so, of sinks whose decision is being applied."""
        found = self._found("listing unfinished epochs", {"term": {"open": True}})
        return [name for name, _ in found if name.endswith(kin)]

    def decided_after(self, name: str) -> list[str]:
        """The sinks of the same target with a later decision."""
        own, kin = self._held(_record(name)).decided, kin_of(name)
        found = self._found("looking who has decided since")
        return [one for one, held in found if one.endswith(kin) and held.decided > own]

    def _found(
        self, doing: str, condition: dict[str, Any] | None = None
    ) -> Iterator[tuple[str, Held]]:
        """All records, or those that meet a condition: their names and their order."""
        index, about = self.indices.ledger, {"term": {"kind": "record"}}
        self.cluster.ask(doing, "POST", path(index, "_refresh"), allow=(404,))
        query = {"bool": {"filter": [about, condition] if condition else [about]}}
        wanted = {"_source": ["name", "decided"], "seq_no_primary_term": True}
        for hits in reads.pages(
            self.cluster, doing, index, {"query": query, "sort": ["name"], **wanted}
        ):
            for hit in hits:
                with reading(hit["_id"]):
                    name = str(hit["_source"]["name"])
                yield name, _as_held(hit["_id"], hit)

    def _held(self, id_: str) -> Held:
        answer = self.cluster.ask(
            "reading the ledger", "GET", path(self.indices.ledger, "_doc", id_), allow=(404,)
        )
        if answer.status == 404:
            return Held(id_, {}, {"op_type": "create"})
        return _as_held(id_, answer.body)

    def _write(self, id_: str, source: dict[str, Any] | None, held: Held) -> bool:
        """Write over what was read, or delete it; False if something else is there now."""
        method, absent = ("PUT", (409,)) if source is not None else ("DELETE", (404, 409))
        if source is not None:
            self.indices.ensure()
        target, doing = path(self.indices.ledger, "_doc", id_), "writing the ledger"
        answer = self.cluster.ask(
            doing, method, target, params=held.guard, body=source, allow=absent
        )
        # An answer without a result is not the cluster's: `Told` raises.
        return answer.status not in absent and bool(answer.body["result"])

    def _write_both(
        self, name: str, source: dict[str, Any], held: Held, beside: AuxiliaryRecord | None
    ) -> bool:
        """Write a record, and what is kept beside it, which costs no request of its own.

        Elasticsearch has no transactions: what is beside goes first, under the ledger's revision as
        its version, so that no decision that comes late writes over that of a later one.
        """
        if beside is None:
            return self._write(_record(name), source, held)
        self.indices.ensure()
        version = {"version": source["revision"], "version_type": "external"}
        guard = dict(held.guard)
        action = guard.pop("op_type", "index")
        lines = [
            {"index": {"_id": _record(beside.name), **version}},
            _source(beside.name, Record(1, source["stamp"], "", beside.body), 0, UNDECIDED),
            {action: {"_id": _record(name), **guard}},
            source,
        ]
        text = "".join(json.dumps(line) + "\n" for line in lines).encode()
        doing = "writing the ledger"
        items = bulk.send(self.cluster, doing, path(self.indices.ledger, "_bulk"), text, 2)
        if isinstance(items, int):
            raise of_answer(items, {"type": "413", "reason": f"{len(text):,} bytes"}, doing)
        for item in items:
            # 409 of the first is no failure: offsets of this revision, or later ones, are there.
            if not item.done and item.status != 409:
                raise of_answer(item.status, item.error, doing)
        return items[1].done


def _as_held(id_: str, document: Mapping[str, Any]) -> Held:
    guard = {"if_seq_no": document["_seq_no"], "if_primary_term": document["_primary_term"]}
    return Held(id_, document["_source"], guard)


def _record(name: str) -> str:
    return f"record/{name}"


def _fence(target: str) -> str:
    return f"fence/{target}"


def _source(name: str, record: Record, applied: int, decided: int | None) -> dict[str, Any]:
    return {
        "kind": "record",
        "name": name,
        "revision": record.revision,
        "stamp": record.stamp,
        "token": record.token,
        "body": record.body,
        "open": bool(record.token),
        "applied": applied,
        "decided": decided,
    }


def _contended(name: str) -> StoreUnreachable:
    return StoreUnreachable(
        f"{RACES} races for a document of {name!r} were lost", "others write it all the time"
    )
