"""One decision on its way into the target: decided, applied, its bad rows put aside."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from functools import cached_property
from typing import Any

from pyspark_redis.journal import records, scripts
from pyspark_redis.journal.dead_letters import DeadLetters
from pyspark_redis.journal.records import text
from pyspark_redis.models.letters import letter_texts, of_texts
from pyspark_redis.models.values import Values
from pyspark_redis.server.failures import OF_ROWS, refusal
from pyspark_redis.server.session import Session
from pyspark_redis.target import emptying
from sparkonce.errors import (
    RowRefused,
    SparkonceError,
    StagedDataMissing,
    StoreLostData,
    StoreRefused,
    StoreUnreachable,
)
from sparkonce.exactly_once import losses
from sparkonce.exactly_once.bad_rows import ALL, OF_TASK, Tally, TooManyBadRows
from sparkonce.protocol import Advance, Applied, Decision, Manifest, Record

SMALL_BYTES = 2 * 1024 * 1024
FAULTS = json.dumps(OF_ROWS)


class Delivery:
    """A decision, made for one manifest.

    Args:
        session: of the server.
        manifest: of the decision.
        letters: takes rows that can't be stored; None if one of them stops the epoch.
    """

    def __init__(self, session: Session, manifest: Manifest, letters: DeadLetters | None) -> None:
        self.session, self.manifest, self.letters = session, manifest, letters
        self.values = Values.load(manifest.detail)
        # As it was decided, whatever today's options say.
        self.plan = json.dumps(manifest.detail)
        # Without a place for them rows that a task has put aside only count, and one more stops.
        self.most = letters.most.of(manifest.rows) if letters else 0
        self.tally = Tally(letters.most if letters else ALL, manifest)
        self.applied_rows = 0
        self.noted: list[int] = []  # ordinals of chunks with rows that are to be put aside

    def fits_one_step(self, small_cost: int) -> bool:
        """Whether one script can apply all of it: a target is emptied in many steps."""
        manifest, values = self.manifest, self.values
        size = sum(sum(part.sizes) for part in manifest.parts)
        small = manifest.rows * values.cost <= small_cost and size <= SMALL_BYTES
        return small and not values.overwrites

    # -- deciding

    def publish(self, decision: Decision, finished: Record) -> Record:
        """Decide, apply and finish; what is there then is decided only, if there are bad rows."""
        script = scripts.publish(self.values.library)
        args = [self.plan, *records.values(decision.record), *records.values(finished)]
        with self.session.asking(f"publishing epoch {self.manifest.epoch}"):
            return self._decided(script, decision, args)

    def decide(self, decision: Decision) -> Record:
        """See `Store.decide`."""
        with self.session.asking(f"deciding epoch {self.manifest.epoch}"):
            return self._decided(scripts.decide(), decision, records.values(decision.record))

    def _decided(self, script: str, decision: Decision, args: list[Any]) -> Record:
        """Run a script that decides, over all chunks of a manifest."""
        manifest, (name, kept) = self.manifest, decision.beside or ("", "")
        session, sink = self.session, manifest.sink
        logs = [session.log(sink, part.attempt) for part in manifest.parts]
        chunks = [
            value
            for index, part in enumerate(manifest.parts)
            for seq, size in enumerate(part.sizes)
            for value in (index + 4, seq, size)  # KEYS count from 1; three stand before the logs
        ]
        status, first, second, *values = session.run_durably(
            script,
            [session.record(sink), session.key("names"), session.record(name), *logs],
            [sink, decision.over, *args, name, kept, *chunks],
        )
        if status == b"missing":
            raise _missing(manifest, text(first).rpartition(":")[2], int(second))
        if status == b"refused" and not self.letters:
            raise _refused(manifest, first, second)
        return records.record(values)

    # -- applying

    def apply(self, advance: Advance) -> Applied:
        """See `Store.apply`. One script a chunk."""
        if self.values.overwrites:
            self._clear()
        with self._few():
            for ordinal, (part, seq) in enumerate(self.manifest.chunks):
                if not self._apply_chunk(ordinal):  # another decision came: these rows may be old
                    return self.tally.applied
                if not self.tally.in_doubt:
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
        if status == b"early":  # tried again, from the first chunk that is not applied
            raise StoreUnreachable(f"Redis lost progress of epoch {manifest.epoch} (failover)")
        if status == b"lost":
            self._put_aside()
            raise _lost(manifest, part.attempt, seq)
        if status == b"steps":
            raise _begun_by_steps(manifest)
        self.applied_rows += part.rows[seq]
        aside, noted, refused, own, *stopped = told
        self.noted = [int(one) for one in noted]
        self._count(int(aside), refused, own)
        if stopped:
            raise self._stopped(status == b"many", *stopped)
        return True

    @cached_property
    def _script(self) -> str:
        return scripts.apply(self.values.library)

    def _clear(self) -> None:
        """Delete what the rows of an overwrite replace, unless that is done."""
        session, manifest = self.session, self.manifest
        pattern, own = self.values.key.pattern, session.key("")
        with session.asking(f"emptying the target in epoch {manifest.epoch}"):
            for keys, last in emptying.found(session.client, pattern, own):
                given = [session.record(manifest.sink), *keys]
                if not session.run(scripts.clear(), given, [manifest.token, int(last)]):
                    return

    # -- rows that can't be stored

    def _count(self, aside: int, refused: Sequence[bytes], own: Sequence[bytes]) -> None:
        for one in refused:
            reason = one.decode(errors="replace")
            self.tally.reasons.add(refusal(reason).why, reason)
        for one in own:
            self.tally.reasons.add(OF_TASK, one.decode())
        self.tally.resume(self.applied_rows, aside)

    def _stopped(self, many: bool, key: bytes, reason: bytes) -> SparkonceError:
        error = _refused(self.manifest, key, reason)
        if not (many and self.letters):
            return error
        try:
            self.tally.add(error.why, error.what)
        except TooManyBadRows as too_many:
            return too_many
        return error

    def _put_aside(self) -> None:
        """Make dead letters of the rows that are noted.

        Raises:
            RowRefused: rows do not go aside any more.
        """
        while self.noted:
            ordinal = self.noted[0]
            if self.letters is None:
                raise _not_aside(self.manifest)
            with self.session.asking(f"writing dead letters of epoch {self.manifest.epoch}"):
                self.letters.write(self.manifest, ordinal, self._letters_of(ordinal))
            del self.noted[0]

    def _letters_of(self, ordinal: int) -> list[Sequence[str | bytes]]:
        """The letters of a chunk: of rows that the server refused, and of those that a task did."""
        manifest, (part, seq) = self.manifest, self.manifest.chunks[ordinal]
        keys = self.session.of_attempt(manifest.sink, part.attempt)
        given = [manifest.token, ordinal, seq, self.plan]
        found = self.session.run(scripts.noted(), keys, given)
        if found is None:
            raise _lost(manifest, part.attempt, seq)
        rows, own = found or ((), ())
        made = (
            of_texts(_refused(manifest, key, reason).what, texts, self.values)
            for reason, key, *texts in rows
        )
        return [*map(letter_texts, made), *own]

    def _end(self) -> None:
        """See that the target is not at fault, then put aside what is left."""
        try:
            self.tally.end()
        except TooManyBadRows:
            self._rewind()
            raise
        self._put_aside()
        if self.letters:
            self.tally.warn(f"stream {self.letters.key}")

    def _rewind(self) -> None:
        """Let rows of which none was stored be tried again, once the target is mended."""
        chunks = self.manifest.chunks
        rows = sum(part.rows[seq] for part, seq in (chunks[ordinal] for ordinal in self.noted))
        with self.session.asking(f"taking back the progress of epoch {self.manifest.epoch}"):
            self.session.run(
                scripts.rewind(),
                [self.session.record(self.manifest.sink)],
                [self.manifest.token, self.tally.reasons.rows, rows, len(self.noted)],
            )

    @contextmanager
    def _few(self) -> Iterator[None]:
        try:
            yield
        except TooManyBadRows as error:
            raise RowRefused(f"{error.what}. {STAYS}", error.why, error.todo) from None


STAYS = "The epoch stays decided; rows of it that Redis took have taken effect"


def _missing(manifest: Manifest, attempt: str, seq: int) -> StagedDataMissing:
    why = "the server was emptied or restarted without persistence while the epoch was staged"
    return losses.missing(manifest, attempt, seq, why)


def _lost(manifest: Manifest, attempt: str, seq: int) -> StoreLostData:
    return losses.lost(
        manifest,
        attempt,
        seq,
        why="the server lost data, or someone deleted the connector's keys",
        todo="restore the server from a backup and restart the query; without one, the rows of"
        " this epoch must be written by hand, see docs/redis.md",
    )


def _begun_by_steps(manifest: Manifest) -> StoreRefused:
    return StoreRefused(
        f"Epoch {manifest.epoch} was stopped in the middle of a row by an earlier release",
        why="this release applies a row whole or not at all",
        todo="run `sparkonce recover` with the release that wrote it, then restart the query",
    )


def _not_aside(manifest: Manifest) -> RowRefused:
    return RowRefused(
        f"Epoch {manifest.epoch} has rows that can't be stored. {STAYS}",
        why="it was decided to put them aside, and this query does not say where",
        todo="set options onBadRow=deadLetter and deadLetter again, then restart the query",
    )


def _refused(manifest: Manifest, key: bytes, reason: bytes) -> RowRefused:
    text = reason.decode(errors="replace")
    known = refusal(text)
    return RowRefused(
        f"Redis refused key {key.decode(errors='replace')!r} in epoch {manifest.epoch}: {text}."
        " The epoch stays decided; the rows before this one have taken effect",
        why=known.why,
        todo=known.todo,
    )
