"""One run: all faults of the plan, one after the other, and the count at the end."""

from __future__ import annotations

import json
import platform
import time
import traceback
from collections.abc import Callable, Mapping
from contextlib import ExitStack, closing
from dataclasses import replace
from functools import partial
from pathlib import Path

import pyspark
from click.testing import CliRunner
from integration.support.servers import kafka
from integration.support.servers.kafka import KafkaProcess
from tools.chaos import disk as small_disk
from tools.chaos import oracle, plan
from tools.chaos.drivers import Broken, ChaosSpark, Mode, NotReached
from tools.chaos.oracle import Reader
from tools.chaos.plan import Fault
from tools.chaos.result import Result, Struck
from tools.chaos.strikes import strike
from tools.chaos.target import Make, Target
from tools.chaos.topic import Topic
from tools.chaos.world import ChaosWorld, fresh

from sparkonce import __version__
from sparkonce.operate.arguments import admin_of
from sparkonce.operate.cli import main as sparkonce

TRIES = 2
LEAST = 5000
"""Events that are produced at a time: so many make an epoch of every kind that a store knows."""

LAST_BREATH = 1.0
"""Seconds in which the requests of those that were killed last have arrived."""

SIGHT = 30.0
"""Seconds in which the reader sees all that there is."""

Tell = Callable[[str], None]


