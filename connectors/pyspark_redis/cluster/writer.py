"""The segments of a chunk on their way to the nodes of their lanes, at once."""

from __future__ import annotations

from array import array
from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping, Sequence
from itertools import chain
from typing import Any, NamedTuple

import redis

from pyspark_redis.cluster.lanes import Known, Lanes, at_once
from pyspark_redis.journal import lettered, scripts
from pyspark_redis.server.nodes import Address
from pyspark_redis.write.delivery import FAULTS
from pyspark_redis.write.segments import Segment
from pyspark_redis.write.values import Values

SHORT = 256 * 1024
"""Bytes that one script writes, if a segment has no more: about 10 ms of a node's work."""


class Errand(NamedTuple):
    """What a node is to write of a segment.

    Attributes:
        number: which segment of its chunk.
        segment: with all its lanes.
        lanes: which of these lie on the node.
    """

    number: int
    segment: Segment
    lanes: array[int]


class Refused(NamedTuple):
    """A row that Redis refused.

    Attributes:
        at: which segment, and which row of it.
        reason: as Redis gave it.
        key: of the row.
        texts: of its columns.
    """

    at: tuple[int, int]
    reason: bytes
    key: bytes
    texts: Sequence[bytes | None]


class Answer(NamedTuple):
    """What a node says; see `lane_apply.lua`.

    Attributes:
        status: how it ended.
        stored: rows that are stored.
        refused: rows that Redis refused.
        stopped: key and reason, where it stopped at a row.
    """

    status: bytes
    stored: int = 0
    refused: Sequence[Refused] = ()
    stopped: Sequence[bytes] = ()


class LaneWriter:
    """Writes chunks of one decision.

    Args:
        lanes: of its sink.
        fence: of the decision.
        values: how rows are written.
        plan: the same, as scripts read it.

    Attributes:
        seen: how many chunks of this decision each lane must have seen.
        before: what each must have seen before.
    """

    def __init__(self, lanes: Lanes, fence: int, values: Values, plan: str) -> None:
        self.lanes, self.fence, self.plan = lanes, fence, plan
        self.script = scripts.lane_apply(values.library)
        self.seen = Counter[int]()
        self.before = Known.nothing()

    def write(self, segments: Sequence[Segment], rows: lettered.Rows, most: int) -> list[Answer]:
        """Write a chunk; what the nodes say to those of their lanes.

        Args:
            segments: of the chunk.
            rows: that are letters already.
            most: how many may become letters yet.
        """
        by_node: dict[Address, list[Errand]] = defaultdict(list)
        for number, segment in enumerate(segments):
            for address, lanes in self.lanes.by_node(segment.slots).items():
                by_node[address].append(Errand(number, segment, lanes))
        letters = lettered.by_segment(rows)
        told = at_once(lambda own: self._write_to(*own, letters, most), by_node.items())
        return list(chain.from_iterable(told))

    def _write_to(
        self, address: Address, errands: Sequence[Errand], letters: Mapping[int, bytes], most: int
    ) -> list[Answer]:
        """What a node says to its lanes, by scripts that are short; up to one that stops."""
        client, answers = self.lanes.session.nodes.connect(address), []
        for some in _short(errands):
            answers.append(self._run(client, some, letters, most))
            if answers[-1].status != b"applied":
                break
        return answers

    def _run(
        self,
        client: redis.Redis,
        errands: Sequence[Errand],
        letters: Mapping[int, bytes],
        most: int,
    ) -> Answer:
        args: list[Any] = [*self.lanes.named, self.fence, self.plan, most, FAULTS]
        for number, segment, lanes in errands:
            slots = [segment.slots[lane] for lane in lanes]
            dues = array("I", map(self.seen.__getitem__, slots)).tobytes()
            indexes = array("H", [lane + 1 for lane in lanes]).tobytes()
            known = self.before.must(slots)
            args += [segment.payload, indexes, dues, *known, letters[number]]
        keys = [self.lanes.of(errands[0].segment.slots[errands[0].lanes[0]])]
        told = self.lanes.session.run_on(client, self.script, keys, args)
        return _answer(told, errands)


def _answer(told: Sequence[Any], errands: Sequence[Errand]) -> Answer:
    if len(told) < 3:
        return Answer(told[0])
    status, stored, refused, *stopped = told
    rows = [
        Refused((errands[errand].number, row), reason, key, texts)
        for reason, key, errand, row, *texts in refused
    ]
    return Answer(status, stored, rows, stopped)


def _short(errands: Sequence[Errand]) -> Iterator[list[Errand]]:
    """These errands, some at a time."""
    some: list[Errand] = []
    size = 0
    for errand in errands:
        size += len(errand.segment.payload)
        if some and size > SHORT:
            yield some
            some, size = [], len(errand.segment.payload)
        some.append(errand)
    yield some
