"""Delivers one decision to the target: decide, apply, write dead letters of bad rows."""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from functools import partial
from typing import Any

from pyspark_redis.journal import scripts
from pyspark_redis.journal.dead_letters import LetterBox
from pyspark_redis.journal.journal import record_values, text, to_record
from pyspark_redis.server.failures import OF_ROWS, refusal
from pyspark_redis.server.session import RedisSession
from pyspark_redis.target.keys import scan_target
from pyspark_redis.write.chunks import LONGEST, letter_texts, refused_letter
from pyspark_redis.write.detail import PlanDetail
from sparkonce.codec import FORGET, reading
from sparkonce.delivery import DecisionOver, EpochDelivery
from sparkonce.errors import RowRefused, StoreLostData, StoreUnreachable
from sparkonce.exactly_once import conflicts
from sparkonce.exactly_once.bad_rows import OF_TASK, MaxBadRows
from sparkonce.protocol import Manifest, Part, Proposal, Record

SMALL_BYTES = 2 * 1024 * 1024
FAULTS = json.dumps(OF_ROWS)


class RedisDelivery(EpochDelivery[None]):
    """What a single server and a cluster share: the decision, and the letters of its bad rows.

    `most` limits the rows that may become dead letters, if the decided plan has dead letters.
    """

    def __init__(self, session: RedisSession, manifest: Manifest, most: MaxBadRows) -> None:
        with reading(manifest.sink, FORGET):
            self.detail = PlanDetail.load(manifest.detail)
        name = self.detail.dead_letter
        self.letters = LetterBox(session, name) if name else None
        super().__init__(manifest, most, f"stream {self.letters.key}" if self.letters else None)
        self.session = session
        # The decided plan, which may differ from the current options.
        self.plan = json.dumps(manifest.detail)
        self.most = most.of(manifest.rows) if name else 0

    def decide(self, proposal: Proposal) -> Record:
        """See `Store.decide`."""
        with self.session.asking(f"deciding epoch {self.manifest.epoch}"):
            return self._decided(scripts.decide(), proposal, record_values(proposal.record))

    def _decided(self, script: str, proposal: Proposal, args: list[Any]) -> Record:
        """Run a script that decides, with all chunks of the manifest."""
        manifest, (name, kept) = self.manifest, proposal.beside or ("", "")
        session, sink = self.session, manifest.sink
        logs = [session.log(sink, part.attempt) for part in manifest.parts]
        chunks = [
            value
            for index, part in enumerate(manifest.parts, 6)  # KEYS start at 1; five precede
            for seq, size in enumerate(part.sizes)
            for value in (index, seq, size)
        ]
        status, first, second, *values = session.run_durably(
            script,
            [*session.of_record(sink, session.record(name)), *logs],
            [sink, proposal.over, *args, name, kept, *chunks],
        )
        if status == b"missing":
            why = (
                "while tasks staged the epoch, the server was flushed, or restarted without"
                " persistence"
            )
            raise conflicts.missing(manifest, text(first).rpartition(":")[2], int(second), why)
        if status == b"refused" and not self.letters:
            raise self.refused(first, second)
        return to_record(sink, values)

    def refused(self, key: bytes, reason: bytes) -> RowRefused:
        """The error for a row that the server refused."""
        known = refusal(reason.decode(errors="replace"))
        how = "" if self.letters else ", with onBadRow=fail"
        return RowRefused(
            f"{self._said(key, reason)}. The epoch stays decided{how}; the rows before this one"
            " have taken effect",
            why=known.why,
            todo=known.todo,
        )

    def _said(self, key: bytes, reason: bytes) -> str:
        named, why = (one.decode(errors="replace") for one in (key, reason))
        return f"Redis refused key {named!r} in epoch {self.manifest.epoch}: {why}"

    def lost(self, part: Part, seq: int) -> StoreLostData:
        """The error for a decided chunk that the server lost."""
        return conflicts.lost(
            self.manifest,
            part.attempt,
            seq,
            why="the server lost data, or someone deleted the connector's keys",
            todo="restore the server from a backup and restart the query; or run `sparkonce recover"
            f" URL --sink {self.manifest.sink} --accept-loss`, which gives up the rest of that"
            " epoch",
        )

    def taken_back(self) -> StoreUnreachable:
        """The error for progress that the server lost; the driver then applies the epoch again."""
        return StoreUnreachable(
            f"A failover or another driver reverted the progress of epoch {self.manifest.epoch}",
            why="replication is asynchronous: a replica may lack the last writes",
            todo="nothing: the connector applies the epoch again, and duplicates no row",
        )

    def _count(self, refused: Iterable[bytes]) -> None:
        """Count the rows that the server refused, by reason."""
        for one in refused:
            reason = one.decode(errors="replace")
            if reason:
                self.counter.reasons.add(refusal(reason).why, reason)

    def _count_own(self, reasons: Iterable[bytes]) -> None:
        """Count the rows that a task rejected."""
        for one in reasons:
            self.counter.reasons.add(OF_TASK, one.decode())

    def _letter(self, reason: bytes, key: bytes, *texts: bytes | None) -> tuple[str, ...]:
        """The letter of a row that the server refused."""
        letter = refused_letter(self._said(key, reason), texts, self.detail)
        return letter_texts(letter, partial(self.session.limit.of_letter, most=LONGEST))


