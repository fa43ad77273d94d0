"""Servers that restart or say no, limits of theirs, and tables that change under a query."""

from __future__ import annotations

import base64
import dataclasses
import os
import random
import shutil
import subprocess
from collections import Counter
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pyarrow as pa
import pytest
from integration.support.epochs import COUNTER, MySqlQuery, ones
from integration.support.mysql import Private, client, counting, counts, run, waits_for_a_lock
from integration.support.servers.finder import or_skip
from integration.support.servers.mysql import MySqlProcess, connect, new_data, private_binary

from pyspark_mysql.connector import MySqlConnector
from sparkonce.errors import BadRow, SparkonceError, StoreRefused, StoreUnreachable, StoreUnsafe

pytestmark = pytest.mark.slow


@pytest.mark.parametrize("mode", ["append", "upsert"])
@pytest.mark.parametrize("load", ["ON", "OFF"])
def test_packet_that_is_smaller_than_a_chunk(private_mysql: Private, mode: str, load: str) -> None:
    packet = ("--max-allowed-packet=64K", "--net-buffer-length=8K")
    server = private_mysql(*packet, f"--local-infile={load}")
    schema = pa.schema([("id", pa.int64()), ("s", pa.string())])
    options = {"dbtable": "t", "key": "id", "createTable": "true", "writeMode": mode}
    query = MySqlQuery(schema, url=server.url, **options)
    query.sink.check()
    noise = [{"id": i, "s": f"{hash(str(i)):x}" * 5} for i in range(5000)]
    (receipt,) = query.stage(0, noise)
    assert receipt.sizes[0] > 65536, "a chunk must be larger than a packet"
    query.commit(0, [receipt])
    with client(server.url) as cursor:
        cursor.execute("SELECT id, s FROM t ORDER BY id")
        assert list(cursor.fetchall()) == [tuple(row.values()) for row in noise]
    with pytest.raises(SparkonceError, match=r"id=5001.*max_allowed_packet"):
        query.run(1, [{"id": 5001, "s": "x" * 70_000}])


@pytest.mark.parametrize("end", ["kill", "stop"])
def test_server_that_ends_in_mid_transaction_and_restarts_counts_each_row_once(
    private_mysql: Private, end: str
) -> None:
    server = private_mysql()
    query = counting(server.url, "t", createTable="true")
    query.sink.check()
    query.run(0, ones(range(10)))
    receipts = query.stage(1, ones(range(10)))
    with ThreadPoolExecutor(1) as pool:
        with connect(server.url, autocommit=False) as rival, connect(server.url) as other:
            # The epoch has changed the rows before this one, and waits.
            rival.cursor().execute("UPDATE t SET n = n WHERE id = 9")
            committing = pool.submit(query.commit, 1, receipts)
            waits_for_a_lock(other.cursor())
            getattr(server, end)()
        with pytest.raises(StoreUnreachable):
            committing.result(60)
    server.start()
    assert counts(server, "t") == Counter(range(10))
    query.restart()
    assert query.commit(1, receipts).decision.epoch == 1
    query.run(2, ones(range(5)))
    assert counts(server, "t") == Counter([*range(10), *range(10), *range(5)])


def plain(server: MySqlProcess) -> MySqlQuery:
    """A checked query of a user without rights over the server."""
    run(server, "CREATE USER plain@'127.0.0.1' IDENTIFIED BY 'p'")
    run(server, "GRANT ALL ON sparkonce_test.* TO plain@'127.0.0.1'")
    url = server.url.replace("root@", "plain:p@")
    query = counting(url, "t", createTable="true", maxRetries="1")
    query.sink.check()
    return query


def test_read_only_server_is_refused_until_it_is_not(private_mysql: Private) -> None:
    server = private_mysql()
    query = plain(server)
    query.run(0, ones(range(10)))
    receipts = query.stage(1, ones(range(10)))
    run(server, "SET GLOBAL read_only = 1")
    with pytest.raises(StoreUnreachable, match=r"read.only.*point option url at the primary"):
        query.commit(1, receipts)
    run(server, "SET GLOBAL read_only = 0")
    query.commit(1, receipts)
    assert counts(server, "t") == Counter(dict.fromkeys(range(10), 2))


