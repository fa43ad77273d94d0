"""A network that fails at each request in turn, rival drivers, and servers that say no."""

from __future__ import annotations

import signal
import subprocess
import sys
import textwrap
import threading
import time
from collections import Counter
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pyarrow as pa
import pytest
from integration.epochs import MySqlQuery
from integration.proxy import Proxy
from integration.servers.mysql import MySqlProcess, connect
from integration.servers.process import wait_until
from integration.statements import is_query, queries_of
from pymysql.cursors import Cursor

from sparkonce.errors import (
    ConcurrentDriver,
    SinkBehindCheckpoint,
    SparkonceError,
    StoreRefused,
    StoreUnreachable,
    StoreUnsafe,
)
from sparkonce.protocol import Receipt

COUNTER = pa.schema([("id", pa.int64()), ("n", pa.int64())])
FAULTS = ("cut_request", "cut_reply", "reset")
Private = Callable[..., MySqlProcess]


@pytest.fixture
def counters(mysql: Cursor, table: str) -> str:
    """A table of counters."""
    mysql.execute(f"CREATE TABLE {table} (id BIGINT PRIMARY KEY, n BIGINT)")
    return table


def counting(url: str, table: str, **options: str) -> MySqlQuery:
    return MySqlQuery(COUNTER, url=url, dbtable=table, key="id", writeMode="increment", **options)


def twin(query: MySqlQuery, **options: str) -> MySqlQuery:
    """A second driver on the same checkpoint, with connections of its own."""
    other = MySqlQuery(query.schema, **{**query.options, "chunkBytes": "5000000", **options})
    other.query_id = query.query_id
    return other


def ones(ids: range) -> list[dict[str, int]]:
    return [{"id": i, "n": 1} for i in ids]


def counts(mysql: Cursor, table: str) -> Counter[int]:
    """How often each row took effect: a multiset."""
    mysql.execute(f"SELECT id, n FROM {table}")
    return Counter(dict(mysql.fetchall()))


