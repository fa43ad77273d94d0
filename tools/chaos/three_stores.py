"""Chaos runs over Redis, MySQL and Elasticsearch together: what their faults share."""

from __future__ import annotations

import random
import time
from abc import abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, ClassVar, Protocol

import psutil
from integration.support.proxy import Predicate, Proxy
from tools.chaos.drivers import DriverKeeper, NotReached
from tools.chaos.plan import DRIVER, TREE, WORKER
from tools.chaos.result import RunResult
from tools.chaos.run import ChaosRun

KILLED = {name: f"{name} killed" for name in ("redis", "mysql", "elasticsearch")}
TRIES = 3
FEED = 300
"""Rows in one write to the sources."""


class Stores(Protocol):
    """The servers by name, and a proxy for each, which queries use."""

    servers: dict[str, Any]
    proxies: dict[str, Proxy]


@dataclass(kw_only=True)
class ThreeStoresResult(RunResult):
    """The result of a run over three stores.

    Attributes:
        lost: by target, rows that are missing or stale.
        duplicated: by target, effects that no source has.
        missed: faults that did not strike, and why.
    """

    name: ClassVar[str]
    kills: int
    lost: dict[str, int] = field(default_factory=dict)
    duplicated: dict[str, int] = field(default_factory=dict)
    missed: dict[str, str] = field(default_factory=dict)

    @property
    def good(self) -> bool:
        """Whether each target holds what it should, all faults struck, and no promise broke."""
        wrong = sum(self.lost.values()) + sum(self.duplicated.values())
        return bool(self.lost) and not (wrong or self.alarms or self.broken or self.missed)

    @property
    def line(self) -> str:
        lost, more = (sum(one.values()) for one in (self.lost, self.duplicated))
        return (
            f"chaos: {self.name} rows={self.rows} faults={len(self.struck)} lost={lost}"
            f" duplicated={more}"
        )


class ThreeStoresRun(ChaosRun):
    """A run over three stores.

    Attributes:
        requests: the kinds of requests at which the network fails: the store and a predicate.
    """

    keeper: DriverKeeper
    result: ThreeStoresResult
    stores: Stores
    chance: random.Random
    requests: Mapping[str, tuple[str, Predicate]]

    def inject(self, fault: str) -> str:
        """Strike with a fault; return the observed effect."""
        if fault in (DRIVER, TREE):
            self.keeper.supervise()
            self.keeper.kill(tree=fault == TREE)
            return ""
        if fault == WORKER:
            return self._kill_worker()
        for name, kind in KILLED.items():
            if fault == kind:
                return self._kill_server(name)
        return self._fail_network(*fault.split(" at ", 1))

    def strike(self, fault: str) -> str:
        """Strike with a fault, again if it does not happen, and record it."""
        why = ""
        for tries in range(1, TRIES + 1):
            self.approach(fault)
            began = time.monotonic()
            try:
                seen = self.inject(fault)
            except NotReached as error:
                why = str(error)
            else:
                return self.note(fault, began, seen, tries)
        self.result.missed[fault] = why
        return f"MISSED: {why}"

    @abstractmethod
    def approach(self, fault: str) -> None:
        """Feed the queries, and let them run until the fault."""

    def run_for(self, seconds: float) -> None:
        """Let the queries run for a time."""
        limit = time.monotonic() + seconds
        while time.monotonic() < limit:
            self.tend()
            time.sleep(0.05)

    def tend(self) -> None:
        """Restart what has ended."""
        self.keeper.supervise()

    def _kill_worker(self) -> str:
        driver = self.keeper.driver
        if driver is None or not driver.alive:
            raise NotReached("the driver had ended")
        inside = psutil.Process(driver.process.pid).children(recursive=True)
        workers = [one for one in inside if one.is_running() and "pyspark.daemon" in _said(one)]
        if not workers:
            raise NotReached("no worker was running")
        self.chance.choice(workers).kill()
        return f"one of {len(workers)}"

    def _kill_server(self, name: str) -> str:
        server, away = self.stores.servers[name], self.chance.choice((0.0, 2.0, 6.0))
        server.kill()
        self.run_for(away)
        server.start()
        return f"down for {away:g} s"

    def _fail_network(self, kind: str, request: str) -> str:
        name, matching = self.requests[request]
        proxy = self.stores.proxies[name]
        before = proxy.cuts
        (proxy.reset if kind == "reset" else proxy.cut_reply)(matching, self.chance.randint(1, 3))
        self.keeper.feed()
        try:
            self.keeper.until(lambda: proxy.cuts > before, request, 30.0)
        finally:
            proxy.restore()
        return ""


def _said(process: psutil.Process) -> str:
    try:
        return " ".join(process.cmdline())
    except psutil.Error:
        return ""
