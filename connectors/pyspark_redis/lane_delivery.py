"""A decision on its way into the slots of a cluster; docs/decisions.md says why this way."""

from __future__ import annotations

from array import array
from collections import Counter, defaultdict
from collections.abc import Collection, Iterator, Sequence
from itertools import chain
from typing import Any

import redis

from pyspark_redis import refusals
from pyspark_redis.delivery import FAULTS, Delivery
from pyspark_redis.journal import scripts
from pyspark_redis.journal.lanes import Known, Lanes, State, at_once
from pyspark_redis.models import lanes
from pyspark_redis.models.lanes import Segment
from pyspark_redis.server.failures import translate
from pyspark_redis.server.nodes import Address, ClusterSession
from pyspark_redis.server.slots import SLOTS
from sparkonce.errors import StoreUnreachable
from sparkonce.exactly_once.bad_rows import MaxBadRows
from sparkonce.protocol import Advance, Applied, Manifest

SHORT = 256 * 1024
"""Bytes that one script writes, if a segment has no more: about 10 ms of a node's work."""

Errand = tuple[Segment, int, int]
"""A segment, and which of its lanes lie on a node: from one to another."""


class LaneDelivery(Delivery):
    """Each chunk goes from the ledger's slot, by its driver, to the nodes of its lanes at once."""

    session: ClusterSession
    goes_on: bool
    """Whatever lanes have lost of what came before: as option ``onLostCommit`` says."""

    def __init__(self, session: ClusterSession, manifest: Manifest, most: MaxBadRows) -> None:
        super().__init__(session, manifest, most)
        self.lanes = Lanes(session, manifest.sink)
        self.fence, self.goes_on = int(manifest.notes["fence"]), manifest.notes["goes_on"]
        self.seen = Counter[int]()  # chunks of this decision that each lane must have seen
        self.before = self.known = Known(array("d"), array("I"))  # this, see `_know`
        self.applied = self.stored = self.aside = 0

    def fits_one_step(self, small_cost: int) -> bool:  # noqa: ARG002
        """Never: no step writes to two slots."""
        return False

    def apply(self, advance: Advance) -> Applied:
        """See `Store.apply`."""
        manifest = self.manifest
        doing = f"applying epoch {manifest.epoch}"
        with self.session.asking(doing):
            self._know(self.lanes.known())
            token, *done = self.session.client.hmget(
                self.session.record(manifest.sink), "token", "applied", "stored", "aside"
            )
        if token != manifest.token.encode():
            return self.tally.applied
        self.applied, self.stored, self.aside = (int(one or 0) for one in done)
        self.tally.resume(self.stored + self.aside, self.aside)
        with self._few():
            for ordinal, (part, seq) in enumerate(manifest.chunks):
                if self.applied == len(manifest.chunks) or not self._apply_chunk(ordinal):
                    return self.tally.applied
                advance(part.rows[seq])
        self._warn()
        return self.tally.applied

    def _know(self, known: Known) -> None:
        """What lanes must have seen before, and what they have seen in the end."""
        self.known = self.before = known
        if self.goes_on:
            self.before = Known(array("d", [-1.0]) * SLOTS, known.counts)

    def _apply_chunk(self, ordinal: int) -> bool:
        """Apply a chunk, unless another decision came."""
        chunk = self._read(ordinal)
        if chunk is None:
            return False
        segments, own = lanes.from_bytes(chunk)
        answers = self._write(segments)
        said = {answer[0] for answer in answers}
        if b"superseded" in said:
            return False
        self._require_in_step(said)
        rows = [row for _, _, noted, *_ in answers for row in noted]
        if ordinal >= self.applied:
            self._take(sum(stored for _, stored, *_ in answers), rows, own)
        for status, _, _, *stopped in answers:
            if stopped:
                self._stop(status, *stopped)
        for segment in segments:
            self.seen.update(segment.slots)
        self._done(ordinal, [*(self._letter(*row) for row in rows), *own])
        return True

    def _done(self, ordinal: int, letters: Sequence[Sequence[str | bytes]]) -> None:
        if ordinal + 1 == len(self.manifest.chunks):
            self.tally.end()
            self._end_all(letters)
        elif letters and ordinal >= self.applied:
            self._settle(ordinal, letters)

    def _read(self, ordinal: int) -> bytes | None:
        """A chunk, or None if another decision came, or another driver has applied all."""
        manifest, (part, seq) = self.manifest, self.manifest.chunks[ordinal]
        keys = self.session.of_attempt(manifest.sink, part.attempt)
        given = [manifest.token, seq, len(manifest.chunks)]
        with self.session.asking(f"reading staged rows of epoch {manifest.epoch}"):
            found = self.session.run(scripts.lane_chunk(), keys, given)
        if found is None:
            return None
        chunk: bytes | None = found[0]
        if chunk is None or len(chunk) != part.sizes[seq]:
            self._learn()  # the loss may be accepted
            self._settle(self.applied - 1, known=self.known.text)
            raise refusals.lost(manifest, part.attempt, seq)
        return chunk

    # -- lanes

    def _write(self, segments: Sequence[Segment]) -> list[Any]:
        """What the nodes say to those of their lanes."""
        by_node: dict[Address, list[Errand]] = defaultdict(list)
        with self.session.asking(f"applying epoch {self.manifest.epoch}"):
            for segment in segments:
                for address, first, end in self.lanes.owners(segment.slots):
                    by_node[address].append((segment, first, end))
            told = at_once(lambda own: self._write_to(*own), by_node.items())
            return list(chain.from_iterable(told))

    def _write_to(self, address: Address, errands: Sequence[Errand]) -> list[Any]:
        """What a node says to its lanes, by scripts that are short; up to one that stops."""
        client, answers = self.session.nodes.connect(address), []
        for some in _short(errands):
            answers.append(self._run(client, some))
            if answers[-1][0] != b"applied":
                break
        return answers

    def _run(self, client: redis.Redis, errands: Sequence[Errand]) -> Any:
        args: list[Any] = [*self.lanes.named, self.fence, self.plan, self._left, FAULTS]
        for segment, first, end in errands:
            slots = segment.slots[first:end]
            dues = array("I", map(self.seen.__getitem__, slots)).tobytes()
            fences = array("d", map(self.before.fences.__getitem__, slots)).tobytes()
            counts = array("I", map(self.before.counts.__getitem__, slots)).tobytes()
            args += [segment.payload, first + 1, end, dues, fences, counts]
        segment, first, _ = errands[0]
        keys = [self.lanes.of(segment.slots[first])]
        return self.session.run_on(client, scripts.lane_apply(self.values.library), keys, args)

    @property
    def _left(self) -> int:
        """How many more rows may go aside."""
        return max(0, self.most - self.aside)

    def _require_in_step(self, said: Collection[bytes]) -> None:
        """See that no node has lost what it had before."""
        if b"early" in said:
            raise self._taken_back()
        if b"behind" in said:
            raise refusals.lane_behind(self.manifest.sink, self.manifest.epoch)
        if b"ahead" in said:
            raise refusals.ledger_behind(self.manifest.sink, self.manifest.epoch)

    def _taken_back(self) -> StoreUnreachable:
        return StoreUnreachable(
            f"A node of the cluster lost progress of epoch {self.manifest.epoch} (a failover)",
            why="replication is asynchronous: a replica may lack what was written last",
            todo="the epoch is applied again from its first chunk, and nothing is doubled",
        )

    # -- rows that can't be stored

    def _take(self, stored: int, rows: Sequence[Any], own: Sequence[Sequence[str]]) -> None:
        """Count the rows of a chunk."""
        self._count(reason for reason, *_ in rows)
        self._count_own(reason.encode() for reason, *_ in own)
        self.stored, self.aside = self.stored + stored, self.aside + len(rows) + len(own)
        self.tally.resume(self.stored + self.aside, self.aside)
        if self.letters:
            self.tally.require_few()

    def _stop(self, status: bytes, key: bytes, reason: bytes) -> None:
        """Raise what stopped a node."""
        if status == b"many" and self.letters:
            self._count([reason])
            self.tally.require_few()
        told = reason.decode(errors="replace")
        error = translate(redis.ResponseError(told), f"applying epoch {self.manifest.epoch}")
        if isinstance(error, StoreUnreachable):  # a slot is on its way to another node
            self.session.nodes.forget()
            raise error
        raise refusals.refused(self.manifest, key, reason)

    def _rewind(self) -> None:
        """What is noted stays noted: it lies beside the rows, in many slots."""

    # -- the ledger's slot

    def _settle(
        self, ordinal: int, letters: Sequence[Sequence[str | bytes]] = (), known: bytes = b""
    ) -> None:
        """Note there that chunks up to this one are applied, and write letters, in one step."""
        manifest, (part, _) = self.manifest, self.manifest.chunks[ordinal]
        keys = [
            self.session.record(manifest.sink),
            self.lanes.key,
            self.session.key("letters", self.values.dead_letter),
        ]
        progress = [manifest.token, self.applied, ordinal + 1, self.stored, self.aside, known]
        about = [manifest.sink, manifest.epoch, part.partition, manifest.target]
        with self.session.asking(f"noting progress of epoch {manifest.epoch}"):
            done = self.session.run(
                scripts.lane_settle(),
                keys,
                [*progress, *about, *(text for letter in letters for text in letter)],
            )
        if done < 0:
            raise self._taken_back()
        self.applied = ordinal + 1

    def _end_all(self, letters: Sequence[Sequence[str | bytes]]) -> None:
        """See that each lane still has all of the epoch, then say so to the ledger's slot."""
        with self.session.asking(f"looking at what is applied of epoch {self.manifest.epoch}"):
            self.lanes.make_safe(self._slots)
        self._learn()
        self._settle(len(self.manifest.chunks) - 1, letters, self.known.text)

    def _learn(self) -> None:
        """Look at what lanes have seen.

        Raises:
            StoreUnreachable: one has lost what it had.
        """
        with self.session.asking(f"looking at what is applied of epoch {self.manifest.epoch}"):
            for state in self.lanes.states(self._slots):
                self._require_all(state)
                self.known.learn(state)

    @property
    def _slots(self) -> list[int]:
        """Those of this epoch; with those that may have lost what came before, if it goes on."""
        return sorted({*self.seen, *(self.known.slots if self.goes_on else ())})

    def _require_all(self, state: State) -> None:
        for slot, fence, n in zip(*state, strict=True):
            if slot in self.seen and (fence, n) < (self.fence, self.seen[slot]):
                raise self._taken_back()


def _short(errands: Sequence[Errand]) -> Iterator[list[Errand]]:
    """These errands, some at a time."""
    some: list[Errand] = []
    size = 0
    for errand in errands:
        size += len(errand[0].payload)
        if some and size > SHORT:
            yield some
            some, size = [], len(errand[0].payload)
        some.append(errand)
    yield some
