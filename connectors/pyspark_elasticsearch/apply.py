"""Makes decided chunks take effect: bulk requests, sent again until every item is settled."""

from __future__ import annotations

import json
import re
import time
from collections.abc import Mapping, Sequence
from functools import cache
from importlib.resources import files
from typing import Any, NamedTuple

from pyspark_elasticsearch import bulk, sequence
from pyspark_elasticsearch.chunks import Chunk, chunk_name, operations, unpacked
from pyspark_elasticsearch.client import Cluster, path
from pyspark_elasticsearch.dead_letters import DeadLetters, Letter
from pyspark_elasticsearch.failures import BY_STATUS, Kind, known, message, of_answer
from pyspark_elasticsearch.log import Found, Log, Place
from pyspark_elasticsearch.records import Records
from pyspark_elasticsearch.visibility import stamp
from sparkonce.errors import RowRefused, StoreRefused
from sparkonce.protocol import Manifest
from sparkonce.retry import Patience

ORDINAL_BITS = 20
PAUSE = 5.0
"""Seconds after which a driver may have been overtaken: it looks at the ledger again."""

SKEW = 3_600_000
"""Milliseconds by which the clocks of drivers may differ."""

LARGEST_REQUEST = 32 * 1024 * 1024
_CURRENT = re.compile(r"current version \[(\d+)\]")
DOING = "applying rows"


class Superseded(Exception):
    """Another decision came, or this one is finished: there is nothing left to do."""


class Gone(Exception):
    """A chunk is not there."""


class Operation(NamedTuple):
    """One operation of a chunk, and its place among the others."""

    position: int
    lines: bytes


class Refusal(NamedTuple):
    """An operation that can't be done, and the answer that says so."""

    operation: Operation
    item: bulk.Item


