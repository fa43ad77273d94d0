"""The requests of one actor: their meaning, in words and for the oracles."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Protocol, TypeVar

from sparkonce.protocol import (
    Advance,
    Applied,
    Chunk,
    Finish,
    Manifest,
    P,
    Part,
    Proposal,
    Record,
    Staged,
    no_progress,
)

if TYPE_CHECKING:
    from sparkonce.tck.explore.turns import Actor
    from sparkonce.tck.simulation.memory import MemoryStore

T = TypeVar("T")


@dataclass(frozen=True)
class Request:
    """One request on its way to the store.

    Attributes:
        actor: the sender.
        name: its name on the link.
        step: the function that the store executes.
        sink: the record or log that it concerns; empty if none.
        new: the record that it writes.
        over: the stamp that the store must hold for that.
        manifest: the decision that it writes or applies.
        chunk: the chunk that it stages.
        attempts: the attempts that it discards.
        more: any other detail for the history.
    """

    actor: Actor
    name: str
    step: Callable[[], Any]
    sink: str = ""
    new: Record | None = None
    over: str = ""
    manifest: Manifest | None = None
    chunk: Chunk | None = None
    attempts: tuple[str, ...] = ()
    more: str = ""

    @property
    def decides(self) -> str:
        """The token of the decision that it would write; empty if none."""
        if self.new is None or not self.new.revision:
            return ""
        body = ledger_in(self.new) or {"manifest": None}
        return self.new.token if body["manifest"] or self.name == "publish" else ""

    def __str__(self) -> str:
        words = [self.name, self.sink.partition("@")[0] if "@" in self.sink else self.sink]
        if self.chunk is not None:
            task = self.chunk.task
            words.append(f"epoch {task.epoch} {task.attempt}.{self.chunk.seq}")
        if self.manifest is not None:
            words.append(f"epoch {self.manifest.epoch} decision {self.manifest.token}")
        if self.new is not None:
            words.append(f"{self.over or 'nothing'} -> {in_words(self.new)}")
        words.append(self.more)
        return " ".join(word for word in words if word)


def ledger_in(record: Record) -> dict[str, Any] | None:
    """All fields of a ledger, at one level; None if the record is a claim, offsets, or empty."""
    body: dict[str, Any] = json.loads(record.body or "{}")
    return (
        {**body, **body["owner"], **body["decision"], **body["totals"]}
        if "decision" in body
        else None
    )


def in_words(record: Record) -> str:
    """A record in a few words."""
    if not record.revision:
        return "nothing"
    body = ledger_in(record)
    if body is None:
        return f"{record.stamp} {record.body}"
    words = [record.stamp, f"query {body['query_id']}", f"epoch {body['epoch']}"]
    words.append("open" if body["manifest"] else "")
    words.append("retired " + ",".join(body["retired"]) if body["retired"] else "")
    words.append("doomed " + ",".join(body["doomed"]) if body["doomed"] else "")
    words.append("forgotten" if body["forgotten"] else "")
    return "(" + " ".join(word for word in words if word) + ")"


class Carrier(Protocol):
    """Carries requests to the store."""

    def carry(self, request: Request) -> Any:
        """Carry one request, and its reply back."""
        ...


class Client:
    """The store as one actor sees it.

    Args:
        actor: the actor.
        memory: the store.
        carrier: carries its requests.
    """

    def __init__(self, actor: Actor, memory: MemoryStore, carrier: Carrier) -> None:
        self._actor, self._carrier = actor, carrier
        self._about: dict[str, Any] = {}
        self._store = memory.through(self._link)

    def _link(self, name: str, step: Callable[[], T], /) -> T:
        answer: T = self._carrier.carry(Request(self._actor, name, step, **self._about))
        return answer

    def check(self, plan: P) -> P:
        """See `Store.check`."""
        self._about = {}
        return self._store.check(plan)

    def read(self, name: str) -> Record:
        """See `Store.read`."""
        self._about = {"sink": name}
        return self._store.read(name)

    def swap(self, name: str, new: Record, over: str, applied: int = 0) -> Record:
        """See `Store.swap`."""
        self._about = {"sink": name, "new": new, "over": over}
        return self._store.swap(name, new, over, applied)

    def doom(self, name: str, new: Record, over: str, attempts: Sequence[str]) -> Record:
        """See `Store.doom`."""
        about = {"attempts": tuple(attempts), "more": ",".join(attempts)}
        self._about = {"sink": name, "new": new, "over": over, **about}
        return self._store.doom(name, new, over, attempts)

    def names(self) -> list[str]:
        """See `Store.names`."""
        self._about = {}
        return self._store.names()

    def unfinished(self, kin: str) -> list[str]:
        """See `Store.unfinished`."""
        self._about = {}
        return self._store.unfinished(kin)

    def decided_after(self, name: str) -> list[str]:
        """See `Store.decided_after`."""
        self._about = {"sink": name}
        return self._store.decided_after(name)

    def stage(self, chunk: Chunk) -> None:
        """See `Store.stage`."""
        self._about = {"sink": chunk.task.sink, "chunk": chunk}
        self._store.stage(chunk)

    def staged(self, sink: str, *, fresh: bool = False) -> list[Staged]:
        """See `Store.staged`."""
        self._about = {"sink": sink}
        return self._store.staged(sink, fresh=fresh)

    def prepare(self, manifest: Manifest) -> Manifest:
        """See `Store.prepare`."""
        self._about = {"sink": manifest.sink, "manifest": manifest}
        return self._store.prepare(manifest)

    def publish(self, proposal: Proposal, finish: Finish) -> Record | None:
        """See `Store.publish`."""
        self._about = _about(proposal)
        return self._store.publish(proposal, finish)

    def decide(self, proposal: Proposal) -> Record:
        """See `Store.decide`."""
        self._about = _about(proposal)
        return self._store.decide(proposal)

    def apply(
        self, manifest: Manifest, advance: Advance = no_progress, since: float | None = None
    ) -> Applied:
        """See `Store.apply`."""
        self._about = {"sink": manifest.sink, "manifest": manifest}
        return self._store.apply(manifest, advance, since)

    def discard(
        self,
        sink: str,
        attempts: Sequence[str],
        over: str | None = None,
        parts: Sequence[Part] = (),
    ) -> None:
        """See `Store.discard`."""
        named = ",".join(attempts) + ("" if over is None else f" over {over or 'nothing'}")
        about = {"attempts": tuple(attempts), "more": named}
        self._about = {"sink": sink, "over": over or "", **about}
        self._store.discard(sink, attempts, over, parts)


def _about(proposal: Proposal) -> dict[str, Any]:
    return {
        "sink": proposal.manifest.sink,
        "new": proposal.record,
        "over": proposal.over,
        "manifest": proposal.manifest,
    }
