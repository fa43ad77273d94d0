"""What a suite needs of the store under test: a `Subject`, which a connector's author gives."""

from __future__ import annotations

import os
from abc import ABC, abstractmethod
from collections import Counter
from collections.abc import Callable, Sequence
from functools import cached_property
from typing import Any

import pyarrow as pa

from sparkonce.exactly_once.ledger import Ledger, from_record
from sparkonce.protocol import Plan
from sparkonce.store import Store
from sparkonce.tck.limits import Limited

SCHEMA = pa.schema([("id", pa.string()), ("n", pa.int64())])
"""The rows of every check: a row id, and how much it adds (always 1)."""


ABILITIES = {"snapshot", "whole epochs", "apply", "unreachable", "refusal", "lines"}
"""What a store may not be able to do, or a check may not be able to see of it."""


def batch(rows: Sequence[str]) -> pa.RecordBatch:
    """Rows as Spark hands them to a task."""
    return pa.record_batch([pa.array(rows, pa.string()), [1] * len(rows)], schema=SCHEMA)


class Subject(Limited, ABC):
    """One store with an empty target of its own, made anew for each check.

    A row of `SCHEMA` takes effect in a way that shows how often it did: it adds `n` to a counter
    named by its id, or it is appended. An upsert would hide a row that took effect twice.

    Attributes:
        limits: what can't be done with this store, with the reason, for the checks that need it
            and are then skipped. ``snapshot``, ``unreachable`` and ``refusal`` are methods here;
            ``whole epochs``: readers see whole epochs; ``apply``: epochs are also applied apart
            from publish; ``lines``: its code can be left at any line.
        pace: try every so many-th crash point and interleaving only, for slow stores; from 200 on
            also fewer calls of the other actor in between (see `interleavings`). The environment
            variable SPARKONCE_TCK_PACE sets another.
        store: how queries reach the store; a check may put another one around it.
    """

    abilities = ABILITIES
    pace: int = 1

    @property
    @abstractmethod
    def plan(self) -> Plan[Any]:
        """What is done with rows; not repeatable."""

    @abstractmethod
    def connect(self) -> Store:
        """A client of its own, as another process would have."""

    @abstractmethod
    def encode(self, rows: pa.RecordBatch) -> bytes:
        """Rows as a chunk."""

    @abstractmethod
    def took_effect(self) -> Counter[str]:
        """How often each row id took effect, read from the target in one step: a multiset.

        It is also called in a thread of its own, beside commits.
        """

    def unreachable(self) -> Store:
        """A store at an address where nobody answers."""
        raise NotImplementedError

    def refuse(self, row: str) -> Callable[[], None]:
        """Let the server refuse a row of this id, until what is returned is called."""
        raise NotImplementedError

    def snapshot(self) -> Any:
        """The whole state of the server, target included, for `restore`."""
        raise NotImplementedError

    def restore(self, state: Any) -> None:
        """Go back to a snapshot, as a store does that loses its last writes."""
        raise NotImplementedError

    def settle(self) -> None:
        """Let what is listed late be listed now, as a search index does when it is refreshed."""
        return

    def contents(self) -> Any:
        """Everything that a reader of the target could see, to compare."""
        return self.took_effect()

    def in_order(self) -> list[str] | None:
        """The rows in the order in which they took effect, where the target keeps it."""
        return None

    @property
    def step(self) -> int:
        """The pace that is in force."""
        return int(os.environ.get("SPARKONCE_TCK_PACE", self.pace))

    @cached_property
    def store(self) -> Store:
        """The client that queries use unless a check gives them another."""
        return self.connect()

    @cached_property
    def observer(self) -> Store:
        """A client without faults, for the check itself."""
        return self.connect()

    def ledger(self, name: str) -> Ledger:
        """A ledger that must be there."""
        found = from_record(self.observer.read(name), name)
        if found is None:
            raise AssertionError(f"no ledger {name!r} in {self.observer.names()}")
        return found


NewSubject = Callable[[], Subject]
"""Makes a subject with an empty target; the fixture `new_subject` gives one to each check."""
