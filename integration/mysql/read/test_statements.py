"""What a read sends to the server: tables and queries of every spelling, rights, and how often."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import pytest
from integration.support.mysql import Table, client, source, values
from integration.support.mysql_drawn_columns import SIMPLE
from integration.support.servers.mysql import MySqlProcess
from pymysql.cursors import Cursor

from pyspark_mysql.read import one_state, ranges
from pyspark_mysql.read.columns import _described, described
from sparkonce.errors import SnapshotBroken, SparkonceError, StoreRefused


@pytest.fixture
def three(table: Table) -> str:
    table.create("id INT PRIMARY KEY, v VARCHAR(20), secret INT")
    table.run(f"INSERT INTO {table} VALUES (1, 'a', 7), (2, 'b;', 7), (3, '--', 7)")
    return table


def test_columns_are_described_as_if_they_were_read(table: Table) -> None:
    """Of a statement that is only prepared: each type, alone, in a view, and in an expression."""
    columns = ", ".join(f"c{at} {kind}" for at, kind in enumerate(SIMPLE))
    table.run("SET SESSION sql_mode=''")
    table.create(f"{columns}")
    table.run(f"CREATE VIEW {table}_view AS SELECT * FROM {table}")
    sums = ", ".join(f"MAX(c{at}) m{at}, CONCAT(c{at}, '') t{at}" for at in range(len(SIMPLE)))
    queries = (
        {"dbtable": table},
        {"dbtable": f"{table}_view"},
        {"query": f"SELECT {sums} FROM {table} GROUP BY c0"},
        {"query": f"SELECT c1 AS a, NULL AS b, c1 / 3 AS c FROM {table} UNION SELECT 1, 'x', 2"},
    )
    for raw in queries:
        _, made = source(table.url, None, **raw)
        name = made.relation
        with made.session.connected() as live:
            read = live.sent(f"SELECT * FROM {name} LIMIT 0")._result.fields
        found = described(made.session, name)
        assert [one.natural for one in found] == [_described(one).natural for one in read], raw
        assert [one.name for one in found] == [one.name for one in read]


HARMLESS = (
    "SET SESSION sql_select_limit = 1",
    "SET NAMES latin1",
    "SET SESSION time_zone = '+05:00'",
    "SET SESSION sql_mode = 'ANSI_QUOTES,PAD_CHAR_TO_FULL_LENGTH'",
    "SET SESSION autocommit = 0",
    "START TRANSACTION READ ONLY",
    "USE information_schema",
    "SELECT 1 UNION SELECT 2",
)


@pytest.mark.parametrize("statement", HARMLESS)
def test_no_statement_of_a_user_changes_what_a_read_finds(table: Table, statement: str) -> None:
    table.create(
        "id INT PRIMARY KEY, v CHAR(9), at TIMESTAMP(6) NULL, x VARCHAR(9) COLLATE utf8mb4_bin"
    )
    table.run(f"INSERT INTO {table} VALUES (1, 'a', '2026-01-01', 'ü'), (2, '\u0436', NULL, '😀')")
    found = [
        values(source(table.url, None, dbtable=table, **given)[1]).to_pylist()
        for given in ({}, {"sessionInitStatement": statement})
    ]
    assert found[0] == found[1]


def test_a_statement_of_a_user_begins_each_session(table: Table) -> None:
    query = {"query": "SELECT @mine AS v, @@group_concat_max_len AS n"}
    statement = "SET @mine = 'x', SESSION group_concat_max_len = 5000"
    made = source(table.url, None, **query, sessionInitStatement=statement)[1]
    assert values(made).to_pylist() == [{"v": "x", "n": 5000}]
    other = source(table.url, None, **query)[1]
    assert values(other)["v"].to_pylist() == [None]
    for wrong in ("SET SESSION nonsense = 1", "SET @a = 1; SET @b = 2"):
        with pytest.raises(StoreRefused, match="Option sessionInitStatement failed"):
            source(table.url, None, dbtable=table, sessionInitStatement=wrong)


ENDS = ("", ";", " ;; ", " -- all", "; -- all", " # all", "; /* all; */ ", "\n--\n;", " /*! */;")


@pytest.mark.parametrize("end", ENDS)
def test_a_query_may_end_as_in_a_script(three: Table, end: str) -> None:
    query = f"SELECT id, v FROM {three} WHERE v IN ('b;', \"--\") /* two; */{end}"
    _, made = source(three.url, None, query=query)
    assert sorted(values(made)["v"].to_pylist()) == ["--", "b;"]


@pytest.mark.parametrize("spelling", ["({}) AS t", "( {} ) t", "({})", "({} -- all\n) `a b`"])
def test_a_subquery_as_spark_has_it(three: Table, spelling: str) -> None:
    table = spelling.format(f"SELECT id FROM {three} WHERE id > 1")
    _, made = source(three.url, None, dbtable=table)
    assert sorted(values(made)["id"].to_pylist()) == [2, 3]
    bounds = {"partitionColumn": "id", "lowerBound": "1", "upperBound": "4"}
    _, ranged = source(three.url, None, dbtable=table, numPartitions="2", **bounds)
    assert len(ranged.splits()) == 2
    assert sorted(values(ranged)["id"].to_pylist()) == [2, 3]


@pytest.mark.parametrize(
    ("raw", "said"),
    [
        ({"query": "SELECT 1; SELECT 2"}, "more than one statement"),
        ({"query": "DELETE FROM {}; SELECT 2"}, "more than one statement"),
        ({"dbtable": "(SELECT 1) a, {}"}, r"\(SELECT"),
        ({"dbtable": "{}", "columns": "nosuch"}, "'nosuch'"),
        ({"query": "SELECT * FROM {} FOR UPDATE"}, "writes or locks"),
        ({"query": "SELEC 1"}, "can't read what options .* name.* and read again"),
        ({"query": "SELECT nosuch FROM {}"}, "can't read what options .* name.* and read again"),
        ({"dbtable": "nosuch"}, "can't read what options .* name.* and read again"),
    ],
)
def test_what_is_no_read_is_refused_by_name(three: Table, raw: dict[str, str], said: str) -> None:
    with pytest.raises(SparkonceError, match=said):
        values(source(three.url, None, **{k: v.format(three) for k, v in raw.items()})[1])


def test_rights_to_some_columns_are_enough_for_these(three: Table) -> None:
    three.run(f"CREATE USER {three} IDENTIFIED BY 'secret'")
    three.run(f"GRANT SELECT (id, v) ON {three} TO {three}")
    url = three.url.replace("root@", f"{three}:secret@")
    _, made = source(url, None, dbtable=three, columns="ID,v")
    assert sorted(values(made.__class__(made.session, made.options, made.scan))["v"].to_pylist())
    with pytest.raises(StoreRefused, match="lacks a right"):
        source(url, None, dbtable=three)


def test_a_key_that_is_invisible_divides_a_table(
    mysql_name: str, table: Table, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Some providers give each table without a key such a one."""
    monkeypatch.setattr(ranges, "FEW", 10)
    if mysql_name == "mysql":
        table.run("SET SESSION sql_generate_invisible_primary_key=1")
        table.create("v INT")
    else:
        table.create("hidden INT AUTO_INCREMENT INVISIBLE PRIMARY KEY, v INT")
    table.run(f"INSERT INTO {table} (v) VALUES {', '.join(f'({at})' for at in range(500))}")
    table.run(f"ANALYZE TABLE {table}")
    known, made = source(table.url, None, dbtable=table)
    assert known.names == ["v"]
    assert len(made.splits()) > 1
    assert sorted(values(made)["v"].to_pylist()) == [*range(500)]