def test_statement_based_binary_log_is_refused(private_mysql: Private) -> None:
    server = private_mysql("--log-bin=b", "--server-id=1", "--binlog-format=STATEMENT")
    with pytest.raises(StoreUnsafe, match="binlog_format=STATEMENT"):
        counting(server.url, "t", createTable="true").sink.check()


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
        query.sink.check()
        query.run(0, ones(range(10)))
        query.run(1, ones(range(5)))
        assert counts(server, "t") == Counter(expected)


def test_epoch_above_a_limit_of_the_server_goes_chunk_by_chunk(private_mysql: Private) -> None:
    limits = ("--max-binlog-cache-size=64K", "--binlog-cache-size=8K", "--binlog-format=ROW")
    server = private_mysql("--log-bin=b", "--server-id=1", *limits)
    query = counting(server.url, "t", createTable="true", chunkRows="500")
    query.sink.check()
    query.run(0, ones(range(10)))
    receipts = query.stage(1, ones(range(20_000)))
    with pytest.raises(StoreRefused, match=r"max_binlog_cache_size.*set option atomicity=chunk"):
        query.commit(1, receipts)
    assert counts(server, "t") == Counter(range(10))
    query.restart(atomicity="chunk")
    query.commit(1, receipts)
    assert counts(server, "t") == Counter([*range(10), *range(20_000)])


def test_server_in_offline_mode_is_waited_for(private_mysql: Private, mysql_name: str) -> None:
    if mysql_name != "mysql":
        pytest.skip("MariaDB has no offline mode")
    server = private_mysql()
    query = plain(server)
    receipts = query.stage(0, ones(range(10)))
    run(server, "SET GLOBAL offline_mode = ON")
    with pytest.raises(StoreUnreachable, match="offline"):
        query.commit(0, receipts)
    run(server, "SET GLOBAL offline_mode = OFF")
    assert query.commit(0, receipts).totals.rows == 10


def test_limits_that_the_server_sets_for_each_session_cut_nothing(private_mysql: Private) -> None:
    server = private_mysql(
        "--init-connect=SET sql_select_limit = 1, autocommit = 0, max_join_size = 1"
    )
    query = plain(server)
    assert query.run(0, ones(range(10))).totals.rows == 10


def test_checks_that_the_server_leaves_out_by_default_are_made(private_mysql: Private) -> None:
    """Without both, MariaDB fills an empty table in bulk: an error then undoes all rows so far."""
    server = private_mysql()
    with client(server.url) as cursor:
        cursor.execute("CREATE TABLE parents (id BIGINT PRIMARY KEY)")
        cursor.execute("INSERT INTO parents SELECT 0")
        foreign = "FOREIGN KEY (n) REFERENCES parents (id)"
        cursor.execute(f"CREATE TABLE t (id BIGINT PRIMARY KEY, n BIGINT, {foreign})")
        cursor.execute("SET GLOBAL foreign_key_checks = 0, GLOBAL unique_checks = 0")
        query = MySqlQuery(COUNTER, url=server.url, dbtable="t", writeMode="append", chunkRows="9")
        query.sink.check()
        good = [{"id": i, "n": 0} for i in range(30)]
        for bad, reason in (
            ({"id": 3, "n": 0}, "Duplicate entry '3'"),
            ({"id": 30, "n": 1}, "1452"),
        ):
            with pytest.raises(BadRow, match=reason):
                query.run(0, [*good, bad])
            query.restart()
        cursor.execute("SELECT * FROM t")
        assert cursor.fetchall() == ()
        assert query.run(0, good).totals.rows == 30
        assert counts(server, "t") == Counter(dict.fromkeys(range(30), 0))


SCHEMA = pa.schema([("id", pa.int64()), ("s", pa.string())])
ROOM = "--innodb-data-file-path=ibdata1:12M:autoextend:max:{}M"
MOUNT = 'mkdir disk && mount -t tmpfs -o size=32m tmpfs disk && exec "$@"'
FULL = "1114 The table '{}' is full.*the server has no space left.*free disk space"


def rows(number: int, text: Callable[[], str]) -> list[dict[str, object]]:
    return [{"id": n, "s": text()} for n in range(number)]


def repetitive() -> str:
    """Text that is small in the log, and large in the target."""
    return "x" * 1000


def noise() -> str:
    """Text that is large in the log, too."""
    return base64.b64encode(random.randbytes(750)).decode()


