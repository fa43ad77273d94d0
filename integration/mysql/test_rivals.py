"""Drivers, sessions and readers beside each other: each row counts once, and nobody sees a half."""

from __future__ import annotations

import signal
import subprocess
import sys
import textwrap
import threading
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pyarrow as pa
import pytest
from integration.support.counters import COUNTER, counting, counts, ones
from integration.support.marks import slow_cases
from integration.support.mysql_rivals import twin, waits_for_a_lock
from integration.support.servers.mysql import connect
from pymysql.cursors import Cursor

from sparkonce.errors import ConcurrentDriver, StoreUnreachable


@pytest.fixture(scope="session", params=["mysql", *slow_cases("mariadb")])
def mysql_name(request: pytest.FixtureRequest) -> str:
    return str(request.param)


def test_second_driver_takes_over_and_the_first_is_refused(
    mysql_url: str, mysql: Cursor, counters: str
) -> None:
    first = counting(mysql_url, counters)
    first.run(0, ones(range(10)))
    second = twin(first)
    waiting = first.stage(1, ones(range(10, 20)))
    second.run(1, ones(range(10, 20)))
    with pytest.raises(ConcurrentDriver):
        first.commit(1, waiting)
    assert counts(mysql, counters) == Counter(range(20))


def test_two_first_commits_at_once_without_a_ledger_count_once(
    mysql_url: str, mysql: Cursor, counters: str
) -> None:
    for round_ in range(1, 16):
        first = counting(mysql_url, counters)
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
        assert counts(mysql, counters) == Counter(dict.fromkeys(range(50), round_))


STOPPED = textwrap.dedent(
    """
    import json, sys
    from integration.support.counters import counting, ones
    from pyspark_mysql.write.delivery import Delivery

    url, table, query_id = sys.argv[1:]
    query = counting(url, table, timeout="2s")
    query.query_id = query_id
    receipts = query.stage(1, ones(range(10)))
    whole = Delivery.whole

    def stop_here(*args):
        done = whole(*args)
        print("applied, not committed", flush=True)
        sys.stdin.readline()
        return done

    Delivery.whole = stop_here
    try:
        query.commit(1, receipts)
    except Exception as error:
        print(type(error).__name__)
    """
)


