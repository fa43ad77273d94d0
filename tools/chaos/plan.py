"""The faults of a run, all drawn from its seed before it begins."""

from __future__ import annotations

import random
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import chain, cycle, islice
from typing import TYPE_CHECKING, TypeVar

if TYPE_CHECKING:
    from tools.chaos.target import Target

T = TypeVar("T")

DRIVER, TREE, EXECUTOR = "driver killed", "driver and workers killed", "executor killed"
WORKER, ZOMBIE, STORE = "Python worker killed", "zombie driver", "store killed"
CUT_REQUEST, CUT_REPLY, STALL, RESET = "cut request", "cut reply", "stall", "reset"
STRAGGLER, DISK = "straggler with a twin", "disk full"

KILLS = {DRIVER: 4, TREE: 2, EXECUTOR: 2, WORKER: 3, ZOMBIE: 2, STORE: 3}
"""What counts as a kill, and how often each comes in a deck."""

MOVE = "slots moved"
"""As often as a store is killed, where it can be."""

KILLING = (*KILLS, MOVE)

NETWORK = (CUT_REQUEST, CUT_REPLY, STALL, RESET)
RARE = (STRAGGLER, DISK)
KILLS_FOR_RARE = 10
"""One of each rare fault for so many kills; none in a run of a few."""

EARLY = (DRIVER, TREE, STORE, *NETWORK)
"""What can strike at a driver that only starts, where the one before was killed."""

LATE, NEVER, DONE = "arrives late", "never arrives", "is done, unanswered"
"""What becomes of the request at which a fault strikes."""

FATES = {
    **dict.fromkeys((EXECUTOR, WORKER), (LATE, NEVER)),
    ZOMBIE: (LATE, DONE),
    STORE: (NEVER, DONE),
    MOVE: (LATE, NEVER),
}
MOST = {"stage": 6, "apply": 4}
"""Requests of a kind that an epoch has at least, where they are more than one."""


@dataclass(frozen=True)
class Fault:
    """One fault, and the moment at which it strikes.

    Attributes:
        kind: what happens.
        point: the kind of request at which it does; empty where it waits for none.
        nth: at which of these requests from then on.
        fate: what becomes of that request.
        early: it waits for the first requests of a driver that starts, so those of a replay.
        outage: seconds for which a killed store stays away; 0 for: until the driver gives up.
    """

    kind: str
    point: str = ""
    nth: int = 1
    fate: str = ""
    early: bool = False
    outage: float = 0.0

    def __str__(self) -> str:
        if not self.point:
            return self.kind
        fate = f", which {self.fate}" if self.fate else ""
        return f"{self.kind} at {self.point} {self.nth}{fate}{', early' * self.early}"


def draw(seed: int, kills: int, target: Target, *, disk: bool) -> list[Fault]:
    """The faults of a run: so many kills, with each a fault of the network, and rare ones."""
    chance = random.Random(f"{seed} {target.name}")
    dealer = _Dealer(chance, target)
    moves = {MOVE: KILLS[STORE]} if target.moves else {}
    deck = list(chain.from_iterable([kind] * often for kind, often in (KILLS | moves).items()))
    killing = islice(shuffled(chance, deck), kills)
    pairs = zip(shuffled(chance, NETWORK), killing, strict=False)
    kinds = chain.from_iterable(chance.sample(pair, 2) for pair in pairs)
    faults = [dealer.fault(kind) for kind in kinds]
    for kind in RARE:
        for _ in range(kills // KILLS_FOR_RARE if disk or kind != DISK else 0):
            faults.insert(chance.randrange(len(faults)), dealer.fault(kind))
    before = [None, *(fault.kind for fault in faults)]
    return [
        replace(
            fault, early=was in (DRIVER, TREE) and fault.kind in EARLY and chance.random() < 0.5
        )
        for was, fault in zip(before, faults, strict=False)
    ]


def shuffled(chance: random.Random, deck: Sequence[T]) -> Iterator[T]:
    """The cards of a deck for ever: it is shuffled anew whenever all were dealt."""
    while True:
        yield from chance.sample(deck, len(deck))


class _Dealer:
    """Gives faults their moments: all points of a kind come before one comes again."""

    def __init__(self, chance: random.Random, target: Target) -> None:
        self._chance, self._tasks = chance, [p for p in target.points if p not in target.in_driver]
        self._points = {
            kind: shuffled(chance, list(target.points)) for kind in (*KILLS, MOVE, *NETWORK)
        }
        in_tasks = cycle(self._tasks)
        self._points |= {EXECUTOR: in_tasks, STRAGGLER: in_tasks}

    def fault(self, kind: str) -> Fault:
        if kind == DISK:
            return Fault(kind)
        point, chance = next(self._points[kind]), self._chance
        return Fault(
            kind,
            point,
            nth=chance.randint(1, MOST.get(point, 1)),
            fate=chance.choice(FATES.get(kind, (LATE, NEVER, DONE))) if kind in KILLING else "",
            outage=chance.choice((1.0, 2.0, 4.0, 0.0)) if kind == STORE else 0.0,
        )
