"""One run: strikes with all faults of the plan, one after the other, and counts at the end."""

from __future__ import annotations

import json
import platform
import time
import traceback
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack, closing
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import pyspark
from click.testing import CliRunner
from integration.support.servers import kafka
from integration.support.servers.kafka import KafkaProcess
from tools.chaos import disk as small_disk
from tools.chaos import oracle, plan
from tools.chaos.drivers import Broken, ChaosSpark, DriverKeeper, Mode, NotReached
from tools.chaos.oracle import Reader
from tools.chaos.plan import Fault
from tools.chaos.result import Result, RunResult, Struck
from tools.chaos.strikes import strike
from tools.chaos.target import Make, Target
from tools.chaos.topic import Topic
from tools.chaos.world import ChaosWorld, fresh

from sparkonce import __version__
from sparkonce.operate.arguments import admin_of
from sparkonce.operate.cli import main as sparkonce

TRIES = 2
LEAST = 5000
"""The least events in one burst: enough for an epoch of every kind that a store has."""

LAST_BREATH = 1.0
"""Seconds in which the last requests of killed processes arrive."""

SIGHT = 30.0
"""Seconds in which the reader must see all rows."""

Tell = Callable[[str], None]


class ChaosRun(ABC):
    """A run of any kind: faults one after the other, the end, and the result.

    Attributes:
        keeper: keeps drivers running.
        result: the result so far.
    """

    keeper: DriverKeeper
    result: RunResult

    def __init__(self, home: Path, *, rows: int, kills: int, seed: int, tell: Tell) -> None:
        self.home, self.rows, self.kills, self.seed, self.tell = home, rows, kills, seed, tell
        self.began = time.monotonic()

    def __call__(self) -> RunResult:
        fresh(self.home)
        with ExitStack() as stack:
            self.run(stack)
            self.result.seconds = time.monotonic() - self.began
            self.take(stack.pop_all().close, "tidying up: ")
        return self.result

    @abstractmethod
    def run(self, stack: ExitStack) -> None:
        """Run; processes and servers end with the stack."""

    @abstractmethod
    def strike(self, fault: Any) -> str:
        """Strike with a fault, and record it; return the observed effect."""

    def take(self, step: Callable[[], None], name: str = "") -> None:
        """Run a step; record its error, so that the next step runs anyway."""
        try:
            step()
        except (Broken, NotReached) as error:
            self.result.broken.append(f"{name}{error}")
        except Exception as error:  # servers and clients raise various errors
            self.result.broken.append(f"{name}{self.unforeseen(error)}")

    def unforeseen(self, error: Exception) -> str:
        self.tell(traceback.format_exc())
        return f"{type(error).__name__}: {error}"

    def strike_all(self, faults: Sequence[object]) -> None:
        for number, fault in enumerate(faults, 1):
            seen = self.strike(fault)
            epochs = ", ".join(f"{name} {epoch}" for name, epoch in self.keeper.epochs().items())
            self.say(f"{number}/{len(faults)} {fault}{seen and f': {seen}'} ({epochs})")

    def note(self, fault: object, began: float, seen: str, tries: int = 1) -> str:
        """Record a fault that struck; return the observed effect."""
        at, took = began - self.began, time.monotonic() - began
        self.result.struck.append(Struck(fault, at, took, seen, self.keeper.epochs(), tries))
        return seen

    def judge(self) -> None:
        """End the drivers, and record how they ended."""
        self.keeper.close()
        result, keeper = self.result, self.keeper
        result.ends, result.alarms = keeper.ends(), keeper.alarms()
        result.drivers, result.epochs = keeper.drivers, keeper.epochs()

    def say(self, what: str) -> None:
        passed = time.monotonic() - self.began
        self.tell(f"{passed // 60:3.0f}:{passed % 60:02.0f} {what}")


