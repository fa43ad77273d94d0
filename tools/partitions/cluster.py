"""The clusters of partition runs: one class for each kind, found by its name in STORE."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Mapping, Sequence
from contextlib import ExitStack, suppress
from dataclasses import replace
from importlib import import_module
from pathlib import Path

from integration.support.servers.process import Place, ServerProcess, wait_until
from tools.chaos.disk import SmallDisk
from tools.chaos.target import Target
from tools.partitions import plan
from tools.partitions.network import Network

DRIVER = "driver"
"""The machine of the driver."""

HEALS = 240.0
"""Seconds in which a cluster is whole again, once all links work."""

CLUSTERS = {
    "redis-sentinel": "sentinel:SafeSentinel",
    "redis-sentinel-one": "sentinel:OneSentinel",
    "redis-sentinel-async": "sentinel:AsyncSentinel",
    "redis-cluster": "redis_cluster:ThreePrimaries",
    "elasticsearch": "elasticsearch:ElasticsearchCluster",
    "galera": "galera:GaleraCluster",
    "group-replication": "group_replication:GroupReplication",
    "semi-sync": "semi_sync:SemiSync",
    "semi-sync-brief": "semi_sync:BriefSemiSync",
}
"""The kinds, by their names in STORE."""

AS_HERE = "these settings"

FAKETIME = "/usr/lib/x86_64-linux-gnu/faketime/libfaketimeMT.so.1"


class Clock:
    """The clock of a machine's servers, which can jump: by Debian's package libfaketime."""

    def __init__(self, file: Path) -> None:
        self._file = file
        self.jump(0)

    @property
    def within(self) -> tuple[str, ...]:
        """The words before a command that lets a program see this clock."""
        # Clocks that measure intervals never jump.
        steady = ("FAKETIME_DONT_FAKE_MONOTONIC=1", "FAKETIME_CACHE_DURATION=1")
        file = f"FAKETIME_TIMESTAMP_FILE={self._file}"
        return "env", f"LD_PRELOAD={FAKETIME}", file, *steady

    def jump(self, seconds: int) -> None:
        """Let the clock differ from the machine's by this many seconds."""
        self._file.write_text(f"{seconds:+d}\n")


class Cluster(Target):
    """Machines with the servers of a store, as the target of a run.

    Attributes:
        machines: their names.
        settings: the settings that decide what the cluster may lose.
        advice: what a user should set.
        skipped: faults that this kind can't have, and why.
        moments: the states of an epoch at which faults can strike.
        unfollowed: why a query can't follow the cluster; empty if one can.
        loses: whether the cluster may lose writes that it acknowledged, with these settings.
        servers: the servers of each machine.
        clocks, disks: the clock and the disk of each machine.
    """

    machines: tuple[str, ...]
    settings: str
    advice = AS_HERE
    skipped: Mapping[str, str] = {}
    moments: Sequence[str] = plan.MOMENTS
    loses, unfollowed = False, ""

    def __init__(self, network: Network, home: Path) -> None:
        self.network = network
        self.clocks = {name: Clock(home / f"clock-{name}") for name in self.machines}
        self.disks = {name: SmallDisk(home / f"disk-{name}") for name in self.machines}
        self.servers: dict[str, list[ServerProcess]] = {name: [] for name in self.machines}

    def place(self, name: str, port: int = 0) -> Place:
        """Where the servers of a machine run."""
        place = self.network.places[name]
        clock = () if plan.CLOCK in self.impossible() else self.clocks[name].within
        return replace(place, within=(*place.within, *clock), port=port)

    def impossible(self) -> dict[str, str]:
        """The faults that this machine or this kind can't have, and why."""
        lacks = "no libfaketime: apt-get install libfaketime"
        return {**({} if Path(FAKETIME).exists() else {plan.CLOCK: lacks}), **self.skipped}

    @classmethod
    def obtain(cls) -> None:
        """Download the servers: the program has no way to the Internet later."""

    @property
    @abstractmethod
    def sink_url(self) -> str:
        """The URL of the sink's option."""

    @abstractmethod
    def leader(self) -> str:
        """The machine of the primary, as most machines see it; the first one if there is none."""

    @abstractmethod
    def is_whole(self) -> bool:
        """Whether all machines work together."""

    def door(self, name: str) -> str:
        """The URL of a machine's own server."""
        return str(self.servers[name][0].url)

    def home_of(self, _key: str) -> str:
        """The URL of the server that has a key, a table or an index."""
        return self.url

    def operate(self) -> None:
        """Do what an operator, or a tool of theirs, does all the time."""

    def start(self, stack: ExitStack) -> None:
        """Start all servers; they and the disks end with the stack."""
        for disk in self.disks.values():
            stack.callback(disk.close)
        for servers in self.servers.values():
            for server in servers:
                stack.enter_context(server)

    def wait_until_whole(self) -> None:
        """Start what has ended, and wait until all machines work together."""
        for server in (one for servers in self.servers.values() for one in servers):
            if not server.alive:
                server.revive()

        def whole() -> bool:
            self.operate()
            with suppress(Exception):  # clients raise various errors while servers start
                return self.is_whole()
            return False

        wait_until(whole, HEALS, "the cluster is not whole")


def maker(name: str) -> type[Cluster]:
    """The class of a kind."""
    module, _, kind = CLUSTERS[name].partition(":")
    found: type[Cluster] = getattr(import_module(f"tools.partitions.{module}"), kind)
    return found
