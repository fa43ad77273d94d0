"""Observation of a running schedule: the checks of each single step, and the coverage."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from sparkonce.protocol import Manifest, Record
from sparkonce.tck.explore.requests import ledger_in
from sparkonce.tck.simulation.oracles import WITNESS, epoch_of, require

if TYPE_CHECKING:
    from sparkonce.tck.explore.requests import Request
    from sparkonce.tck.simulation.restarts import Checkpoint

APPLYING = frozenset({"apply", "fetch", "update"})


class Watch:
    """Checks each request that takes effect.

    Attributes:
        marks: the coverage of this schedule: names of `explorer.WANTED`, and errors.
        checkpoints: by query id.
        options: the options of the run that staged an attempt.
        aborted: attempts whose epoch was aborted.
        committing: the actors in a commit or a recover now, with their query.
        overtaken: decisions that no other process may apply, because later ones exist.
        forgotten: sinks that the operator made the store forget.
        dropped: epochs that the operator dropped.
    """

    def __init__(self) -> None:
        self.marks: set[str] = set()
        self.checkpoints: dict[str, Checkpoint] = {}
        self.options: dict[str, str] = {}
        self.aborted: set[str] = set()
        self.committing: dict[str, str] = {}
        self.overtaken: dict[str, set[str]] = {}
        self.forgotten: set[str] = set()
        self.dropped: set[tuple[str, int]] = set()
        self._deciders: dict[str, str] = {}
        self._open: dict[str, str] = {}
        self._rivals: dict[str, str] = {}

    # -- a request is sent

    def sent(self, request: Request) -> None:
        """Check a request before the store executes it.

        Raises:
            AssertionError: it applies a decision that was never made.
        """
        if request.new is not None:
            self._sent_decision(request)
        elif request.name in APPLYING and request.manifest is not None:
            self._sent_part(request, request.manifest)
        elif request.chunk is not None:
            self._sent_chunk(request)

    def _sent_decision(self, request: Request) -> None:
        token = request.decides
        if not token or request.new is None:
            return
        rival = self._rivals.setdefault(request.over, token)
        if rival != token:
            self.marks.add("two decides race")
        self._deciders.setdefault(token, request.actor.name)

    def _sent_part(self, request: Request, manifest: Manifest) -> None:
        if self._deciders.get(manifest.token) != request.actor.name:
            self.marks.add("rolled forward by another")
        self.require_its_own_options(manifest)

    def require_its_own_options(self, manifest: Manifest) -> None:
        """C06: a process applies a decision unchanged.

        Raises:
            AssertionError: today's options changed it.
        """
        used = manifest.detail.get("options")
        for part in manifest.parts:
            staged = self.options[part.attempt]
            require(used == staged, f"C06: {part.attempt}, staged by {staged}, applied as {used}")

    def _sent_chunk(self, request: Request) -> None:
        if request.chunk is not None:
            task = request.chunk.task
            noted = self.checkpoints[task.query_id].committed
            if task.epoch <= noted or task.attempt in self.aborted:
                self.marks.add("zombie stages")

    # -- a request has taken effect

    def done(self, request: Request, before: Record, now: Record, rows: Sequence[str]) -> None:
        """Check a request after the store executed it: `rows` took effect in this very step.

        Raises:
            AssertionError: it broke a rule of steps.
        """
        if now.stamp != before.stamp and request.new is not None:
            self._wrote(request, before, now)
        if rows and request.name == "publish":
            self.require_whole_epoch(rows)
        elif rows and request.manifest is not None:
            self._require_latest(request.actor.name, request.manifest)

    def _require_latest(self, actor: str, manifest: Manifest) -> None:
        """C22: nobody silently undoes what others have decided since."""
        late = manifest.token in self.overtaken.get(actor, ())
        require(not late, f"C22: {actor} applies epoch {manifest.epoch} of {manifest.sink} late")

    def _wrote(self, request: Request, before: Record, now: Record) -> None:
        if not now.revision:
            return
        body, old = ledger_in(now), ledger_in(before)
        if body is None:
            return
        if body["manifest"]:
            self._open[request.sink] = now.token
        else:
            self._open.pop(request.sink, None)
        if old:
            self._advanced(request, old, body)
            self._taken_over(old, body)

    def _advanced(self, request: Request, old: dict[str, Any], new: dict[str, Any]) -> None:
        revisions = old["revision"], new["revision"]
        require(revisions[1] > revisions[0], f"O4: revision {revisions[0]} to {revisions[1]}")
        if new["query_id"] == old["query_id"]:
            went_back = new["epoch"] < old["epoch"]
            require(not went_back, f"O4: the epoch decreases: {request}")
        if set(new["doomed"]) - set(old["doomed"]):
            self.marks.add("attempts doomed")

    def _taken_over(self, old: dict[str, Any], new: dict[str, Any]) -> None:
        gone = set(new["retired"]) - set(old["retired"])
        if gone and not new["forgotten"]:
            self.marks.add("take-over")
        if gone.intersection(self.committing.values()):
            self.marks.add("take-over in mid-commit")

    def require_whole_epoch(self, rows: Sequence[str]) -> None:
        """O3: a reader sees a whole epoch or none of it.

        Raises:
            AssertionError: a part of an epoch took effect in one step.
        """
        found = Counter(row for row in rows if row != WITNESS)
        query, epoch = epoch_of(next(iter(found)))
        whole = found in self.checkpoints[query].handed[epoch]
        require(whole, f"O3: a reader sees {dict(found)} of epoch {epoch} of {query}")

    # -- a process dies

    def died(self, actor: str) -> None:
        """Record that the process of this actor ended."""
        open_by = {self._deciders.get(token) for token in self._open.values()}
        if actor in open_by:
            self.marks.add("dies between decide and finish")
        if actor in self.committing:
            self.marks.add("dies in a commit")
        self.committing.pop(actor, None)

    def forget_open(self) -> None:
        """Record a loss: open decisions may be lost, and overtaken ones valid again."""
        self._open.clear()
        self.overtaken.clear()

    @property
    def anything_open(self) -> bool:
        """Whether an epoch is decided and not finished."""
        return bool(self._open)
