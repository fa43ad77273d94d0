"""GTIDs, the names of transactions: single ones, sets and positions, and ranges between them.

MySQL has sets, ``uuid:1-5:8,uuid:tag:1-3``. MariaDB has positions: the last transaction of each
domain, ``domain-server-number``. See
https://dev.mysql.com/doc/refman/8.4/en/replication-gtids-concepts.html and
https://mariadb.com/docs/server/ha-and-performance/standard-replication/gtid.
"""

from __future__ import annotations

import re
import struct
from collections.abc import Iterator, Mapping
from functools import lru_cache
from typing import Any, NamedTuple, TypeAlias
from uuid import UUID

UUID_FORM = r"[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}"
SOURCE_FORM = rf"{UUID_FORM}((:[a-z_]\w*)?:\d+(-\d+)?)+"
SET_FORM, SPAN_FORM = re.compile(rf"{SOURCE_FORM}(,{SOURCE_FORM})*", re.I), r":(\d+)-(\d+)"
POSITION_FORM = re.compile(r"\d+-\d+-\d+(,\d+-\d+-\d+)*")
NO_GTID = "0-0-0"


@lru_cache
def _source_text(uuid: bytes, tag: str) -> str:
    return f"{UUID(bytes=uuid)}:{tag}" if tag else str(UUID(bytes=uuid))


class TaggedGtid(NamedTuple):
    """A transaction of MySQL; most have no tag."""

    uuid: bytes
    tag: str
    number: int

    def __str__(self) -> str:
        return f"{_source_text(self.uuid, self.tag)}:{self.number}"


class DomainGtid(NamedTuple):
    """A transaction of MariaDB."""

    domain: int
    server: int
    number: int

    def __str__(self) -> str:
        return f"{self[0]}-{self[1]}-{self[2]}"


Gtid: TypeAlias = TaggedGtid | DomainGtid


class GtidRange:
    """The transactions to read, each of which the log has once; without arguments, all that arrive.

    Attributes:
        is_complete: whether all have been read.
    """

    def __init__(self, read: Gtids | None = None, left: Gtids | None = None) -> None:
        self._read, self._left = read, left
        self.is_complete = left is not None and not left

    def contains(self, gtid: Gtid) -> bool:
        """Whether a transaction is in the range."""
        return self._left is None or self._left.has(gtid)

    def advance(self, gtid: Gtid) -> None:
        """Record that a transaction has been read."""
        if self._read is not None and self._left is not None:
            self._read.add(gtid)
            self._left.remove(gtid)
            self.is_complete = not self._left

    def missing(self) -> str:
        """The transactions not yet read; empty if all have been."""
        return str(self._left or "")

    def reached(self) -> str:
        """All transactions read so far, including those before the range."""
        return str(self._read or "")


def gtids(text: str, *, mariadb: bool) -> Gtids:
    """Parse a set or a position."""
    return GtidPosition(text) if mariadb else GtidSet(text)


def is_gtids(text: str) -> bool:
    """Whether a text is a set, or a position."""
    return is_written_by(text, mariadb=False) or is_written_by(text, mariadb=True)


def is_written_by(text: str, *, mariadb: bool) -> bool:
    """Whether a text has the form of that kind of server; an empty text has both forms."""
    if mariadb or not text:
        return not text or bool(POSITION_FORM.fullmatch(text))
    spans = ((int(low), int(high)) for low, high in re.findall(SPAN_FORM, text))
    return bool(SET_FORM.fullmatch(text)) and all(low <= high for low, high in spans)


def is_gtid(text: str) -> bool:
    """Whether a text names one transaction."""
    return bool(re.fullmatch(rf"{UUID_FORM}(:[a-z_]\w*)?:\d+|\d+-\d+-\d+", text))


Source = tuple[bytes, str]  # a server's UUID, and the tag that a transaction may have (MySQL 8.3)
Span = tuple[int, int]  # numbers from the first (inclusive) to the last (exclusive)


