"""How `make chaos` brings faults about: whom they hit, and what is no success."""

from __future__ import annotations

import math
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from integration.support.servers.finder import UnavailableError
from tools.chaos import plan, strikes
from tools.chaos.drivers import Mode
from tools.chaos.plan import Fault
from tools.chaos.result import Result
from tools.chaos.run import Run
from tools.chaos.strikes import PATIENT, strike
from tools.chaos.world import Broken, NotReached

PROXY, CLIENT = 7001, 50001


class FakeProxy:
    url = f"redis://127.0.0.1:{PROXY}/0"
    ports = (PROXY,)

    def __init__(self, did: list[str]) -> None:
        self._did = did
        self.hits: list[int] = []

    @property
    def cuts(self) -> int:
        return len(self.hits)

    def stall(self, *_: object) -> None:
        self._did.append("armed")
        self.hits.append(CLIENT)

    cut_request = cut_reply = reset = stall

    def disconnect(self) -> None:
        pass

    restore = disconnect


class FakeWorld:
    """Every event comes at once, unless the test says otherwise."""

    def __init__(self, mode: Mode | None = None) -> None:
        self.did: list[str] = []
        self.proxy, self.mode = FakeProxy(self.did), mode or Mode()
        self.topic = SimpleNamespace(produce=lambda _: None)
        self.target = SimpleNamespace(
            points={"stage": b"", "apply": b""}, in_driver=("apply",), server=FakeServer()
        )
        self.progress = SimpleNamespace(epochs=lambda: {"rows": self.epoch})
        self.driver: Any = self.fake_driver()
        self.zombies: list[Any] = []
        self.burst, self.drivers, self.epoch = 1, 1, 0
        self.needed: list[Mode] = []
        self.deadline = math.inf
        self.advances = True

    def fake_driver(self) -> SimpleNamespace:
        def closes() -> None:
            self.did.append("closed")

        def ends() -> None:
            made.alive = False

        session = SimpleNamespace(freeze=lambda: None, thaw=ends, close=closes)
        made = SimpleNamespace(
            alive=True,
            failed=False,
            session=session,
            alarms=set,
            end=lambda: ("ConcurrentDriver", "another one commits"),
        )
        return made

    def need(self, mode: Mode) -> None:
        self.needed.append(mode)

    def start(self) -> None:
        self.driver = self.fake_driver()

    def advance(self, *_: object, **__: object) -> None:
        self.did.append("advanced")
        if not self.advances:
            raise NotReached("they do not")

    def until(self, event: Callable[[], bool], what: str, _: float = 0.0) -> None:
        if not event():
            raise NotReached(what)

    def supervise(self) -> None:
        pass

    def kill(self, **_: object) -> None:
        self.did.append("killed")

    def bury_dead(self) -> None:
        self.did.append("buried")


class FakeServer:
    alive = True

    def answers(self) -> bool:
        return True


class FakeDisk:
    def __init__(self, world: FakeWorld | None = None) -> None:
        self.did = world.did if world else []

    def fill(self) -> None:
        self.did.append("full")

    def clear(self) -> None:
        pass


def strikes_at(world: Any, fault: Fault, disk: Any = None) -> str:
    return strike(world, fault, disk)


def test_fault_at_a_driver_that_starts_does_not_strike_at_workers_of_the_one_before() -> None:
    world = FakeWorld()
    world.driver = None
    strikes_at(world, Fault(plan.RESET, "apply", early=True))
    assert world.did == ["buried", "armed"]


@pytest.mark.parametrize("kind", [plan.DRIVER, plan.TREE])
def test_driver_that_has_ended_by_itself_does_not_count_as_killed(kind: str) -> None:
    world = FakeWorld()
    world.driver.alive = False
    with pytest.raises(NotReached):
        strikes_at(world, Fault(kind, "apply"))
    assert "killed" not in world.did


def test_patient_driver_is_left_by_faults_that_would_not_make_it_give_up() -> None:
    world = FakeWorld(PATIENT)
    strikes_at(world, Fault(plan.RESET, "apply"))
    assert world.needed == [Mode()]


def test_zombie_is_not_left_behind_where_nobody_takes_over() -> None:
    world = FakeWorld()

    def starts() -> None:
        world.advances = False

    world.start = starts  # type: ignore[method-assign]
    with pytest.raises(NotReached):
        strikes_at(world, Fault(plan.ZOMBIE, "apply"))
    assert world.did == ["advanced", "armed", "advanced", "closed"]


def test_zombie_ends_because_it_was_overtaken() -> None:
    world = FakeWorld()
    assert strikes_at(world, Fault(plan.ZOMBIE, "apply")) == "it ended with ConcurrentDriver"
    assert len(world.zombies) == 1


@pytest.mark.parametrize("ended", [{"alive": False}, {"failed": True}], ids=str)
def test_driver_whose_query_had_ended_before_is_no_zombie(ended: dict[str, bool]) -> None:
    world = FakeWorld()
    vars(world.driver).update(ended)
    with pytest.raises(NotReached, match="had ended"):
        strikes_at(world, Fault(plan.ZOMBIE, "apply"))
    assert world.did[-1] == "closed"
    assert not world.zombies


