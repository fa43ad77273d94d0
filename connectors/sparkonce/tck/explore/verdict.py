"""The end of a schedule: late requests arrive, a last driver continues, and the oracles judge."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from itertools import pairwise

from sparkonce.errors import (
    CheckpointReplaced,
    QueryRetired,
    SinkBehindCheckpoint,
    SparkonceError,
    StoreLostData,
)
from sparkonce.exactly_once.ledger import Ledger, from_record
from sparkonce.exactly_once.registers import claim_name, holder_of
from sparkonce.tck.explore.cast import Epoch, Stream
from sparkonce.tck.explore.losses import LOG, NOTHING, RECORDS, SUFFIX
from sparkonce.tck.explore.operators import admin_of
from sparkonce.tck.explore.refusals import require_allowed
from sparkonce.tck.explore.requests import Request
from sparkonce.tck.explore.scenario import Scenario
from sparkonce.tck.explore.turns import Actor
from sparkonce.tck.simulation.actors import Query
from sparkonce.tck.simulation.oracles import (
    by_epoch,
    require,
    require_agreement,
    require_exactly_once,
    require_in_order,
    require_no_leftovers,
    require_nothing_staged,
    require_witness,
)
from sparkonce.tck.simulation.restarts import Checkpoint, SimulatedSpark

REPLACED = (QueryRetired, CheckpointReplaced)


class Verdict:
    """Judges one schedule after its actors have ended."""

    def __init__(self, scenario: Scenario) -> None:
        self.scenario, self.world = scenario, scenario.world
        self.subject = self.world.subject
        self.streams = list(scenario.streams)
        self.loss = self.world.losses.kind if self.world.losses.happened else NOTHING
        self.through: list[Stream] = []
        self.behind: list[Stream] = []
        self.left_out: set[tuple[str, int]] = set(self.world.watch.dropped)
        self._referee = Actor("last driver", lambda _: None)
        self._operator = Actor("operator", lambda _: None)

    def give(self) -> None:
        """Finish everything, and check.

        Raises:
            AssertionError: a promise was broken.
        """
        world, scenario = self.world, self.scenario
        world.calm = True
        world.accept()
        held = [one for one in world.late if world.choices.pick(2, 0.5)]
        self._come_home(held)
        require_allowed(scenario, self.loss)
        for group in (scenario.owners, [scenario.other] if scenario.other else []):
            self._settle(group)
        if self.loss != NOTHING or scenario.batches:
            self._recover()
        self._check_rows()
        self._continue_after_loss()
        self._come_home([])
        if scenario.batches:
            self._recover()
        self.through = [stream for stream in self.through if self._owns(stream)]
        for stream in self.through:
            self._replay(stream)
            self._require_claim(stream)
        self._check_rows()
        self._check_log()

    def _come_home(self, held: list[Request]) -> None:
        for request in [one for one in self.world.late if one not in held]:
            self.world.deliver(request)
        self.subject.settle()

    # -- the last drivers

    def _settle(self, group: list[Stream]) -> None:
        """Check that one query of a sink succeeds."""
        if not group:
            return
        continued = False
        for stream in reversed(group):
            # The loss may include a take-over; then both continue.
            if not continued or self.loss != NOTHING:
                continued |= self._continues(stream)
        if not continued:
            self._start_anew(group)

    def _start_anew(self, group: list[Stream]) -> None:
        """Start a new query after an operator has forgotten the sink."""
        known = self.world.watch.forgotten or self.loss != NOTHING
        require(known, f"I02: wedged, all queries of {group[0].query.name} are rejected")
        old = group[0].query
        stream = Stream(self.world, replace(old, id=f"z{old.id}"))
        self.world.watch.checkpoints[stream.query.id] = stream.checkpoint
        self.streams.append(stream)
        for override in (None, *(f"continue:{one.query.id}" for one in group)):
            stream.query.on_new_checkpoint = override
            if self._try(stream) is None:
                self.through.append(stream)
                self.world.mark("a new query starts")
                return
        raise AssertionError(f"I02: wedged, neither a query of {old.name} nor a new one succeeds")

    def _continues(self, stream: Stream) -> bool:
        """Commit one more epoch without faults, or get the error that a loss requires.

        Return False if the query has rightly been replaced.
        """
        behind, before = self._is_behind(stream), self._contents()
        error = self._try(stream)
        if isinstance(error, StoreLostData):
            require(self.loss == LOG, f"S10: no chunk was lost, and yet: {error}")
            self._recover()
            behind, before = self._is_behind(stream), self._contents()
            error = self._try(stream)
        if isinstance(error, REPLACED):
            self._require_replaced(stream, error)
            return False
        if behind:
            require(self.loss != NOTHING, f"O4: nothing was lost, but a ledger is behind: {error}")
            refused = isinstance(error, SinkBehindCheckpoint)
            require(refused, f"C14: continued after a loss with {error}")
            self._require_unchanged(before)
            self.behind.append(stream)
            return True
        require(error is None, f"C06: wedged, the last driver is rejected: {error!r}")
        self.through.append(stream)
        return True

    def _try(self, stream: Stream) -> SparkonceError | None:
        run = stream.start(self._referee)
        number = stream.checkpoint.committed + 1
        try:
            Epoch(stream, self._referee, run, number).through()
        except SparkonceError as error:
            self.world.mark(f"last driver: {type(error).__name__}")
            self.world.say(self._referee.name, f"{type(error).__name__}: {error.what}")
            return error
        return None

    def _require_replaced(self, stream: Stream, error: SparkonceError) -> None:
        others = len(self.scenario.owners) > 1 and stream in self.scenario.owners
        forgotten = stream.query.name in self.world.watch.forgotten
        require(others or forgotten, f"I02: nobody replaced {stream.query.id}, yet {error}")

    def _owns(self, stream: Stream) -> bool:
        """Whether a successful query still owns its sink, and not one that a loss restored."""
        ledger = self._ledger(stream.query)
        owns = ledger is not None and stream.query.id not in ledger.owner.retired
        require(owns or self.loss != NOTHING, f"I02: {stream.query.id} does not own its sink")
        return owns

    def _is_behind(self, stream: Stream) -> bool:
        """Whether the store lacks epochs that Spark has recorded."""
        return self._reached(stream) < stream.checkpoint.committed

    def _reached(self, stream: Stream) -> int:
        """The last epoch of a query that the store has."""
        ledger = self._ledger(stream.query)
        own = ledger is not None and ledger.owner.query_id == stream.query.id
        return ledger.decision.epoch if ledger is not None and own else -1

    def _continue_after_loss(self) -> None:
        """Do what an operator does after these errors: leave the lost epochs out."""
        for stream in self.behind:
            if self._has_other_owner(stream):
                continue
            committed = stream.checkpoint.committed
            self.left_out.update((stream.query.id, epoch) for epoch in range(committed + 1))
            reached = self._reached(stream)
            stream.query.on_lost_commit = f"continue@{reached + 1}-{committed}"
            error = self._try(stream)
            require(
                error is None, f"C14: wedged, rejected although onLostCommit allows it: {error!r}"
            )
            self.through.append(stream)

    def _has_other_owner(self, stream: Stream) -> bool:
        owners = self.scenario.owners
        return stream in owners and any(one in owners for one in self.through)

    def _recover(self) -> None:
        """Do what an operator does after a loss, perhaps of chunks."""
        admin = admin_of(self.world, self._operator)
        for sink in admin.sinks():
            try:
                admin.recover(sink, over_newer=True)
            except StoreLostData as error:
                require(self.loss == LOG, f"S10: no chunk was lost, and yet: {error}")
                ledger = sink.ledger
                self.left_out |= (
                    {(ledger.owner.query_id, ledger.decision.epoch)} if ledger else set()
                )
                self.world.mark("loss accepted")
                admin.recover(sink, accept_loss=True, over_newer=True)

    def _replay(self, stream: Stream) -> None:
        """O6: replay the same epoch in a new run."""
        before, ledger = self._contents(), self._ledger(stream.query)
        number = stream.checkpoint.committed
        Epoch(stream, self._referee, stream.start(self._referee), number).through()
        after = self._ledger(stream.query)
        same = ledger and after and _decision(ledger) == _decision(after)
        require(same, f"O6: a replay changed the ledger from {ledger} to {after}")
        require(before == self._contents(), "O6: a replay changed the target")

    # -- invariants

    def _contents(self) -> list[str]:
        return list(self.subject.contents())

    def _require_unchanged(self, before: list[str]) -> None:
        now = self._contents()
        require(now[: len(before)] == before, "C14: a rejected driver changed the target")
        added = {row.partition("#")[0] for row in now[len(before) :] if "/" in row}
        # It may only finish an earlier decision, and must write nothing else.
        require(len(added) <= 1, f"C14: a rejected driver wrote {added}")

    def _require_claim(self, stream: Stream) -> None:
        """I03: a new query at the path of a query that continues receives an error."""
        query = stream.query
        path = claim_name(query.target, query.checkpoint or "")
        holder = holder_of(self.subject.observer.read(path), path)
        held = holder == query.name or self.loss != NOTHING
        require(held, f"I03: {query.name} continues, but {holder} has its checkpoint path")

    def _check_rows(self) -> None:
        """O1 to O4."""
        if not self._partly:
            require_witness(self.subject)
        for stream in self.streams:
            require_exactly_once(SimulatedSpark(stream.query, self._view(stream)))
        for batch in self.scenario.batches:
            if (batch.name, 0) not in self.left_out:
                require_exactly_once(SimulatedSpark(batch.query, batch.checkpoint))
        self._require_no_gap()
        require_in_order(self.subject.in_order() or [])
        if self.loss != RECORDS and not self._partly:
            self._require_agreement()

    @property
    def _partly(self) -> bool:
        return not {"loss accepted", "dropped"}.isdisjoint(self.world.watch.marks)

    def _view(self, stream: Stream) -> Checkpoint:
        """The checkpoint without the lost epochs that an operator accepted or nobody can detect."""
        checkpoint, query = stream.checkpoint, stream.query.id
        owed = self.loss != SUFFIX or (stream in self.through)
        handed = {
            epoch: rows
            for epoch, rows in checkpoint.handed.items()
            if (query, epoch) not in self.left_out
        }
        view = Checkpoint(checkpoint.committed if owed else -1)
        view.handed.update(handed)
        self._require_parts(stream)
        return view

    def _require_parts(self, stream: Stream) -> None:
        """O1 for an epoch whose loss was accepted: no rows of two attempts, none twice."""
        found = by_epoch(self.subject.took_effect())
        for query, epoch in self.left_out:
            rows = found.get((query, epoch), Counter())
            if query == stream.query.id and rows:
                part = any(rows <= handed for handed in stream.checkpoint.handed[epoch])
                require(part, f"O1: epoch {epoch} of {query}, left out, has {dict(rows)}")

    def _require_no_gap(self) -> None:
        """C14: no epoch takes effect while an earlier one is missing."""
        reached: dict[str, list[int]] = {}
        for query, epoch in {*by_epoch(self.subject.took_effect()), *self.left_out}:
            reached.setdefault(query, []).append(epoch)
        for query, epochs in reached.items():
            gaps = [two for two in pairwise(sorted(epochs)) if two[1] != two[0] + 1]
            require(not gaps and min(epochs) == 0, f"C14: {query} has only epochs {sorted(epochs)}")

    def _require_agreement(self) -> None:
        if self.scenario.batches:
            return  # they remove their ledgers
        known = [one.query for one in self.streams if self._ledger(one.query) is not None]
        require_agreement(self.subject, *known)

    def _check_log(self) -> None:
        """O5: the log has no obsolete chunks, and an operator can discard the unneeded rest."""
        for stream in self.through:
            require_no_leftovers(self.subject, stream.query)
        if len(self.streams) == 1 and self.loss == NOTHING:
            require_nothing_staged(self.subject, self.streams[0].query)
        admin = admin_of(self.world, self._operator)
        for sink in admin.sinks():
            admin.gc(sink, grace=0)
        batches = [batch.query for batch in self.scenario.batches]
        require_nothing_staged(self.subject, *(one.query for one in self.streams), *batches)

    def _ledger(self, query: Query) -> Ledger | None:
        return from_record(self.subject.observer.read(query.name), query.name)


def _decision(ledger: Ledger) -> tuple[object, ...]:
    return (
        ledger.decision.epoch,
        ledger.decision.token,
        ledger.decision.manifest,
        ledger.totals.rows,
        ledger.totals.epochs,
        ledger.owner.query_id,
    )
