"""Streams of dead letters, as ``sparkonce letters`` shows them."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator
from itertools import islice
from typing import Any

from pyspark_redis.journal.records import text
from pyspark_redis.server.session import Session
from sparkonce.letterbox import Kind, StoredLetter, armored, kinds, moment, readable

PAGE = 500
"""Letters that one answer holds."""


def boxes(session: Session) -> Iterator[Box]:
    """The streams of dead letters that there are; a key of another type is none."""
    with session.asking("looking for dead letters"):
        pattern = session.key("letters", "*")
        names = session.client.scan_iter(pattern, count=10_000, _type="stream")
        found = sorted(text(name) for name in names)
    return (Box(session, name.removeprefix(session.key("letters", ""))) for name in found)


class Box:
    """See `sparkonce.letterbox.Letterbox`. Entries that are no letters are passed over."""

    def __init__(self, session: Session, name: str) -> None:
        self.session, self.name, self.key = session, name, session.key("letters", name)

    def kinds(self) -> list[Kind]:
        """See `Letterbox.kinds`."""
        return kinds((one.sink, one.reason, one.at) for one in self._all(PAGE))

    def read(self, sink: str | None, most: int) -> list[StoredLetter]:
        """See `Letterbox.read`."""
        found = (one for one in self._all(min(most, PAGE)) if sink in (None, one.sink))
        return list(islice(found, most))

    def drop(self, ids: Collection[str]) -> int:
        """See `Letterbox.drop`."""
        named = [one for one in ids if re.fullmatch(r"\d+-\d+", one)]
        if not named:
            return 0
        with self.session.asking(f"deleting dead letters in {self.name}"):
            return int(self.session.client.xdel(self.key, *named))

    def _all(self, page: int) -> Iterator[StoredLetter]:
        def look(id_: str) -> str:
            return f"XRANGE {self.key} {id_} {id_}, then XDEL {self.key} {id_}"

        return readable(f"stream {self.key}", self._entries(page), _letter, look)

    def _entries(self, page: int) -> Iterator[tuple[str, Any]]:
        first = "-"
        while True:
            with self.session.asking(f"reading dead letters in {self.name}"):
                found: Any = self.session.client.xrange(self.key, min=first, count=page)
            yield from ((text(entry[0]), entry) for entry in found)
            if len(found) < page:
                return
            first = f"({text(found[-1][0])}"


def _letter(entry: tuple[bytes, dict[bytes, bytes]]) -> StoredLetter:
    id_ = text(entry[0])
    told = {text(name): text(value) for name, value in entry[1].items()}
    return StoredLetter(
        id=id_,
        at=moment(int(id_.partition("-")[0])),
        sink=told["sink"],
        epoch=int(told["epoch"]),
        partition=int(told["partition"]),
        target=told["target"],
        reason=told["reason"],
        key=told["key"],
        row=told["row"],
        base64=armored(told["base64"]),
    )
