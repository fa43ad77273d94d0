"""Many schedules: runs them, and says what they covered and what failed."""

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
        "commit given up, and aborted",
        "dies in a commit",
        "failed attempt",
        "forget",
        "gc drops attempts",
        "gc takes a ledger away",
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
"""What many schedules of a profile must have covered. A roll-forward always runs under options
other than those of the decision, since each run of a query has options of its own."""


@dataclass(frozen=True)
class Failure:
    """A schedule that broke a rule, as short as it could be made.

    Attributes:
        rule: its number.
        seen: what was seen.
        choices: that bring it about.
        history: what happens then, line by line.
        losses: how often a store could lose something.
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
        """Plays it again."""
        profile = shlex.quote(self.profile)
        losses = "" if self.losses == LOSSES else f" --losses {self.losses}"
        return f"python -m sparkonce.tck.explore --seed {self.seed} --profile {profile}{losses}"

    def __str__(self) -> str:
        steps = [f"{number:>4}  {line}" for number, line in enumerate(self.history, 1)]
        head = f"seed {self.seed}, profile {self.profile!r}, broke {self.rule}"
        return "\n".join([head, *steps, f"seen: {self.seen}", f"again: {self.command}"])


@dataclass
class Report:
    """What a number of schedules showed.

    Attributes:
        schedules: how many of each profile.
        covered: how many of a profile's schedules had something, by (profile, what).
        requests: that were made in all.
        failures: shortened; `failed` counts all.
    """

    schedules: Counter[str] = field(default_factory=Counter)
    covered: Counter[tuple[str, str]] = field(default_factory=Counter)
    requests: int = 0
    failed: int = 0
    failures: list[Failure] = field(default_factory=list)

    def add(self, other: Report) -> None:
        """Count another report in."""
        self.schedules.update(other.schedules)
        self.covered.update(other.covered)
        self.requests += other.requests
        self.failed += other.failed
        self.failures.extend(other.failures)

    def count(self, profile: str, outcome: Outcome) -> None:
        """Count a schedule in."""
        self.schedules[profile] += 1
        self.requests += outcome.requests
        self.covered.update((profile, mark) for mark in outcome.marks)

    def missing(self) -> list[tuple[str, str]]:
        """What no schedule covered although it should."""
        return sorted(
            (profile, what)
            for profile in self.schedules
            for what in WANTED[profile]
            if not self.covered[profile, what]
        )


def profile_of(seed: int, profile: str) -> str:
    """The profile in which a seed is played; where it is ``all``, they take turns."""
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
        seeds: one a schedule.
        profile: of the store in memory, or ``all``.
        make: makes another store instead, for the same profile; a broken one, say.
        losses: how often, of 1, a store may lose something.
        most_failures: stop after so many.
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
    told = theatre.play(given=choices, telling=True)
    history = tuple(told.history)
    return Failure(seed, profile, told.rule, told.seen, tuple(choices), history, theatre.losses)


def history(
    seed: int, profile: str, *, make: Make | None = None, losses: float = LOSSES
) -> list[str]:
    """All that happens in one schedule; the arguments are those of `explore`."""
    name, pool = profile_of(seed, profile), Pool()
    with frozen() as tokens:
        theatre = Theatre(make or PROFILES[name], pool, tokens, losses)
        told = theatre.play(f"{name}/{seed}", telling=True)
    pool.close()
    return [*told.history, f"{told.rule} {told.seen}".strip()]