class Run:
    """A run over one store."""

    def __init__(
        self, make: Make, home: Path, *, rows: int, kills: int, seed: int, tell: Tell
    ) -> None:
        self.make, self.home, self.rows, self.kills, self.seed = make, home, rows, kills, seed
        self.tell = tell
        self.began = time.monotonic()

    def __call__(self) -> Result:
        with ExitStack() as stack:
            fresh(self.home)
            why_not = small_disk.why_not()
            disk = None if why_not else small_disk.SmallDisk(self.home / "disk")
            if disk:
                stack.callback(disk.close)
            target = self.make(disk.home if disk else None)
            stack.enter_context(target.server)
            target.prepare()
            self.result = Result(
                store=target.name,
                seed=self.seed,
                planned=self.kills,
                versions=_versions(target),
                asked=self.rows,
            )
            if why_not:
                self.result.skipped[plan.DISK] = why_not
            self.tell(f"{target.name} {target.version}, Kafka {kafka.VERSION}")
            self._run(stack, target, disk)
            self.result.seconds = time.monotonic() - self.began
            self._take(stack.pop_all().close, "tidying up: ")
            return self.result

    def _run(self, stack: ExitStack, target: Target, disk: small_disk.SmallDisk | None) -> None:
        broker = stack.enter_context(KafkaProcess())
        faults = plan.draw(self.seed, self.kills, target, disk=disk is not None)
        world = ChaosWorld(
            target,
            stack.enter_context(target.proxy()),
            Topic(broker.address, self.seed),
            stack.enter_context(closing(ChaosSpark(self.home / "spark"))),
            self.home,
            burst=max(LEAST, self.rows // (2 * len(faults) + 2)),
            deadline=self.began + 300 + 100 * len(faults) + self.rows / 1000,
        )
        stack.callback(world.close)
        reader = stack.enter_context(closing(Reader(target.watch, self.began)))
        striking, looking = partial(self._strike_all, faults, disk), partial(self._look, reader)
        for step in (striking, self._finish, self._count, looking):
            self._take(partial(step, world))
        for name, check in target.last_checks().items():
            self._take(partial(self._check, name, check, world), f"{name}: ")
        reader.close()
        self.result.torn, self.result.reads = reader.torn, reader.reads
        self.result.changes, self.result.pace = reader.changes, reader.samples

    def _take(self, step: Callable[[], None], name: str = "") -> None:
        """Take a step; what breaks it is told, and does not keep the next one from being taken."""
        try:
            step()
        except (Broken, NotReached) as error:
            self.result.broken.append(f"{name}{error}")
        except Exception as error:  # whatever a server or client says
            self.result.broken.append(f"{name}{self._unforeseen(error)}")

    def _unforeseen(self, error: Exception) -> str:
        self.tell(traceback.format_exc())
        return f"{type(error).__name__}: {error}"

    # -- the faults

    def _strike_all(
        self, faults: list[Fault], disk: small_disk.SmallDisk | None, world: ChaosWorld
    ) -> None:
        for number, fault in enumerate(faults, 1):
            seen = self._strike(world, fault, disk)
            epochs = ", ".join(f"{name} {epoch}" for name, epoch in world.epochs().items())
            self._say(world, f"{number}/{len(faults)} {fault}{seen and f': {seen}'} ({epochs})")

    def _strike(self, world: ChaosWorld, fault: Fault, disk: small_disk.SmallDisk | None) -> str:
        began, why = time.monotonic(), ""
        for tries in range(1, TRIES + 1):
            fault = replace(fault, early=fault.early and world.driver is None)
            try:
                seen = strike(world, fault, disk)
            except NotReached as error:
                why = str(error)
                continue
            except Broken:
                raise
            except Exception as error:  # whatever a server or client says; others shall strike yet
                why = self._unforeseen(error)
                continue
            now = time.monotonic()
            at, took = began - self.began, now - began
            epochs = world.epochs()
            self.result.struck.append(Struck(fault, at, took, seen, epochs, tries))
            return seen
        self.result.missed[str(fault)] = why
        return f"MISSED: {why}"

    # -- the end

    def _finish(self, world: ChaosWorld) -> None:
        """Let the queries come to the end of the topic, with nobody in their way."""
        world.topic.produce(max(1, self.rows - world.topic.produced))
        world.need(Mode())
        self._say(world, "no more faults; the queries read to the end")
        world.drain()

    def _count(self, world: ChaosWorld) -> None:
        result, target = self.result, world.target
        world.close()
        result.ends, result.alarms, result.drivers = world.ends(), world.alarms(), world.drivers
        result.epochs = world.epochs()
        time.sleep(LAST_BREATH)
        self._say(world, "counting")
        found = oracle.compare(world.topic.events(), target.rows(), target.counters())
        result.rows, result.lost, result.duplicated = found.rows, found.lost, found.duplicated
        self._say(world, f"lost={found.lost} duplicated={found.duplicated}; sparkonce gc")
        result.leftovers = _gc(target.url)
        result.residue = [*target.residue(), *_unfinished(target.url)]

    def _look(self, reader: Reader, _: ChaosWorld) -> None:
        """A reader that does not see all that was counted could not have seen what is torn."""
        limit, rows = time.monotonic() + SIGHT, self.result.rows
        while reader.last != (rows, rows):
            if time.monotonic() > limit:
                raise Broken(f"the reader saw {reader.last} of {rows} rows on both sides")
            time.sleep(0.1)

    def _check(self, name: str, check: Callable[[ChaosWorld], str], world: ChaosWorld) -> None:
        world.need(Mode())
        self.result.checks[name] = check(world)
        self._say(world, f"{name}: {self.result.checks[name]}")

    def _say(self, world: ChaosWorld, what: str) -> None:
        passed = time.monotonic() - self.began
        self.tell(f"{passed // 60:3.0f}:{passed % 60:02.0f} {world.topic.produced:9,} rows  {what}")


def _gc(url: str) -> int:
    """Attempts that `sparkonce gc` drops with its grace time over."""
    command = ["gc", url, "--grace", "0s", "--yes", "--json"]
    done = CliRunner().invoke(sparkonce, command, catch_exceptions=False)
    if done.exit_code:
        raise Broken(f"sparkonce gc: {done.output}")
    return int(json.loads(done.stdout)["dropped"])


def _unfinished(url: str) -> list[str]:
    return [f"{one.name}: {one.state}" for one in admin_of(url, ()).sinks() if one.is_unfinished]


def _versions(target: Target) -> Mapping[str, str]:
    return {
        "sparkonce": __version__,
        target.name: target.version,
        "pyspark": pyspark.__version__,
        "kafka": kafka.VERSION,
        "python": platform.python_version(),
    }
