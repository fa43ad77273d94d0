"""Streams of dead letters, as ``sparkonce letters`` shows them."""

from __future__ import annotations

import json
import logging
import re
from collections.abc import Collection, Iterator
from itertools import islice
from typing import Any

from pyspark_redis.journal.records import text
from pyspark_redis.server.session import Session
from sparkonce import errors
from sparkonce.letterbox import Kind, StoredLetter, kinds, moment

log = logging.getLogger("sparkonce")

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
        first, is_told = "-", False
        while True:
            with self.session.asking(f"reading dead letters in {self.name}"):
                found: Any = self.session.client.xrange(self.key, min=first, count=page)
            for id_, fields in found:
                letter = _letter(text(id_), fields)
                if letter is not None:
                    yield letter
                elif not is_told:
                    is_told = True
                    log.warning("%s", _stranger(self.key, text(id_)))
            if len(found) < page:
                return
            first = f"({text(found[-1][0])}"


def _letter(id_: str, fields: dict[bytes, bytes]) -> StoredLetter | None:
    """The letter; None if the connector has not written it."""
    try:
        told = {text(name): text(value) for name, value in fields.items()}
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
            base64=tuple(json.loads(told["base64"])),
        )
    except (KeyError, TypeError, ValueError, OverflowError):
        return None


def _stranger(key: str, id_: str) -> str:
    return errors.told(
        f"Entry {id_} of stream {key}, and perhaps others, is no letter and is passed over",
        why="something else has written it",
        todo=f"delete it, once it is looked at: XRANGE {key} {id_} {id_}, then XDEL {key} {id_}",
    )
