"""The faults of a run, drawn from its seed before the run begins."""

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
"""The faults that count as kills, with the number of each in a deck."""

MOVE = "slots moved"
"""As many in a deck as kills of the store, if the target can move slots."""

KILLING = (*KILLS, MOVE)

NETWORK = (CUT_REQUEST, CUT_REPLY, STALL, RESET)
RARE = (STRAGGLER, DISK)
KILLS_FOR_RARE = 10
"""Kills for one of each rare fault; a run with fewer kills has none."""

EARLY = (DRIVER, TREE, STORE, *NETWORK)
"""Faults that can strike a starting driver, if the driver before was killed."""

LATE, NEVER, DONE = "arrives late", "never arrives", "is done, unanswered"
"""The fate of the request at which a fault strikes."""

FATES = {
    **dict.fromkeys((EXECUTOR, WORKER), (LATE, NEVER)),
    ZOMBIE: (LATE, DONE),
    STORE: (NEVER, DONE),
    MOVE: (LATE, NEVER),
}
MOST = {"stage": 6, "apply": 4}
"""The least number of requests of a kind in an epoch, if more than one."""


@dataclass(frozen=True)
class Fault:
    """One fault, and the moment at which it strikes.

    Attributes:
        kind: the kind of fault.
        point: the kind of request at which it strikes; empty if it waits for none.
        nth: the number of that request, counted from the moment the fault is armed.
        fate: the fate of that request.
        early: whether it strikes a starting driver, and so the requests of a replay.
        outage: seconds until a killed store restarts; 0: until the driver gives up.
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
    """The faults of a run: `kills` kills, a network fault with each, and rare faults."""
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
    """The cards of a deck, forever; reshuffles the deck after its last card."""
    while True:
        yield from chance.sample(deck, len(deck))


class _Dealer:
    """Assigns moments to faults: uses all points of a kind before it repeats one."""

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
