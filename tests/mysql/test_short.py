"""Short transactions of MySQL: times and sizes of any form are read as from a single event."""

from __future__ import annotations

import random
import struct
from itertools import accumulate

import pytest

from pyspark_mysql.binlog import events, short
from pyspark_mysql.binlog.events import HEADER, Event

BEGIN = bytes(13) + b"\0BEGIN"


def packet(kind: int, body: bytes) -> bytes:
    size = HEADER + len(body)
    header = struct.pack("<IBIIIH", 1_700_000_000, kind, 7, size, 9_000_000, 0)
    return b"\0" + header + body


def begin(chance: random.Random, size: bytes) -> bytes:
    """The body of a GTID_LOG_EVENT."""
    micros, given = chance.getrandbits(55), chance.choice([None, 0, chance.getrandbits(55)])
    times = micros.to_bytes(7, "little")
    if given is not None:
        times = (micros | 1 << 55).to_bytes(7, "little") + given.to_bytes(7, "little")
    source, number = chance.randbytes(16), chance.randrange(1, 2**62)
    return (
        bytes(1) + source + struct.pack("<q", number) + b"\2" + bytes(16) + times + size + bytes(4)
    )


def encoded(number: int) -> bytes:
    if number < 0xFB:
        return bytes([number])
    if number < 1 << 16:
        return b"\xfc" + number.to_bytes(2, "little")
    return b"\xfd" + number.to_bytes(3, "little")


def transaction(chance: random.Random, rows: int) -> list[bytes]:
    """The payloads of a short transaction, whose first event has the number of its bytes."""
    rest = [
        packet(events.QUERY, BEGIN),
        packet(events.TABLE_MAP, bytes(8) + b"table"),
        packet(30, bytes(rows)),
        packet(events.XID, bytes(8)),
    ]
    first, size = packet(events.GTID, begin(chance, b"\0")), 0
    state = chance.getstate()
    while True:  # the size counts its own bytes
        first, total = packet(events.GTID, begin(chance, encoded(size))), 0
        total = sum(len(one) - 1 for one in (first, *rest))
        if total == size:
            return [first, *rest]
        size = total
        chance.setstate(state)


def of_mariadb(chance: random.Random) -> list[bytes]:
    """The same of MariaDB, whose numbers have 64 bits without a sign."""
    number, domain = chance.choice([1, 2**63 - 1, 2**63, 2**64 - 1]), chance.getrandbits(32)
    flags = chance.choice([0, events.TRANSACTIONAL, events.TRANSACTIONAL | 8])
    return [
        packet(events.MARIADB_GTID, struct.pack("<QIB", number, domain, flags) + bytes(6)),
        packet(events.TABLE_MAP, bytes(8) + b"table"),
        packet(24, bytes(9)),
        packet(events.XID, bytes(8)),
    ]


@pytest.mark.parametrize("seed", range(20))
def test_the_begin_of_each_is_that_of_its_event(monkeypatch: pytest.MonkeyPatch, seed: int) -> None:
    monkeypatch.setattr(short, "FEWEST", 1)
    chance = random.Random(seed)
    sizes = [chance.choice([8, 20, 300, 70_000]) for _ in range(20)]
    for sent in (
        [transaction(chance, size) for size in sizes],
        [of_mariadb(chance) for _ in sizes],
    ):
        payloads = [one for each in sent for one in each]
        block = b"".join(bytes(4) + one for one in payloads)
        bounds = [*accumulate((len(one) + 4 for one in payloads), initial=4)]
        found = short.runs(block, bounds, 0)
        decoded = [one.begin for run in found.values() for one in run]
        first = [Event(one[0][5], one[0], 1 + HEADER, len(one[0])) for one in sent]
        assert decoded == [events.BEGINS[one.kind](one) for one in first]


def test_rows_of_another_table_are_left_to_the_single_events(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(short, "FEWEST", 1)
    sent = of_mariadb(random.Random(1))
    sent[2] = packet(24, b"\7" + bytes(8))
    bounds = [*accumulate((len(one) + 4 for one in sent), initial=4)]
    assert short.runs(b"".join(bytes(4) + one for one in sent), bounds, 0) == {}