class Run(ChaosRun):
    """A run over one store."""

    keeper: ChaosWorld
    result: Result

    def __init__(self, make: Make, home: Path, **how: Any) -> None:
        super().__init__(home, **how)
        self.make = make

    def run(self, stack: ExitStack) -> None:
        why_not = small_disk.why_not()
        self.disk = None if why_not else small_disk.SmallDisk(self.home / "disk")
        if self.disk:
            stack.callback(self.disk.close)
        target = self.make(self.disk.home if self.disk else None)
        stack.enter_context(target.server)
        target.prepare()
        self.result = Result(
            store=target.name,
            seed=self.seed,
            planned=self.kills,
            versions=versions(target),
            asked=self.rows,
        )
        if why_not:
            self.result.skipped[plan.DISK] = why_not
        self.tell(f"{target.name} {target.version}, Kafka {kafka.VERSION}")
        broker = stack.enter_context(KafkaProcess())
        faults = plan.draw(self.seed, self.kills, target, disk=self.disk is not None)
        self.keeper = ChaosWorld(
            target,
            stack.enter_context(target.proxy()),
            Topic(broker.address, self.seed),
            stack.enter_context(closing(ChaosSpark(self.home / "spark"))),
            self.home,
            burst=max(LEAST, self.rows // (2 * len(faults) + 2)),
            deadline=self.began + 300 + 100 * len(faults) + self.rows / 1000,
        )
        stack.callback(self.keeper.close)
        reader = stack.enter_context(closing(Reader(target.watch, self.began)))
        looking = partial(self._look, reader)
        for step in (partial(self.strike_all, faults), self._finish, self._count, looking):
            self.take(step)
        for name, check in target.last_checks().items():
            self.take(partial(self._check, name, check), f"{name}: ")
        reader.close()
        self.result.torn, self.result.reads = reader.torn, reader.reads
        self.result.changes, self.result.pace = reader.changes, reader.samples

    def strike(self, fault: Fault) -> str:
        began, why = time.monotonic(), ""
        for tries in range(1, TRIES + 1):
            fault = replace(fault, early=fault.early and self.keeper.driver is None)
            try:
                seen = strike(self.keeper, fault, self.disk)
            except NotReached as error:
                why = str(error)
            except Broken:
                raise
            except Exception as error:  # servers and clients raise various errors; faults continue
                why = self.unforeseen(error)
            else:
                return self.note(fault, began, seen, tries)
        self.result.missed[str(fault)] = why
        return f"MISSED: {why}"

    # -- the end

    def _finish(self) -> None:
        """Let the queries read to the end of the topic, without faults."""
        world = self.keeper
        world.topic.produce(max(1, self.rows - world.topic.produced))
        world.need(Mode())
        self.say("no more faults; the queries read to the end")
        world.drain()

    def _count(self) -> None:
        self.judge()
        time.sleep(LAST_BREATH)
        self.say("counting")
        result, target = self.result, self.keeper.target
        found = oracle.compare(self.keeper.topic.events(), target.rows(), target.counters())
        result.rows, result.lost, result.duplicated = found.rows, found.lost, found.duplicated
        self.say(f"lost={found.lost} duplicated={found.duplicated}; sparkonce gc")
        result.leftovers = _gc(target.url)
        result.residue = [*target.residue(), *_unfinished(target.url)]

    def _look(self, reader: Reader) -> None:
        """Check that the reader sees all counted rows, or it could have missed a torn epoch."""
        limit, rows = time.monotonic() + SIGHT, self.result.rows
        while reader.last != (rows, rows):
            if time.monotonic() > limit:
                raise Broken(f"the reader saw {reader.last} of {rows} rows on both sides")
            time.sleep(0.1)

    def _check(self, name: str, check: Callable[[ChaosWorld], str]) -> None:
        self.keeper.need(Mode())
        self.result.checks[name] = check(self.keeper)
        self.say(f"{name}: {self.result.checks[name]}")

    def say(self, what: str) -> None:
        super().say(f"{self.keeper.topic.produced:9,} rows  {what}")


def _gc(url: str) -> int:
    """The number of attempts that `sparkonce gc --grace 0s` drops."""
    command = ["gc", url, "--grace", "0s", "--yes", "--json"]
    done = CliRunner().invoke(sparkonce, command, catch_exceptions=False)
    if done.exit_code:
        raise Broken(f"sparkonce gc: {done.output}")
    return int(json.loads(done.stdout)["dropped"])


def _unfinished(url: str) -> list[str]:
    return [f"{one.name}: {one.state}" for one in admin_of(url, ()).sinks() if one.is_unfinished]


def versions(target: Target) -> Mapping[str, str]:
    """The releases of everything that a run over Kafka uses."""
    return {
        "sparkonce": __version__,
        target.name: target.version,
        "pyspark": pyspark.__version__,
        "kafka": kafka.VERSION,
        "python": platform.python_version(),
    }
