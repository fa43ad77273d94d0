"""Streams of dead letters: written with an epoch, shown by ``sparkonce letters``."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Iterator, Sequence
from itertools import islice
from typing import Any

import redis

from pyspark_redis.journal import scripts
from pyspark_redis.journal.journal import text
from pyspark_redis.server.failures import other_type
from pyspark_redis.server.session import RedisSession
from sparkonce.errors import RESTART
from sparkonce.letterbox import LetterKind, StoredLetter, base64_columns, kinds, moment, readable
from sparkonce.protocol import Manifest

PAGE = 500  # letters in one reply


class LetterBox:
    """The stream that option ``deadLetter`` names; see `letterbox.Letterbox`.

    Reads skip entries that are not letters.
    """

    def __init__(self, session: RedisSession, name: str) -> None:
        self.session, self.name, self.key = session, name, session.key("letters", name)

    def require_fit(self) -> None:
        """Check that the key is a stream or does not exist: XLEN fails on another type."""
        try:
            self.session.client.xlen(self.key)
        except redis.ResponseError as error:
            if "WRONGTYPE" not in str(error):
                raise
            todo = f"set another name in option deadLetter, or rename that key, {RESTART}"
            raise other_type(self.key, "stream of dead letters", todo) from None

    def write(
        self,
        manifest: Manifest,
        ordinal: int,
        note: bytes,
        letters: Iterable[Sequence[str | bytes]],
    ) -> None:
        """Write the letters of a chunk, unless they are written, or its note has changed.

        Each letter is reason, key, row, and JSON of its base64.
        """
        part, seq = manifest.chunks[ordinal]
        about = [manifest.sink, manifest.epoch, part.partition, manifest.target]
        texts = [text for letter in letters for text in letter]
        keys = [*self.session.of_attempt(manifest.sink, part.attempt), self.key]
        given = [manifest.token, ordinal, seq, note, *about, *texts]
        self.session.run(scripts.put_aside(), keys, given)

    def kinds(self) -> list[LetterKind]:
        """See `Letterbox.kinds`."""
        return kinds((one.sink, one.reason, one.at) for one in self._all(PAGE))

    def read(self, sink: str | None, most: int) -> list[StoredLetter]:
        """See `Letterbox.read`."""
        found = (one for one in self._all(min(most, PAGE)) if sink in (None, one.sink))
        return list(islice(found, most))

    def drop(self, ids: Collection[str]) -> int:
        """See `Letterbox.drop`."""
        entries = [one for one in ids if re.fullmatch(r"\d+-\d+", one)]
        if not entries:
            return 0
        with self.session.asking(f"deleting dead letters in {self.name}"):
            return int(self.session.client.xdel(self.key, *entries))

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


def letterboxes(session: RedisSession, own: LetterBox | None) -> list[LetterBox]:
    """The letter box of the sink, or all letter boxes; skips keys of another type."""
    if own:
        return [own]
    with session.asking("listing streams of dead letters"):
        pattern = session.key("letters", "*")
        names = session.client.scan_iter(pattern, count=10_000, _type="stream")
        found = sorted(text(name) for name in names)
    return [LetterBox(session, name.removeprefix(session.key("letters", ""))) for name in found]


def _letter(entry: tuple[bytes, dict[bytes, bytes]]) -> StoredLetter:
    id_ = text(entry[0])
    fields = {text(name): text(value) for name, value in entry[1].items()}
    return StoredLetter(
        id=id_,
        at=moment(int(id_.partition("-")[0])),
        epoch=int(fields["epoch"]),
        partition=int(fields["partition"]),
        base64=base64_columns(fields["base64"]),
        **{name: fields[name] for name in ("sink", "target", "reason", "key", "row")},
    )