class GtidSet:
    """A GTID set of MySQL: by source, numbers in sorted spans."""

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
            ":".join([_source_text(*one), *map(_span_text, spans)])
            for one, spans in sorted(self.spans.items())
        )

    def lacks(self, other: str) -> str:
        """The others that are not in this set; empty if all are."""
        return str(self._lacks(GtidSet(other)))

    def joined(self, other: str) -> str:
        """The union of both."""
        return str(GtidSet(f"{self},{other}"))

    def common(self, other: str) -> str | None:
        """The intersection of both; None if it is empty."""
        both = GtidSet(other)
        return str(self._lacks(both)._lacks(both)) or None

    def up_to(self, end: str) -> GtidRange:
        """The transactions of `end` that are not in this set."""
        return GtidRange(GtidSet(str(self)), self._lacks(GtidSet(end)))

    def count_up_to(self, end: str) -> int:
        """The number of those transactions."""
        return len(self._lacks(GtidSet(end)))

    def has(self, gtid: Gtid) -> bool:
        """Whether a transaction is in the set."""
        if isinstance(gtid, TaggedGtid):
            for low, high in self.spans.get(gtid[:2], ()):
                if low <= gtid.number < high:
                    return True
        return False

    def add(self, gtid: Any) -> None:
        """Add a transaction."""
        spans, number = self.spans.get(gtid[:2]), gtid[2]
        if spans and spans[-1][1] == number:  # the usual case: transactions arrive in order
            spans[-1] = (spans[-1][0], number + 1)
        else:
            self._join(gtid[:2], (number, number + 1))

    def remove(self, gtid: Any) -> None:
        """Remove a transaction of the set."""
        spans = self.spans[gtid[:2]]
        low, high = spans[0]
        if low == gtid.number < high - 1:  # the usual case, as in `_join`
            spans[0] = (low + 1, high)
        elif left := [*_cut(spans, [(gtid.number, gtid.number + 1)])]:
            self.spans[gtid[:2]] = left
        else:
            del self.spans[gtid[:2]]

    def __bool__(self) -> bool:
        return bool(self.spans)

    def __len__(self) -> int:
        return sum(high - low for spans in self.spans.values() for low, high in spans)

    def encoded(self) -> bytes:
        """The form of COM_BINLOG_DUMP_GTID: `Gtid_set::encode` in MySQL's rpl_gtid_set.cc."""
        # 8 bytes: the number of sources; of each 16 bytes of UUID and 8 of the number of spans, of
        # each span 8 and 8. Since 8.3 sets with tags have another form: the lowest and the highest
        # of the first 8 bytes are 1. A byte with twice the tag's length and the tag follow the
        # UUID.
        tagged = any(tag for _, tag in self.spans)
        count = len(self.spans)
        parts = [struct.pack("<Q", 1 << 56 | count << 8 | 1 if tagged else count)]
        for (uuid, tag), spans in sorted(self.spans.items()):
            parts += [uuid, bytes([len(tag) << 1]) + tag.encode() if tagged else b""]
            parts += [struct.pack("<Q", len(spans)), *(struct.pack("<QQ", *one) for one in spans)]
        return b"".join(parts)

    def _lacks(self, other: GtidSet) -> GtidSet:
        found = GtidSet()
        for source, spans in other.spans.items():
            if left := [*_cut(spans, self.spans.get(source, []))]:
                found.spans[source] = left
        return found

    def _join(self, source: Source, span: Span) -> None:
        # Invariant: spans are sorted, and none touches the next one.
        spans = self.spans.setdefault(source, [])
        merged = list[Span]()
        for low, high in sorted([*spans, span]):
            if merged and low <= merged[-1][1]:
                merged[-1] = (merged[-1][0], max(high, merged[-1][1]))
            else:
                merged.append((low, high))
        self.spans[source] = merged


def _span_text(span: Span) -> str:
    low, high = span
    return f"{low}-{high - 1}" if high - low > 1 else str(low)