def test_zombie_that_ends_for_another_reason_shows_nothing() -> None:
    world = FakeWorld()
    world.driver.end = lambda: ("NullPointerException", "")
    with pytest.raises(NotReached, match="NullPointerException"):
        strikes_at(world, Fault(plan.ZOMBIE, "apply"))


def test_zombie_must_not_say_what_is_not_so() -> None:
    world = FakeWorld()
    world.driver.alarms = lambda: {"StoreLostData"}
    with pytest.raises(Broken, match="StoreLostData"):
        strikes_at(world, Fault(plan.ZOMBIE, "apply"))


def test_driver_whose_worker_was_killed_has_ended_before_the_next_fault(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(strikes, "_owner", lambda *_: 13)
    monkeypatch.setattr(strikes.os, "kill", lambda *_: None)
    with pytest.raises(NotReached, match="the driver ends"):
        strikes_at(FakeWorld(), Fault(plan.WORKER, "apply"))
    strikes_at(FakeWorld(), Fault(plan.WORKER, "stage"))  # the task is tried again


def test_worker_that_is_killed_holds_the_connection_to_the_proxy(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    killed: list[int] = []
    held = [(CLIENT, 9092, 11), (PROXY, CLIENT, 12), (CLIENT, PROXY, 13)]
    connections = [
        SimpleNamespace(laddr=SimpleNamespace(port=a), raddr=SimpleNamespace(port=b), pid=pid)
        for a, b, pid in held
    ]
    listener = SimpleNamespace(laddr=SimpleNamespace(port=CLIENT), raddr=(), pid=10)
    monkeypatch.setattr(strikes.psutil, "net_connections", lambda _: [listener, *connections])
    monkeypatch.setattr(strikes.os, "kill", lambda pid, _: killed.append(pid))
    strikes_at(FakeWorld(), Fault(plan.WORKER, "stage"))
    assert killed == [13]


def test_disk_at_which_the_store_waits() -> None:
    assert strikes_at(FakeWorld(), Fault(plan.DISK), FakeDisk()) == "the store waited for 45 s"


def test_disk_is_filled_under_queries_that_go_on() -> None:
    """Else what the fault before has done would be taken for what a full disk does."""
    world = FakeWorld()
    strikes_at(world, Fault(plan.DISK), FakeDisk(world))
    assert world.did == ["advanced", "full"]


def test_disk_that_nobody_feels_is_not_full() -> None:
    world = FakeWorld()

    def goes_on(*_: object) -> None:
        world.epoch += 1
        raise NotReached("neither gives up")

    world.until = goes_on  # type: ignore[method-assign]
    with pytest.raises(NotReached, match="committed all the same"):
        strikes_at(world, Fault(plan.DISK), FakeDisk())


def test_run_that_is_over_shows_nothing_of_a_full_disk() -> None:
    world = FakeWorld()
    world.deadline = 0.0
    with pytest.raises(NotReached, match="over"):
        strikes_at(world, Fault(plan.DISK), FakeDisk())


def run_of(tmp_path: Path) -> Run:
    made = Run(lambda _: None, tmp_path, rows=1, kills=0, seed=1, tell=lambda _: None)  # type: ignore[arg-type,return-value]
    made.result = Result("redis", seed=1, planned=0, versions={}, rows=3)
    return made


@pytest.mark.parametrize(
    ("error", "told"),
    [
        (Broken("no end"), "failover: no end"),
        (UnavailableError("no answer"), "failover: UnavailableError: no answer"),
    ],
    ids=["foreseen", "unforeseen"],
)
def test_what_breaks_a_step_is_told_in_the_record(
    tmp_path: Path, error: Exception, told: str
) -> None:
    def breaks() -> None:
        raise error

    run = run_of(tmp_path)
    run._take(breaks, "failover: ")
    assert run.result.broken == [told]


def test_record_calls_no_fault_early_that_struck_at_a_driver_that_ran(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("tools.chaos.run.strike", lambda *_: "")
    run, world, fault = run_of(tmp_path), FakeWorld(), Fault(plan.RESET, "apply", early=True)
    run._strike(world, fault, None)  # type: ignore[arg-type]
    world.driver = None
    run._strike(world, fault, None)  # type: ignore[arg-type]
    assert [one.fault.early for one in run.result.struck] == [False, True]


def test_reader_must_have_seen_what_was_counted(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("tools.chaos.run.SIGHT", 0.0)
    run, reader = run_of(tmp_path), SimpleNamespace(last=(3, 3))
    run._look(reader, FakeWorld())  # type: ignore[arg-type]
    reader.last = (-1, -1)
    with pytest.raises(Broken, match="the reader saw"):
        run._look(reader, FakeWorld())  # type: ignore[arg-type]
