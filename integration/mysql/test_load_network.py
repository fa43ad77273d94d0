"""A network that fails while chunks are loaded, and read ahead over a second connection."""

from __future__ import annotations

from collections import Counter
from typing import Any

import pytest
from integration.support.counters import counting, counts, ones, until_committed
from integration.support.proxy import CUTS, Proxy
from pymysql.cursors import Cursor

IDS = range(1600)
LOADED = b"(400,1),"
"""A row of the second chunk, which is the first that is loaded."""


@pytest.mark.parametrize("fault", CUTS)
@pytest.mark.parametrize(
    ("sent", "nth"),
    [
        (b"SELECT payload", 1),
        (b"SELECT payload", 4),
        (b"LOAD DATA", 1),
        (b"LOAD DATA", 3),
        (LOADED, 1),
        (b"COMMIT", 1),
    ],
)
def test_rows_count_once_whatever_the_network_cuts(
    mysql_proxy: Proxy,
    mysql: Cursor,
    counters: str,
    local_infile: Any,
    fault: str,
    sent: bytes,
    nth: int,
) -> None:
    local_infile(True)
    query = counting(mysql_proxy.url, counters, chunkRows="200")
    query.sink.check()
    receipts = query.stage(0, ones(IDS))
    getattr(mysql_proxy, fault)(sent, nth=nth)
    query.commit(0, receipts)
    assert mysql_proxy.cuts == 1, "the fault must really happen"
    assert counts(mysql, counters) == Counter(dict.fromkeys(IDS, 1))
    until_committed(query, 1, IDS)
    assert counts(mysql, counters) == Counter(dict.fromkeys(IDS, 2))