def test_a_query_runs_once(private_mysql: Any) -> None:
    """Its columns are asked for without it: it may take an hour."""
    server = private_mysql("--general-log=1", "--log-output=TABLE")
    with client(server.url) as reader:
        reader.execute("CREATE TABLE t (v INT)")
        _, made = source(server.url, None, query="SELECT COUNT(*) AS many FROM t")
        assert values(made)["many"].to_pylist() == [0]
        reader.execute(
            "SELECT argument FROM mysql.general_log WHERE command_type IN ('Query', 'Execute')"
            " AND argument LIKE '%COUNT(*) AS many%' AND argument NOT LIKE '%general_log%'"
        )
        assert len(reader.fetchall()) == 1


def test_a_connection_of_another_server_is_not_ended(
    mysql: Cursor, mysql_url: str, unique: str
) -> None:
    """Behind one address may be several servers, and each numbers its connections."""
    query = f"SELECT SLEEP(2) AS s, '{unique}' AS v"
    _, made = source(mysql_url, None, query=query, timeout="0.3")
    (split,) = made.splits()
    with made.session.connected() as live:
        live.server = ("elsewhere", 3306, 1)
    with pytest.raises(StoreRefused, match="option timeout"):
        list(made.read(split))
    mysql.execute(f"SELECT info FROM information_schema.processlist WHERE info LIKE '%{unique}%'")
    assert any("SLEEP" in info for (info,) in mysql.fetchall())


@pytest.mark.parametrize("timeout", ["0.1", "0.4", "2.5", "3600"])
def test_the_server_limits_what_a_plan_asks_for(
    mysql_url: str, mysql_name: str, timeout: str
) -> None:
    """Also to a part of a second; afterwards a statement may take as long as it likes."""
    _, made = source(mysql_url, None, query="SELECT 1 AS a", timeout=timeout)
    mariadb = mysql_name == "mariadb"
    asked = "SELECT @@SESSION." + ("max_statement_time" if mariadb else "max_execution_time")
    with made.session.connected() as live:
        with made.session.limited():
            ((limit,),) = live.run(asked)
        ((after,),) = live.run(asked)
    assert float(limit) == float(timeout) * (1 if mariadb else 1000)
    assert float(after) == 0


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
    with client(server.url) as writer:
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
    with client(url) as reader:
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
    with client(replica.url) as operator:
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
    with client(url) as reader:
        reader.execute("SELECT @@gtid_binlog_pos")
        return tuple(reader.fetchone())


WITHOUT = {
    "a table": ("{} ENGINE=MyISAM", {"dbtable": "u"}, "engine MyISAM"),
    "a table with history": (
        "{} ENGINE=MyISAM WITH SYSTEM VERSIONING",
        {"dbtable": "u"},
        "engine MyISAM",
    ),
    "a query": ("{} ENGINE=MyISAM", {"query": "SELECT * FROM u"}, "the relation is not a table"),
    "a view": ("{} ENGINE=MyISAM", {"dbtable": "seen"}, "the relation is not a table"),
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
    with client(logging_server.url) as writer:
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
