"""A decision on its way into the slots of a cluster; docs/decisions.md says why this way.

The ledger's slot keeps which rows of a chunk Redis refused and are dead letters. A failover can
take a lane back to such a chunk. Its letters are not written again then, and these rows are passed
over, even if they could be stored now.
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
"""Bytes that one script writes, if a segment has no more: about 10 ms of a node's work."""

LetterRows = frozenset[tuple[int, int]]
"""Of each row: which segment, from 0, and which row of it, from 1."""

Letters = Mapping[int, bytes]  # the same for each segment, as `apply.lua` reads them


class NodeSegment(NamedTuple):
    """What a node is to write of a segment."""

    number: int  # which segment of its chunk
    segment: Segment  # with all its lanes
    lanes: array[int]  # which of these lie on the node


class LaneRow(NamedTuple):
    """A row of a lane that Redis refused."""

    at: tuple[int, int]  # which segment, and which row of it
    reason: bytes  # as Redis gave it
    key: bytes  # of the row
    texts: Sequence[bytes | None]  # of its columns


class NodeAnswer(NamedTuple):
    """What a node answers; see `cluster/lua/apply.lua`."""

    status: bytes  # how it ended
    stored: int = 0  # rows that are stored
    refused: Sequence[LaneRow] = ()  # rows that Redis refused
    stopped: Sequence[bytes] = ()  # key and reason, where it stopped at a row


class LaneWriter:
    """Writes chunks of one decision; `plan` is its detail as scripts read it."""

    def __init__(self, lanes: Lanes, fence: int, detail: PlanDetail, plan: str) -> None:
        self.lanes, self.fence, self.plan = lanes, fence, plan
        self.script = scripts.apply_to_lanes(detail.model)
        self.seen = Counter[int]()  # how many chunks of this decision each lane must have seen
        self.before = LaneProgress.nothing()  # what each must have seen before

    def write(self, segments: Sequence[Segment], rows: LetterRows, most: int) -> list[NodeAnswer]:
        """Write a chunk, of which `rows` are letters already and so many (`most`) may become some.

        Gives what the nodes answer for their lanes.
        """
        by_node: dict[Address, list[NodeSegment]] = defaultdict(list)
        for number, segment in enumerate(segments):
            for address, lanes in self.lanes.by_node(segment.slots).items():
                by_node[address].append(NodeSegment(number, segment, lanes))
        letters = _by_segment(rows)

        def write_to(own: tuple[Address, list[NodeSegment]]) -> list[NodeAnswer]:
            """By scripts that are short, up to one that stops."""
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
    """These, some at a time."""
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
    """What `letter_bytes` was given."""
    numbers = array("I", text)
    return frozenset(zip(numbers[::2], numbers[1::2], strict=True))


def letter_bytes(rows: Iterable[tuple[int, int]]) -> bytes:
    """Rows as they are kept."""
    return array("I", chain.from_iterable(sorted(rows))).tobytes()


def _by_segment(rows: LetterRows) -> Letters:
    found: dict[int, array[int]] = defaultdict(lambda: array("I"))
    for segment, row in sorted(rows):
        found[segment].append(row)
    return defaultdict(bytes, {segment: own.tobytes() for segment, own in found.items()})


Letter = Sequence[str | bytes]


