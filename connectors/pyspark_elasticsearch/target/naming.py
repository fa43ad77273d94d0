"""An index has one name for a sink id: by another one the same rows would be another ledger's.

An alias and its index are two targets by option ``index``, and so two ledgers, of which neither
knows what the other has decided. So each sink notes beside its ledger which indices its target has
led to, before it decides; and a sink that comes new to an index looks who was there before under
the same sink id. A note stays when an alias moves on.
"""

from __future__ import annotations

from pyspark_elasticsearch.journal.records import LedgerRecords
from pyspark_elasticsearch.server import reads
from pyspark_elasticsearch.server.client import path
from pyspark_elasticsearch.target.templates import meet
from sparkonce.codec import reading
from sparkonce.errors import StoreRefused
from sparkonce.exactly_once.ledger import from_record
from sparkonce.protocol import Manifest, digest

NOTING, LOOKING = "noting where a sink writes", "looking who writes into an index"


class IndexNames:
    """Notes, beside the ledgers, where sinks write."""

    def __init__(self, records: LedgerRecords) -> None:
        self.records = records
        self._noted: set[tuple[str, str]] = set()

    def require_one(self, manifest: Manifest, index: str) -> None:
        """Refuse to decide a manifest whose sink id has another name for the same index.

        Of a template, `index` is the pattern of the names that rows bring.
        """
        if (manifest.sink, index) in self._noted:
            return
        ledger = from_record(self.records.read(manifest.sink), manifest.sink)
        begins = ledger is None or not ledger.totals.epochs
        # A batch without a name has an id of its own, and is none's repetition.
        if ledger is None or not ledger.owner.once:
            new = self._note(manifest, index)
            notes = self._notes(manifest.sink) if new or begins else []
            moved = any(sink == manifest.sink and at != index for sink, at, _ in notes)
            for sink, at, name in notes if begins or moved else ():
                if sink != manifest.sink and meet(at, index) and self._has_ledger(sink):
                    if new:  # it writes nothing there, and stands in nobody's way
                        note = path(self.records.indices.ledger, "_doc", _id(manifest, index))
                        self.records.cluster.ask(NOTING, "DELETE", note, allow=(404,))
                    here, there = manifest.target.partition(":")[2], name.partition(":")[2]
                    raise StoreRefused(
                        f"Option index={here!r} leads to {index}, into which this sink id writes as"
                        f" {there!r}",
                        why=f"each name has a ledger of its own, and that of {sink} would not be"
                        " asked: what it has applied would be applied again",
                        todo=f"set index={there}; or if these are other rows, set a sinkId of their"
                        " own",
                    )
        self._noted.add((manifest.sink, index))

    def _note(self, manifest: Manifest, index: str) -> bool:
        """Write a note; whether it was not there. Two that come at once find each other's."""
        about = {"name": manifest.sink, "place": index, "target": manifest.target}
        target = path(self.records.indices.ledger, "_create", _id(manifest, index))
        answer = self.records.cluster.ask(
            NOTING, "PUT", target, body={"kind": "naming", **about}, allow=(409,)
        )
        return answer.status != 409

    def _has_ledger(self, sink: str) -> bool:
        ledger = from_record(self.records.read(sink), sink)
        return ledger is not None and not ledger.owner.forgotten

    def _notes(self, sink: str) -> list[tuple[str, str, str]]:
        """The sinks of the same sink id, with an index and the name for it, each."""
        cluster, index = self.records.cluster, self.records.indices.ledger
        cluster.ask(LOOKING, "POST", path(index, "_refresh"))
        same = {"prefix": {"name": f"{sink.rpartition('@')[0]}@"}}
        query = {"bool": {"filter": [{"term": {"kind": "naming"}}, same]}}
        pages = reads.pages(cluster, LOOKING, index, {"query": query, "sort": ["name", "_doc"]})
        with reading(f"naming of {sink}"):
            found = (hit["_source"] for page in pages for hit in page)
            return [(one["name"], one["place"], one["target"]) for one in found]


def _id(manifest: Manifest, index: str) -> str:
    # As long as the name is, which may be 255 bytes of the 512 that an id may have.
    return f"naming/{digest(manifest.sink)}/{index}"
