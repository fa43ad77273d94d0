"""One decision on its way into the target: decided, applied, its bad rows put aside."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from functools import cached_property, partial
from typing import Any

from pyspark_redis.journal import records, scripts
from pyspark_redis.journal.dead_letters import DeadLetters
from pyspark_redis.journal.records import text
from pyspark_redis.server.failures import OF_ROWS, refusal
from pyspark_redis.server.session import Session
from pyspark_redis.server.settings import Room
from pyspark_redis.target import emptying
from pyspark_redis.write import refusals
from pyspark_redis.write.letters import LONGEST, letter_texts, of_texts
from pyspark_redis.write.values import Values
from sparkonce.damage import FORGET, reading
from sparkonce.errors import RowRefused
from sparkonce.exactly_once.bad_rows import OF_TASK, BadRowCounter, MaxBadRows, TooManyBadRows
from sparkonce.protocol import Advance, Applied, Manifest, Proposal, Record

SMALL_BYTES = 2 * 1024 * 1024
FAULTS = json.dumps(OF_ROWS)


class Delivery:
    """A decision, made for one manifest.

    Args:
        session: of the server.
        manifest: of the decision.
        most: how many rows of it may become dead letters, if it was decided that rows do.
    """

    def __init__(self, session: Session, manifest: Manifest, most: MaxBadRows) -> None:
        self.session, self.manifest = session, manifest
        with reading(manifest.sink, FORGET):
            self.values = Values.load(manifest.detail)
        # As it was decided, whatever today's options say.
        self.plan = json.dumps(manifest.detail)
        name = self.values.dead_letter
        self.letters = DeadLetters(session, name) if name else None
        self.most = most.of(manifest.rows) if name else 0
        self.tally = BadRowCounter(most, manifest)
        self.noted: list[int] = []  # ordinals of chunks with rows that are to be put aside

    def fits_one_step(self, small_cost: int) -> bool:
        """Whether one script can apply all of it: a target is emptied in many steps."""
        manifest, values = self.manifest, self.values
        size = sum(sum(part.sizes) for part in manifest.parts)
        small = manifest.rows * values.cost <= small_cost and size <= SMALL_BYTES
        return small and not values.overwrites

    # -- deciding

    def publish(self, decision: Proposal, finished: Record) -> Record:
        """Decide, apply and finish; what is there then is decided only, if there are bad rows."""
        script = scripts.publish(self.values.library)
        args = [self.plan, *records.values(decision.record), *records.values(finished)]
        with self.session.asking(f"publishing epoch {self.manifest.epoch}"):
            return self._decided(script, decision, args)

    def decide(self, decision: Proposal) -> Record:
        """See `Store.decide`."""
        with self.session.asking(f"deciding epoch {self.manifest.epoch}"):
            return self._decided(scripts.decide(), decision, records.values(decision.record))

    def _decided(self, script: str, decision: Proposal, args: list[Any]) -> Record:
        """Run a script that decides, over all chunks of a manifest."""
        manifest, (name, kept) = self.manifest, decision.beside or ("", "")
        session, sink = self.session, manifest.sink
        logs = [session.log(sink, part.attempt) for part in manifest.parts]
        chunks = [
            value
            for index, part in enumerate(manifest.parts)
            for seq, size in enumerate(part.sizes)
            for value in (index + 6, seq, size)  # KEYS count from 1; five stand before the logs
        ]
        status, first, second, *values = session.run_durably(
            script,
            [*session.of_record(sink, session.record(name)), *logs],
            [sink, decision.over, *args, name, kept, *chunks],
        )
        if status == b"missing":
            raise refusals.missing(manifest, text(first).rpartition(":")[2], int(second))
        if status == b"refused" and not self.letters:
            raise refusals.refused(manifest, first, second)
        return records.record(sink, values)

    # -- applying

    def apply(self, advance: Advance) -> Applied:
        """See `Store.apply`. One script a chunk."""
        if self.values.overwrites:
            self._clear()
        with self._few():
            for ordinal, (part, seq) in enumerate(self.manifest.chunks):
                if not self._apply_chunk(ordinal):  # another decision came: these rows may be old
                    return self.tally.applied
                if self.tally.stored:  # or the target may be at fault, and the rows good ones
                    self._put_aside()
                advance(part.rows[seq])
            self._end()
        return self.tally.applied

    def _apply_chunk(self, ordinal: int) -> bool:
        """Apply a chunk, unless another decision came."""
        manifest, (part, seq) = self.manifest, self.manifest.chunks[ordinal]
        keys = self.session.of_attempt(manifest.sink, part.attempt)
        given = [manifest.token, ordinal, seq, part.sizes[seq], self.plan, self.most, FAULTS]
        with self.session.asking(f"applying epoch {manifest.epoch}"):
            status, *told = self.session.run(self._script, keys, given)
        if status == b"superseded":
            return False
        if status == b"early":
            raise refusals.taken_back(manifest.epoch)
        if status == b"lost":
            self._put_aside()
            raise refusals.lost(manifest, part.attempt, seq)
        stored, aside, noted, refused, own, *stopped = told
        self.noted = [int(one) for one in noted if one <= ordinal]
        self._count(refused)
        if not stopped:
            self._count_own(own)
        self.tally.resume(stored + aside, aside)
        if not stopped:
            return True
        if status == b"many" and self.letters:
            self._count_own(own)
            self._count(stopped[1:])
            self.tally.require_few()
        raise refusals.refused(manifest, *stopped)

    @cached_property
    def _script(self) -> str:
        return scripts.apply(self.values.library)

    def _clear(self) -> None:
        """Delete what the rows of an overwrite replace, unless that is done."""
        session, manifest = self.session, self.manifest
        pattern = self.values.key.pattern
        with session.asking(f"emptying the target in epoch {manifest.epoch}"):
            for keys, last in emptying.found(session.client, pattern, session.prefix):
                given = [session.record(manifest.sink), *keys]
                if not session.run(scripts.clear(), given, [manifest.token, int(last)]):
                    return

    # -- rows that can't be stored

    def _count(self, refused: Iterable[bytes]) -> None:
        """Count rows that the server refused, by its reasons."""
        for one in refused:
            reason = one.decode(errors="replace")
            if reason:
                self.tally.reasons.add(refusal(reason).why, reason)

    def _count_own(self, reasons: Iterable[bytes]) -> None:
        """Count rows that a task put aside."""
        for one in reasons:
            self.tally.reasons.add(OF_TASK, one.decode())

    def _put_aside(self) -> None:
        """Make dead letters of the rows that are noted."""
        while self.noted and self.letters:
            ordinal = self.noted[0]
            with self.session.asking(f"writing dead letters of epoch {self.manifest.epoch}"):
                note, letters = self._letters_of(ordinal)
                self.letters.write(self.manifest, ordinal, note, letters)
            del self.noted[0]

    def _letters_of(self, ordinal: int) -> tuple[bytes, list[Sequence[str | bytes]]]:
        """The note of a chunk, and letters: of rows that the server refused, or a task did."""
        manifest, (part, seq) = self.manifest, self.manifest.chunks[ordinal]
        keys = self.session.of_attempt(manifest.sink, part.attempt)
        given = [manifest.token, ordinal, seq, self.plan]
        found = self.session.run(scripts.noted(), keys, given)
        if found is None:
            raise refusals.lost(manifest, part.attempt, seq)
        note, rows, own = found or (b"", (), ())
        return note, [*(self._letter(*row) for row in rows), *own]

    def _letter(self, reason: bytes, key: bytes, *texts: bytes | None) -> tuple[str, ...]:
        """The letter of a row that the server refused."""
        letter = of_texts(refusals.told(self.manifest, key, reason), texts, self.values)
        return letter_texts(letter, partial(self._room.of_letter, most=LONGEST))

    @cached_property
    def _room(self) -> Room:
        return Room(lambda: self.session.client)

    def _end(self) -> None:
        """See that the target is not at fault, then put aside what is left."""
        self.tally.end()
        self._put_aside()
        self._warn()

    def _warn(self) -> None:
        if self.letters:
            self.tally.warn(f"stream {self.letters.key}")

    def _rewind(self) -> None:
        with self.session.asking(f"taking back the progress of epoch {self.manifest.epoch}"):
            record = self.session.record(self.manifest.sink)
            self.session.run(scripts.rewind(), [record], [self.manifest.token])

    @contextmanager
    def _few(self) -> Iterator[None]:
        """Rows of an epoch of which none is stored are tried again, once the target is mended."""
        try:
            yield
        except TooManyBadRows as error:
            self._rewind()
            raise RowRefused(f"{error.what}. {refusals.STAYS}", error.why, error.todo) from None
