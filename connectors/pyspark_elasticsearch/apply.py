"""Makes the chunks of a decided epoch take effect."""

from __future__ import annotations

import json
from functools import cache
from importlib.resources import files

from pyspark_elasticsearch.aside import Aside, Sent
from pyspark_elasticsearch.chunks import chunk_name, unpacked
from pyspark_elasticsearch.guarded import SCRIPTED
from pyspark_elasticsearch.log import Log, Place
from pyspark_elasticsearch.records import Records
from pyspark_elasticsearch.sending import ORDINAL_BITS, Sender, numbered
from pyspark_elasticsearch.visibility import stamp
from sparkonce.protocol import Manifest


class Gone(Exception):
    """A chunk is not there."""

    def __init__(self, place: Place) -> None:
        super().__init__(place.id)
        self.place = place


class Applier:
    """Applies chunks of one manifest; it may be used by several threads.

    Args:
        log: holds the chunks.
        records: holds the ledger.
        manifest: the decision.
        aside: takes the rows that can't be stored.
        fresh_until: by `time.monotonic()`, until when nothing of it was sent by others.
        piped: whether rows go through ingest pipelines, as far as it is known.
    """

    def __init__(
        self,
        log: Log,
        records: Records,
        manifest: Manifest,
        aside: Aside,
        fresh_until: float,
        *,
        piped: bool,
    ) -> None:
        self.log, self.manifest, self.aside = log, manifest, aside
        self.sender = Sender(log.cluster, records, manifest, fresh_until, piped=piped)
        self.fence: int = manifest.notes["fence"]

    def apply(self, ordinal: int, place: Place) -> int:
        """Apply a chunk; the number of rows that it was made of.

        Raises:
            Superseded: the decision is no longer the ledger's.
            Gone: the chunk is not there.
            RowRefused: a row can't be stored, or more than may go aside.
            StoreError: the cluster can't do it.
        """
        found = self.log.fetch(place)
        if found.payload is None or len(found.payload) != place.size:
            raise Gone(place)
        chunk = unpacked(found.payload)
        version = self.fence << ORDINAL_BITS | ordinal
        name = chunk_name(place.attempt, place.seq)
        lines = chunk.filled(name, version, self._script(ordinal), stamp(self.manifest))
        judged = found.judged
        if judged:
            left = [one for one in numbered(lines) if one.position not in judged]
            tried, refused = len(left), self.sender.settle(left)
        else:
            tried, refused = chunk.operations, self.sender.send(lines, chunk.operations)
        if tried > len(refused):
            self.aside.tally.stored = True
        self.aside.take(place, found, Sent(chunk, lines, refused))
        return place.rows

    def _script(self, ordinal: int) -> bytes:
        if self.manifest.detail["mode"] not in SCRIPTED:
            return b""
        source = json.dumps(script(self.manifest.detail["mode"]))
        sink = json.dumps(self.manifest.sink)
        params = f'"params":{{"s":{sink},"f":{self.fence},"o":{ordinal},'
        return f'"lang":"painless","source":{source},{params}'.encode()


@cache
def script(mode: str) -> str:
    """The script of a write mode: a guard, and what it guards."""
    folder = files("pyspark_elasticsearch").joinpath("painless")
    change = {"update": "put", "increment": "add"}[mode]
    texts = [folder.joinpath(f"{name}.painless").read_text("utf-8") for name in ("guard", change)]
    return " ".join(" ".join(texts).split())
