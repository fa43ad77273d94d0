"""Injects each kind of fault, holds it, and ends it."""

from __future__ import annotations

import random
import time
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager, suppress

from tools.chaos.drivers import Mode
from tools.partitions import plan
from tools.partitions.cluster import DRIVER
from tools.partitions.plan import Fault
from tools.partitions.world import Struck

from sparkonce.operate.admin import Admin
from sparkonce.operate.arguments import admin_of

AIMS = 20.0
"""Seconds in which an epoch reaches the state at which a fault is to strike."""

GOES_ON = 240.0
"""Seconds after a fault in which every query commits again."""


def strike(world: Struck, fault: Fault, chance: random.Random) -> str:
    """Strike with a fault; return the observed effect."""
    world.need(Mode())
    before, drivers, losses = world.target.leader(), world.drivers, len(world.notes)
    others = [name for name in world.target.machines if name != before]
    one = before if fault.on == plan.LEADER else chance.choice(others)
    moment = _aim(world, fault.moment)
    world.calm = False
    with STRIKES.get(fault.kind, _cut)(world, fault, one, chance):
        world.hold(fault.seconds)
        dropped = _dropped(world, fault)
    world.target.wait_until_whole()
    world.calm = True
    world.advance(1, GOES_ON)
    after = world.target.leader()
    seen = [f"{moment}, {one}", *dropped]
    seen += [f"leader {before} to {after}"] if after != before else []
    seen += [f"{world.drivers - drivers} restarts"] if world.drivers != drivers else []
    seen += [f"named as lost: {what}" for what in world.notes[losses:]]
    return ", ".join(seen)


def _aim(world: Struck, moment: str) -> str:
    """Wait for the state of an epoch; return the state that was reached."""
    if moment == plan.ANY:
        return moment
    admin, limit = admin_of(world.sinks_url, ()), time.monotonic() + AIMS
    epochs: dict[str, int] = {}
    while time.monotonic() < limit:
        world.supervise()
        world.feed()
        with suppress(Exception):  # the store may refuse while another fault ends
            if _reached(admin, moment, epochs):
                return moment
    return plan.ANY


def _reached(admin: Admin, moment: str, epochs: dict[str, int]) -> bool:
    sinks = admin.sinks()
    if moment == plan.STAGED:
        return any(sink.staged and not sink.is_unfinished for sink in sinks)
    if moment == plan.FINISHED:
        whole = (sink for sink in sinks if sink.ledger and not sink.is_unfinished)
        now = {sink.name: sink.ledger.decision.epoch for sink in whole if sink.ledger}
        before = {**epochs}
        epochs.update(now)
        return any(name in before and epoch > before[name] for name, epoch in now.items())
    return any(sink.is_unfinished for sink in sinks)


def _dropped(world: Struck, fault: Fault) -> list[str]:
    """What a cut did; waits for the first packet, without which nothing was cut.

    Raises:
        NotReached: no packet was dropped.
    """
    if fault.kind not in (*plan.CUTS, plan.LOSSY):
        return []
    world.until(lambda: world.network.dropped() > 0, "a link drops a packet", AIMS)
    return [f"{world.network.dropped():,} packets dropped"]


@contextmanager
def _cut(world: Struck, fault: Fault, one: str, chance: random.Random) -> Iterator[None]:
    links = plan.links(fault, one, world.target.machines, DRIVER, chance)
    network = world.network
    try:
        if fault.kind == plan.SLOW:
            network.slow(one)
        elif fault.kind == plan.LOSSY:
            network.lose(links)
        else:
            network.cut(links)
        yield
    finally:
        network.heal()


@contextmanager
def _pause(world: Struck, _: Fault, one: str, __: random.Random) -> Iterator[None]:
    servers = world.target.servers[one]
    for server in servers:
        server.pause()
    try:
        yield
    finally:
        for server in servers:
            server.resume()


@contextmanager
def _kill(world: Struck, _: Fault, one: str, __: random.Random) -> Iterator[None]:
    for server in world.target.servers[one]:
        server.kill()
    yield  # a cluster starts again what has ended


@contextmanager
def _jump(world: Struck, fault: Fault, one: str, _: random.Random) -> Iterator[None]:
    world.target.clocks[one].jump(fault.jump)
    try:
        yield
    finally:
        world.target.clocks[one].jump(0)


@contextmanager
def _fill(world: Struck, _: Fault, one: str, __: random.Random) -> Iterator[None]:
    disk = world.target.disks[one]
    disk.fill()
    try:
        yield
    finally:
        disk.clear()


@contextmanager
def _roll(world: Struck, *_: object) -> Iterator[None]:
    """Restart one machine after the other, each once the cluster is whole."""
    for name in world.target.machines:
        for server in world.target.servers[name]:
            server.restart()
        world.hold(1.0)
        world.target.wait_until_whole()
    yield


Strike = Callable[[Struck, Fault, str, random.Random], AbstractContextManager[None]]
STRIKES: dict[str, Strike] = {
    plan.PAUSED: _pause,
    plan.KILLED: _kill,
    plan.CLOCK: _jump,
    plan.DISK: _fill,
    plan.ROLLING: _roll,
}
"""All other kinds change links."""
