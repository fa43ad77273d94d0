"""Lets TLC follow schedules of the explorer: does docs/model allow the steps of the code?"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from typing import Any, NamedTuple

from tools.model import tlc
from tools.model.mapping import Fields
from tools.model.paths import MODELS
from tools.model.tlc import tla
from tools.model.trace import PLACES, lines_of

from sparkonce.tck.explore.explorer import profile_of
from sparkonce.tck.explore.frozen import frozen
from sparkonce.tck.explore.scenario import LOSSES
from sparkonce.tck.explore.schedule import Theatre
from sparkonce.tck.explore.tape import Line
from sparkonce.tck.explore.turns import Pool
from sparkonce.tck.memory_subject import PROFILES

LOSES = ("", "suffix", "ledger", "log")
SECONDS = 300.0


class Scene(NamedTuple):
    """The settings that schedules share if TLC can follow them in one run."""

    profile: str
    sink_id: bool
    policy: str
    loss: str

    @property
    def names(self) -> set[str]:
        """The names of its sinks."""
        return {"s"} if self.sink_id else {"a", "b"}

    @property
    def constants(self) -> dict[str, Any]:
        """The constants of the model."""
        return {
            "Drivers": {f"d{place}" for place in PLACES},
            "Queries": {"a", "b"},
            "Profile": self.profile,
            "OneStep": False,
            "SinkId": self.sink_id,
            "Policy": self.policy,
            "Follows": "next",
            "Parts": {1, 2, 3},
            "Sizes": {0, 1, 2},
            "LastEpoch": 1,
            "MaxRuns": 1000,
            "MaxAttempts": 1000,
            "Places": {1},
            "Loss": self.loss,
        }


class Schedule(NamedTuple):
    """One schedule, as lines."""

    seed: int
    lines: list[Fields]


class Stopped(NamedTuple):
    """A schedule that the model does not allow, and the line at which it stops."""

    scene: Scene
    seed: int
    at: int
    line: str


def taped(seeds: Iterable[int], losses: float = LOSSES) -> dict[Scene, list[Schedule]]:
    """Play schedules, and record them."""
    found, pool = defaultdict[Scene, list[Schedule]](list), Pool()
    with frozen() as tokens:
        for seed in seeds:
            name = profile_of(seed, "all")
            played = Theatre(PROFILES[name], pool, tokens, losses).play(
                f"{name}/{seed}", taping=True
            )
            assert not played.rule, played.seen
            lines = lines_of(played.tape, converging=MODELS[name] == "converging")
            scene = _scene(MODELS[name], played.tape[0], lines)
            found[scene].append(Schedule(seed, lines))
    pool.close()
    return found


def _scene(profile: str, first: Line, lines: Sequence[Fields]) -> Scene:
    """The scene of a schedule; with one query or without a loss, a value that others share."""
    owners, acts = first.more["owners"], {line["act"] for line in lines}
    continues = len(owners) == 1 or any(query.on_new_checkpoint for query in owners)
    policy = "repeatable" if owners[0].repeatable else "continue" if continues else "fail"
    loss = LOSES[first.more["loss"]] if "keeps" in acts else "suffix"
    return Scene(profile, bool(owners[0].sink_id), policy, loss)


def stopped(scene: Scene, schedules: Sequence[Schedule]) -> Iterator[Stopped]:
    """The schedules that the model does not allow."""
    names = [f"schedule_{one.seed}" for one in schedules]
    modules = {name: module(name, one, scene) for name, one in zip(names, schedules, strict=True)}
    each = "\n".join(f"{name} == INSTANCE {name}" for name in names)
    all_of_them = ", ".join(f"{name}!Lines" for name in names)
    modules["schedules"] = tlc.module("schedules", "trace", f"{each}\nAll == <<{all_of_them}>>")
    instead = {"Schedules": "All", "Most": "Much", "IsDropped": "AtOnce"}
    cfg = tlc.config(scene.constants, "TraceSpec", instead)
    checked = tlc.run(modules, "schedules", cfg, seconds=SECONDS, quick=True)
    assert checked.is_through, checked.text[-3000:]
    reached = dict.fromkeys(range(1, len(schedules) + 1), 0)
    for which, at in re.findall(r'<<"reached", (\d+), (\d+)>>', checked.text):
        reached[int(which)] = max(reached[int(which)], int(at))
    for which, at in reached.items():
        seed, lines = schedules[which - 1]
        if at < len(lines):
            yield Stopped(scene, seed, at + 1, tla(lines[at]))


def module(name: str, schedule: Schedule, scene: Scene) -> str:
    """A schedule as a separate module."""
    parts = {"log", "rows", "holder", *scene.names}
    lines = [
        {**line, "saw": {part: saw for part, saw in line["saw"].items() if part in parts}}
        for line in schedule.lines
    ]
    text = ",\n  ".join(map(tla, lines))
    return tlc.module(name, "Integers", f"Lines == <<\n  {text}>>")
