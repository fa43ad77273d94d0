"""Delivers a decision to the slots of a cluster; docs/decisions.md explains the design.

The ledger's slot records the rows of a chunk that Redis refused and that are dead letters. A
failover can revert a lane to before such a chunk. The connector then writes no second letter and
skips these rows, even if Redis would accept them now.
"""

from __future__ import annotations

from array import array
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import chain
from typing import Any, NamedTuple, NoReturn

import redis

from pyspark_redis.cluster.lanes import (
    LESS,
    LaneProgress,
    Lanes,
    at_once,
    lane_behind,
    ledger_behind,
)
from pyspark_redis.journal import scripts
from pyspark_redis.server.failures import refusal, translate
from pyspark_redis.server.nodes import SLOTS, Address, ClusterSession
from pyspark_redis.write.chunks import Segment, split_segments
from pyspark_redis.write.delivery import FAULTS, RedisDelivery
from pyspark_redis.write.detail import PlanDetail
from sparkonce.codec import FORGET, reading
from sparkonce.delivery import DecisionOver
from sparkonce.errors import FailureKind, SinkBehindCheckpoint, StoreRefused, StoreUnreachable
from sparkonce.exactly_once.bad_rows import MaxBadRows
from sparkonce.protocol import Manifest

SHORT = 256 * 1024
"""Bytes that one script writes, or one larger segment: about 10 ms of a node's work."""

LetterRows = frozenset[tuple[int, int]]
"""Rows, each by the index of its segment, from 0, and its row in that segment, from 1."""

Letters = Mapping[int, bytes]  # the same for each segment, as `apply.lua` reads them


class NodeSegment(NamedTuple):
    """The part of a segment that a node writes."""

    number: int  # the index of the segment in its chunk
    segment: Segment  # the segment with all its lanes
    lanes: array[int]  # indexes of the lanes that the node serves


class LaneRow(NamedTuple):
    """A row of a lane that Redis refused."""

    at: tuple[int, int]  # the index of the segment, and the row in that segment
    reason: bytes  # the error of Redis
    key: bytes  # the key of the row
    texts: Sequence[bytes | None]  # the texts of its columns


class NodeAnswer(NamedTuple):
    """The reply of a node; see `cluster/lua/apply.lua`."""

    status: bytes  # how the script ended
    stored: int = 0  # the number of stored rows
    refused: Sequence[LaneRow] = ()  # rows that Redis refused
    stopped: Sequence[bytes] = ()  # key and reason of the row at which the script stopped


class LaneWriter:
    """Writes chunks of one decision; `plan` is the JSON of its detail."""

    def __init__(self, lanes: Lanes, fence: int, detail: PlanDetail, plan: str) -> None:
        self.lanes, self.fence, self.plan = lanes, fence, plan
        self.script = scripts.apply_to_lanes(detail.model)
        self.seen = Counter[int]()  # by lane, the chunks of this decision that it must have seen
        self.before = LaneProgress.nothing()  # the progress that each lane must have from before

    def write(self, segments: Sequence[Segment], rows: LetterRows, most: int) -> list[NodeAnswer]:
        """Write a chunk and return the replies of the nodes.

        `rows` are letters already; at most `most` other rows may become letters.
        """
        by_node: dict[Address, list[NodeSegment]] = defaultdict(list)
        for number, segment in enumerate(segments):
            for address, lanes in self.lanes.by_node(segment.slots).items():
                by_node[address].append(NodeSegment(number, segment, lanes))
        letters = _by_segment(rows)

        def write_to(own: tuple[Address, list[NodeSegment]]) -> list[NodeAnswer]:
            """Run short scripts until one stops."""
            client, answers = self.lanes.session.nodes.connect(own[0]), []
            for some in _short(own[1]):
                answers.append(self._run(client, some, letters, most))
                if answers[-1].status != b"applied":
                    break
            return answers

        return list(chain.from_iterable(at_once(write_to, by_node.items())))

    def _run(
        self, client: redis.Redis, segments: Sequence[NodeSegment], letters: Letters, most: int
    ) -> NodeAnswer:
        args: list[Any] = [*self.lanes.key_parts, self.fence, self.plan, most, FAULTS]
        for number, segment, lanes in segments:
            slots = [segment.slots[lane] for lane in lanes]
            dues = array("I", map(self.seen.__getitem__, slots)).tobytes()
            indexes = array("H", [lane + 1 for lane in lanes]).tobytes()
            known = self.before.required(slots)
            args += [segment.payload, indexes, dues, *known, letters[number]]
        keys = [self.lanes.of(segments[0].segment.slots[segments[0].lanes[0]])]
        return _answer(self.lanes.session.run_on(client, self.script, keys, args), segments)


