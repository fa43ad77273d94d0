"""Documents of the ledger index: records, and a fence counter for each target.

A read by id shows every acknowledged write immediately. A write names the sequence number that was
read (or ``op_type=create``), and fails if the document has changed since.

The index has one shard, so its sequence numbers give the order of all decisions. The number of a
decision is that of its write; each later write of the record keeps it as `decided`.
"""

from __future__ import annotations

import json
import time
from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass, fields
from typing import Any, NamedTuple

from pyspark_elasticsearch.journal.indices import OwnIndices
from pyspark_elasticsearch.server import bulk, reads
from pyspark_elasticsearch.server.client import Cluster, path
from sparkonce.codec import load, reading
from sparkonce.errors import StoreUnreachable
from sparkonce.exactly_once.ledger import kin_of
from sparkonce.protocol import AuxiliaryRecord, Manifest, Proposal, Record

RACES = 100  # tries of a compare-and-set: each failure is the success of another
UNDECIDED = -1  # lower than any sequence number: `decided_after` never finds it
WRITING = "writing the ledger"


class StoredRecord(NamedTuple):
    """A document that was read; a missing one has no source."""

    id: str
    source: dict[str, Any]
    guard: dict[str, Any]  # the condition for a write over it

    @property
    def record(self) -> Record:
        """The record in it."""
        if not self.source:
            return Record()
        with reading(self.id):
            return load(Record, {one.name: self.source[one.name] for one in fields(Record)})

    @property
    def decided(self) -> int:
        """The sequence number of the last decision; -1 before the first."""
        if not self.source:
            return UNDECIDED
        # Null in the write of the decision itself, whose number is unknown before it.
        kept = self.source.get("decided")
        with reading(self.id):
            return int(self.guard["if_seq_no"] if kept is None else kept)

    def count(self, name: str) -> int:
        """A count in it: ``applied`` chunks of its decision, or the last ``fence`` drawn."""
        with reading(self.id):
            return int(self.source.get(name, 0))


@dataclass(frozen=True)
class Destination:
    """The destination of an epoch's rows, from the notes of its manifest."""

    fence: int  # of the epoch
    index: str  # the target; empty if each row names its index
    since: str = ""  # the write index of a data stream at the decision; empty for others
    replaces: str = ""  # the index that an overwrite replaces; empty for other modes


