"""How safe a write must be before it counts.

https://redis.io/docs/latest/commands/wait, https://redis.io/docs/latest/commands/waitaof
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from sparkonce.errors import StoreUnreachable
from sparkonce.options import Options


@dataclass(frozen=True)
class Durability:
    """What the options ``waitReplicas`` and ``waitAof`` ask for.

    Attributes:
        replicas: that must have a write.
        disks: of replicas that must have it beside the server's own; None if no disk must.
        millis: how long the server waits.
    """

    replicas: int = 0
    disks: int | None = None
    millis: int = 0

    @classmethod
    def of(cls, options: Options) -> Durability:
        """As options say; the server answers before the client's patience is over."""
        millis = int(options["timeout"] * 500)
        return cls(options["waitReplicas"], options["waitAof"], millis)

    def commands(self) -> list[tuple[str | int, ...]]:
        """Commands that wait."""
        found: list[tuple[str | int, ...]] = []
        if self.replicas:
            found.append(("WAIT", self.replicas, self.millis))
        if self.disks is not None:
            found.append(("WAITAOF", 1, self.disks, self.millis))
        return found

    def require(self, reached: Sequence[Any]) -> None:
        """See that it is as safe as was asked.

        Args:
            reached: the answers to the commands.

        Raises:
            StoreUnreachable: it is not.
        """
        answers = list(reached)
        if self.replicas and (got := int(answers.pop(0))) < self.replicas:
            raise _not_safe(f"{got} of {self.replicas} replicas have it", "waitReplicas")
        if self.disks is not None:
            own, others = map(int, answers.pop(0))
            if own < 1 or others < self.disks:
                told = f"it is on {own + others} of {1 + self.disks} disks"
                raise _not_safe(told, "waitAof")


def _not_safe(told: str, option: str) -> StoreUnreachable:
    return StoreUnreachable(
        f"A write to the ledger was not as safe in time as option {option} asks: {told}",
        why="replicas or a disk are away or slow; a failover could take the epoch back",
        todo="look at the replicas; the query goes on once they are back, and loses or doubles"
        " nothing",
    )
