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
"""What differs in reasons of one kind: numbers, and what is in quotes (none begins in can't)."""


@dataclass(frozen=True)
class StoredLetter:
    """One row that could not be stored; docs/dead-letters.md says what its parts are.

    Attributes:
        id: names it within its box.
        at: when it was written, as the store shows it.
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
        """Its parts as JSON values."""
        return asdict(self)


class LetterKind(NamedTuple):
    """Letters of one sink for one kind of reason.

    The reason has "..." where the letters differ; `last` is when the last one was written.
    """

    sink: str
    reason: str
    letters: int
    last: str


class Letterbox(Protocol):
    """A table or an index of dead letters."""

    name: str

    def kinds(self) -> list[LetterKind]:
        """What is in it, the most frequent first."""

    def read(self, sink: str | None, most: int) -> list[StoredLetter]:
        """The oldest letters."""

    def drop(self, ids: Collection[str]) -> int:
        """Delete letters; how many of them were there."""


@runtime_checkable
class KeepsLetters(Protocol):
    """A store with dead letters."""

    def letterboxes(self) -> Sequence[Letterbox]:
        """Those that option ``deadLetter`` names, or that are found."""


def kinds(letters: Iterable[tuple[str, str, str]]) -> list[LetterKind]:
    """The kinds of letters, the most frequent first.

    Of each letter it takes the sink, the reason, and when it was written, as `moment` shows it.
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
    """What can be read of entries; a warning tells of the first that is passed over.

    `read` raises one of `codec.UNREADABLE`; `look` says how an operator finds the entry of an id.
    """
    is_told = False
    for id_, entry in entries:
        try:
            wanted = read(entry)
        except UNREADABLE:
            if not is_told:
                said = error_text(
                    f"Entry {id_} of {box}, and perhaps others, is no letter and is passed over",
                    why="something else has written it",
                    todo=f"delete it, once it is looked at: {look(id_)}",
                )
                log.warning("%s", said)
            is_told = True
        else:
            yield wanted


def base64_columns(base64: str) -> tuple[str, ...]:
    """The names of a letter's columns that are kept in base64, from a JSON array."""
    names = json.loads(base64)
    require_kinds({"base64": names}, {"base64": tuple[str, ...]})
    return tuple(names)


def moment(millis: int) -> str:
    """A moment as letters show it."""
    found = datetime.fromtimestamp(millis / 1000, timezone.utc)
    return found.isoformat(timespec="milliseconds")
