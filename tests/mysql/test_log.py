"""Events of the binary log, out of packets; one that is not known is none without a change."""

from __future__ import annotations

import io
from types import SimpleNamespace
from typing import Any

import pymysql
import pytest

from pyspark_mysql.binlog import events
from pyspark_mysql.binlog.events import HEADER, Event
from pyspark_mysql.binlog.gtids import GtidRange
from pyspark_mysql.binlog.reader import BinlogReader
from sparkonce.errors import StoreRefused

END = b"\xfe\0\0\2\0"


def event(kind: int, flags: int = 0) -> Event:
    data = bytes(4) + bytes([kind]) + bytes(12) + flags.to_bytes(2, "little")
    return Event(kind, data, HEADER, HEADER)


def test_an_event_of_an_unknown_type_is_refused_but_one_that_may_be_ignored() -> None:
    found = BinlogReader(("d", "t"), GtidRange(), (), mariadb=False)
    assert [*found.steps([event(200, flags=0x80), event(29), event(161)])] == []
    with pytest.raises(StoreRefused, match="has an event of type 200"):
        [*found.steps([event(200)])]


def sent(*payloads: bytes, most: int) -> Any:
    """A connection that a server sent payloads over, in packets of so many bytes at most."""
    stream = b""
    for payload in payloads:
        for at in range(0, len(payload) + 1, most):
            part = payload[at : at + most]
            stream += len(part).to_bytes(3, "little") + b"\7" + part
    return SimpleNamespace(_rfile=io.BufferedReader(io.BytesIO(stream)))  # type: ignore[arg-type]


@pytest.mark.parametrize("most", [7, 8, 29, 100])
def test_an_event_is_whole_in_however_many_packets_it_comes(
    monkeypatch: pytest.MonkeyPatch, most: int
) -> None:
    monkeypatch.setattr(events, "LONGEST_PACKET", most)
    bodies = [b"nine byte", b"", b"twenty-nine bytes, or thirty"]
    payloads = [b"\0" + event(29).data + body for body in bodies]
    found = [*events.events(sent(*payloads, END, most=most))]
    assert [one.data[one.at : one.end] for one in found] == bodies
    assert {one.kind for one in found} == {29}


def test_a_connection_that_ends_in_the_midst_of_an_event_is_lost() -> None:
    whole = sent(b"\0" + event(29).data, most=100)._rfile.read()
    for size in range(len(whole)):
        broken = SimpleNamespace(_rfile=io.BufferedReader(io.BytesIO(whole[:size])))  # type: ignore[arg-type]
        with pytest.raises(pymysql.OperationalError, match="closed the connection"):
            [*events.events(broken)]
