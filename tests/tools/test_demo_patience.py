"""The demo waits for a driver that works, and for no other. No server and no Spark runs here."""

from __future__ import annotations

import io
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple, cast

import psutil
import pytest
from demo import patience
from demo.launch import DemoDriver
from demo.ledgers import STREAMS, Ledgers, Stream
from demo.patience import LIMIT, MINUTE, STEP, WORK, Cpu, Patience
from demo.process import Child
from demo.run import Run
from demo.show import Board
from demo.trouble import Trouble
from rich.console import Console

HOUR = 60 * MINUTE
IDLE = 0.4 / MINUTE
"""The most that a driver which waits uses of a core, as measured."""


class Times(NamedTuple):
    user: float
    system: float


class Process:
    """Uses CPU as the test tells it."""

    def __init__(self, used: float = 0.0) -> None:
        self.used, self.gone = used, False

    def cpu_times(self) -> Times:
        if self.gone:
            raise psutil.NoSuchProcess(1)
        return Times(self.used * 0.75, self.used * 0.25)


class Driver(DemoDriver):
    """Its log is not in the project."""

    @property
    def shown_log(self) -> Path:
        return Path(self.log.name)


class World:
    """A driver, its ledgers, and the time, which moves on with each look at the ledgers.

    Attributes:
        turn: the seconds from one look to the next.
        happens: what the driver does in a turn, by the time that it is then.
        looks: how often its processes were asked for.
    """

    status = None

    def __init__(self, log: Path) -> None:
        self.log, self.told = log, io.StringIO()
        self.now, self.turn = 0.0, 1.0
        self.happens: Callable[[float], object] = lambda _: None
        self.rows = self.looks = 0
        self.java = Process()
        self.processes = [self.java]
        self.writes("")

    def clock(self) -> float:
        return self.now

    def family(self) -> list[psutil.Process]:
        self.looks += 1
        return cast("list[psutil.Process]", list(self.processes))

    def read(self) -> dict[str, Stream]:
        self.now += self.turn
        self.happens(self.now)
        return {**dict.fromkeys(STREAMS, Stream()), STREAMS[0]: Stream(rows=self.rows)}

    def works(self, share: float) -> None:
        """Use this share of a core for a turn."""
        self.java.used += share * self.turn

    def writes(self, text: str) -> None:
        with self.log.open("a") as log:
            log.write(text)

    def follow(self, until: float) -> None:
        """What the demo does as long as it waits for rows."""
        driver = Driver("", Path(), Path(), Path(), self.log)
        board = Board(Console(file=self.told, width=200), 100, self.clock)
        run = Run(driver, cast("Ledgers", self), board, 100, self.clock)
        run._follow(cast("Child", self), lambda _: self.now >= until, pause=0)

    def states(self) -> list[str]:
        """What the lines tell behind the counts."""
        return [line.split("; ")[1] for line in self.told.getvalue().splitlines()]


@pytest.fixture
def world(tmp_path: Path) -> World:
    return World(tmp_path / "driver.log")


def test_a_driver_that_uses_cpu_is_waited_for_with_a_line_a_minute(world: World) -> None:
    world.happens = lambda _: world.works(0.1)
    world.follow(HOUR)
    first, second, *others = world.states()
    assert first == "Spark starts"
    assert second == "Spark starts: the driver used 5.5 s of CPU in the last 55 s"
    assert others == ["Spark starts: the driver used 6.0 s of CPU in the last 60 s"] * 58


def test_a_driver_that_only_writes_to_its_log_is_waited_for(world: World) -> None:
    world.happens = lambda now: world.writes("again\n") if now % 500 == 0 else None
    world.follow(HOUR)
    wrote = (
        "Spark starts: the driver used 0.0 s of CPU and wrote 6 bytes to its log in the last 60 s"
    )
    assert wrote in world.states()


def test_a_driver_that_only_waits_is_given_up_after_ten_minutes(world: World) -> None:
    world.writes("the last\nwords\n")
    world.happens = lambda _: world.works(IDLE)
    with pytest.raises(Trouble) as raised:
        world.follow(HOUR)
    assert LIMIT <= world.now <= LIMIT + 2 * STEP
    text = str(raised.value)
    assert "No row came for 10 min, and for 10 min the driver used less than 1.2 s of CPU" in text
    assert "wrote nothing to its log" in text
    assert "Start the demo again" in text
    assert text.endswith("The end of driver.log:\nthe last\nwords")


