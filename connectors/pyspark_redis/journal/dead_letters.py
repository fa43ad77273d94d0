"""The stream of rows that can't be stored, written in the step that gives them up."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import redis

from pyspark_redis.journal import scripts
from pyspark_redis.server.failures import GOES_ON, other_type
from pyspark_redis.server.session import Session
from sparkonce.protocol import Manifest


@dataclass(frozen=True)
class DeadLetters:
    """The stream.

    Args:
        session: of the server.
        name: as option ``deadLetter`` gives it.
    """

    session: Session
    name: str

    @property
    def key(self) -> str:
        """Where it lies."""
        return self.session.key("letters", self.name)

    def require_fit(self) -> None:
        """See that it is a stream, if it is there: XLEN fails on a key of another type.

        Raises:
            StoreRefused: it is none.
        """
        try:
            self.session.client.xlen(self.key)
        except redis.ResponseError as error:
            if "WRONGTYPE" not in str(error):
                raise
            todo = f"give option deadLetter another name, or move that key away, {GOES_ON}"
            raise other_type(self.key, "stream of dead letters", todo) from None

    def write(
        self,
        manifest: Manifest,
        ordinal: int,
        note: bytes,
        letters: Iterable[Sequence[str | bytes]],
    ) -> None:
        """Write the letters of a chunk, unless they are there.

        Args:
            manifest: of the epoch.
            ordinal: of the chunk in it.
            note: of its rows; if it is another one by now, the letters are not these.
            letters: of each the reason, the key, the row, and JSON of its base64.
        """
        part, seq = manifest.chunks[ordinal]
        about = [manifest.sink, manifest.epoch, part.partition, manifest.target]
        told = [text for letter in letters for text in letter]
        keys = [*self.session.of_attempt(manifest.sink, part.attempt), self.key]
        self.session.run(scripts.aside(), keys, [manifest.token, ordinal, seq, note, *about, *told])