class Delivery(RedisDelivery):
    """Delivers to a single server: one script applies a chunk and records its progress."""

    def __init__(self, session: RedisSession, manifest: Manifest, most: MaxBadRows) -> None:
        super().__init__(session, manifest, most)
        self.unwritten: list[int] = []  # ordinals of chunks whose bad rows are not letters yet

    def fits_one_step(self, small_cost: int) -> bool:
        """Whether one script can apply the epoch; an overwrite needs many steps."""
        manifest, detail = self.manifest, self.detail
        size = sum(sum(part.sizes) for part in manifest.parts)
        small = manifest.rows * detail.cost <= small_cost and size <= SMALL_BYTES
        return small and not detail.overwrites

    def publish(self, proposal: Proposal, finished: Record) -> Record:
        """Decide, apply and finish; with bad rows the record stays decided, not finished."""
        script = scripts.publish(self.detail.model)
        args = [self.plan, *record_values(proposal.record), *record_values(finished)]
        with self.session.asking(f"publishing epoch {self.manifest.epoch}"):
            return self._decided(script, proposal, args)

    def resume(self) -> int:
        """See `EpochDelivery.resume`. The script of a chunk skips it if it is applied."""
        if self.detail.overwrites:
            self._clear()
        return 0

    def apply_chunk(self, ordinal: int) -> None:
        """See `EpochDelivery.apply_chunk`. One script does it."""
        manifest, (part, seq) = self.manifest, self.chunks[ordinal]
        keys = self.session.of_attempt(manifest.sink, part.attempt)
        given = [manifest.token, ordinal, seq, part.sizes[seq], self.plan, self.most, FAULTS]
        with self.session.asking(f"applying epoch {manifest.epoch}"):
            status, *answer = self.session.run(scripts.apply(self.detail.model), keys, given)
        if status == b"superseded":
            raise DecisionOver
        if status == b"early":
            raise self.taken_back()
        if status == b"passed":
            self.had = ordinal + 1
        if status == b"lost":
            self.put_aside_held()
            raise self.lost(part, seq)
        stored, aside, unwritten, refused, own, *stopped = answer
        self.unwritten = [int(one) for one in unwritten if one <= ordinal]
        self._count(refused)
        if not stopped:
            self._count_own(own)
        self.counter.resume(stored + aside, aside)
        if not stopped:
            return
        if status == b"many" and self.letters:
            self._count_own(own)
            self._count(stopped[1:])
            self.counter.require_few()
        raise self.refused(*stopped)

    def _clear(self) -> None:
        """Delete the keys that an overwrite replaces, unless they are deleted already."""
        session, manifest = self.session, self.manifest
        pattern = self.detail.key.pattern
        with session.asking(f"emptying the target in epoch {manifest.epoch}"):
            for keys, last in scan_target(session.client, pattern, session.prefix):
                given = [session.record(manifest.sink), *keys]
                if not session.run(scripts.clear(), given, [manifest.token, int(last)]):
                    return

    def put_aside(self, ordinal: int, chunk: None) -> None:  # noqa: ARG002
        """See `EpochDelivery.put_aside`. Noted rows stay in Redis until they become letters."""
        if self.counter.stored:  # with no stored row, the target may be at fault, not the rows
            self.put_aside_held()

    def put_aside_held(self) -> None:
        """Write dead letters of the noted rows."""
        while self.unwritten and self.letters:
            ordinal = self.unwritten[0]
            with self.session.asking(f"writing dead letters of epoch {self.manifest.epoch}"):
                note, letters = self._letters_of(ordinal)
                self.letters.write(self.manifest, ordinal, note, letters)
            del self.unwritten[0]

    def _letters_of(self, ordinal: int) -> tuple[bytes, list[Sequence[str | bytes]]]:
        """The note of a chunk, and letters of the rows that the server or a task rejected."""
        manifest, (part, seq) = self.manifest, self.chunks[ordinal]
        keys = self.session.of_attempt(manifest.sink, part.attempt)
        given = [manifest.token, ordinal, seq, self.plan]
        found = self.session.run(scripts.read_bad_rows(), keys, given)
        if found is None:
            raise self.lost(part, seq)
        note, rows, own = found or (b"", (), ())
        return note, [*(self._letter(*row) for row in rows), *own]

    def take_back(self) -> None:
        """Revert the progress over chunks of which no row was stored."""
        with self.session.asking(f"reverting the progress of epoch {self.manifest.epoch}"):
            record = self.session.record(self.manifest.sink)
            self.session.run(scripts.rewind(), [record], [self.manifest.token])
