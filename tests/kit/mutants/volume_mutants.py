"""Stores that do well as long as there is little: pages, text order, what looks alike."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from tests.kit.mutants.mutant import ALL, CHUNKS, WHOLE, Mutant

from sparkonce.protocol import Applied, Finish, Manifest, Part, Proposal, Record, Staged
from sparkonce.tck.simulation.memory import MemoryStore

PAGE = 10


class PublishesAPage(MemoryStore):
    def _publish(self, decision: Proposal, finished: Record) -> Record:
        page = replace(decision.manifest, parts=decision.manifest.parts[:PAGE])
        return super()._publish(decision._replace(manifest=page), finished)


class OrdersAsText(MemoryStore):
    """Chunks are fetched ORDER BY a column of text."""

    def publish(self, decision: Proposal, finish: Finish) -> Record | None:
        ordered = decision._replace(manifest=_as_text(decision.manifest))
        return super().publish(ordered, finish)

    def apply(self, manifest: Manifest, *rest: Any) -> Applied:
        return super().apply(_as_text(manifest), *rest)


def _as_text(manifest: Manifest) -> Manifest:
    def order(part: Part) -> str:
        return str(part.partition)

    return replace(manifest, parts=tuple(sorted(manifest.parts, key=order)))


class ListsAPageOfAttempts(MemoryStore):
    def staged(self, sink: str, *, fresh: bool = False) -> list[Staged]:
        return super().staged(sink, fresh=fresh)[:PAGE]


class ListsAPageOfNames(MemoryStore):
    def names(self) -> list[str]:
        return super().names()[:PAGE]


class DiscardsAPage(MemoryStore):
    def discard(
        self, sink: str, attempts: Sequence[str], over: str | None = None, *_: object
    ) -> None:
        super().discard(sink, attempts[:PAGE], over)


class DiscardsByPartition(MemoryStore):
    """The log is keyed by epoch and partition where it is deleted."""

    def _discard(self, sink: str, attempts: Sequence[str], over: str | None) -> None:
        keys = [(sink, attempt) for attempt in attempts if (sink, attempt) in self.log]
        places = {self._place(key) for key in keys}
        alike = [key for key in self.log if key[0] == sink and self._place(key) in places]
        super()._discard(sink, [attempt for _, attempt in alike], over)

    def _place(self, key: tuple[str, str]) -> tuple[int, int]:
        task = next(iter(self.log[key].values()))[0].task
        return task.epoch, task.partition


class SaysNoneForStale(MemoryStore):
    """An UPDATE that hits no row is answered with None, and chunks are not counted again."""

    def publish(self, decision: Proposal, finish: Finish) -> Record | None:
        if self.read(decision.manifest.sink).stamp != decision.over:
            return None
        return super().publish(decision, finish)


VOLUME_MUTANTS = [
    Mutant(
        "a page of chunks is published",
        "the query for the chunks of an epoch has a limit",
        "S08",
        (WHOLE,),
        PublishesAPage,
    ),
    Mutant(
        "partitions ordered as text",
        "partition 10 takes effect before partition 2",
        "S08",
        (WHOLE, CHUNKS),
        OrdersAsText,
    ),
    Mutant(
        "a page of attempts is listed",
        "a search gives ten hits unless told otherwise",
        "S05",
        ALL,
        ListsAPageOfAttempts,
    ),
    Mutant(
        "a page of names is listed",
        "a search gives ten hits unless told otherwise",
        "S05",
        ALL,
        ListsAPageOfNames,
    ),
    Mutant(
        "a page of attempts is dropped",
        "a delete by query stops after ten",
        "S05",
        ALL,
        DiscardsAPage,
    ),
    Mutant(
        "discard by partition",
        "whatever was staged for the same epoch and partition goes, a good twin too",
        "S11",
        (WHOLE, CHUNKS),
        DiscardsByPartition,
    ),
    Mutant(
        "None for a stale decision",
        "publish does not tell what is there, so the commit goes on with other steps",
        "S07",
        (WHOLE,),
        SaysNoneForStale,
    ),
]
