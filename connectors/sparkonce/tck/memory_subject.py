"""The in-memory store, in its three profiles, as a subject of the suites."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable
from typing import Any, NoReturn

import pyarrow as pa

from sparkonce.errors import RowRefused, StoreUnreachable
from sparkonce.protocol import Plan
from sparkonce.tck.simulation.converging import ConvergingStore
from sparkonce.tck.simulation.memory import MemoryStore
from sparkonce.tck.subject import Subject

PLAN = Plan(target="memory:rows", repeatable=False, columns=2, detail=None, stored={})

PROFILES: dict[str, Callable[[], MemoryStore]] = {
    "whole epochs": MemoryStore,
    "atomic chunks": lambda: MemoryStore(whole_epochs=False),
    "row by row": ConvergingStore,
}


class MemorySubject(Subject):
    """A store in memory.

    Args:
        memory: the store.

    Attributes:
        rows: every row that took effect, in order, with duplicates.
    """

    plan = PLAN
    limits: dict[str, str]

    def __init__(self, memory: MemoryStore) -> None:
        self.memory = memory
        self.rows = memory.rows
        self.limits = {"lines": "the server of this store is in the same process"}
        if not memory.whole_epochs:
            self.limits["whole epochs"] = "this profile applies an epoch in several steps"

    def connect(self) -> MemoryStore:
        """The store itself: it keeps no state of a client."""
        return self.memory

    def unreachable(self) -> MemoryStore:
        """See `Subject.unreachable`."""
        return self.memory.through(_dead)

    def encode(self, rows: pa.RecordBatch) -> bytes:
        """A JSON list of row ids."""
        return json.dumps(rows.column("id").to_pylist()).encode()

    def took_effect(self) -> Counter[str]:
        """See `Subject.took_effect`."""
        return self.memory.link("count", lambda: Counter(self.rows))

    def in_order(self) -> list[str]:
        """See `Subject.in_order`."""
        return list(self.rows)

    def contents(self) -> list[str]:
        """See `Subject.contents`."""
        return self.in_order()

    def refuse(self, row: str) -> Callable[[], None]:
        """See `Subject.refuse`."""
        take = self.memory.take

        def strict(each: str) -> None:
            if each == row:
                raise RowRefused(f"the store rejects row {row}")
            take(each)

        self.memory.take = strict
        return lambda: setattr(self.memory, "take", take)

    def snapshot(self) -> Any:
        """See `Subject.snapshot`."""
        return self.memory.snapshot()

    def restore(self, state: Any) -> None:
        """See `Subject.restore`."""
        self.memory.restore(state)

    def settle(self) -> None:
        """See `Subject.settle`."""
        if isinstance(self.memory, ConvergingStore):
            self.memory.refresh()

    def staged(self) -> int:
        """Chunks in the log, of all sinks."""
        return sum(len(chunks) for chunks in self.memory.log.values())


def _dead(name: str, _: Callable[[], Any], /) -> NoReturn:
    raise StoreUnreachable(f"no server answers {name}")
