"""Events of the binary log that are not known are no events without a change."""

from __future__ import annotations

import pytest

from pyspark_mysql.binlog.events import HEADER, Event
from pyspark_mysql.binlog.gtids import GtidRange
from pyspark_mysql.binlog.reader import BinlogReader
from sparkonce.errors import StoreRefused


def event(kind: int, flags: int = 0) -> Event:
    data = bytes(4) + bytes([kind]) + bytes(12) + flags.to_bytes(2, "little")
    return Event(kind, data, HEADER, HEADER)


def test_an_event_of_an_unknown_type_is_refused_but_one_that_may_be_ignored() -> None:
    found = BinlogReader(("d", "t"), GtidRange(), (), mariadb=False)
    assert [*found.steps([event(200, flags=0x80), event(29), event(161)])] == []
    with pytest.raises(StoreRefused, match="has an event of type 200"):
        [*found.steps([event(200)])]
