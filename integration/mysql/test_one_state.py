"""`consistency=snapshot`: all splits see one state, or the read fails and says why."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import pytest
from integration.support.mysql_reading import source
from integration.support.servers.mysql import MySqlProcess, connect

from pyspark_mysql.read import one_state, ranges
from sparkonce.errors import SnapshotBroken, StoreRefused

LOGGED = ("--log-bin=log", "--server-id=7", "--binlog-format=ROW")
GTIDS = ("--gtid-mode=ON", "--enforce-gtid-consistency=ON")
ROWS = 100
SEMI_SYNC = {
    "mysql": (
        "INSTALL PLUGIN rpl_semi_sync_source SONAME 'semisync_source.so'",
        "SET GLOBAL rpl_semi_sync_source_timeout=1500",
        "SET GLOBAL rpl_semi_sync_source_enabled=1",
    ),
    "mariadb": (
        "SET GLOBAL rpl_semi_sync_master_wait_point=AFTER_SYNC",
        "SET GLOBAL rpl_semi_sync_master_timeout=1500",
        "SET GLOBAL rpl_semi_sync_master_enabled=1",
    ),
}


@pytest.fixture(autouse=True)
def few(monkeypatch: pytest.MonkeyPatch) -> None:
    """Tables of few rows are divided."""
    monkeypatch.setattr(ranges, "FEW", 10)


@contextmanager
def filled(server: MySqlProcess, engine: str = "InnoDB") -> Iterator[Callable[[str], None]]:
    """A table of two splits; sends statements."""
    with connect(server.url) as client, client.cursor() as writer:
        writer.execute(f"CREATE TABLE t (id BIGINT PRIMARY KEY, v INT) ENGINE={engine}")
        writer.execute(f"INSERT INTO t VALUES {', '.join(f'({at}, 0)' for at in range(ROWS))}")
        writer.execute("ANALYZE TABLE t")
        yield writer.execute


@pytest.fixture
def logging_server(private_mysql: Any, mysql_name: str) -> MySqlProcess:
    """A server whose state can be known."""
    return private_mysql(*LOGGED, *(GTIDS if mysql_name == "mysql" else ()))


def read(made: Any, split: Any) -> list[int]:
    return [one for batch in made.read(split) for one in batch["v"].to_pylist()]


def test_a_write_between_splits(logging_server: MySqlProcess, caplog: Any) -> None:
    url = logging_server.url
    with filled(logging_server) as run:
        for consistency in ("splits", "snapshot"):
            _, quiet = source(url, None, dbtable="t", consistency=consistency)
            assert len(splits := quiet.splits()) > 1
            assert sum(len(read(quiet, split)) for split in splits) == ROWS
            assert "different states" not in caplog.text
        _, strict = source(url, None, dbtable="t", consistency="snapshot")
        _, loose = source(url, None, dbtable="t")
        of_strict, of_loose = strict.splits(), loose.splits()
        run("UPDATE t SET v = 1")
        with pytest.raises(SnapshotBroken):
            read(strict, of_strict[0])
        run("UPDATE t SET v = 2")  # on the connection that was given back
        assert set(read(loose, of_loose[0])) == {2}
        assert "different states" in caplog.text


def test_a_commit_that_waits_for_a_replica(logging_server: MySqlProcess, mysql_name: str) -> None:
    """It is logged, and not yet visible: the first split sees the state before it."""
    with filled(logging_server) as run:
        for sql in SEMI_SYNC[mysql_name]:
            run(sql)
        _, made = source(logging_server.url, None, dbtable="t", consistency="snapshot")
        logged = _end_of_log(logging_server.url)
        waiting = threading.Thread(target=lambda: run("UPDATE t SET v = 1"))
        waiting.start()
        while _end_of_log(logging_server.url) == logged:
            time.sleep(0.01)
        try:
            first, *others = made.splits()
            before = read(made, first)
            waiting.join()
            after = [one for split in others for one in read(made, split)]
        except SnapshotBroken:
            return
        finally:
            waiting.join()
        assert len({*before, *after}) == 1, "two states were read, and nothing was said"


def _end_of_log(url: str) -> Any:
    with connect(url) as client, client.cursor() as reader:
        try:
            reader.execute("SHOW BINARY LOG STATUS")
        except Exception:  # MariaDB has another word
            reader.execute("SHOW MASTER STATUS")
        return reader.fetchone()[:2]


UNKNOWN = {
    "no binary log": ((), "has no binary log"),
    "a part is logged": ((*LOGGED, *GTIDS, "--binlog-ignore-db=x"), "binlog_ignore_db"),
    "no GTIDs": (
        (*LOGGED, "--gtid-mode=OFF", "--enforce-gtid-consistency=OFF"),
        "gtid_mode is not ON",
    ),
}


@pytest.mark.parametrize("case", UNKNOWN)
def test_a_server_that_does_not_tell_its_state(
    private_mysql: Any, mysql_name: str, case: str
) -> None:
    config, said = UNKNOWN[case]
    if mysql_name == "mariadb":
        if case == "no GTIDs":
            pytest.skip("MariaDB has them always")
        config = tuple(one for one in config if one not in GTIDS)
    elif not config:
        config = ("--skip-log-bin",)
    server = private_mysql(*config)
    with filled(server):
        _, made = source(server.url, None, dbtable="t", consistency="snapshot")
        with pytest.raises(StoreRefused, match=said):
            made.splits()
        _, one = source(server.url, None, dbtable="t", consistency="snapshot", numPartitions="1")
        assert len(read(one, *one.splits())) == ROWS


def test_a_replica_that_logs_nothing(private_mysql: Any, mysql_name: str) -> None:
    """Our advice is to read a replica: of MariaDB, one that replicates must log what it does."""
    if mysql_name == "mysql":
        pytest.skip("MySQL counts replicated GTIDs as executed, logged or not")
    primary = private_mysql(*LOGGED)
    replica = private_mysql("--log-bin=log", "--server-id=8")
    with connect(replica.url) as client, client.cursor() as operator:
        operator.execute(
            "CHANGE MASTER TO master_host='127.0.0.1', master_user='root',"
            f" master_use_gtid=slave_pos, master_port={primary.port}"
        )
        operator.execute("START SLAVE")
        with filled(primary):
            operator.execute("SELECT MASTER_GTID_WAIT(%s, 20)", _gtids(primary.url))
            _, made = source(replica.url, None, dbtable="t", consistency="snapshot")
            with pytest.raises(StoreRefused, match="log_slave_updates"):
                made.splits()
            operator.execute("STOP SLAVE SQL_THREAD")
            assert sum(len(read(made, split)) for split in made.splits()) == ROWS
            splits = made.splits()
            operator.execute("START SLAVE SQL_THREAD")
            with pytest.raises(StoreRefused, match="log_slave_updates"):
                read(made, splits[0])


def _gtids(url: str) -> tuple[Any, ...]:
    with connect(url) as client, client.cursor() as reader:
        reader.execute("SELECT @@gtid_binlog_pos")
        return tuple(reader.fetchone())


WITHOUT = {
    "a table": ("{} ENGINE=MyISAM", {"dbtable": "u"}, "engine MyISAM"),
    "a table with history": (
        "{} ENGINE=MyISAM WITH SYSTEM VERSIONING",
        {"dbtable": "u"},
        "engine MyISAM",
    ),
    "a query": ("{} ENGINE=MyISAM", {"query": "SELECT * FROM u"}, "it is no table"),
    "a view": ("{} ENGINE=MyISAM", {"dbtable": "seen"}, "it is no table"),
}


@pytest.mark.parametrize("case", WITHOUT)
def test_what_may_have_no_snapshots(
    logging_server: MySqlProcess, mysql_name: str, case: str
) -> None:
    """A view may read tables that its user can't even see."""
    definition, raw, said = WITHOUT[case]
    if "VERSIONING" in definition and mysql_name == "mysql":
        pytest.skip("MariaDB alone has tables with their history")
    ranged = {"partitionColumn": "id", "lowerBound": "0", "upperBound": "50"}
    with connect(logging_server.url) as client, client.cursor() as writer:
        writer.execute(definition.format("CREATE TABLE u (id BIGINT PRIMARY KEY)"))
        writer.execute("CREATE VIEW seen AS SELECT * FROM u")
        _, made = source(logging_server.url, None, **raw, **ranged, consistency="snapshot")
        with pytest.raises(StoreRefused, match=said):
            made.splits()


def test_a_split_is_the_state_that_was_looked_at(logging_server: MySqlProcess) -> None:
    """Rows that are written between the look and the statement are not read."""
    with filled(logging_server) as run:
        _, made = source(logging_server.url, None, dbtable="t")
        with made.session.connected() as live, one_state.held(live, "", demanded=False):
            run("DELETE FROM t")
            assert live.run("SELECT COUNT(*) FROM t") == ((ROWS,),)
        assert made.session.run("SELECT COUNT(*) FROM t") == ((0,),)