class Applier:
    """Applies chunks of one manifest; it may be used by several threads.

    Args:
        cluster: where.
        log: holds the chunks.
        records: holds the ledger.
        manifest: the decision.
        on_conflict: what to do about a version that is not ours: ``fail`` or ``ignore``.
        aside: takes the rows that can't be stored; None if one of them stops the epoch.
    """

    def __init__(
        self,
        cluster: Cluster,
        log: Log,
        records: Records,
        manifest: Manifest,
        on_conflict: str,
        aside: DeadLetters | None,
    ) -> None:
        self.cluster, self.log, self.records, self.manifest = cluster, log, records, manifest
        self.on_conflict, self.aside = on_conflict, aside
        self.detail = manifest.detail
        self.fence: int = manifest.notes["fence"]
        self.index: str = manifest.notes["index"]
        self.target = path(self.index, "_bulk") if self.index else "/_bulk"
        pipeline = self.detail["pipeline"]
        self.params = {"pipeline": pipeline} if pipeline else {}
        self.waits = Patience(first=0.05, longest=2.0)
        self._looked = time.monotonic()
        self._losers: Mapping[int, frozenset[int]] = {}

    def begin(self, all_places: Sequence[Place]) -> None:
        """Find out which rows lose to others of their key, before any chunk is applied.

        Raises:
            Gone: a chunk is not there.
        """
        if self.detail["sequence"]:
            self._losers = sequence.losers([self._chunk(place)[1].order for place in all_places])

    def apply(self, ordinal: int, place: Place) -> int:
        """Apply a chunk; the number of rows that it was made of.

        Raises:
            Superseded: the decision is no longer the ledger's.
            Gone: the chunk is not there.
            RowRefused: a row can't be stored.
            StoreError: the cluster can't do it.
        """
        found, chunk = self._chunk(place)
        name = chunk_name(place.attempt, place.seq)
        version = self.fence << ORDINAL_BITS | ordinal
        lines = chunk.filled(name, version, self._script(ordinal), stamp(self.manifest))
        left_out = self._losers.get(ordinal, frozenset()) | _judged(found)
        if left_out:
            kept = [one for one in _operations(lines) if one.position not in left_out]
            refused = self._settle(kept)
        else:
            refused = self._send(lines, chunk.operations)
        self._put_aside(place, found, chunk, refused)
        return place.rows

    def _chunk(self, place: Place) -> tuple[Found, Chunk]:
        found = self.log.fetch(place)
        if found.payload is None or len(found.payload) != place.size:
            raise Gone(place.id)
        return found, unpacked(found.payload)

    def _script(self, ordinal: int) -> bytes:
        if self.detail["mode"] not in ("update", "increment"):
            return b""
        source = json.dumps(script(self.detail["mode"]))
        sink = json.dumps(self.manifest.sink)
        params = f'"params":{{"s":{sink},"f":{self.fence},"o":{ordinal},'
        return f'"lang":"painless","source":{source},{params}'.encode()

    # -- sending

    def _send(self, lines: bytes, count: int) -> list[Refusal]:
        """Send all lines at once, and what is not settled then once more, by itself."""
        if not count:
            return []
        if len(lines) > LARGEST_REQUEST:
            return self._settle(_operations(lines))
        self._look()
        answer = bulk.send(self.cluster, DOING, self.target, lines, count, self.params)
        if isinstance(answer, list) and all(item.done for item in answer):
            return []
        return self._settle(_operations(lines), answer)

    def _settle(
        self, pending: list[Operation], answer: list[bulk.Item] | int | None = None
    ) -> list[Refusal]:
        """Send operations until each is done or refused."""
        refused: list[Refusal] = []
        deadline, tried = time.monotonic() + self.cluster.timeout, 0
        while pending:
            if answer is None:
                answer = self._try(pending)
            if answer == 413:
                return refused + self._halves(pending)
            busy, bad = self._sorted(pending, answer)
            refused += bad
            if busy and time.monotonic() > deadline:
                raise self._still_busy(busy, answer)
            if busy:
                tried += 1
                time.sleep(self.waits.wait(tried))
            pending, answer = busy, None
        return refused

    def _try(self, pending: Sequence[Operation]) -> list[bulk.Item] | int:
        lines = b"".join(one.lines for one in pending)
        if len(lines) > LARGEST_REQUEST and len(pending) > 1:
            return 413
        self._look()
        return bulk.send(self.cluster, DOING, self.target, lines, len(pending), self.params)

    def _halves(self, pending: list[Operation]) -> list[Refusal]:
        if len(pending) == 1:
            error = {"type": "413", "reason": f"{len(pending[0].lines):,} bytes"}
            return [Refusal(pending[0], bulk.Item(413, error))]
        middle = len(pending) // 2
        return self._settle(pending[:middle]) + self._settle(pending[middle:])

    def _sorted(
        self, pending: Sequence[Operation], answer: list[bulk.Item] | int
    ) -> tuple[list[Operation], list[Refusal]]:
        """Those to be sent again, and those that are refused."""
        if isinstance(answer, int):
            return list(pending), []
        busy, bad = [], []
        for operation, item in zip(pending, answer, strict=True):
            kind = None if item.done else known(item.status, item.error).kind
            if kind is Kind.CONFLICT:
                kind = self._of_conflict(item)
            if kind in (Kind.PASSING, Kind.LOST):
                busy.append(operation)
            elif kind in (Kind.ROW, Kind.CONFLICT, Kind.TOO_LARGE):
                bad.append(Refusal(operation, item))
            elif kind is not None:
                raise of_answer(item.status, item.error, self._doing)
        return busy, bad

    def _of_conflict(self, item: bulk.Item) -> Kind | None:
        """What a conflict asks for; None if it says that there is nothing to do.

        A document made by `create` has an id made from its chunk, so it was this very row. Fences
        are the time, or a little more where they are drawn faster: a version up to there is a later
        chunk's or a later decision's, and one beyond is somebody else's.
        """
        mode = self.detail["mode"]
        if mode in ("update", "increment"):
            return Kind.PASSING
        if mode == "append" or self.detail["versionColumn"] or self.on_conflict == "ignore":
            return None
        current = _CURRENT.search(str(item.error.get("reason", "")))
        drawn = self.records.last_drawn(self.index or self.manifest.target)
        latest = max(drawn, time.time_ns() // 1_000_000 + SKEW)
        ours = current is not None and self.fence <= int(current[1]) >> ORDINAL_BITS <= latest
        return None if ours else Kind.CONFLICT

    def _look(self) -> None:
        """See that no other driver has overtaken this one while it slept."""
        if time.monotonic() - self._looked < PAUSE:
            return
        done = self.records.progress(self.manifest.sink, self.manifest.token)
        if done is None or done >= len(self.manifest.chunks):
            raise Superseded
        self._looked = time.monotonic()

    # -- rows that can't be stored

    def _put_aside(self, place: Place, found: Found, chunk: Chunk, refused: list[Refusal]) -> None:
        """Note them first: a verdict is final, whatever a later try would find."""
        verdict = found.verdict
        letters = dict(verdict.get("letters", {}))
        fresh = {f"c{at}": Letter("", "", *bad) for at, bad in enumerate(chunk.bad)}
        fresh |= {str(one.operation.position): self._letter(one) for one in refused}
        new = {at: letter for at, letter in fresh.items() if at not in letters}
        if new:
            if self.aside is None:
                raise self._refusal(next(iter(new.values())))
            letters.update({at: letter.cut(len(fresh)) for at, letter in new.items()})
            verdict = {"letters": letters, "index": self.aside.index}
            if not self.log.judge(place, verdict, found.guard):
                return self._put_aside(place, self.log.fetch(place), chunk, refused)
        if letters:
            box = DeadLetters(self.cluster, verdict["index"])
            box.write(self.manifest, place, {at: Letter(*one) for at, one in letters.items()})
        return None

    def _letter(self, one: Refusal) -> Letter:
        index, id_, row = described(one.operation.lines)
        return Letter(index or self.index, id_, f"{one.item.status} {message(one.item.error)}", row)

    def _refusal(self, letter: Letter) -> RowRefused:
        status = int(letter.reason.partition(" ")[0]) if letter.id else 0
        error = {"type": letter.reason.partition(" ")[2].partition(":")[0]}
        why, todo = (
            known(status, error)[1:] if letter.id else ("", "set option onBadRow=deadLetter again")
        )
        if status == 409:
            why = "something else writes this document with versions of its own"
            todo = "stop it, or set option onConflict=ignore or versioning=none"
        return RowRefused(
            f"Elasticsearch refused the row with id {letter.id!r} of index"
            f" {letter.place}: {letter.reason}. Epoch {self.manifest.epoch} stays"
            " decided; other rows of it may have taken effect",
            why,
            f"{todo}; then restart the query, or run `sparkonce recover`: it goes on where it"
            " stopped, and doubles nothing",
        )

    @property
    def _doing(self) -> str:
        return f"applying epoch {self.manifest.epoch} to {self.detail['index']}"

    def _still_busy(self, busy: list[Operation], answer: list[bulk.Item] | int) -> StoreRefused:
        item = bulk.Item(answer, None) if isinstance(answer, int) else None
        if item is None:
            item = next(one for one in answer if not one.done)  # type: ignore[union-attr]
        about = known(item.status, item.error)
        return StoreRefused(
            f"Elasticsearch took {len(busy):,} rows of epoch {self.manifest.epoch} not within"
            f" {self.cluster.timeout:g} s: {item.status} {message(item.error)}",
            about.why or BY_STATUS[429].why,
            f"{about.todo}, or raise option timeout; the epoch stays decided, and a restarted query"
            " goes on where it stopped",
        )


@cache
def script(mode: str) -> str:
    """The script of a write mode: a guard, and what it guards."""
    folder = files("pyspark_elasticsearch").joinpath("painless")
    change = {"update": "put", "increment": "add"}[mode]
    texts = [folder.joinpath(f"{name}.painless").read_text("utf-8") for name in ("guard", change)]
    return " ".join(" ".join(texts).split())


def described(lines: bytes) -> tuple[str, str, str]:
    """The index and the id that an operation names, and what the row holds."""
    action, _, document = lines.partition(b"\n")
    (told,) = json.loads(action).values()
    index, id_ = told.get("_index", ""), told["_id"]
    if not document:
        return index, id_, "{}"
    found: Any = json.loads(document)
    if isinstance(found, dict) and "script" in found and "scripted_upsert" in found:
        found = {**found["upsert"], **found["script"]["params"]["a"]}
        return index, id_, json.dumps(found, ensure_ascii=False)
    return index, id_, document.decode(errors="replace").rstrip("\n")


def _judged(found: Found) -> frozenset[int]:
    """The operations that a verdict puts aside; rows that have none are named otherwise."""
    letters = found.verdict.get("letters", {})
    return frozenset(int(at) for at in letters if at.isdigit())


def _operations(lines: bytes) -> list[Operation]:
    return [Operation(at, one) for at, one in enumerate(operations(lines))]
