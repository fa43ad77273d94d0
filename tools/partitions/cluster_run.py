"""What the runs over a cluster share: machines, faults one after the other, and the result."""

from __future__ import annotations

import random
import time
from contextlib import ExitStack
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from tools.chaos.drivers import NotReached
from tools.chaos.result import RunResult
from tools.chaos.run import ChaosRun
from tools.partitions.cluster import DRIVER, Cluster
from tools.partitions.network import Network
from tools.partitions.plan import Fault
from tools.partitions.strikes import strike
from tools.partitions.world import Struck


@dataclass(kw_only=True)
class ClusterResult(RunResult):
    """The result of a run over one kind of cluster.

    Attributes:
        missed: faults after which a query did not continue, and why.
        skipped: kinds of faults that this machine can't have, and why.
    """

    store: str
    planned: int
    missed: dict[str, str] = field(default_factory=dict)
    skipped: dict[str, str] = field(default_factory=dict)
    lost: int = 0
    duplicated: int = 0

    @property
    def good(self) -> bool:
        """Whether nothing was lost or duplicated in silence, and every fault struck."""
        harm = self.lost or self.duplicated or self.broken or self.alarms or self.missed
        return not harm and self.rows > 0 and len(self.struck) == self.planned


class ClusterRun(ChaosRun):
    """A run over one kind of cluster; `kills` is the number of faults."""

    keeper: Struck
    result: ClusterResult

    def __init__(self, make: type[Cluster], home: Path, **how: Any) -> None:
        super().__init__(home, **how)
        self.make = make
        self.chance = random.Random(f"{self.seed} sides")

    def start(self, stack: ExitStack) -> Cluster:
        """Start the machines; they end with the stack."""
        target = self.make(Network([*self.make.machines, DRIVER]), self.home)
        target.start(stack)
        target.wait_until_whole()
        return target

    def strike(self, fault: Fault) -> str:
        began = time.monotonic()
        try:
            return self.note(fault, began, strike(self.keeper, fault, self.chance))
        except NotReached as error:
            self.result.missed[f"{len(self.result.struck)}: {fault}"] = str(error)
            return f"MISSED: {error}"