def _cut(spans: list[Span], others: list[Span]) -> Iterator[Span]:
    """The difference of two sorted lists of spans."""
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


class GtidPosition:
    """A position of MariaDB: the last transaction of each domain."""

    def __init__(self, text: str = "") -> None:
        parts = (one.strip() for one in text.split(","))
        self.last = {int(one.split("-")[0]): one for one in parts if one}

    def __str__(self) -> str:
        return position_text(self.last)

    def lacks(self, other: str) -> str:
        """The domains in which the other position is ahead; empty if none."""
        last = GtidPosition(other).last
        return position_text({domain: last[domain] for domain in last if self._ahead(last, domain)})

    def joined(self, other: str) -> str:
        """The later transaction of both in each domain."""
        return position_text(self.last | GtidPosition(self.lacks(other)).last)

    def count_up_to(self, end: str) -> int:
        """The number of those transactions, assuming consecutive numbers."""
        last = GtidPosition(end).last
        return sum(self._ahead(last, domain) for domain in last)

    def up_to(self, end: str) -> GtidRange:
        """The transactions between this position and `end`."""
        # A domain ends with exactly its last transaction: without gtid_strict_mode numbers may
        # have any order.
        left = GtidPosition(end)
        left.last = {at: one for at, one in left.last.items() if self.last.get(at) != one}
        return GtidRange(GtidPosition(str(self)), left)

    def __bool__(self) -> bool:
        return bool(self.last)

    def has(self, gtid: Gtid) -> bool:
        """Whether a transaction belongs to one of these domains."""
        return isinstance(gtid, DomainGtid) and gtid.domain in self.last

    def add(self, gtid: Any) -> None:
        """Record a transaction as the last of its domain."""
        self.last[gtid.domain] = str(gtid)

    def remove(self, gtid: Any) -> None:
        """Remove the domain whose last transaction this is."""
        if self.last[gtid.domain] == str(gtid):
            del self.last[gtid.domain]

    def _ahead(self, last: Mapping[int, str], domain: int) -> int:
        return max(0, _number(last[domain]) - _number(self.last.get(domain, NO_GTID)))


Gtids: TypeAlias = GtidSet | GtidPosition
"""Transactions that have been read, or that a server has."""


def position_text(last: Mapping[int, str]) -> str:
    """A position as MariaDB writes it, from the last transaction of each domain."""
    return ",".join(one for _, one in sorted(last.items()))


class GtidState:
    """All transactions that a MariaDB has ever had: gtid_binlog_state, the last of each server."""

    def __init__(self, text: str) -> None:
        self.last = {_giver(one): one for one in text.split(",") if one}

    def lacks(self, position: str) -> str:
        """The domains in which a position is ahead of everything that the server has had."""
        last = GtidPosition(position).last.items()
        return position_text({at: one for at, one in last if self._last(one) < _number(one)})

    def common(self, position: str) -> str | None:
        """The part of what was read that the server has; None if it is unknown."""
        # One server assigned the last read transaction of a domain. The query has read the domain
        # up to the last transaction of that server which this server has, and none that other
        # servers assigned later. Numbers alone prove nothing: a server that takes over assigns the
        # lost numbers again.
        found, domains = GtidPosition(position).last, {domain for domain, _ in self.last}
        for domain in GtidPosition(self.lacks(position)).last:
            last = self.last.get(_giver(found.pop(domain)))
            if last:
                found[domain] = last
            elif str(domain) in domains:
                return None
        return position_text(found)

    def _last(self, gtid: str) -> int:
        return _number(self.last.get(_giver(gtid), NO_GTID))


def _giver(gtid: str) -> tuple[str, str]:
    """The domain of a transaction, and the server that assigned its GTID."""
    domain, server, _ = gtid.strip().split("-")
    return domain, server


def _number(gtid: str) -> int:
    return int(gtid.split("-")[2])
