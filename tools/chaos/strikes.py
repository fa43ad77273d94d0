"""Injects each kind of fault. A strike returns the observed effect."""

from __future__ import annotations

import os
import signal
import time
from collections.abc import Callable
from contextlib import suppress
from typing import TYPE_CHECKING

import psutil
from tools.chaos import plan
from tools.chaos.drivers import Broken, ChaosDriver, Mode, NotReached
from tools.chaos.plan import DONE, NEVER, Fault
from tools.chaos.world import PATIENT as PATIENT_FOR
from tools.chaos.world import TIMEOUT, ChaosWorld

if TYPE_CHECKING:
    from tools.chaos.disk import SmallDisk

CLUSTERED, PATIENT = Mode(clustered=True), Mode(clustered=True, patient=True)
GIVES_UP = 180.0
"""Seconds in which a driver has retried, aborted, and ended."""

FULL = 45.0
STOPS_ZOMBIES = {
    *("ConcurrentDriver", "StagedDataMissing", "CheckpointBehindSink", "StoreUnreachable"),
    "CONCURRENT_STREAM_LOG_UPDATE",
}
"""Errors that end a superseded driver: of the connector, of Spark's checkpoint, or of a lost
connection."""


def strike(world: ChaosWorld, fault: Fault, disk: SmallDisk | None) -> str:
    """Strike with a fault; return the observed effect."""
    if fault.kind == plan.DISK and disk:
        return fill_disk(world, disk)
    try:
        return STRIKES[fault.kind](world, fault)
    except (ProcessLookupError, psutil.NoSuchProcess) as error:
        raise NotReached(f"the process to kill has ended: {error}") from None
    finally:
        world.proxy.restore()


def kill_driver(world: ChaosWorld, fault: Fault) -> str:
    _reach(world, fault)
    if not (world.driver and world.driver.alive):
        raise NotReached("the driver has ended by itself")
    world.kill(tree=fault.kind == plan.TREE)
    _let_go(world, fault)
    return ""


def kill_executor(world: ChaosWorld, fault: Fault) -> str:
    owner = psutil.Process(_reach(world, fault, CLUSTERED))
    above = [one for one in owner.parents() if one.name() == "java"]
    if not above:
        raise NotReached("the executor has ended, and its worker still runs")
    above[0].kill()
    _let_go(world, fault)
    return ""


def kill_worker(world: ChaosWorld, fault: Fault) -> str:
    owner, drivers = _reach(world, fault), world.drivers
    os.kill(owner, signal.SIGKILL)
    _let_go(world, fault)
    if fault.point in world.target.in_driver:  # or the next fault strikes a driver without a query
        world.until(lambda: world.drivers > drivers, "the driver ends", GIVES_UP)
    return ""


def zombie(world: ChaosWorld, fault: Fault) -> str:
    """Freeze a driver, start another one that takes over, then wake the first."""
    _commit_first(world, Mode())
    _reach(world, fault, Mode())
    frozen = world.driver
    if frozen is None:
        raise NotReached("the driver has ended before it could be stopped")
    frozen.freeze()
    try:
        if not frozen.alive or frozen.failed:
            raise NotReached("the driver's query had ended before it was stopped")
        world.zombies.append(frozen)
        if fault.fate == DONE:
            world.proxy.restore()
        world.start()
        world.advance(1)
        world.proxy.restore()
        frozen.thaw()
        return f"it ended with {_end_of(world, frozen)}"
    finally:
        frozen.close()


def _commit_first(world: ChaosWorld, mode: Mode) -> None:
    """Run a driver until it commits, so that later errors do not result from the last fault."""
    world.need(mode)
    world.advance(1)


def _end_of(world: ChaosWorld, frozen: ChaosDriver) -> str:
    try:
        world.until(lambda: not frozen.alive, "the zombie ends", 120.0)
    except NotReached:
        raise Broken("two drivers ran on: the zombie did not end") from None
    if wrong := frozen.alarms() - STOPS_ZOMBIES:
        raise Broken(f"the zombie ended with {wrong}")
    name, text = frozen.end()
    if name not in STOPS_ZOMBIES:
        raise NotReached(f"the zombie ended with {name}: {text}")
    return name


def kill_store(world: ChaosWorld, fault: Fault) -> str:
    _reach(world, fault)
    server = world.target.server
    server.kill()
    _let_go(world, fault)
    ended = world.drivers
    try:
        if fault.outage:
            time.sleep(fault.outage)
        else:
            world.until(lambda: world.drivers > ended, "the driver gives up", GIVES_UP)
    finally:
        server.start()
    return f"down for {fault.outage:g} s" if fault.outage else "down until the driver gave up"


