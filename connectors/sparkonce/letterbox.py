"""Dead letters as a store keeps them, for ``sparkonce letters``."""

from __future__ import annotations

import json
import logging
import re
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from dataclasses import asdict, dataclass
from datetime import datetime, timezone
from typing import NamedTuple, Protocol, TypeVar, runtime_checkable

from sparkonce.codec import UNREADABLE, require_kinds
from sparkonce.errors import error_text

log = logging.getLogger("sparkonce")

E = TypeVar("E")
T = TypeVar("T")

VARIES = r"(?<![A-Za-z])'[^']*'|[0-9]+"
"""The varying parts in reasons of one kind: numbers, and quoted text (not after can't)."""


@dataclass(frozen=True)
class StoredLetter:
    """One dead letter; docs/dead-letters.md describes its parts.

    Attributes:
        id: identifies it within its box.
        at: the time of its write, as the store shows it.
    """

    id: str
    at: str
    sink: str
    epoch: int
    partition: int | None
    target: str
    reason: str
    key: str
    row: str
    base64: tuple[str, ...]

    def to_json(self) -> dict[str, object]:
        """The parts as JSON values."""
        return asdict(self)


class LetterKind(NamedTuple):
    """Letters of one sink with one kind of reason.

    The reason has "..." where the letters differ; `last` is the time of the last one.
    """

    sink: str
    reason: str
    letters: int
    last: str


class Letterbox(Protocol):
    """A table or an index of dead letters."""

    name: str

    def kinds(self) -> list[LetterKind]:
        """The kinds of its letters, the most frequent first."""

    def read(self, sink: str | None, most: int) -> list[StoredLetter]:
        """The oldest letters."""

    def drop(self, ids: Collection[str]) -> int:
        """Delete letters; returns how many of them existed."""


@runtime_checkable
class KeepsLetters(Protocol):
    """A store with dead letters."""

    def letterboxes(self) -> Sequence[Letterbox]:
        """The boxes that option ``deadLetter`` names, or all that the store finds."""


def kinds(letters: Iterable[tuple[str, str, str]]) -> list[LetterKind]:
    """The kinds of letters, the most frequent first.

    Each letter is its sink, its reason, and its time as `moment` shows it.
    """
    counts: Counter[tuple[str, str]] = Counter()
    last: dict[tuple[str, str], str] = {}
    for sink, reason, at in letters:
        kind = sink, re.sub(VARIES, "...", reason)
        counts[kind] += 1
        last[kind] = max(last.get(kind, ""), at)
    return [LetterKind(*kind, count, last[kind]) for kind, count in counts.most_common()]


def readable(
    box: str,
    entries: Iterable[tuple[str, E]],
    read: Callable[[E], T],
    look: Callable[[str], str],
) -> Iterator[T]:
    """The readable entries; a warning names the first that is skipped.

    `read` raises one of `codec.UNREADABLE` for an unreadable one. `look` says how an operator finds
    the entry of an id.
    """
    has_warned = False
    for id_, entry in entries:
        try:
            wanted = read(entry)
        except UNREADABLE:
            if not has_warned:
                said = error_text(
                    f"Skipping entry {id_} of {box}, and perhaps others: it is not a dead letter",
                    why="another program wrote it",
                    todo=f"inspect it, then delete it: {look(id_)}",
                )
                log.warning("%s", said)
            has_warned = True
        else:
            yield wanted


def base64_columns(base64: str) -> tuple[str, ...]:
    """The names of a letter's columns that are kept in base64, from a JSON array."""
    names = json.loads(base64)
    require_kinds({"base64": names}, {"base64": tuple[str, ...]})
    return tuple(names)


def moment(millis: int) -> str:
    """A Unix time in milliseconds as letters show it."""
    found = datetime.fromtimestamp(millis / 1000, timezone.utc)
    return found.isoformat(timespec="milliseconds")