def stored(server: MySqlProcess) -> tuple[int, int]:
    """How many rows there are, and the number of characters in them."""
    with client(server.url) as cursor:
        cursor.execute("SELECT COUNT(*), SUM(LENGTH(s)) FROM t")
        return cursor.fetchone()


def query(server: MySqlProcess, **options: str) -> MySqlQuery:
    made = MySqlQuery(SCHEMA, url=server.url, dbtable="t", writeMode="append", **options)
    made.sink.check()
    return made


@pytest.fixture
def small(private_mysql: Private, mysql_name: str) -> MySqlProcess:
    """A server whose tables all lie in one file of limited size."""
    apart = ["--innodb-undo-tablespaces=2"] if mysql_name == "mariadb" else []
    return private_mysql("--innodb-file-per-table=0", ROOM.format(28), *apart)


def test_full_table_refuses_an_epoch_until_it_may_grow(small: MySqlProcess) -> None:
    appending = query(small, createTable="true")
    appending.run(0, rows(10, repetitive))
    receipts = appending.stage(1, rows(30_000, repetitive))
    with pytest.raises(StoreRefused, match=FULL.format("t")):
        appending.commit(1, receipts)
    assert stored(small) == (10, 10_000)
    small.config.append(ROOM.format(200))
    small.restart()
    assert appending.commit(1, receipts).decision.epoch == 1
    assert stored(small) == (30_010, 30_010_000)


@pytest.fixture
def on_small_disk(mysql_name: str) -> Iterator[MySqlProcess]:
    """A server in whose directory lies a small disk, that no other process sees."""
    if os.geteuid() or subprocess.run(["unshare", "-m", "true"], check=False).returncode:
        pytest.skip("only root may mount a disk")
    binary = or_skip(lambda: private_binary(mysql_name))
    apart = ("unshare", "-m", "sh", "-c", MOUNT, "sh")
    server = MySqlProcess(binary)
    shutil.copytree(new_data(binary), server.data)
    server._binary = dataclasses.replace(binary, command=(*apart, *binary.command))
    if mysql_name == "mysql":
        server.config.append(f"--innodb-directories={server.directory}/disk")
    with server:
        yield server


class Disk:
    """The small disk of a server."""

    def __init__(self, server: MySqlProcess) -> None:
        self.name = f"{server.directory}/disk"
        self.filler = Path(f"/proc/{server.pid}/root{self.name}/filler")

    def fill(self) -> None:
        self.filler.write_bytes(bytes(28_000_000))

    def clear(self) -> None:
        self.filler.unlink()


def test_full_disk_refuses_an_epoch_until_there_is_room(on_small_disk: MySqlProcess) -> None:
    server, disk = on_small_disk, Disk(on_small_disk)
    run(server, f"CREATE TABLE t (id BIGINT, s LONGTEXT) DATA DIRECTORY '{disk.name}'")
    appending = query(server)
    appending.run(0, rows(10, repetitive))
    receipts = appending.stage(1, rows(8000, repetitive))
    disk.fill()
    with pytest.raises(StoreRefused, match=FULL.format("t")):
        appending.commit(1, receipts)
    assert stored(server) == (10, 10_000)
    disk.clear()
    assert appending.commit(1, receipts).decision.epoch == 1
    assert stored(server) == (8010, 8_010_000)


def test_full_disk_of_the_log_refuses_to_stage_until_there_is_room(
    on_small_disk: MySqlProcess,
) -> None:
    server, disk = on_small_disk, Disk(on_small_disk)
    ledger, log = MySqlConnector().ddl()
    run(server, ledger)
    run(server, f"{log} DATA DIRECTORY '{disk.name}'")
    # Small chunks: a larger one, kept apart from its row, makes MariaDB 10.11 end itself.
    appending = query(server, createTable="true", chunkRows="5")
    appending.run(0, rows(10, repetitive))
    disk.fill()
    with pytest.raises(StoreRefused, match=FULL.format("sparkonce_log")):
        appending.stage(1, rows(8000, noise))
    assert stored(server) == (10, 10_000)
    disk.clear()
    appending.restart()
    appending.run(1, rows(8000, noise))
    assert stored(server) == (8010, 8_010_000)
    assert appending.sink.store.staged(appending.name) == []
