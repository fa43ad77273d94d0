"""Who owns a sink: its query, the queries that this one replaced, and the runs of it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

PAST_RUNS = 32
"""How many superseded runs are kept, and how many that replayed, to tell a second driver from a
restart."""

PAST_QUERIES = 64
"""How many retired queries are kept; one that was retired before is a new one."""


@dataclass(frozen=True)
class Ownership:
    """Who may decide. Only a decision changes the run, only a takeover the query.

    Attributes:
        query_id: the Spark query that owns the sink now.
        generation: 1 for the first query, one more for each that replaced another.
        retired: queries that owned it before, newest last; they can never commit again.
        inherits: whether a query that this one replaced had decided something, or was forgotten.
        run_id: the run (one ``start()`` of the query) that decided last.
        past_runs: the runs before it, newest last.
        replayed: the runs that have replayed an epoch and decided none, with that epoch.
        checkpoint: where the query's checkpoint lies; None if it is not known.
        repeatable: applying the rows of all of its epochs again would change nothing.
        once: its only writer is a batch without a name; nobody asks for it once that is finished.
        forgotten: an operator has dropped the sink; whoever comes next starts anew.
    """

    query_id: str
    generation: int = 1
    # Never has the query itself, once that has written: `resumed` takes it out where it comes back
    # before anything was decided.
    retired: tuple[str, ...] = ()
    inherits: bool = False
    # Only a run that is none of `past_runs` decides. One of them is a second driver's, or an old
    # one that woke: it must not decide, whatever epoch it brings.
    run_id: str = ""
    past_runs: tuple[str, ...] = ()
    replayed: Mapping[str, int] = field(default_factory=dict)
    checkpoint: str | None = None
    repeatable: bool = False
    once: bool = False
    forgotten: bool = False

    @property
    def with_retired(self) -> tuple[str, ...]:
        """The queries that are retired once the present one is."""
        return united(self.retired, (self.query_id,))

    def resumed(self, *, once: bool) -> Ownership:
        """The same for its query, which may have come back, and been retired before.

        It is the same object where nothing changes: then there is nothing to write.
        """
        if self.query_id not in self.retired and self.once == once:
            return self
        others = tuple(query for query in self.retired if query != self.query_id)
        return replace(self, retired=others, once=once)

    def retire(self) -> Ownership:
        """The same, with its query among those that may never commit again."""
        return replace(self, retired=self.with_retired)

    def succeeded_by(self, query_id: str) -> Ownership:
        """The next generation, owned by another query."""
        return replace(
            self,
            query_id=query_id,
            retired=self.with_retired,
            generation=self.generation + 1,
            replayed={},
            repeatable=self.repeatable or self.forgotten,  # behind a tombstone all begins anew
            inherits=self.inherits or self.forgotten,  # or an abort would free the forgotten query
            forgotten=False,
        )

    def decided_by(self, run_id: str) -> Ownership:
        """The same, where this run decides, and supersedes the one that decided before.

        An empty run id, of an epoch without tasks, leaves the run as it is.
        """
        run_id, past = run_id or self.run_id, self.past_runs
        if self.run_id and self.run_id != run_id:
            past = (*past, self.run_id)[-PAST_RUNS:]
        replayed = {run: epoch for run, epoch in self.replayed.items() if run != run_id}
        return replace(self, run_id=run_id, past_runs=past, replayed=replayed)

    def replayed_by(self, run_id: str, epoch: int) -> Ownership:
        """The same, where this run replayed the last epoch, and may decide the one behind it.

        Nobody is superseded: a driver that slept for long replays, too, beside the one that has
        taken over.
        """
        if run_id in ("", self.run_id):
            return self
        others = [(run, at) for run, at in self.replayed.items() if run != run_id]
        return replace(self, replayed=dict([*others, (run_id, epoch)][-PAST_RUNS:]))


def united(*retired: Sequence[str]) -> tuple[str, ...]:
    """Retired queries of several ledgers, without those that were retired long ago."""
    return tuple(dict.fromkeys(query for queries in retired for query in queries))[-PAST_QUERIES:]
