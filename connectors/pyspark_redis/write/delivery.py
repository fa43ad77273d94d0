"""One decision on its way into the target: decided, applied, its bad rows put aside."""

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

    So many rows (`most`) may become dead letters, if it was decided that rows do.
    """

    def __init__(self, session: RedisSession, manifest: Manifest, most: MaxBadRows) -> None:
        with reading(manifest.sink, FORGET):
            self.detail = PlanDetail.load(manifest.detail)
        name = self.detail.dead_letter
        self.letters = LetterBox(session, name) if name else None
        super().__init__(manifest, most, f"stream {self.letters.key}" if self.letters else None)
        self.session = session
        # As it was decided, whatever today's options say.
        self.plan = json.dumps(manifest.detail)
        self.most = most.of(manifest.rows) if name else 0

    def decide(self, proposal: Proposal) -> Record:
        """See `Store.decide`."""
        with self.session.asking(f"deciding epoch {self.manifest.epoch}"):
            return self._decided(scripts.decide(), proposal, record_values(proposal.record))

    def _decided(self, script: str, proposal: Proposal, args: list[Any]) -> Record:
        """Run a script that decides, over all chunks of a manifest."""
        manifest, (name, kept) = self.manifest, proposal.beside or ("", "")
        session, sink = self.session, manifest.sink
        logs = [session.log(sink, part.attempt) for part in manifest.parts]
        chunks = [
            value
            for index, part in enumerate(manifest.parts, 6)  # KEYS count from 1; five stand before
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
                "the server was emptied or restarted without persistence while the epoch was staged"
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
        """The error for a chunk that is gone, and is decided."""
        return conflicts.lost(
            self.manifest,
            part.attempt,
            seq,
            why="the server lost data, or someone deleted the connector's keys",
            todo="restore the server from a backup and restart the query; without one, the rows of"
            " this epoch must be written by hand, see docs/redis.md",
        )

    def taken_back(self) -> StoreUnreachable:
        """The error where what was applied is not any more; it is applied again."""
        return StoreUnreachable(
            f"Progress of epoch {self.manifest.epoch} was taken back, by a failover or by another"
            " driver",
            why="replication is asynchronous: a replica may lack what was written last",
            todo="the epoch is applied again, and nothing is doubled",
        )

    def _count(self, refused: Iterable[bytes]) -> None:
        """Count rows that the server refused, by its reasons."""
        for one in refused:
            reason = one.decode(errors="replace")
            if reason:
                self.counter.reasons.add(refusal(reason).why, reason)

    def _count_own(self, reasons: Iterable[bytes]) -> None:
        """Count rows that a task put aside."""
        for one in reasons:
            self.counter.reasons.add(OF_TASK, one.decode())

    def _letter(self, reason: bytes, key: bytes, *texts: bytes | None) -> tuple[str, ...]:
        """The letter of a row that the server refused."""
        letter = refused_letter(self._said(key, reason), texts, self.detail)
        return letter_texts(letter, partial(self.session.limit.of_letter, most=LONGEST))


class Delivery(RedisDelivery):
    """To a single server: one script applies a chunk, and knows by itself how far it has come."""

    def __init__(self, session: RedisSession, manifest: Manifest, most: MaxBadRows) -> None:
        super().__init__(session, manifest, most)
        self.unwritten: list[int] = []  # ordinals of chunks with bad rows that are no letters yet

    def fits_one_step(self, small_cost: int) -> bool:
        """Whether one script can apply all of it: a target is emptied in many steps."""
        manifest, detail = self.manifest, self.detail
        size = sum(sum(part.sizes) for part in manifest.parts)
        small = manifest.rows * detail.cost <= small_cost and size <= SMALL_BYTES
        return small and not detail.overwrites

    def publish(self, proposal: Proposal, finished: Record) -> Record:
        """Decide, apply and finish; what is there then is decided only, if there are bad rows."""
        script = scripts.publish(self.detail.model)
        args = [self.plan, *record_values(proposal.record), *record_values(finished)]
        with self.session.asking(f"publishing epoch {self.manifest.epoch}"):
            return self._decided(script, proposal, args)

    def resume(self) -> int:
        """See `EpochDelivery.resume`. The script of each chunk passes over it where it is done."""
        if self.detail.overwrites:
            self._clear()
        return 0

    def apply_chunk(self, ordinal: int) -> None:
        """See `EpochDelivery.apply_chunk`. One script."""
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
        """Delete what the rows of an overwrite replace, unless that is done."""
        session, manifest = self.session, self.manifest
        pattern = self.detail.key.pattern
        with session.asking(f"emptying the target in epoch {manifest.epoch}"):
            for keys, last in scan_target(session.client, pattern, session.prefix):
                given = [session.record(manifest.sink), *keys]
                if not session.run(scripts.clear(), given, [manifest.token, int(last)]):
                    return

    def put_aside(self, ordinal: int, chunk: None) -> None:  # noqa: ARG002
        """See `EpochDelivery.put_aside`. What is noted in Redis waits there."""
        if self.counter.stored:  # or the target may be at fault, and the rows good ones
            self.put_aside_held()

    def put_aside_held(self) -> None:
        """Make dead letters of the rows that are noted."""
        while self.unwritten and self.letters:
            ordinal = self.unwritten[0]
            with self.session.asking(f"writing dead letters of epoch {self.manifest.epoch}"):
                note, letters = self._letters_of(ordinal)
                self.letters.write(self.manifest, ordinal, note, letters)
            del self.unwritten[0]

    def _letters_of(self, ordinal: int) -> tuple[bytes, list[Sequence[str | bytes]]]:
        """The note of a chunk, and letters: of rows that the server refused, or a task did."""
        manifest, (part, seq) = self.manifest, self.chunks[ordinal]
        keys = self.session.of_attempt(manifest.sink, part.attempt)
        given = [manifest.token, ordinal, seq, self.plan]
        found = self.session.run(scripts.read_bad_rows(), keys, given)
        if found is None:
            raise self.lost(part, seq)
        note, rows, own = found or (b"", (), ())
        return note, [*(self._letter(*row) for row in rows), *own]

    def take_back(self) -> None:
        """Take back the notes of chunks of which no row was stored."""
        with self.session.asking(f"taking back the progress of epoch {self.manifest.epoch}"):
            record = self.session.record(self.manifest.sink)
            self.session.run(scripts.rewind(), [record], [self.manifest.token])
