"""A network that fails at each request in turn, and rows that count once all the same."""

from __future__ import annotations

import socket
import struct
import threading
from collections import Counter
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from typing import Any

import pymysql
import pytest
from integration.support.epochs import COUNTER, cut_each, ones, until_committed
from integration.support.marks import slow_cases
from integration.support.mysql import Table, counting, is_query, twin, waits_for_a_lock
from integration.support.proxy import CUTS, Proxy
from integration.support.servers.mysql import connect
from pymysql.constants import CLIENT

from pyspark_mysql.server.connection import UploadingConnection
from sparkonce.errors import ConcurrentDriver, StoreUnreachable


@pytest.mark.parametrize("atomicity", ["epoch", *slow_cases("chunk")])
@pytest.mark.parametrize("fault", CUTS)
def test_rows_count_once_whichever_statement_the_network_cuts(
    mysql_proxy: Proxy, counters: Table, fault: str, atomicity: str
) -> None:
    query = counting(mysql_proxy.url, counters, chunkRows="4", atomicity=atomicity)

    def run(epoch: int) -> None:
        until_committed(query, epoch, range(10))
        assert counters.counts() == Counter(dict.fromkeys(range(10), epoch + 1))

    run(0)
    last = cut_each(mysql_proxy, fault, run, is_query)
    assert last > 15
    assert query.run(last + 1).totals.rows == 10 * (last + 1)
    assert query.sink.store.staged(query.name) == []


@pytest.mark.slow
@pytest.mark.parametrize("fault", CUTS)
def test_folded_epochs_take_effect_once_whichever_statement_the_network_cuts(
    mysql_proxy: Proxy, counters: Table, fault: str
) -> None:
    query = counters.query(
        COUNTER, url=mysql_proxy.url, key="id", sequenceColumn="n", chunkRows="4"
    )

    def run(epoch: int) -> None:
        query.run_until_done(epoch, [{"id": i, "n": epoch} for i in range(10)])
        assert counters.counts() == Counter(dict.fromkeys(range(10), epoch))

    run(0)
    last = cut_each(mysql_proxy, fault, run, is_query)
    assert last > 15
    assert query.run(last + 1).totals.rows == 10 * (last + 1)


def test_late_commit_of_a_driver_that_was_given_up_changes_nothing(
    mysql_proxy: Proxy, counters: Table
) -> None:
    """Its COMMIT is stalled on its way, and arrives after the replay."""
    zombie = counting(mysql_proxy.url, counters, timeout="1s", maxRetries="0")
    zombie.run(0, ones(range(5)))
    receipts = zombie.stage(1, ones(range(10)))
    mysql_proxy.stall(b"COMMIT")
    mysql_proxy.refuse()
    with pytest.raises(StoreUnreachable):
        zombie.commit(1, receipts)
    assert mysql_proxy.cuts == 1

    heir = twin(zombie, url=counters.url, timeout="2s", maxRetries="8")
    heir.run(1, ones(range(10)))
    mysql_proxy.restore()
    heir.run(2, ones(range(10, 20)))
    assert counters.counts() == Counter([*range(5), *range(20)])


def test_transaction_never_goes_on_over_another_connection(counters: Table) -> None:
    """Else, after a long stop, its last statements would take effect without the first."""
    session = counters.counting().sink.store.session
    place = f"{counters.run('SELECT DATABASE()')[0][0]}.{counters}"
    with pytest.raises(Exception, match=r"(?i)lost|closed|\(0, ''\)"), session.transaction():  # noqa: PT012
        session.run(f"INSERT INTO {place} VALUES (1, 1)")
        session.live.used -= 3600
        with connect(counters.url) as other:
            other.kill(session.live.connection.thread_id())
        session.run(f"INSERT INTO {place} VALUES (2, 1)")
    assert session.run(f"SELECT * FROM {place}") == ()


def test_unreachable_server_is_named_with_what_to_do() -> None:
    query = counting("mysql://127.0.0.1:1/d", "t")
    with pytest.raises(StoreUnreachable, match="check option url and the server"):
        query.sink.check()


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
    mysql_proxy: Proxy, counters: Table, local_infile: Any, fault: str, sent: bytes, nth: int
) -> None:
    local_infile(True)
    query = counting(mysql_proxy.url, counters, chunkRows="200")
    query.sink.check()
    receipts = query.stage(0, ones(IDS))
    getattr(mysql_proxy, fault)(sent, nth=nth)
    query.commit(0, receipts)
    assert mysql_proxy.cuts == 1, "the fault must really happen"
    assert counters.counts() == Counter(dict.fromkeys(IDS, 1))
    until_committed(query, 1, IDS)
    assert counters.counts() == Counter(dict.fromkeys(IDS, 2))


class Hostile(threading.Thread):
    """A server that asks for a file in answer to any statement, and keeps what it gets."""

    GREETING = (
        b"\x0a9.9.9\0\1\0\0\0saltsalt\0\xff\xf7\xff\2\0\xff\xdf\x15"
        + bytes(10)
        + b"saltsaltsalt\0mysql_native_password\0"
    )

    FINE = b"\0\0\0\2\0\0\0"

    def __init__(self) -> None:
        super().__init__(daemon=True)
        self.listener = socket.create_server(("127.0.0.1", 0))
        self.port = self.listener.getsockname()[1]
        self.got: list[bytes] = []

    def run(self) -> None:
        connection, _ = self.listener.accept()
        with connection, suppress(OSError, struct.error):
            self._send(connection, 0, self.GREETING)
            self._read(connection)
            self._send(connection, 2, self.FINE)
            self._read(connection)  # SET NAMES
            self._send(connection, 1, self.FINE)
            while self._read(connection):
                self._send(connection, 1, b"\xfb/etc/hostname")
                while piece := self._read(connection):
                    self.got.append(piece)
                self._send(connection, 3, self.FINE)

    def _send(self, connection: socket.socket, number: int, body: bytes) -> None:
        connection.sendall(struct.pack("<I", len(body))[:3] + bytes([number]) + body)

    def _read(self, connection: socket.socket) -> bytes:
        head = connection.recv(4, socket.MSG_WAITALL)
        size = int.from_bytes(head[:3], "little")
        return connection.recv(size, socket.MSG_WAITALL) if size else b""


