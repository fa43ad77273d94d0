"""Runs many schedules, and reports their coverage and failures."""

from __future__ import annotations

import shlex
from collections import Counter
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field

from sparkonce.tck.explore.frozen import frozen
from sparkonce.tck.explore.scenario import LOSSES
from sparkonce.tck.explore.schedule import Outcome, Theatre
from sparkonce.tck.explore.shrink import Shrinker
from sparkonce.tck.explore.turns import Pool
from sparkonce.tck.memory_subject import PROFILES
from sparkonce.tck.simulation.memory import MemoryStore

Make = Callable[[], MemoryStore]

EVERYWHERE = frozenset(
    {
        "abort while a commit's request may be late",
        "batch written",
        "commit failed and was aborted",
        "dies in a commit",
        "failed attempt",
        "forget",
        "gc discards attempts",
        "gc removes a ledger",
        "last driver: SinkBehindCheckpoint",
        "late decide delivered",
        "late stage delivered",
        "late write took effect",
        "lost log",
        "lost records",
        "lost suffix",
        "speculative twin",
        "take-over",
        "take-over in mid-commit",
        "two decides race",
        "zombie stages",
        *("ConcurrentDriver", "QueryRetired", "StagedDataMissing", "CheckpointReplaced"),
    }
)
IN_STEPS = frozenset(
    {
        "batch: BatchOvertaken",
        "batch: BatchUnfinished",
        "dies between decide and finish",
        "dropped",
        "late swap delivered",
        "loss accepted",
        "recover refused",
        "recovered by the operator",
        "rolled forward by another",
        "row refused after the decision",
    }
)
WANTED = {
    "whole epochs": EVERYWHERE | {"row refused"},
    "atomic chunks": EVERYWHERE | IN_STEPS | {"late apply delivered"},
    "row by row": EVERYWHERE | IN_STEPS | {"late update delivered", "listing refreshed"},
}
"""The coverage that many schedules of a profile must reach.

A roll-forward always runs under options other than those of the decision, since each run of a query
has its own options.
"""


@dataclass(frozen=True)
class Failure:
    """A schedule that broke a rule, as short as possible.

    Attributes:
        rule: its number.
        seen: the observation.
        choices: that reproduce it.
        history: the events, line by line.
        losses: how often a store could lose data.
    """

    seed: int
    profile: str
    rule: str
    seen: str
    choices: tuple[int, ...]
    history: tuple[str, ...]
    losses: float = LOSSES

    @property
    def command(self) -> str:
        """The command that plays it again."""
        profile = shlex.quote(self.profile)
        losses = "" if self.losses == LOSSES else f" --losses {self.losses}"
        return f"python -m sparkonce.tck.explore --seed {self.seed} --profile {profile}{losses}"

    def __str__(self) -> str:
        steps = [f"{number:>4}  {line}" for number, line in enumerate(self.history, 1)]
        head = f"seed {self.seed}, profile {self.profile!r}, broke {self.rule}"
        return "\n".join([head, *steps, f"seen: {self.seen}", f"again: {self.command}"])


@dataclass
class Report:
    """The results of a number of schedules.

    Attributes:
        schedules: the number by profile.
        covered: how many of a profile's schedules had an event, by (profile, event).
        requests: the number of requests in all.
        failures: shortened; `failed` counts all.
    """

    schedules: Counter[str] = field(default_factory=Counter)
    covered: Counter[tuple[str, str]] = field(default_factory=Counter)
    requests: int = 0
    failed: int = 0
    failures: list[Failure] = field(default_factory=list)

    def add(self, other: Report) -> None:
        """Add the counts of another report."""
        self.schedules.update(other.schedules)
        self.covered.update(other.covered)
        self.requests += other.requests
        self.failed += other.failed
        self.failures.extend(other.failures)

    def count(self, profile: str, outcome: Outcome) -> None:
        """Add the counts of a schedule."""
        self.schedules[profile] += 1
        self.requests += outcome.requests
        self.covered.update((profile, mark) for mark in outcome.marks)

    def missing(self) -> list[tuple[str, str]]:
        """The events that no schedule covered although it should."""
        return sorted(
            (profile, what)
            for profile in self.schedules
            for what in WANTED[profile]
            if not self.covered[profile, what]
        )


def profile_of(seed: int, profile: str) -> str:
    """The profile of a seed; with ``all``, the profiles take turns."""
    return [*PROFILES][seed % len(PROFILES)] if profile == "all" else profile


def explore(
    seeds: Iterable[int],
    profile: str = "all",
    *,
    make: Make | None = None,
    losses: float = LOSSES,
    most_failures: int = 1,
) -> Report:
    """Play schedules.

    Args:
        seeds: one for each schedule.
        profile: of the in-memory store, or ``all``.
        make: creates another store for the same profile, for example a broken one.
        losses: the probability that a store may lose data.
        most_failures: stop after this number of failures.
    """
    report, pool = Report(), Pool()
    with frozen() as tokens:
        for seed in seeds:
            name = profile_of(seed, profile)
            theatre = Theatre(make or PROFILES[name], pool, tokens, losses)
            outcome = theatre.play(f"{name}/{seed}")
            report.count(name, outcome)
            if outcome.rule:
                report.failed += 1
                report.failures.append(shortened(theatre, seed, name, outcome))
                if report.failed >= most_failures:
                    break
    pool.close()
    return report


def shortened(theatre: Theatre, seed: int, profile: str, outcome: Outcome) -> Failure:
    """The simplest history that breaks the same rule."""

    def fails(choices: list[int]) -> list[int] | None:
        played = theatre.play(given=choices)
        return played.choices if played.rule == outcome.rule else None

    choices = Shrinker(fails, outcome.choices).run()
    last = theatre.play(given=choices, telling=True)
    history = tuple(last.history)
    return Failure(seed, profile, last.rule, last.seen, tuple(choices), history, theatre.losses)


def history(
    seed: int, profile: str, *, make: Make | None = None, losses: float = LOSSES
) -> list[str]:
    """All events of one schedule; the arguments are those of `explore`."""
    name, pool = profile_of(seed, profile), Pool()
    with frozen() as tokens:
        theatre = Theatre(make or PROFILES[name], pool, tokens, losses)
        last = theatre.play(f"{name}/{seed}", telling=True)
    pool.close()
    return [*last.history, f"{last.rule} {last.seen}".strip()]