def _answer(found: Sequence[Any], segments: Sequence[NodeSegment]) -> NodeAnswer:
    if len(found) < 3:
        return NodeAnswer(found[0])
    status, stored, refused, *stopped = found
    rows = [
        LaneRow((segments[which].number, row), reason, key, texts)
        for reason, key, which, row, *texts in refused
    ]
    return NodeAnswer(status, stored, rows, stopped)


def _short(segments: Sequence[NodeSegment]) -> Iterator[list[NodeSegment]]:
    """The segments in groups of at most `SHORT` bytes, or of one segment."""
    some: list[NodeSegment] = []
    size = 0
    for one in segments:
        size += len(one.segment.payload)
        if some and size > SHORT:
            yield some
            some, size = [], len(one.segment.payload)
        some.append(one)
    yield some


def letter_rows(text: bytes) -> LetterRows:
    """The argument of `letter_bytes`."""
    numbers = array("I", text)
    return frozenset(zip(numbers[::2], numbers[1::2], strict=True))


def letter_bytes(rows: Iterable[tuple[int, int]]) -> bytes:
    """The stored form of rows that are letters."""
    return array("I", chain.from_iterable(sorted(rows))).tobytes()


def _by_segment(rows: LetterRows) -> Letters:
    found: dict[int, array[int]] = defaultdict(lambda: array("I"))
    for segment, row in sorted(rows):
        found[segment].append(row)
    return defaultdict(bytes, {segment: own.tobytes() for segment, own in found.items()})


Letter = Sequence[str | bytes]


