"""Makes decided chunks take effect, and puts rows aside that can't be stored."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cache, cached_property
from importlib.resources import files

from pyspark_elasticsearch import guarded, sequence
from pyspark_elasticsearch.chunks import Chunk, chunk_name, operations, unpacked
from pyspark_elasticsearch.dead_letters import (
    Addressed,
    DeadLetters,
    Verdict,
    of_lines,
    of_refusal,
)
from pyspark_elasticsearch.errand import Errand
from pyspark_elasticsearch.failures import advice, message
from pyspark_elasticsearch.guarded import SCRIPTED
from pyspark_elasticsearch.log import Found, Log, Place
from pyspark_elasticsearch.records import Aim, Records
from pyspark_elasticsearch.sending import ORDINAL_BITS, Refusal, Sender, numbered
from pyspark_elasticsearch.visibility import stamp
from sparkonce.bad_rows import BEFORE, NONE, OF_TASK, Tally, TooManyBadRows
from sparkonce.errors import RowRefused
from sparkonce.protocol import Manifest


class Gone(Exception):
    """A chunk is not there."""

    def __init__(self, place: Place) -> None:
        super().__init__(place.id)
        self.place = place


@dataclass(frozen=True)
class _Sent:
    """A chunk, and its lines as they are sent."""

    chunk: Chunk
    lines: bytes

    @cached_property
    def operations(self) -> list[bytes]:
        """The lines of each operation."""
        return list(operations(self.lines))


class Applier:
    """Applies chunks of one manifest; it may be used by several threads.

    Args:
        log: holds the chunks.
        records: holds the ledger.
        manifest: the decision.
        on_conflict: what to do about a version that is not ours: ``fail`` or ``ignore``.
        aside: takes the rows that can't be stored; None if one of them stops the epoch.
        fresh_until: by `time.monotonic()`, until when nothing of it was applied by others.
        piped: whether rows go through ingest pipelines, as far as it is known.
    """

    def __init__(
        self,
        log: Log,
        records: Records,
        manifest: Manifest,
        on_conflict: str,
        aside: DeadLetters | None,
        *,
        fresh_until: float,
        piped: bool,
    ) -> None:
        self.cluster, self.log, self.manifest = log.cluster, log, manifest
        self.aside, self.tally = aside, Tally(aside.most if aside else NONE, manifest)
        self.detail, self.fence = manifest.detail, manifest.notes["fence"]
        aim = Aim(**manifest.notes)
        errand = Errand(
            manifest.epoch,
            self.detail,
            aim,
            aim.index or manifest.target,
            "the epoch stays decided, and a restarted query goes on where it stopped",
            lambda: records.is_over(manifest),
            fresh_until,
            piped=piped or (not aim.index and self.detail["mode"] in ("append", "upsert")),
        )
        self.sender = Sender(log.cluster, records, errand, on_conflict)
        self._partitions = {part.attempt: part.partition for part in manifest.parts}
        self._guarded: set[str] = set()
        self._losers: Mapping[int, frozenset[int]] = {}

    def begin(self, all_places: Sequence[Place]) -> None:
        """Find out which rows lose to others of their key, before any chunk is applied.

        Raises:
            Gone: a chunk is not there.
        """
        if self.detail["sequence"]:
            self._losers = sequence.losers([self._chunk(place)[1].order for place in all_places])

    def resume(self, done: Sequence[Place]) -> None:
        """Count the bad rows of chunks that were applied before."""
        if done and self.aside is not None:
            self.tally.resume(sum(place.rows for place in done), self.log.aside(done))

    def end(self) -> None:
        """See `Tally.end`.

        Raises:
            RowRefused: of this epoch, too, no row is stored.
        """
        with self._few():
            self.tally.end()

    def apply(self, ordinal: int, place: Place) -> int:
        """Apply a chunk; the number of rows that it was made of.

        Raises:
            Superseded: the decision is no longer the ledger's.
            Gone: the chunk is not there.
            RowRefused: a row can't be stored, or more than may go aside.
            StoreError: the cluster can't do it.
        """
        found, chunk = self._chunk(place)
        if self.detail["parts"] and self.detail["mode"] in SCRIPTED:
            self._ensure_guarded(chunk.lines)
        name = chunk_name(place.attempt, place.seq)
        version = self.fence << ORDINAL_BITS | ordinal
        lines = chunk.filled(name, version, self._script(ordinal), stamp(self.manifest))
        left_out = self._losers.get(ordinal, frozenset()) | _judged(found)
        if left_out:
            kept = [one for one in numbered(lines) if one.position not in left_out]
            tried, refused = len(kept), self.sender.settle(kept)
        else:
            tried, refused = chunk.operations, self.sender.send(lines, chunk.operations)
        if tried > len(refused):
            self.tally.stored = True
        if self.aside is not None:
            with self._few():
                self._count(found, chunk, refused)
        self._put_aside(place, found, _Sent(chunk, lines), refused)
        return place.rows

    def _chunk(self, place: Place) -> tuple[Found, Chunk]:
        found = self.log.fetch(place)
        if found.payload is None or len(found.payload) != place.size:
            raise Gone(place)
        return found, unpacked(found.payload)

    def _script(self, ordinal: int) -> bytes:
        if self.detail["mode"] not in SCRIPTED:
            return b""
        source = json.dumps(script(self.detail["mode"]))
        sink = json.dumps(self.manifest.sink)
        params = f'"params":{{"s":{sink},"f":{self.fence},"o":{ordinal},'
        return f'"lang":"painless","source":{source},{params}'.encode()

    def _ensure_guarded(self, lines: bytes) -> None:
        """Their first document would guess the mapping of its guard."""
        for index in guarded.named_in(lines) - self._guarded:
            guarded.ensure(self.cluster, index)
            self._guarded.add(index)

    # -- rows that can't be stored

    @contextmanager
    def _few(self) -> Iterator[None]:
        try:
            yield
        except TooManyBadRows as error:
            raise RowRefused(
                f"{error.what}. Epoch {self.manifest.epoch} stays decided; other rows of it may"
                " have taken effect",
                error.why,
                error.todo,
            ) from None

    def _count(self, found: Found, chunk: Chunk, refused: list[Refusal]) -> None:
        known = found.verdict.get("letters", {})
        if known:
            self.tally.add(BEFORE, "", len(known))
        for at, bad in enumerate(chunk.bad):
            if f"c{at}" not in known:
                self.tally.add(OF_TASK, bad.reason)
        for one in refused:
            if not one.is_conflict:
                why, _ = advice(one.item.status, one.item.error)
                self.tally.add(why, message(one.item.error))

    def _put_aside(self, place: Place, found: Found, sent: _Sent, refused: list[Refusal]) -> None:
        """Note them first: a verdict is final, whatever a later try would find."""
        for one in refused:
            if one.is_conflict:
                raise self._refusal(of_refusal(one, self.manifest.notes["index"]), one)
        verdict = found.verdict
        verdicts = dict(verdict.get("letters", {}))
        fresh = {f"c{at}": Verdict("", "", bad.reason) for at, bad in enumerate(sent.chunk.bad)}
        index = self.manifest.notes["index"]
        fresh |= {str(one.operation.position): of_refusal(one, index) for one in refused}
        new = {at: one for at, one in fresh.items() if at not in verdicts}
        if new:
            if self.aside is None:
                at, first = next(iter(new.items()))
                said = (one for one in refused if str(one.operation.position) == at)
                raise self._refusal(first, next(said, None))
            verdicts.update({at: one.cut(len(fresh)) for at, one in new.items()})
            verdict = {"index": self.aside.index, **verdict, "letters": verdicts}
            if not self.log.judge(place, verdict, found.guard):
                return self._put_aside(place, self.log.fetch(place), sent, refused)
        if verdicts:
            box, name = (
                DeadLetters(
                    self.cluster, verdict["index"], self.tally.most, create=self.log.indices.create
                ),
                chunk_name(place.attempt, place.seq),
            )
            named = {f"{name}{at}": self._letter(at, one, sent) for at, one in verdicts.items()}
            partition = self._partitions[place.attempt]
            box.write(self.manifest.sink, self.manifest.epoch, partition, named)
        return None

    def _letter(self, at: str, judged: Sequence[str], sent: _Sent) -> Addressed:
        """The letter that a verdict is about: what the row holds, the chunk knows."""
        verdict = Verdict(*judged[:3])
        if not at.isdigit():
            addressed = verdict._replace(place=self.detail["index"])
            return Addressed(addressed, sent.chunk.bad[int(at[1:])])
        lines = sent.operations[int(at)]
        return Addressed(verdict, of_lines(verdict.reason, lines, self.detail))

    def _refusal(self, letter: Verdict, one: Refusal | None) -> RowRefused:
        why, todo = "", "set option onBadRow=deadLetter again"
        if one is not None:
            why, todo = advice(one.item.status, one.item.error)
        return RowRefused(
            f"Elasticsearch refused the row with id {letter.id!r} of index"
            f" {letter.place}: {letter.reason}. Epoch {self.manifest.epoch} stays"
            " decided; other rows of it may have taken effect",
            why,
            f"{todo}; then restart the query, or run `sparkonce recover`: it goes on where it"
            " stopped, and doubles nothing",
        )


@cache
def script(mode: str) -> str:
    """The script of a write mode: a guard, and what it guards."""
    folder = files("pyspark_elasticsearch").joinpath("painless")
    change = {"update": "put", "increment": "add"}[mode]
    texts = [folder.joinpath(f"{name}.painless").read_text("utf-8") for name in ("guard", change)]
    return " ".join(" ".join(texts).split())


def _judged(found: Found) -> frozenset[int]:
    """The operations that a verdict puts aside; rows that have none are named otherwise."""
    letters = found.verdict.get("letters", {})
    return frozenset(int(at) for at in letters if at.isdigit())
