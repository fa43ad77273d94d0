"""MySQL's sets of GTIDs: which transactions a server has, or a reader has read."""

from __future__ import annotations

import re
import struct
from collections.abc import Iterator
from uuid import UUID

from pyspark_mysql.binlog.transactions import Gtid, Tagged, source_of

Source = tuple[bytes, str]
"""A server's UUID, and the tag that a transaction may have (MySQL 8.3)."""

Span = tuple[int, int]
"""Numbers from a first one up to another, which is not among them."""


class GtidSet:
    """By source, numbers in spans.

    See https://dev.mysql.com/doc/refman/8.4/en/replication-gtids-concepts.html.
    """

    def __init__(self, text: str = "") -> None:
        self.spans: dict[Source, list[Span]] = {}
        for part in filter(None, re.sub(r"\s", "", text).split(",")):
            uuid, *rest = part.split(":")
            tag = ""
            for one in rest:
                if not one[0].isdigit():
                    tag = one.lower()
                    continue
                low, _, high = one.partition("-")
                self._join((UUID(uuid).bytes, tag), (int(low), int(high or low) + 1))

    def __str__(self) -> str:
        return ",".join(
            ":".join([source_of(*one), *map(_shown, spans)])
            for one, spans in sorted(self.spans.items())
        )

    def lacks(self, other: str) -> str:
        """See `Gtids.lacks`."""
        return str(self._without(GtidSet(other)))

    def joined(self, other: str) -> str:
        """See `Gtids.joined`."""
        both = GtidSet(other)
        for source, spans in self.spans.items():
            for span in spans:
                both._join(source, span)
        return str(both)

    def common(self, other: str) -> str:
        """Those of these that are among the others, too."""
        strange = GtidSet(GtidSet(other).lacks(str(self)))
        return str(strange._without(self))

    def to(self, end: str) -> SetStretch:
        """See `Gtids.to`."""
        return SetStretch(self, self._without(GtidSet(end)))

    def many(self, end: str) -> int:
        """See `Gtids.many`."""
        return len(self._without(GtidSet(end)))

    def has(self, gtid: Tagged) -> bool:
        """Whether a transaction is one of these."""
        spans = self.spans.get((gtid.uuid, gtid.tag), ())
        return any(low <= gtid.number < high for low, high in spans)

    def add(self, gtid: Tagged) -> None:
        """Make a transaction one of these; almost always it is the next one."""
        self._join((gtid.uuid, gtid.tag), (gtid.number, gtid.number + 1))

    def __len__(self) -> int:
        return sum(high - low for spans in self.spans.values() for low, high in spans)

    def encoded(self) -> bytes:
        """As COM_BINLOG_DUMP_GTID has it: `Gtid_set::encode` in MySQL's rpl_gtid_set.cc.

        Since 8.3 there is a second form, for sets with tags, told by the highest byte.
        """
        tagged = any(tag for _, tag in self.spans)
        count = len(self.spans)
        parts = [struct.pack("<Q", 1 << 56 | count << 8 | 1 if tagged else count)]
        for (uuid, tag), spans in sorted(self.spans.items()):
            parts.append(uuid)
            if tagged:
                parts.append(bytes([len(tag) << 1]) + tag.encode())
            parts.append(struct.pack("<Q", len(spans)))
            parts += [struct.pack("<QQ", *span) for span in spans]
        return b"".join(parts)

    def _without(self, other: GtidSet) -> GtidSet:
        """Those of the other set that are none of these."""
        found = GtidSet()
        for source, spans in other.spans.items():
            left = [*_cut(spans, self.spans.get(source, []))]
            if left:
                found.spans[source] = left
        return found

    def _join(self, source: Source, span: Span) -> None:
        spans = self.spans.setdefault(source, [])
        if spans and spans[-1][1] == span[0]:
            spans[-1] = (spans[-1][0], span[1])
            return
        merged = list[Span]()
        for low, high in sorted([*spans, span]):
            if merged and low <= merged[-1][1]:
                merged[-1] = (merged[-1][0], max(high, merged[-1][1]))
            else:
                merged.append((low, high))
        self.spans[source] = merged


class SetStretch:
    """See `Stretch`."""

    def __init__(self, before: GtidSet, wanted: GtidSet) -> None:
        self._before, self._wanted, self._taken = before, wanted, GtidSet()
        self._left = len(wanted)

    @property
    def done(self) -> bool:
        """See `Stretch.done`."""
        return self._left == 0

    def wants(self, gtid: Gtid) -> bool:
        """See `Stretch.wants`."""
        return isinstance(gtid, Tagged) and self._wanted.has(gtid)

    def take(self, gtid: Gtid) -> None:
        """See `Stretch.take`."""
        if isinstance(gtid, Tagged):
            self._taken.add(gtid)
            self._left -= 1

    def missing(self) -> str:
        """See `Stretch.missing`."""
        return self._taken.lacks(str(self._wanted))

    def reached(self) -> str:
        """See `Stretch.reached`."""
        return self._before.joined(str(self._taken))


def _shown(span: Span) -> str:
    low, high = span
    return f"{low}-{high - 1}" if high - low > 1 else str(low)


def _cut(spans: list[Span], others: list[Span]) -> Iterator[Span]:
    """What is left of spans without others; both are sorted."""
    for low, high in spans:
        at = low
        for begin, end in others:
            if end <= at or begin >= high:
                continue
            if begin > at:
                yield at, begin
            at = max(at, end)
        if at < high:
            yield at, high
