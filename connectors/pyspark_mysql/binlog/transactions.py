"""Transactions by their GTIDs, and what is asked of sets of them."""

from __future__ import annotations

from functools import lru_cache
from typing import NamedTuple, Protocol, TypeAlias
from uuid import UUID


@lru_cache
def source_of(uuid: bytes, tag: str) -> str:
    """What stands before the number of a transaction."""
    return f"{UUID(bytes=uuid)}:{tag}" if tag else str(UUID(bytes=uuid))


class Tagged(NamedTuple):
    """A transaction of MySQL's."""

    uuid: bytes
    tag: str
    number: int

    def __str__(self) -> str:
        return f"{source_of(self.uuid, self.tag)}:{self.number}"


class Domained(NamedTuple):
    """A transaction of MariaDB's."""

    domain: int
    server: int
    number: int

    def __str__(self) -> str:
        return "-".join(map(str, self))


Gtid: TypeAlias = Tagged | Domained


class Gtids(Protocol):
    """Transactions that were read, or that a server has."""

    def lacks(self, other: str) -> str:
        """Those of the others that are none of these; empty if there are none."""

    def joined(self, other: str) -> str:
        """These and the others."""

    def to(self, end: str) -> Stretch:
        """What lies between these and `end`."""

    def many(self, end: str) -> int:
        """How many those are, where numbers are given one after the other."""


class Stretch(Protocol):
    """Transactions that are to be read, each of which the log has once."""

    @property
    def done(self) -> bool:
        """Whether all of them were taken."""

    def wants(self, gtid: Gtid) -> bool:
        """Whether a transaction is one of them."""

    def take(self, gtid: Gtid) -> None:
        """Count one of them as read."""

    def missing(self) -> str:
        """Those that were not taken; empty if all were."""

    def reached(self) -> str:
        """All that is read then, those included that were read before."""


class Everything:
    """A `Stretch` that has no end: all that the log has."""

    done = False

    def wants(self, gtid: Gtid) -> bool:  # noqa: ARG002 (any)
        """See `Stretch.wants`."""
        return True

    def take(self, gtid: Gtid) -> None:
        """See `Stretch.take`."""

    def missing(self) -> str:
        """See `Stretch.missing`."""
        return ""

    def reached(self) -> str:
        """See `Stretch.reached`."""
        return ""