class ClusterDelivery(RedisDelivery):
    """Each chunk goes from the ledger's slot, by its driver, to the nodes of its lanes at once.

    What is noted of a bad row stays noted: it lies beside the rows, in many slots. So nothing is
    taken back.
    """

    ends_in_last_chunk = True

    session: ClusterSession
    accepts_loss: bool  # whatever lanes have lost before, as option ``onLostCommit`` says

    def __init__(self, session: ClusterSession, manifest: Manifest, most: MaxBadRows) -> None:
        super().__init__(session, manifest, most)
        self.lanes = Lanes(session, manifest.sink)
        if self.chunks and "fence" not in manifest.notes:
            raise StoreRefused(
                f"Epoch {manifest.epoch} was decided on a single server, and can't be applied in a"
                " cluster",
                why="there the progress of an epoch lies beside the rows of each slot",
                todo="run `sparkonce recover` on the server that it came from, before its keys are"
                " moved",
            )
        with reading(manifest.sink, FORGET):
            self.fence = int(manifest.notes.get("fence", 0))
        self.accepts_loss = bool(manifest.notes.get("accepts_loss", False))
        self.writer = LaneWriter(self.lanes, self.fence, self.detail, self.plan)
        self.known = LaneProgress.nothing()
        self.applied = self.stored = self.aside = self.settled_aside = 0

    def resume(self) -> int:
        """See `EpochDelivery.resume`. Lanes pass over the chunks that they have."""
        manifest = self.manifest
        with self.session.asking(f"applying epoch {manifest.epoch}"):
            self.known = self.lanes.known()
            self.writer.before = LaneProgress.anything() if self.accepts_loss else self.known
        if not self._look():
            raise DecisionOver
        if self.fence <= self.known.dropped and not self.accepts_loss:
            raise ledger_behind(manifest.sink, manifest.epoch)
        self.had = self.applied
        # Short of its end all is sent again: a node may have lost what the ledger's slot knows of.
        return self.applied if self.applied == len(self.chunks) else 0

    def learn(self) -> None:
        """Note what lanes have seen of the decision, before the rest of it is given up."""
        with self.session.asking(f"giving epoch {self.manifest.epoch} up"):
            self.known = self.lanes.known()
        if self.chunks and self._look():
            self._learn(range(SLOTS))
            self._settle(self.applied, known=self.known.text)

    def _look(self) -> bool:
        """Read how far the decision has come; whether the ledger holds it still."""
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
        """What ends the loop, once the counter knows what another driver has put aside."""
        self._look()
        return DecisionOver()

    def _done(
        self, ordinal: int, rows: Sequence[LaneRow], own: Sequence[Letter], before: LetterRows
    ) -> None:
        """Write the letters of a chunk; those of rows that it had `before` are there."""
        letters = [*(self._letter(row.reason, row.key, *row.texts) for row in rows), *own]
        about = ordinal, before, before.union(row.at for row in rows)
        if ordinal + 1 == len(self.chunks):
            self.end()
            self._end_all(about, letters)
        elif letters:
            self._settle(max(ordinal + 1, self.applied), about, letters)

    def _read(self, ordinal: int) -> tuple[bytes, bytes] | None:
        """A chunk, and its rows that are letters; None if nothing is left to do."""
        manifest, (part, seq) = self.manifest, self.chunks[ordinal]
        keys = [*self.session.of_attempt(manifest.sink, part.attempt), self.lanes.letters]
        given = [manifest.token, seq, len(self.chunks), ordinal]
        with self.session.asking(f"reading staged rows of epoch {manifest.epoch}"):
            found = self.session.run(scripts.read_chunk(), keys, given)
        if found is None:
            return None
        chunk, letters = found
        if chunk is None or len(chunk) != part.sizes[seq]:
            self._learn(range(SLOTS))  # the loss may be accepted
            self._settle(self.applied, known=self.known.text)
            raise self.lost(part, seq)
        return chunk, letters

    def _require_in_step(self, statuses: set[bytes]) -> None:
        """See that no node has lost what it had before."""
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
        """Raise what stopped a node."""
        if status == b"many" and self.letters:
            self._count([reason])
            self.counter.require_few()
        text = reason.decode(errors="replace")
        if refusal(text).kind is FailureKind.ROW:  # its text may hold any word
            raise self.refused(key, reason)
        error = translate(redis.ResponseError(text), f"applying epoch {self.manifest.epoch}")
        if isinstance(error, StoreUnreachable):  # a slot is on its way to another node
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
        """Note there that so many chunks are applied, and write letters, in one step.

        `about` is the ordinal of the chunk with letters, its rows that were letters before, and
        those that are now; `known` at the end is what all lanes have seen.
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
        with self.session.asking(f"noting progress of epoch {manifest.epoch}"):
            done = self.session.run(scripts.settle(), keys, given)
        if done < 0 or (letters and not done):  # another driver's letters may be of other rows
            raise self.taken_back()
        self.applied, self.settled_aside = applied, self.aside

    def _end_all(
        self, about: tuple[int, LetterRows, LetterRows], letters: Sequence[Letter]
    ) -> None:
        """See that each lane still has all of the epoch, then say so to the ledger's slot."""
        slots = range(SLOTS) if self.accepts_loss else sorted(self.writer.seen)
        with self.session.asking(f"looking at what is applied of epoch {self.manifest.epoch}"):
            self.lanes.make_safe(slots)
        self._learn(slots)
        self._settle(len(self.chunks), about, letters, self.known.text)

    def _learn(self, slots: Sequence[int]) -> None:
        """Look at what lanes have seen, and that none has lost what it had."""
        seen = self.writer.seen
        with self.session.asking(f"looking at what is applied of epoch {self.manifest.epoch}"):
            for state in self.lanes.states(slots):
                for slot, fence, n in zip(*state, strict=True):
                    if slot in seen and (fence, n) < (self.fence, seen[slot]):
                        raise self.taken_back()
                self.known.learn(state)


def stored_too(sink: str, epoch: int) -> SinkBehindCheckpoint:
    """A row is stored by a driver that did not know of its letter."""
    return SinkBehindCheckpoint(
        f"Rows of epoch {epoch} of sink {sink!r} are dead letters, and are stored, too",
        why="a node went back to an earlier state (a failover) while another driver wrote",
        todo="delete those letters (`sparkonce letters`), then set option"
        f" onLostCommit=continue@{epoch}; or give up the rows of the epoch that are not applied, by"
        f" `sparkonce recover URL --sink {sink} --drop`. {LESS}",
    )