class ClusterDelivery(RedisDelivery):
    """The driver reads each chunk from the ledger's slot and sends it to all nodes in parallel.

    Notes about bad rows are stored beside the rows, in many slots. So the delivery never reverts
    progress.
    """

    ends_in_last_chunk = True

    session: ClusterSession
    accepts_loss: bool  # whether option ``onLostCommit`` accepts earlier losses of lanes

    def __init__(self, session: ClusterSession, manifest: Manifest, most: MaxBadRows) -> None:
        super().__init__(session, manifest, most)
        self.lanes = Lanes(session, manifest.sink)
        if self.chunks and "fence" not in manifest.notes:
            raise StoreRefused(
                f"Epoch {manifest.epoch} was decided on a single server, and a cluster can't apply"
                " it",
                why="a cluster keeps the progress of an epoch with the rows of each slot",
                todo="run `sparkonce recover` on the former server, before you move its keys",
            )
        with reading(manifest.sink, FORGET):
            self.fence = int(manifest.notes.get("fence", 0))
        self.accepts_loss = bool(manifest.notes.get("accepts_loss", False))
        self.writer = LaneWriter(self.lanes, self.fence, self.detail, self.plan)
        self.known = LaneProgress.nothing()
        self.applied = self.stored = self.aside = self.settled_aside = 0

    def resume(self) -> int:
        """See `EpochDelivery.resume`. Lanes skip the chunks that they have."""
        manifest = self.manifest
        with self.session.asking(f"applying epoch {manifest.epoch}"):
            self.known = self.lanes.known()
            self.writer.before = LaneProgress.anything() if self.accepts_loss else self.known
        if not self._look():
            raise DecisionOver
        if self.fence <= self.known.dropped and not self.accepts_loss:
            raise ledger_behind(manifest.sink, manifest.epoch)
        self.had = self.applied
        # Before the end, send every chunk again: a node may have lost one that the ledger counts.
        return self.applied if self.applied == len(self.chunks) else 0

    def learn(self) -> None:
        """Record the progress of the lanes, before the rest of the decision is dropped."""
        with self.session.asking(f"dropping the rest of epoch {self.manifest.epoch}"):
            self.known = self.lanes.known()
        if self.chunks and self._look():
            self._learn(range(SLOTS))
            self._settle(self.applied, known=self.known.text)

    def _look(self) -> bool:
        """Read the progress of the decision; return whether the ledger still holds it."""
        manifest = self.manifest
        record = self.session.record(manifest.sink)
        with self.session.asking("reading the ledger"):
            token, *done = self.session.client.hmget(record, "token", "applied", "stored", "aside")
        if token != manifest.token.encode():
            return False
        self.applied, self.stored, self.aside = (int(one or 0) for one in done)
        self.settled_aside = self.aside
        self.counter.resume(self.stored + self.aside, self.aside)
        return True

    def apply_chunk(self, ordinal: int) -> None:
        """See `EpochDelivery.apply_chunk`."""
        if self.applied == len(self.chunks):  # another driver was faster
            raise self._over()
        found = self._read(ordinal)
        if found is None:
            raise self._over()
        with reading(f"chunk {ordinal} of {self.manifest.sink}"):
            (parts, own), letters = split_segments(found[0]), letter_rows(found[1])
        with self.session.asking(f"applying epoch {self.manifest.epoch}"):
            answers = self.writer.write(parts, letters, max(0, self.most - self.aside))
        statuses = {answer.status for answer in answers}
        if b"superseded" in statuses and not self._look():
            raise DecisionOver
        self._require_in_step(statuses)
        refused = [row for answer in answers for row in answer.refused]
        rows = [row for row in refused if row.at not in letters]
        is_new = ordinal >= self.applied
        if is_new:
            self._take(sum(answer.stored for answer in answers), rows, own)
        else:
            self._take(-len(rows), rows, ())
        for answer in answers:
            if answer.stopped:
                self._stop(answer.status, *answer.stopped)
        if letters.difference(row.at for row in refused) and not self.accepts_loss:
            raise stored_too(self.manifest.sink, self.manifest.epoch)
        for segment in parts:
            self.writer.seen.update(segment.slots)
        self._done(ordinal, rows, own if is_new else (), letters)

    def _over(self) -> DecisionOver:
        """The exception that ends the loop, after the counter has the other driver's progress."""
        self._look()
        return DecisionOver()

    def _done(
        self, ordinal: int, rows: Sequence[LaneRow], own: Sequence[Letter], before: LetterRows
    ) -> None:
        """Write the letters of a chunk; those of rows in `before` are written already."""
        letters = [*(self._letter(row.reason, row.key, *row.texts) for row in rows), *own]
        about = ordinal, before, before.union(row.at for row in rows)
        if ordinal + 1 == len(self.chunks):
            self.end()
            self._end_all(about, letters)
        elif letters:
            self._settle(max(ordinal + 1, self.applied), about, letters)

    def _read(self, ordinal: int) -> tuple[bytes, bytes] | None:
        """A chunk, and its rows that are letters; None if no work is left."""
        manifest, (part, seq) = self.manifest, self.chunks[ordinal]
        keys = [*self.session.of_attempt(manifest.sink, part.attempt), self.lanes.letters]
        given = [manifest.token, seq, len(self.chunks), ordinal]
        with self.session.asking(f"reading staged rows of epoch {manifest.epoch}"):
            found = self.session.run(scripts.read_chunk(), keys, given)
        if found is None:
            return None
        chunk, letters = found
        if chunk is None or len(chunk) != part.sizes[seq]:
            self._learn(range(SLOTS))  # an operator may accept the loss
            self._settle(self.applied, known=self.known.text)
            raise self.lost(part, seq)
        return chunk, letters

    def _require_in_step(self, statuses: set[bytes]) -> None:
        """Raise if a node has lost earlier chunks."""
        if b"early" in statuses:
            raise self.taken_back()
        if b"behind" in statuses:
            raise lane_behind(self.manifest.sink, self.manifest.epoch)
        if statuses.intersection((b"ahead", b"superseded")):
            raise ledger_behind(self.manifest.sink, self.manifest.epoch)

    # -- rows that can't be stored

    def _take(self, stored: int, rows: Sequence[LaneRow], own: Sequence[Letter]) -> None:
        """Count the rows of a chunk."""
        self._count(row.reason for row in rows)
        self._count_own(str(reason).encode() for reason, *_ in own)
        self.stored, self.aside = self.stored + stored, self.aside + len(rows) + len(own)
        self.counter.resume(self.stored + self.aside, self.aside)
        if self.letters:
            self.counter.require_few()

    def _stop(self, status: bytes, key: bytes, reason: bytes) -> NoReturn:
        """Raise the error that stopped a node."""
        if status == b"many" and self.letters:
            self._count([reason])
            self.counter.require_few()
        text = reason.decode(errors="replace")
        if refusal(text).kind is FailureKind.ROW:  # first, because values may contain other codes
            raise self.refused(key, reason)
        error = translate(redis.ResponseError(text), f"applying epoch {self.manifest.epoch}")
        if isinstance(error, StoreUnreachable):  # a slot moves to another node
            self.session.nodes.forget()
            raise error
        raise self.refused(key, reason)

    # -- the ledger's slot

    def _settle(
        self,
        applied: int,
        about: tuple[int, LetterRows, LetterRows] = (0, frozenset(), frozenset()),
        letters: Sequence[Letter] = (),
        known: bytes = b"",
    ) -> None:
        """Record `applied` chunks in the ledger's slot, and write letters, in one step.

        Args:
            applied: the number of applied chunks.
            about: the ordinal of the chunk with letters, its rows that were letters before, and
                those that are letters now.
            letters: the letters to write.
            known: at the end of an epoch, the progress of all lanes.
        """
        manifest, (ordinal, before, now) = self.manifest, about
        keys = [
            self.session.record(manifest.sink),
            self.lanes.key,
            self.session.key("letters", self.detail.dead_letter),
            self.lanes.letters,
        ]
        progress = [manifest.token, self.applied, applied, len(self.chunks)]
        counts = [self.stored, self.aside, known]
        rows = [ordinal, letter_bytes(before), letter_bytes(now), self.settled_aside]
        of = [manifest.sink, manifest.epoch, self.chunks[ordinal][0].partition, manifest.target]
        texts = [text for letter in letters for text in letter]
        given = [*progress, *counts, *rows, *of, *texts]
        with self.session.asking(f"recording progress of epoch {manifest.epoch}"):
            done = self.session.run(scripts.settle(), keys, given)
        if done < 0 or (letters and not done):  # another driver may have letters of other rows
            raise self.taken_back()
        self.applied, self.settled_aside = applied, self.aside

    def _end_all(
        self, about: tuple[int, LetterRows, LetterRows], letters: Sequence[Letter]
    ) -> None:
        """Check that each lane still has the whole epoch, then record it in the ledger's slot."""
        slots = range(SLOTS) if self.accepts_loss else sorted(self.writer.seen)
        with self.session.asking(f"reading progress of epoch {self.manifest.epoch}"):
            self.lanes.make_safe(slots)
        self._learn(slots)
        self._settle(len(self.chunks), about, letters, self.known.text)

    def _learn(self, slots: Sequence[int]) -> None:
        """Read the progress of lanes, and check that none has lost chunks."""
        seen = self.writer.seen
        with self.session.asking(f"reading progress of epoch {self.manifest.epoch}"):
            for state in self.lanes.states(slots):
                for slot, fence, n in zip(*state, strict=True):
                    if slot in seen and (fence, n) < (self.fence, seen[slot]):
                        raise self.taken_back()
                self.known.learn(state)


def stored_too(sink: str, epoch: int) -> SinkBehindCheckpoint:
    """The error if a driver stored a row because it did not know of the row's letter."""
    return SinkBehindCheckpoint(
        f"Rows of epoch {epoch} of sink {sink!r} are dead letters, and are stored, too",
        why="a node reverted to an earlier state (a failover) while another driver wrote",
        todo="delete those letters (`sparkonce letters`), then set option"
        f" onLostCommit=continue@{epoch}; or drop the rows of the epoch that are not applied, by"
        f" `sparkonce recover URL --sink {sink} --drop`. {LESS}",
    )