def test_it_tells_how_long_the_driver_does_nothing(world: World) -> None:
    world.follow(5 * MINUTE)
    nothing = "the driver has done nothing for {} min, the demo gives up after 10 min"
    assert world.states()[2:] == [f"Spark starts: {nothing.format(n)}" for n in (2, 3, 4)]


def test_the_ten_minutes_begin_when_the_work_ends(world: World) -> None:
    world.happens = lambda now: world.works(0.1 if now < HOUR else IDLE)
    with pytest.raises(Trouble, match="No row came for 71 min, and for 10 min"):
        world.follow(2 * HOUR)
    # A whole minute tells work from housekeeping, so it has to pass, too.
    assert HOUR + LIMIT <= world.now <= HOUR + LIMIT + MINUTE + STEP


def test_the_ten_minutes_begin_anew_with_a_row(world: World) -> None:
    world.happens = lambda now: setattr(world, "rows", int(now // (9 * MINUTE)))
    world.follow(HOUR)
    states = world.states()
    row = next(n for n, state in enumerate(states) if state.startswith("running"))
    assert "nothing for 8 min" in states[row - 1]
    assert "nothing" not in states[row]
    assert "nothing for 2 min" in states[row + 2]


def test_what_was_done_before_a_row_is_no_work_behind_it(world: World) -> None:
    def happens(now: float) -> None:
        world.works(0.1 if now < 5 * MINUTE else 0)
        world.rows = int(now > 5 * MINUTE)

    world.happens = happens
    with pytest.raises(Trouble, match="No row came for 10 min"):
        world.follow(10 * MINUTE + LIMIT)
    assert world.now <= 5 * MINUTE + LIMIT + 3 * STEP


@pytest.mark.parametrize("listed", [False, True])
def test_a_process_that_ends_is_neither_work_nor_an_error(world: World, listed: bool) -> None:
    """It is gone before the demo lists it, or before the demo asks what it used."""
    worker = Process(used=100.0)
    world.processes.append(worker)
    waiting = Patience(world.family, world.log, world.clock)

    def wait(seconds: float) -> None:
        world.now += seconds
        waiting.look()

    wait(STEP)
    worker.gone = True
    if not listed:
        world.processes.remove(worker)
    for _ in range(9):
        wait(MINUTE)
    assert "nothing for 9 min" in waiting.tell("running")
    world.java.used += 2 * WORK  # less than what went with the worker
    wait(STEP)
    assert waiting.tell("running").startswith("running: the driver used 2.4 s of CPU")


def test_what_a_new_process_uses_is_work(world: World) -> None:
    def happens(now: float) -> None:
        if now % MINUTE == 0:
            world.processes = [Process(used=2 * WORK)]

    world.happens = happens
    world.follow(HOUR)


def test_a_look_that_comes_late_sees_what_was_done_meanwhile(world: World) -> None:
    """The demo was stopped for an hour, by Ctrl-Z, and its driver was not."""
    world.turn = HOUR
    world.happens = lambda _: world.works(0.1)
    world.follow(5 * HOUR)


def test_the_demo_looks_at_processes_seldom_and_never_while_rows_arrive(world: World) -> None:
    world.turn = 0.001
    world.follow(3.5 * STEP)
    assert world.looks == 3
    world.happens = lambda now: setattr(world, "rows", int(now))
    world.follow(world.now + 3 * STEP)
    assert world.looks == 3


@pytest.mark.parametrize(("does", "works"), [("while True: pass", True), ("sleep(600)", False)])
def test_it_tells_a_real_process_that_works_from_one_that_waits(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, does: str, works: bool
) -> None:
    """The process is the child of a child, as Python's workers are."""
    monkeypatch.setattr(patience, "WORK", 0.1)
    parent = "import subprocess, sys; subprocess.run([sys.executable, '-c', sys.argv[1]])"
    child = f"from time import sleep\nprint('ready', flush=True)\n{does}"
    log, now = tmp_path / "log", 0.0
    with Child([sys.executable, "-c", parent, child], log, tmp_path) as driver:
        _wait(lambda: log.stat().st_size > 0, 60)
        waiting = Patience(driver.family, log, lambda: now)
        now += STEP
        waiting.look()
        cpu = Cpu(driver.family)
        before = cpu.total()
        _wait(lambda: cpu.total() - before > 0.1, 60 if works else 1)
        now += LIMIT
        waiting.look()
    assert waiting.exhausted is not works


def _wait(happened: Callable[[], bool], seconds: float) -> None:
    ends = time.monotonic() + seconds
    while not happened() and time.monotonic() < ends:
        time.sleep(0.05)
