"""A MariaDB that crashed in mid-transaction leaves a part of it in its log."""

from __future__ import annotations

import zlib
from collections.abc import Callable, Iterator
from contextlib import closing, suppress
from pathlib import Path
from typing import Any

import pytest
from integration.support.mysql_following import LOGGED, feed, told
from integration.support.servers.mysql import MySqlProcess, connect

from pyspark_mysql.follow.feed import MySqlFeed
from sparkonce.errors import StoreError, StoreRefused, StoreUnreachable

HEADER, GTID, XID = 19, 162, 16
STRICT = "--binlog-checksum=CRC32"


def run(server: MySqlProcess, *statements: str) -> list[tuple[Any, ...]]:
    """The rows of the last one."""
    with closing(connect(server.url)) as client, client.cursor() as cursor:
        for one in statements:
            cursor.execute(one)
        return list(cursor.fetchall())


def events(log: bytes) -> Iterator[bytes]:
    at = 4
    while at < len(log):
        size = int.from_bytes(log[at + 9 : at + 13], "little")
        yield log[at : at + size]
        at += size


def moved(event: bytes, end: int) -> bytes:
    """The same event at another place, of the next transaction."""
    made = bytearray(event)
    made[13:17] = end.to_bytes(4, "little")
    if made[4] == GTID:
        number = int.from_bytes(made[HEADER : HEADER + 8], "little") + 1
        made[HEADER : HEADER + 8] = number.to_bytes(8, "little")
    made[-4:] = zlib.crc32(made[:-4]).to_bytes(4, "little")
    return bytes(made)


def leave_half(data: Path, cut: int) -> None:
    """Write the last transaction of the log again, without its end, and bytes of that cut off."""
    last = sorted(data.glob("b.0*"))[-1]
    log = last.read_bytes()
    found = [*events(log)]
    begin = max(at for at, one in enumerate(found) if one[4] == GTID)
    for one in found[begin:-1]:
        assert one[4] != XID
        log += moved(one, len(log) + len(one))
    last.write_bytes(log[: len(log) - cut])


Start = Callable[..., MySqlProcess]


@pytest.fixture
def server(private_mysql: Start, mysql_name: str) -> MySqlProcess:
    if mysql_name == "mysql":
        pytest.skip("it trims its log when it starts")
    return private_mysql(*LOGGED, STRICT)


def crash(server: MySqlProcess, cut: int = 0) -> MySqlFeed:
    """A feed of the server that starts again, with a half of its last transaction once more."""
    server.kill()
    leave_half(server.data, cut)
    server.start()
    with suppress(StoreUnreachable):  # a connection from before
        feed(server.url, "t")
    return feed(server.url, "t")


@pytest.mark.parametrize("cut", [0, 1, 30, 60])
def test_a_transaction_without_an_end_is_not_told(server: MySqlProcess, cut: int) -> None:
    """Cut in mid-event, the server can't send its log on from there."""
    run(server, "CREATE TABLE t (id INT PRIMARY KEY, n INT)", "INSERT INTO t VALUES (1, 1), (2, 1)")
    made = feed(server.url, "t")
    begin = made.begin()
    run(server, "INSERT INTO t VALUES (3, 1)", "UPDATE t SET n = n + 1")
    middle = made.latest()
    made = crash(server, cut)
    updated = [("u", 1, 2), ("u", 2, 2), ("u", 3, 2)]
    assert told(made, begin, middle, "id", "n") == [("c", 3, 1), *updated]
    run(server, "DELETE FROM t WHERE id = 2", "FLUSH BINARY LOGS", "INSERT INTO t VALUES (9, 9)")
    end = made.latest()
    expected = [("d", 2, 2), ("c", 9, 9)]
    assert told(feed(server.url, "t"), middle, end, "id", "n") == expected
    assert told(made, begin, end, "id", "n") == [("c", 3, 1), *updated, *expected]
    at, found = middle, list[Any]()
    while at != end:
        upto = made.advance(at, end, 1)
        found += told(made, at, upto, "id", "n")
        at = upto
    assert found == expected


def test_a_file_that_is_damaged_elsewhere_is_told(server: MySqlProcess) -> None:
    """The server knew of more when it began the next file."""
    run(server, "CREATE TABLE t (id INT PRIMARY KEY, n INT)")
    made = feed(server.url, "t")
    begin = made.begin()
    run(server, "INSERT INTO t VALUES (1, 1)", "INSERT INTO t VALUES (2, 1)", "FLUSH BINARY LOGS")
    first = min(server.data.glob("b.0*"))
    first.write_bytes(first.read_bytes()[:-250])
    with pytest.raises(StoreError, match="1236"):
        told(made, begin, made.latest(), "id")


def test_half_a_transaction_of_an_engine_without_any_is_refused(server: MySqlProcess) -> None:
    run(server, "CREATE TABLE t (id INT PRIMARY KEY, n INT) ENGINE=MyISAM")
    begin = feed(server.url, "t").begin()
    run(server, "INSERT INTO t VALUES (1, 1)")
    made = crash(server)
    run(server, "INSERT INTO t VALUES (2, 1)")
    with pytest.raises(StoreRefused, match="has no end in the log, and changes the table"):
        told(made, begin, made.latest(), "id")


def test_a_half_that_is_passed_over_takes_no_other_transaction_with_it(
    server: MySqlProcess, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The server gives its GTID again, if nothing was logged meanwhile."""
    monkeypatch.setattr("integration.support.servers.mysql.INIT", "SET sql_log_bin=0;")
    run(server, "CREATE TABLE t (id INT PRIMARY KEY, n INT) ENGINE=MyISAM")
    begin = feed(server.url, "t").begin()
    run(server, "INSERT INTO t VALUES (1, 1)")
    crash(server)
    run(server, "INSERT INTO t VALUES (2, 1)")
    ((again,),) = run(server, "SELECT @@gtid_binlog_pos")
    skipping = feed(server.url, "t", skipTransactions=again)
    assert told(skipping, begin, skipping.latest(), "id") == [("c", 1), ("c", 2)]