def test_driver_that_is_stopped_in_its_transaction_is_taken_over_and_wakes_in_vain(
    mysql_url: str, mysql: Cursor, counters: str
) -> None:
    heir = counting(mysql_url, counters, timeout="3s", maxRetries="8")
    heir.run(0, ones(range(5)))
    command = [sys.executable, "-c", STOPPED, mysql_url, counters, heir.query_id]
    root = Path(__file__).parents[2]
    with subprocess.Popen(
        command, cwd=root, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as stopped:
        try:
            assert stopped.stdout.readline() == "applied, not committed\n"
            stopped.send_signal(signal.SIGSTOP)
            heir.restart()
            assert heir.run(1, ones(range(10))).decision.epoch == 1
            stopped.send_signal(signal.SIGCONT)
            said, _ = stopped.communicate("go on\n", timeout=60)
        finally:
            stopped.kill()
    assert said == "ConcurrentDriver\n"
    assert counts(mysql, counters) == Counter([*range(5), *range(10)])


def test_victim_of_a_deadlock_begins_its_transaction_again(
    mysql_url: str, mysql: Cursor, counters: str, caplog: pytest.LogCaptureFixture
) -> None:
    query = counting(mysql_url, counters)
    query.run(0, ones(range(2)))
    receipts = query.stage(1, ones(range(2)))
    with connect(mysql_url, autocommit=False) as rival, ThreadPoolExecutor(1) as pool:
        cursor = rival.cursor()
        # Many changes, lest the server choose this transaction as the victim.
        cursor.executemany(
            f"INSERT INTO {counters} VALUES (%s, 1)", [(i,) for i in range(100, 2000)]
        )
        cursor.execute(f"UPDATE {counters} SET n = n WHERE id = 1")
        committing = pool.submit(query.commit, 1, receipts)
        waits_for_a_lock(mysql)
        cursor.execute(f"UPDATE {counters} SET n = n WHERE id = 0")
        rival.rollback()
        assert committing.result(30).decision.epoch == 1
    assert "Deadlock found" in caplog.text
    assert counts(mysql, counters) == Counter([0, 0, 1, 1])


def test_lock_is_waited_for_and_named_if_it_is_never_released(
    mysql_url: str, mysql: Cursor, counters: str
) -> None:
    query = counting(mysql_url, counters, timeout="1.3s")
    query.run(0, ones(range(2)))
    receipts = query.stage(1, ones(range(2)))
    with connect(mysql_url, autocommit=False) as rival:
        rival.cursor().execute(f"UPDATE {counters} SET n = n WHERE id = 1")
        with pytest.raises(StoreUnreachable, match="1205 Lock wait timeout") as given_up:
            query.commit(1, receipts)
        assert "look for a long transaction" in str(given_up.value)
        with ThreadPoolExecutor(1) as pool:
            committing = pool.submit(query.commit, 1, receipts)
            waits_for_a_lock(mysql)
            rival.rollback()
            assert committing.result(30).decision.epoch == 1
    assert counts(mysql, counters) == Counter([0, 0, 1, 1])


@pytest.mark.parametrize("kill", ["KILL", "KILL QUERY"])
def test_session_that_is_killed_begins_its_transaction_again(
    mysql_url: str, mysql: Cursor, counters: str, kill: str
) -> None:
    query = counting(mysql_url, counters)
    query.run(0, ones(range(2)))
    receipts = query.stage(1, ones(range(2)))
    with connect(mysql_url, autocommit=False) as rival, ThreadPoolExecutor(1) as pool:
        rival.cursor().execute(f"UPDATE {counters} SET n = n WHERE id = 1")
        committing = pool.submit(query.commit, 1, receipts)
        mysql.execute(f"{kill} {waits_for_a_lock(mysql)}")
        rival.rollback()
        assert committing.result(30).decision.epoch == 1
    assert counts(mysql, counters) == Counter([0, 0, 1, 1])


def test_idle_sessions_that_are_killed_are_opened_again(
    mysql_url: str, mysql: Cursor, counters: str
) -> None:
    query = counting(mysql_url, counters)
    query.run(0, ones(range(2)))
    for epoch in range(1, 4):
        mysql.execute(f"KILL {query.sink.store.session.live.connection.thread_id()}")
        receipts = query.stage(epoch, ones(range(2)))
        mysql.execute(f"KILL {query.sink.store.session.live.connection.thread_id()}")
        assert query.commit(epoch, receipts).decision.epoch == epoch
    assert counts(mysql, counters) == Counter(dict.fromkeys(range(2), 4))


@pytest.mark.slow
def test_readers_see_whole_epochs(mysql_url: str, mysql: Cursor, counters: str) -> None:
    """Each epoch adds 1 to each of 100,000 rows: any other sum is a torn read."""
    rows, epochs = 100_000, 4
    schema = COUNTER
    query = counting(mysql_url, counters)
    batch = pa.RecordBatch.from_pydict({"id": range(rows), "n": [1] * rows}, schema=schema)
    query.run_batches(0, [batch])
    sums: list[tuple[int, int, int]] = []
    done = threading.Event()

    def read() -> None:
        with connect(mysql_url) as client, client.cursor() as cursor:
            cursor.execute("SET SESSION TRANSACTION ISOLATION LEVEL READ COMMITTED")
            while not done.is_set():
                cursor.execute(f"SELECT COUNT(*), MIN(n), MAX(n) FROM {counters}")
                sums.append(cursor.fetchone())

    reader = threading.Thread(target=read)
    reader.start()
    try:
        for epoch in range(1, epochs + 1):
            query.run_batches(epoch, [batch.slice(0, rows // 2)], [batch.slice(rows // 2)])
    finally:
        done.set()
        reader.join()
    torn = [seen for seen in sums if seen[0] != rows or seen[1] != seen[2]]
    assert torn == []
    assert len({seen[1] for seen in sums}) >= epochs, "the reader must have seen most epochs"
    assert len(sums) > 5 * epochs
    assert counts(mysql, counters) == Counter(dict.fromkeys(range(rows), epochs + 1))
