"""The faults of a run, drawn from its seed, and the links that each of them cuts."""

from __future__ import annotations

import random
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from tools.chaos.plan import shuffled
from tools.partitions.network import Link

ALONE, HALVES, BRIDGE = "one machine alone", "halves", "bridge"
MUTE, DEAF, FAR = "sends nothing", "hears nothing", "the driver alone cut off"
LOSSY, SLOW = "lossy links", "slow links"
PAUSED, KILLED, ROLLING = "paused", "killed", "rolling restart"
CLOCK, DISK = "clock jumps", "disk full"

CUTS = (ALONE, HALVES, BRIDGE, MUTE, DEAF, FAR)
DECK = (
    *(ALONE, ALONE, HALVES, HALVES, BRIDGE, MUTE, DEAF, FAR),
    *(LOSSY, SLOW, PAUSED, PAUSED, KILLED, ROLLING, CLOCK, DISK),
)
"""The faults of a deck. A machine that is cut off, or that wakes up later, is most dangerous."""

LEADER, OTHER = "the leader", "another machine"
NEAR, AWAY, BOTH = "with it", "away from it", "on both sides"
"""Where the driver is: on the side of the machine, on the other side, or reaching both."""

STAGED, DECIDED, FINISHED, ANY = "staged", "decided", "finished", "at any time"
MOMENTS = (STAGED, DECIDED, FINISHED, ANY)
"""The state of an epoch at which a fault strikes: a decided one is being applied."""

LONG = (4.0, 8.0, 16.0, 24.0)
"""Seconds of a fault: shorter and longer than a cluster takes to elect another leader."""

JUMPS = (-3600, -30, 30, 3600)
"""Seconds by which a clock jumps."""


@dataclass(frozen=True)
class Fault:
    """One fault.

    Attributes:
        kind: the kind of fault.
        on: the machine that it concerns.
        driver: where the driver is meanwhile.
        moment: the state of an epoch at which it strikes.
        seconds: how long it lasts.
        jump: by how many seconds the clock of the machine jumps.
    """

    kind: str
    on: str
    driver: str
    moment: str
    seconds: float
    jump: int = 0

    def __str__(self) -> str:
        where = f", driver {self.driver}" if self.kind in CUTS and self.kind != FAR else ""
        return f"{self.kind}: {self.on}{where}, {self.moment}, {self.seconds:g} s"


def draw(
    seed: int,
    faults: int,
    name: str,
    skipped: Sequence[str] = (),
    moments: Sequence[str] = MOMENTS,
) -> list[Fault]:
    """The faults of a run, without those kinds that this machine or store can't have."""
    chance = random.Random(f"{seed} {name}")
    kinds = shuffled(chance, [kind for kind in DECK if kind not in skipped])
    return [_drawn(chance, next(kinds), moments) for _ in range(faults)]


def _drawn(chance: random.Random, kind: str, moments: Sequence[str]) -> Fault:
    on = chance.choice((LEADER, LEADER, LEADER, OTHER))
    return Fault(
        kind,
        on=LEADER if kind == FAR else on,  # a driver may send nothing to another machine
        driver=chance.choice((NEAR, AWAY, BOTH)),
        moment=chance.choice(moments),
        seconds=chance.choice(LONG),
        jump=chance.choice(JUMPS) if kind == CLOCK else 0,
    )


def links(
    fault: Fault, one: str, machines: Sequence[str], driver: str, chance: random.Random
) -> list[Link]:
    """The links of a fault.

    Args:
        fault: what strikes.
        one: the machine that it concerns.
        machines: all machines of the store.
        driver: the machine of the driver.
        chance: draws who is on which side.
    """
    others = [name for name in machines if name != one]
    chance.shuffle(others)
    if fault.kind == FAR:
        return [*_both([driver], [one])]
    if fault.kind in (MUTE, DEAF):
        if fault.driver == AWAY:
            others.append(driver)
        mute = fault.kind == MUTE
        silent = [(one, name) if mute else (name, one) for name in others]
        return [*silent, *_both([driver], others if fault.driver == NEAR else [])]
    if fault.kind in (LOSSY, SLOW):
        return [*_both([one], [*others, driver])]
    # The machine is on the smaller side, or on the larger one, of two halves.
    half = 0 if fault.kind == ALONE else (len(machines) - 1 + chance.randrange(2)) // 2
    if fault.kind == BRIDGE:
        half = max(0, half - 1)
        others.pop()  # the bridge, which sees both sides
    near, away = [one, *others[:half]], others[half:]
    beyond = {NEAR: away, AWAY: near, BOTH: []}[fault.driver]
    return [*_both(near, away), *_both([driver], beyond)]


def _both(here: Sequence[str], there: Sequence[str]) -> Iterator[Link]:
    for one in here:
        for other in there:
            yield one, other
            yield other, one