def until_committed(query: MySqlQuery, epoch: int, ids: range) -> list[SparkonceError]:
    """Run an epoch as Spark would: abort on failure, and replay it in a new run."""
    errors: list[SparkonceError] = []
    while True:
        receipts: list[Receipt] = []
        try:
            receipts = query.stage(epoch, ones(ids[: len(ids) // 2]), ones(ids[len(ids) // 2 :]))
            query.commit(epoch, receipts)
        except SparkonceError as error:
            errors.append(error)
            assert len(errors) < 5, errors
            query.restart()
        else:
            return errors


@pytest.mark.parametrize("atomicity", ["epoch", "chunk"])
@pytest.mark.parametrize("fault", FAULTS)
def test_rows_count_once_whichever_statement_the_network_cuts(
    mysql_proxy: Proxy, mysql: Cursor, counters: str, fault: str, atomicity: str
) -> None:
    query = counting(mysql_proxy.url, counters, chunkRows="4", atomicity=atomicity)
    until_committed(query, 0, range(10))
    statements = queries_of(mysql_proxy, lambda: until_committed(query, 1, range(10)))
    assert statements > 15
    for nth in range(1, statements + 1):
        cuts = mysql_proxy.cuts
        getattr(mysql_proxy, fault)(is_query, nth=nth)
        until_committed(query, nth + 1, range(10))
        assert mysql_proxy.cuts == cuts + 1, "the fault must really happen"
        assert counts(mysql, counters) == Counter(dict.fromkeys(range(10), nth + 2))
    last = statements + 2
    assert query.run(last).rows == 10 * last
    assert query.sink.store.staged(query.name) == []


@pytest.mark.parametrize("fault", FAULTS)
def test_folded_epochs_take_effect_once_whichever_statement_the_network_cuts(
    mysql_proxy: Proxy, mysql: Cursor, counters: str, fault: str
) -> None:
    query = MySqlQuery(
        COUNTER, url=mysql_proxy.url, dbtable=counters, key="id", sequenceColumn="n", chunkRows="4"
    )
    run = lambda epoch: query.run(epoch, [{"id": i, "n": epoch} for i in range(10)])  # noqa: E731
    run(0)
    statements = queries_of(mysql_proxy, lambda: run(1))
    for nth in range(1, statements + 1):
        cuts = mysql_proxy.cuts
        getattr(mysql_proxy, fault)(is_query, nth=nth)
        while True:
            try:
                run(nth + 1)
                break
            except SparkonceError:
                query.restart()
        assert mysql_proxy.cuts == cuts + 1
        assert counts(mysql, counters) == Counter(dict.fromkeys(range(10), nth + 1))
    assert query.run(statements + 2).rows == 10 * (statements + 2)


def test_lost_answer_to_commit_is_learned_from_the_ledger(
    mysql_proxy: Proxy, mysql: Cursor, counters: str, caplog: pytest.LogCaptureFixture
) -> None:
    query = counting(mysql_proxy.url, counters)
    query.run(0, ones(range(10)))
    mysql_proxy.cut_reply(b"COMMIT")
    receipts = query.stage(1, ones(range(10)))
    assert query.commit(1, receipts).epoch == 1
    assert mysql_proxy.cuts == 1
    assert "finding out what became of the last write" in caplog.text
    assert counts(mysql, counters) == Counter(dict.fromkeys(range(10), 2))


def test_late_commit_of_a_driver_that_was_given_up_changes_nothing(
    mysql_proxy: Proxy, mysql_url: str, mysql: Cursor, counters: str
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

    heir = twin(zombie, url=mysql_url, timeout="2s", maxRetries="8")
    heir.run(1, ones(range(10)))
    mysql_proxy.restore()
    heir.run(2, ones(range(10, 20)))
    assert counts(mysql, counters) == Counter([*range(5), *range(20)])


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
                return drivers[at].commit(0, staged[at]).epoch
            except ConcurrentDriver as error:
                return error

        with ThreadPoolExecutor(2) as pool:
            done = list(pool.map(commit, range(2)))
        assert 0 in done, done
        assert counts(mysql, counters) == Counter(dict.fromkeys(range(50), round_))


STOPPED = textwrap.dedent(
    """
    import json, sys
    from integration.test_mysql_faults import counting, ones
    from pyspark_mysql.store import MySqlStore

    url, table, query_id = sys.argv[1:]
    query = counting(url, table, timeout="2s")
    query.query_id = query_id
    receipts = query.stage(1, ones(range(10)))
    apply_all = MySqlStore._apply_all

    def stop_here(*args):
        apply_all(*args)
        print("applied, not committed", flush=True)
        sys.stdin.readline()

    MySqlStore._apply_all = stop_here
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
    root = Path(__file__).parents[1]
    with subprocess.Popen(
        command, cwd=root, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as stopped:
        try:
            assert stopped.stdout.readline() == "applied, not committed\n"
            stopped.send_signal(signal.SIGSTOP)
            heir.restart()
            assert heir.run(1, ones(range(10))).epoch == 1
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
        assert committing.result(30).epoch == 1
    assert "Deadlock found" in caplog.text
    assert counts(mysql, counters) == Counter([0, 0, 1, 1])


def waits_for_a_lock(mysql: Cursor) -> None:
    """Wait until some transaction waits for a lock."""

    def waits() -> bool:
        time.sleep(0.15)  # asked more often, the server answers what it answered before
        mysql.execute(
            "SELECT COUNT(*) FROM information_schema.innodb_trx WHERE trx_state = 'LOCK WAIT'"
        )
        return bool(mysql.fetchone()[0])

    wait_until(waits, 10, "nothing waits for a lock")


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
            assert committing.result(30).epoch == 1
    assert counts(mysql, counters) == Counter([0, 0, 1, 1])


def test_session_that_is_killed_begins_its_transaction_again(
    mysql_url: str, mysql: Cursor, counters: str
) -> None:
    query = counting(mysql_url, counters)
    query.run(0, ones(range(2)))
    receipts = query.stage(1, ones(range(2)))
    with connect(mysql_url, autocommit=False) as rival, ThreadPoolExecutor(1) as pool:
        rival.cursor().execute(f"UPDATE {counters} SET n = n WHERE id = 1")
        committing = pool.submit(query.commit, 1, receipts)
        waits_for_a_lock(mysql)
        mysql.execute(
            "SELECT trx_mysql_thread_id FROM information_schema.innodb_trx"
            " WHERE trx_state = 'LOCK WAIT'"
        )
        mysql.execute(f"KILL {mysql.fetchone()[0]}")
        rival.rollback()
        assert committing.result(30).epoch == 1
    assert counts(mysql, counters) == Counter([0, 0, 1, 1])


def test_transaction_never_goes_on_over_another_connection(
    mysql_url: str, mysql: Cursor, counters: str
) -> None:
    """Else, after a long stop, its last statements would take effect without the first."""
    session = counting(mysql_url, counters).sink.store.session
    mysql.execute("SELECT DATABASE()")
    counters = f"{mysql.fetchone()[0]}.{counters}"
    with pytest.raises(Exception, match=r"(?i)lost|closed|\(0, ''\)"), session.transaction():  # noqa: PT012
        session.run(f"INSERT INTO {counters} VALUES (1, 1)")
        session.live.used -= 3600
        with connect(mysql_url) as other:
            other.kill(session.live.connection.thread_id())
        session.run(f"INSERT INTO {counters} VALUES (2, 1)")
    assert session.run(f"SELECT * FROM {counters}") == ()


def test_readers_see_whole_epochs(mysql_url: str, mysql: Cursor, counters: str) -> None:
    """Each epoch adds 1 to each of 100,000 rows: any other sum is a torn read."""
    rows, epochs = 100_000, 4
    schema = COUNTER
    query = counting(mysql_url, counters)
    batch = pa.record_batch({"id": range(rows), "n": [1] * rows}, schema=schema)
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


def test_packet_that_is_smaller_than_a_chunk(private_mysql: Private) -> None:
    server = private_mysql("--max-allowed-packet=64K", "--net-buffer-length=8K")
    schema = pa.schema([("id", pa.int64()), ("s", pa.string())])
    query = MySqlQuery(schema, url=server.url, dbtable="t", key="id", createTable="true")
    query.sink.store.check()
    noise = [{"id": i, "s": f"{hash(str(i)):x}" * 5} for i in range(5000)]
    (receipt,) = query.stage(0, noise)
    assert receipt.sizes[0] > 65536, "a chunk must be larger than a packet"
    query.commit(0, [receipt])
    with connect(server.url) as client, client.cursor() as cursor:
        cursor.execute("SELECT id, s FROM t ORDER BY id")
        assert list(cursor.fetchall()) == [tuple(row.values()) for row in noise]
    with pytest.raises(SparkonceError, match=r"id=5001.*max_allowed_packet"):
        query.run(1, [{"id": 5001, "s": "x" * 70_000}])


def test_server_that_is_killed_and_restarts_is_waited_for(private_mysql: Private) -> None:
    server = private_mysql()
    query = counting(server.url, "t", createTable="true")
    query.sink.store.check()
    query.run(0, ones(range(10)))
    receipts = query.stage(1, ones(range(10, 20)))
    server.kill()
    server.start()
    query.commit(1, receipts)
    with connect(server.url) as client, client.cursor() as cursor:
        assert counts(cursor, "t") == Counter(range(20))
        cursor.execute("DELETE FROM sparkonce_ledger")
    with pytest.raises(SinkBehindCheckpoint, match="onLostCommit=continue@2"):
        query.run(2, ones(range(20, 30)))


def test_read_only_server_is_refused_until_it_is_not(private_mysql: Private) -> None:
    server = private_mysql()
    with connect(server.url) as client, client.cursor() as cursor:
        cursor.execute("CREATE USER app IDENTIFIED BY 'pw'")
        cursor.execute("GRANT ALL ON sparkonce_test.* TO app")
        options = {"createTable": "true", "user": "app", "password": "pw", "maxRetries": "1"}
        query = counting(server.url.replace("root@", ""), "t", **options)
        query.sink.store.check()
        query.run(0, ones(range(10)))
        receipts = query.stage(1, ones(range(10)))
        cursor.execute("SET GLOBAL read_only = 1")
        with pytest.raises(StoreUnreachable, match=r"read.only.*point option url at the primary"):
            query.commit(1, receipts)
        cursor.execute("SET GLOBAL read_only = 0")
        query.commit(1, receipts)
        assert counts(cursor, "t") == Counter(dict.fromkeys(range(10), 2))


def test_table_that_is_altered_or_dropped_in_mid_query(
    mysql_url: str, mysql: Cursor, counters: str
) -> None:
    query = counting(mysql_url, counters)
    query.sink.store.check()
    query.run(0, ones(range(10)))
    receipts = query.stage(1, ones(range(10)))
    for harm, cure, said in (
        ("ALTER TABLE {} CHANGE n m BIGINT", "ALTER TABLE {} CHANGE m n BIGINT", "Unknown column"),
        ("ALTER TABLE {} ADD w INT NOT NULL", "ALTER TABLE {} DROP w", "'w'"),
        ("RENAME TABLE {0} TO {0}_x", "RENAME TABLE {0}_x TO {0}", "doesn't exist"),
    ):
        mysql.execute(harm.format(counters))
        with pytest.raises(StoreRefused, match=said) as refused:
            query.commit(1, receipts)
        assert "dropped, renamed or altered" in str(refused.value)
        mysql.execute(cure.format(counters))
    query.commit(1, receipts)
    assert counts(mysql, counters) == Counter(dict.fromkeys(range(10), 2))


def test_statement_based_binary_log_is_refused(private_mysql: Private) -> None:
    server = private_mysql("--log-bin=b", "--server-id=1", "--binlog-format=STATEMENT")
    with pytest.raises(StoreUnsafe, match="binlog_format=STATEMENT"):
        counting(server.url, "t", createTable="true").sink.store.check()


GTID = ("--gtid-mode=ON", "--enforce-gtid-consistency=ON")


@pytest.mark.parametrize("binlog_format", ["ROW", "MIXED"])
def test_epochs_are_written_to_a_binary_log(
    private_mysql: Private, mysql_name: str, binlog_format: str
) -> None:
    gtid = GTID if mysql_name == "mysql" else ("--gtid-strict-mode=1",)
    server = private_mysql(
        "--log-bin=b", "--server-id=1", f"--binlog-format={binlog_format}", *gtid
    )
    for options, expected in (
        ({"writeMode": "increment"}, [*range(10), *range(5)]),
        ({"writeMode": "upsert", "sequenceColumn": "n"}, range(10)),
    ):
        query = MySqlQuery(
            COUNTER, url=server.url, dbtable="t", key="id", createTable="true", **options
        )
        query.sink.store.check()
        query.run(0, ones(range(10)))
        query.run(1, ones(range(5)))
        with connect(server.url) as client, client.cursor() as cursor:
            assert counts(cursor, "t") == Counter(expected)


def test_epoch_above_a_limit_of_the_server_goes_chunk_by_chunk(private_mysql: Private) -> None:
    limits = ("--max-binlog-cache-size=64K", "--binlog-cache-size=8K", "--binlog-format=ROW")
    server = private_mysql("--log-bin=b", "--server-id=1", *limits)
    query = counting(server.url, "t", createTable="true", chunkRows="500")
    query.sink.store.check()
    query.run(0, ones(range(10)))
    receipts = query.stage(1, ones(range(20_000)))
    with pytest.raises(StoreRefused, match="atomicity=chunk"):
        query.commit(1, receipts)
    query.restart(atomicity="chunk")
    query.commit(1, receipts)
    with connect(server.url) as client, client.cursor() as cursor:
        assert counts(cursor, "t") == Counter([*range(10), *range(20_000)])


def test_unreachable_server_is_named_with_what_to_do() -> None:
    query = counting("mysql://127.0.0.1:1/d", "t")
    with pytest.raises(StoreUnreachable, match="check option url and the server"):
        query.sink.store.check()
