"""A server without room: nothing of the epoch takes effect, and once there is room it goes on."""

from __future__ import annotations

import base64
import dataclasses
import os
import random
import shutil
import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path

import pyarrow as pa
import pytest
from integration.support.epochs import MySqlQuery
from integration.support.servers.finder import or_skip
from integration.support.servers.mysql import MySqlProcess, connect, new_data, private_binary

from pyspark_mysql.connector import MySqlConnector
from sparkonce.errors import StoreRefused

pytestmark = pytest.mark.slow

SCHEMA = pa.schema([("id", pa.int64()), ("s", pa.string())])
ROOM = "--innodb-data-file-path=ibdata1:12M:autoextend:max:{}M"
MOUNT = 'mkdir disk && mount -t tmpfs -o size=32m tmpfs disk && exec "$@"'
FULL = "1114 The table '{}' is full.*the server has no room left.*free disk space"


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
    with connect(server.url) as client, client.cursor() as cursor:
        cursor.execute("SELECT COUNT(*), SUM(LENGTH(s)) FROM t")
        return cursor.fetchone()


def run(server: MySqlProcess, statement: str) -> None:
    with connect(server.url) as client:
        client.cursor().execute(statement)


def query(server: MySqlProcess, **options: str) -> MySqlQuery:
    made = MySqlQuery(SCHEMA, url=server.url, dbtable="t", writeMode="append", **options)
    made.sink.check()
    return made


@pytest.fixture
def small(private_mysql: Callable[..., MySqlProcess], mysql_name: str) -> MySqlProcess:
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
