"""A `Subject`: what a suite needs of the store under test. The connector's author writes it."""

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
"""The rows of every check: a row id, and the number that it adds (always 1)."""


ABILITIES = {"snapshot", "whole epochs", "apply", "unreachable", "refusal", "lines"}
"""Abilities that a store may lack, or that a check may be unable to observe."""


def batch(rows: Sequence[str]) -> pa.RecordBatch:
    """Rows as Spark passes them to a task."""
    return pa.record_batch([pa.array(rows, pa.string()), [1] * len(rows)], schema=SCHEMA)


class Subject(Limited, ABC):
    """One store with its own empty target, created anew for each check.

    A row of `SCHEMA` must show how often it took effect: it adds `n` to a counter named by its id,
    or it is appended. An upsert would hide a row that took effect twice.

    Attributes:
        limits: abilities that this store lacks, with the reason; the kit skips checks that need
            them. ``snapshot``, ``unreachable`` and ``refusal`` are methods here;
            ``whole epochs``: readers see whole epochs; ``apply``: the store also applies epochs
            without publish; ``lines``: a check can interrupt its code at any line.
        pace: for slow stores: with a pace of n, try only every n-th crash point and interleaving;
            from 200 on also fewer calls of the other actor in between (see `interleavings`). The
            environment variable SPARKONCE_TCK_PACE overrides it.
        store: the client that queries use; a check may wrap it.
    """

    abilities = ABILITIES
    pace: int = 1

    @property
    @abstractmethod
    def plan(self) -> Plan[Any]:
        """The plan for rows of `SCHEMA`; it is not repeatable."""

    @abstractmethod
    def connect(self) -> Store:
        """A new client, as another process would have."""

    @abstractmethod
    def encode(self, rows: pa.RecordBatch) -> bytes:
        """Rows as a chunk."""

    @abstractmethod
    def took_effect(self) -> Counter[str]:
        """How often each row id took effect, read from the target in one step: a multiset.

        The kit also calls it from another thread while commits run.
        """

    def unreachable(self) -> Store:
        """A store at an address where no server answers."""
        raise NotImplementedError

    def refuse(self, row: str) -> Callable[[], None]:
        """Make the server reject a row of this id, until the check calls the returned function."""
        raise NotImplementedError

    def snapshot(self) -> Any:
        """The whole state of the server, target included, for `restore`."""
        raise NotImplementedError

    def restore(self, state: Any) -> None:
        """Restore a snapshot, like a store that loses its last writes."""
        raise NotImplementedError

    def settle(self) -> None:
        """Make recent writes visible to listings, as the refresh of a search index does."""
        return

    def contents(self) -> Any:
        """Everything that a reader of the target could see, to compare."""
        return self.took_effect()

    def in_order(self) -> list[str] | None:
        """The rows in the order in which they took effect, or None if the target keeps no order."""
        return None

    @property
    def step(self) -> int:
        """The pace in force."""
        return int(os.environ.get("SPARKONCE_TCK_PACE", self.pace))

    @cached_property
    def store(self) -> Store:
        """The client that queries use unless a check passes another."""
        return self.connect()

    @cached_property
    def observer(self) -> Store:
        """A client without faults, for the check itself."""
        return self.connect()

    def ledger(self, name: str) -> Ledger:
        """A ledger that must exist."""
        found = from_record(self.observer.read(name), name)
        if found is None:
            raise AssertionError(f"no ledger {name!r} in {self.observer.names()}")
        return found


NewSubject = Callable[[], Subject]
"""Creates a subject with an empty target; the fixture `new_subject` returns this function."""