class LedgerRecords:
    """Reads and writes records."""

    def __init__(self, cluster: Cluster, indices: OwnIndices) -> None:
        self.cluster, self.indices = cluster, indices

    def read(self, name: str) -> Record:
        """See `Store.read`."""
        return self._get(_record(name)).record

    def decide(self, proposal: Proposal) -> Record:
        """Write a decision with its auxiliary record."""
        name, beside = proposal.manifest.sink, proposal.beside
        return self.swap(name, proposal.record, proposal.over, beside=beside)

    def swap(
        self,
        name: str,
        new: Record,
        over: str,
        applied: int = 0,
        beside: AuxiliaryRecord | None = None,
    ) -> Record:
        """See `Store.swap`."""
        # A write of progress changes the document and not its stamp: then try again.
        for _ in range(RACES):
            stored = self._get(_record(name))
            there, reached = stored.record, stored.count("applied")
            # A cluster that lost writes may show an old decision again, with fewer applied chunks.
            if there.stamp != over or reached < applied:
                return there
            if not new.revision:
                if not stored.source or self._write(None, stored):
                    return new
                continue
            # `applied` belongs to the token: another decision begins at 0. `decided` stays until
            # the next decision, also in other writes.
            same = there.token == new.token
            order = None if new.token and not same else stored.decided
            source = _source(name, new, reached if same else 0, order)
            if self._write_both(source, stored, beside):
                return new
        raise _contended(name)

    def progress(self, name: str, token: str) -> int | None:
        """The number of applied chunks; None if this decision is no longer the last one."""
        stored = self._of_token(name, token)
        return stored and stored.count("applied")

    def is_over(self, manifest: Manifest) -> bool:
        """Whether a decision is applied, or no longer the last one."""
        done = self.progress(manifest.sink, manifest.token)
        return done is None or done >= len(manifest.chunks)

    def advance(self, name: str, token: str, applied: int, *, always: bool = False) -> int | None:
        """Record how many chunks, from the first, are applied; return the recorded number.

        It is None if the decision is no longer the last one. With `always`, this also writes an
        unchanged number, because only a write proves that a read is current.
        """
        for _ in range(RACES):
            stored = self._of_token(name, token)
            if stored is None:
                return None
            before = stored.count("applied")
            reached = max(before, applied)
            if reached == before and not always:
                return reached
            if self._write(_source(name, stored.record, reached, stored.decided), stored):
                return reached
        raise _contended(name)

    def _of_token(self, name: str, token: str) -> StoredRecord | None:
        """The record of a decision; None if it is no longer the last one, as a write proves."""
        for _ in range(RACES):
            stored = self._get(_record(name))
            if not stored.source:
                return None
            if stored.record.token == token:
                return stored
            # A node that lags may show a former decision, and rows would be skipped.
            if self._write({**stored.source, "decided": stored.decided}, stored):
                return None
        raise _contended(name)

    def draw(self, target: str) -> int:
        """Draw a number higher than all earlier ones of this target.

        It is at least the time in milliseconds. So numbers do not go back if the cluster loses the
        counter and keeps documents with such numbers.
        """
        for _ in range(RACES):
            stored = self._get(_fence(target))
            fence = max(stored.count("fence") + 1, time.time_ns() // 1_000_000)
            if self._write({"kind": "fence", "name": target, "fence": fence}, stored):
                return fence
        raise _contended(target)

    def last_drawn(self, target: str) -> int:
        """The last number drawn for a target; 0 before the first."""
        return self._get(_fence(target)).count("fence")

    def names(self) -> list[str]:
        """The names of all records."""
        return [name for name, _ in self._found("listing the ledgers")]

    def unfinished(self, kin: str) -> list[str]:
        """See `Store.unfinished`."""
        found = self._found("listing unfinished epochs", {"term": {"open": True}})
        return [name for name, _ in found if name.endswith(kin)]

    def decided_after(self, name: str) -> list[str]:
        """See `Store.decided_after`."""
        own, kin = self._get(_record(name)).decided, kin_of(name)
        found = self._found("searching for later decisions")
        return [one for one, stored in found if one.endswith(kin) and stored.decided > own]

    def _found(self, doing: str, *conditions: dict[str, Any]) -> Iterator[tuple[str, StoredRecord]]:
        index = self.indices.ledger
        self.cluster.ask(doing, "POST", path(index, "_refresh"), allow=(404,))
        body = {
            "query": reads.all_of({"term": {"kind": "record"}}, *conditions),
            "sort": ["name"],
            "_source": ["name", "decided"],
            "seq_no_primary_term": True,
        }
        for hits in reads.pages(self.cluster, doing, index, body):
            for hit in hits:
                with reading(hit["_id"]):
                    name = str(hit["_source"]["name"])
                yield name, _stored(hit["_id"], hit)

    def _get(self, id_: str) -> StoredRecord:
        target = path(self.indices.ledger, "_doc", id_)
        status, body = self.cluster.ask("reading the ledger", "GET", target, allow=(404,))
        return _stored(id_, None if status == 404 else body)

    def _write(self, source: dict[str, Any] | None, over: StoredRecord) -> bool:
        """Overwrite or delete a document that was read; False if it has changed since."""
        # 409: the sequence number has changed. 404: somebody deleted the document.
        method, absent = ("PUT", (409,)) if source is not None else ("DELETE", (404, 409))
        if source is not None:
            self.indices.ensure()
        target = path(self.indices.ledger, "_doc", over.id)
        answer = self.cluster.ask(
            WRITING, method, target, params=over.guard, body=source, allow=absent
        )
        # An answer without a result is not the cluster's: `JsonObject` raises.
        return answer.status not in absent and bool(answer.body["result"])

    def _write_both(
        self, source: dict[str, Any], over: StoredRecord, beside: AuxiliaryRecord | None
    ) -> bool:
        """Write a record and its auxiliary record in one request.

        Elasticsearch has no transactions. So the auxiliary record is first, with the revision of
        the ledger as its version, and a late decision cannot overwrite that of a later one.
        """
        if beside is None:
            return self._write(source, over)
        self.indices.ensure()
        version = {"version": source["revision"], "version_type": "external"}
        guard = dict(over.guard)
        action = guard.pop("op_type", "index")
        auxiliary = Record(1, source["stamp"], "", beside.body)
        lines = [
            {"index": {"_id": _record(beside.name), **version}},
            _source(beside.name, auxiliary, 0, UNDECIDED),
            {action: {"_id": over.id, **guard}},
            source,
        ]
        text = "".join(json.dumps(line) + "\n" for line in lines).encode()
        items = bulk.send(self.cluster, WRITING, path(self.indices.ledger, "_bulk"), text, 2)
        for item in items:
            # 409 of the first is no failure: it has offsets of this revision, or later ones.
            if not item.done and item.status != 409:
                raise self.cluster.error_of(item.status, item.error, WRITING)
        return items[1].done


def _stored(id_: str, document: Mapping[str, Any] | None) -> StoredRecord:
    source = document["_source"] if document is not None else {}
    return StoredRecord(id_, source, reads.overwrite_guard(document))


def _record(name: str) -> str:
    return f"record/{name}"


def _fence(target: str) -> str:
    return f"fence/{target}"


def _source(name: str, record: Record, applied: int, decided: int | None) -> dict[str, Any]:
    # `unfinished` searches for `open`: a decision has a token until it is finished.
    state = {"open": bool(record.token), "applied": applied, "decided": decided}
    return {"kind": "record", "name": name, **asdict(record), **state}


def _contended(name: str) -> StoreUnreachable:
    return StoreUnreachable(
        f"{RACES} writes of a document of {name!r} failed", "other processes keep changing it"
    )
