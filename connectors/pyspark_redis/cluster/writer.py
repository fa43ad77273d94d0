"""The segments of a chunk on their way to the nodes of their lanes, at once.

The ledger's slot keeps which rows of a chunk Redis refused and are dead letters. A failover can
take a lane back to such a chunk. Its letters are not written again then, and these rows are passed
over, even if they could be stored now.
"""

from __future__ import annotations

from array import array
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import chain
from typing import Any, NamedTuple

import redis

from pyspark_redis.cluster.lanes import LaneProgress, Lanes, at_once
from pyspark_redis.journal import scripts
from pyspark_redis.server.nodes import Address
from pyspark_redis.write.chunks import Segment
from pyspark_redis.write.delivery import FAULTS
from pyspark_redis.write.detail import PlanDetail

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