def fail_network(world: ChaosWorld, fault: Fault) -> str:
    _reach(world, fault)
    if fault.kind == plan.STALL:
        time.sleep(1.5 * TIMEOUT)
    return ""


def move_slots(world: ChaosWorld, fault: Fault) -> str:
    """Move slots with their keys to another node while a request waits."""
    _reach(world, fault)
    moved = world.target.move()
    _let_go(world, fault)
    return moved


def straggler(world: ChaosWorld, fault: Fault) -> str:
    """Hold a task's request until its twin wins; then let the request arrive."""
    _reach(world, fault, PATIENT)
    world.advance(1, patience=PATIENT_FOR - 10.0)
    return "its epoch was committed meanwhile"


def fill_disk(world: ChaosWorld, disk: SmallDisk) -> str:
    _commit_first(world, world.mode)
    server, drivers, began = world.target.server, world.drivers, time.monotonic()
    disk.fill()
    try:
        world.topic.produce(world.burst)
        if not _gives_up(world, drivers):
            return f"the store did not give up within {FULL:.0f} s"
    finally:
        disk.clear()
        if not (server.alive and server.answers()):
            server.kill()
            server.start()
    what = "the driver" if world.drivers > drivers else "the store"
    return f"{what} gave up after {time.monotonic() - began:.0f} s"


def _gives_up(world: ChaosWorld, drivers: int) -> bool:
    """Whether store or driver gives up; else the store waits, and no query may commit."""
    for seconds in (FULL / 3, 2 * FULL / 3):  # in the first part, started epochs may end
        before = world.epochs()
        with suppress(NotReached):
            world.until(
                lambda: not world.target.server.alive or world.drivers > drivers,
                "the store has no room",
                seconds,
            )
            return True
    if time.monotonic() > world.deadline:
        raise NotReached("the run ended before the effect was visible")
    if world.epochs() != before:
        raise NotReached("queries committed epochs although the disk was full")
    return False


STRIKES: dict[str, Callable[[ChaosWorld, Fault], str]] = {
    plan.DRIVER: kill_driver,
    plan.TREE: kill_driver,
    plan.EXECUTOR: kill_executor,
    plan.WORKER: kill_worker,
    plan.ZOMBIE: zombie,
    plan.STORE: kill_store,
    plan.MOVE: move_slots,
    plan.STRAGGLER: straggler,
    **dict.fromkeys(plan.NETWORK, fail_network),
}


# -- the moment


def _reach(world: ChaosWorld, fault: Fault, mode: Mode | None = None) -> int:
    """Wait for the fault's request, and hold it; return the process that sent it."""
    # A driver on a cluster is slower: once it has ended, the next one runs locally, unless the
    # fault needs a cluster. A patient driver is replaced immediately, because it outlasts faults.
    wanted = mode or (world.mode if world.driver and not world.mode.patient else Mode())
    if fault.early:
        world.bury_dead()  # or the fault strikes requests of the former driver's workers
        world.mode = wanted
    else:
        world.need(wanted)
    before = world.proxy.cuts
    _arm(world, fault)
    world.topic.produce(world.burst)
    world.supervise()
    world.until(lambda: world.proxy.cuts > before, str(fault))
    return _owner(world, fault)


def _arm(world: ChaosWorld, fault: Fault) -> None:
    point, proxy = world.target.points[fault.point], world.proxy
    arm = {
        plan.CUT_REQUEST: proxy.cut_request,
        plan.CUT_REPLY: proxy.cut_reply,
        plan.RESET: proxy.reset,
    }.get(fault.kind, proxy.stall)
    # A killed store sends no reply, and the waiting driver ends before it could get one.
    answered = fault.fate == DONE and fault.kind in (plan.DRIVER, plan.TREE, plan.STORE)
    (proxy.cut_reply if answered else arm)(point, fault.nth)


def _owner(world: ChaosWorld, fault: Fault) -> int:
    """The client process of the connection that the fault hit."""
    if fault.kind not in (plan.EXECUTOR, plan.WORKER):
        return 0
    # A port of a client may serve several connections, to several servers.
    port, doors = world.proxy.hits[-1], world.proxy.ports
    for one in psutil.net_connections("tcp4"):
        if one.pid and one.raddr and one.laddr.port == port and one.raddr.port in doors:
            return one.pid
    raise NotReached(f"no process has port {port} any more")


def _let_go(world: ChaosWorld, fault: Fault) -> None:
    """Let the request arrive, or ensure that it never arrives."""
    if fault.fate == NEVER:
        world.proxy.disconnect()
    world.proxy.restore()
