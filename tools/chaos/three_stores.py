"""Chaos runs over Redis, MySQL and Elasticsearch together: what their faults share."""

from __future__ import annotations

import random
import time
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any, ClassVar, Protocol

import psutil
from integration.support.proxy import Predicate, Proxy
from tools.chaos.drivers import DriverKeeper, NotReached
from tools.chaos.plan import DRIVER, TREE, WORKER
from tools.chaos.result import RunResult
from tools.chaos.run import ChaosRun

KILLED = {name: f"{name} killed" for name in ("redis", "mysql", "elasticsearch")}
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
    """

    name: ClassVar[str]
    kills: int
    lost: dict[str, int] = field(default_factory=dict)
    duplicated: dict[str, int] = field(default_factory=dict)

    @property
    def good(self) -> bool:
        """Whether each target holds what it should, and no promise was broken."""
        wrong = sum(self.lost.values()) + sum(self.duplicated.values())
        return bool(self.lost) and not (wrong or self.alarms or self.broken)

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
            return "the driver had ended"
        inside = psutil.Process(driver.process.pid).children(recursive=True)
        workers = [one for one in inside if one.is_running() and "pyspark.daemon" in _said(one)]
        if not workers:
            return "no worker was running"
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
        with suppress(NotReached):
            self.keeper.until(lambda: proxy.cuts > before, request, 30.0)
        proxy.restore()
        return "" if proxy.cuts > before else "the request did not arrive"


def _said(process: psutil.Process) -> str:
    try:
        return " ".join(process.cmdline())
    except psutil.Error:
        return ""