@pytest.fixture
def hostile() -> Iterator[Hostile]:
    server = Hostile()
    server.start()
    yield server
    server.listener.close()


def client_of(server: Hostile) -> UploadingConnection:
    return UploadingConnection(
        host="127.0.0.1", port=server.port, user="a", client_flag=CLIENT.LOCAL_FILES,
        autocommit=None, read_timeout=5,
    )  # fmt: skip


def test_a_server_that_asks_for_a_file_gets_none(hostile: Hostile) -> None:
    with suppress(RuntimeError, pymysql.MySQLError):
        client_of(hostile).query("SELECT 1")
    assert hostile.got == []


def test_a_server_that_asks_for_another_file_gets_the_chunk(hostile: Hostile) -> None:
    client = client_of(hostile)
    with suppress(RuntimeError, pymysql.MySQLError), client.upload(memoryview(b"(1),"), 65536):
        client.query("LOAD DATA LOCAL INFILE 'sparkonce' INTO TABLE t")
    assert hostile.got == [b"(1),"]


def test_two_first_commits_at_once_without_a_ledger_count_once(counters: Table) -> None:
    for round_ in range(1, 16):
        first = counters.counting()
        drivers = [first, twin(first)]
        staged = [driver.stage(0, ones(range(50))) for driver in drivers]
        start = threading.Barrier(2)

        def commit(at: int, drivers=drivers, staged=staged, start=start) -> object:
            start.wait()
            try:
                return drivers[at].commit(0, staged[at]).decision.epoch
            except ConcurrentDriver as error:
                return error

        with ThreadPoolExecutor(2) as pool:
            done = list(pool.map(commit, range(2)))
        assert 0 in done, done
        assert counters.counts() == Counter(dict.fromkeys(range(50), round_))


def test_victim_of_a_deadlock_begins_its_transaction_again(
    counters: Table, caplog: pytest.LogCaptureFixture
) -> None:
    query = counters.counting()
    query.run(0, ones(range(2)))
    receipts = query.stage(1, ones(range(2)))
    with connect(counters.url, autocommit=False) as rival, ThreadPoolExecutor(1) as pool:
        cursor = rival.cursor()
        # Many changes, lest the server choose this transaction as the victim.
        cursor.executemany(
            f"INSERT INTO {counters} VALUES (%s, 1)", [(i,) for i in range(100, 2000)]
        )
        cursor.execute(f"UPDATE {counters} SET n = n WHERE id = 1")
        committing = pool.submit(query.commit, 1, receipts)
        waits_for_a_lock(counters.client)
        cursor.execute(f"UPDATE {counters} SET n = n WHERE id = 0")
        rival.rollback()
        assert committing.result(30).decision.epoch == 1
    assert "Deadlock found" in caplog.text
    assert counters.counts() == Counter([0, 0, 1, 1])


def test_lock_is_waited_for_and_named_if_it_is_never_released(counters: Table) -> None:
    query = counters.counting(timeout="1.3s")
    query.run(0, ones(range(2)))
    receipts = query.stage(1, ones(range(2)))
    with connect(counters.url, autocommit=False) as rival:
        rival.cursor().execute(f"UPDATE {counters} SET n = n WHERE id = 1")
        with pytest.raises(StoreUnreachable, match="1205 Lock wait timeout") as given_up:
            query.commit(1, receipts)
        assert "look for a long transaction" in str(given_up.value)
        with ThreadPoolExecutor(1) as pool:
            committing = pool.submit(query.commit, 1, receipts)
            waits_for_a_lock(counters.client)
            rival.rollback()
            assert committing.result(30).decision.epoch == 1
    assert counters.counts() == Counter([0, 0, 1, 1])


@pytest.mark.parametrize("kill", ["KILL", "KILL QUERY"])
def test_session_that_is_killed_begins_its_transaction_again(counters: Table, kill: str) -> None:
    query = counters.counting()
    query.run(0, ones(range(2)))
    receipts = query.stage(1, ones(range(2)))
    with connect(counters.url, autocommit=False) as rival, ThreadPoolExecutor(1) as pool:
        rival.cursor().execute(f"UPDATE {counters} SET n = n WHERE id = 1")
        committing = pool.submit(query.commit, 1, receipts)
        counters.run(f"{kill} {waits_for_a_lock(counters.client)}")
        rival.rollback()
        assert committing.result(30).decision.epoch == 1
    assert counters.counts() == Counter([0, 0, 1, 1])


def test_idle_sessions_that_are_killed_are_opened_again(counters: Table) -> None:
    query = counters.counting()
    query.run(0, ones(range(2)))
    for epoch in range(1, 4):
        counters.run(f"KILL {query.sink.store.session.live.connection.thread_id()}")
        receipts = query.stage(epoch, ones(range(2)))
        counters.run(f"KILL {query.sink.store.session.live.connection.thread_id()}")
        assert query.commit(epoch, receipts).decision.epoch == epoch
    assert counters.counts() == Counter(dict.fromkeys(range(2), 4))
