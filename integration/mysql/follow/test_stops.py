"""What stops a stream: statements, rows that are not whole, and what was rolled back, by name."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pyarrow as pa
import pymysql
import pytest
from integration.support.mysql import (
    Table,
    between,
    changes,
    feed,
    rows,
    run,
)

from sparkonce.errors import OptionError, StoreRefused


@pytest.fixture
def table(table: Table) -> Table:
    table.create("id INT PRIMARY KEY, n INT, t VARCHAR(20)")
    return table


CREATED = "CREATE TABLE t (id INT PRIMARY KEY)"
STATEMENTS = {
    "TRUNCATE {table}": 1,
    "ALTER TABLE {table} ADD COLUMN more INT FIRST": 1,
    "DELETE FROM {table}": 0,
    "ANALYZE TABLE {table}": 0,
    "CREATE TABLE {table}_2 LIKE {table}": 0,
    "CREATE TABLE {table}_4 AS SELECT * FROM {table}": 0,
    "CREATE PROCEDURE {table}_p() START TRANSACTION": 0,
    "ALTER TABLE {table} DROP CONSTRAINT `PRIMARY`": 1,
    "RENAME TABLE {table} TO {table}_3": 1,
}


@pytest.mark.parametrize("text", STATEMENTS)
def test_a_statement_that_changes_the_table_stops_the_stream_and_can_be_passed(
    table: Table, text: str, set_global: Any
) -> None:
    set_global("binlog_row_metadata", "FULL")
    table.run(f"INSERT INTO {table} VALUES (1, 1, '')")
    made, begin = table.follow()
    table.run(f"INSERT INTO {table} VALUES (2, 2, '')")
    before = made.latest()
    table.run(text.format(table=table))
    end = made.latest()
    if not STATEMENTS[text]:
        table.run(f"INSERT INTO {table} VALUES (3, 3, '')")
        assert changes(made, begin, None, "id")[-1] == ("c", 3)
        return
    for most in (None, 100):
        assert made.advance(begin, end, most) == before
    assert made.advance(before, end, None) == end
    with pytest.raises(StoreRefused, match="changes the table by a statement") as refused:
        rows(made, before, end)
    skipped = _skipped(refused.value)
    assert skipped == between(made, before, end)
    if not text.startswith("RENAME"):
        passed = table.feed(made.schema, skipTransactions=skipped)
        table.run(f"INSERT INTO {table} (id, n, t) VALUES (7, 7, '')")
        assert changes(passed, before, None, "id", "n") == [("c", 7, 7)]


def _skipped(error: StoreRefused) -> str:
    """The transaction that an error names."""
    return str(error).split("skipTransactions=")[1].split(",")[0]


SETTINGS = {
    "binlog_row_image": "MINIMAL",
    "binlog_format": "STATEMENT",
    "binlog_row_value_options": "PARTIAL_JSON",
}


@pytest.mark.parametrize("name", SETTINGS)
def test_a_server_whose_log_lacks_values_is_refused_by_the_setting(
    table: Table, mysql_name: str, name: str, set_global: Any
) -> None:
    if mysql_name == "mariadb" and name == "binlog_row_value_options":
        pytest.skip("MariaDB logs JSON whole")
    set_global(name, SETTINGS[name])
    with pytest.raises(StoreRefused, match=f"a server with {name} = {SETTINGS[name]}"):
        table.feed().begin()


WRONG = {
    "mysql": ("--binlog-format=MIXED", "--gtid-mode=OFF", "--enforce-gtid-consistency=OFF"),
    "mariadb": ("--binlog-row-image=MINIMAL",),
}
NAMED = {
    "mysql": "log_bin = OFF, binlog_format = MIXED, gtid_mode = OFF",
    "mariadb": "log_bin = OFF, binlog_format = MIXED, binlog_row_image = MINIMAL",
}


def test_all_wrong_settings_are_named_at_once_and_the_cure_helps(
    private_mysql: Any, mysql_name: str
) -> None:
    off = ("--skip-log-bin",) if mysql_name == "mysql" else ()
    server = private_mysql("--server-id=1", *WRONG[mysql_name], *off)
    run(server, CREATED)
    with pytest.raises(StoreRefused, match=NAMED[mysql_name]) as refused:
        feed(server.url, "t").begin()
    settings = re.findall(r"(\w+) = (\w*)", refused.value.todo)
    cure = [f"--{name}={value}" for name, value in settings]
    cured = private_mysql("--server-id=1", *WRONG[mysql_name], *cure)
    run(cured, CREATED)
    feed(cured.url, "t").begin()


def test_rows_without_all_their_columns_are_refused(table: Table) -> None:
    table.run(f"INSERT INTO {table} VALUES (1, 1, '')")
    made, begin = table.follow()
    table.run("SET SESSION binlog_row_image = MINIMAL", f"UPDATE {table} SET n = 2")
    with pytest.raises(StoreRefused, match="has rows without all of their columns"):
        rows(made, begin)


def test_xa_transactions_of_the_table_are_refused(table: Table) -> None:
    table.run(f"CREATE TABLE {table}_other (id INT)")
    made, begin = table.follow()
    for number, name in enumerate((f"{table}_other (id)", f"{table} (id)")):
        table.run(f"XA START '{table}{number}'", f"INSERT INTO {name} VALUES (1)")
        table.run(f"XA END '{table}{number}'", f"XA PREPARE '{table}{number}'")
        table.run(f"XA COMMIT '{table}{number}'")
        if number == 0:
            assert rows(made, begin) == []
    with pytest.raises(StoreRefused, match="is an XA transaction that changes the table"):
        rows(made, begin)


def test_an_xa_transaction_that_is_committed_at_once_is_one_as_others(table: Table) -> None:
    made, begin = table.follow()
    insert = f"INSERT INTO {table} VALUES (1, 1, '')"
    table.run("XA START 'a'", insert, "XA END 'a'", "XA COMMIT 'a' ONE PHASE")
    assert changes(made, begin, None, "id") == [("c", 1)]


ROLLED_BACK = {
    "whole": ("ROLLBACK",),
    "in part": ("ROLLBACK TO a", "INSERT INTO {table} VALUES (5, 5, '')", "COMMIT"),
}


@pytest.mark.parametrize("how", ROLLED_BACK)
def test_rows_that_were_rolled_back_are_no_changes(table: Table, mysql_name: str, how: str) -> None:
    """MariaDB logs them, and then the ROLLBACK, where a temporary table was created meanwhile."""
    made, begin = table.follow()
    statements = ("BEGIN", "SAVEPOINT a", "INSERT INTO {table} VALUES (1, 1, '')")
    for one in (*statements, "CREATE TEMPORARY TABLE {table}_tmp (i INT)", *ROLLED_BACK[how]):
        table.run(one.format(table=table))
    end = made.latest()
    if mysql_name == "mysql":
        assert changes(made, begin, end, "id") == [("c", 5)] * (how == "in part")
        return
    with pytest.raises(StoreRefused, match="was rolled back, whole or in part") as refused:
        rows(made, begin, end)
    skipping = table.feed(skipTransactions=_skipped(refused.value))
    assert changes(skipping, begin, end, "id") == [("c", 5)] * (how == "in part")


LOGGED_AS_THEY_ARE = {
    "of a view": ("CREATE VIEW {table}_v AS SELECT * FROM {table}", "UPDATE {table}_v SET n = 2"),
    "into a view": (
        "CREATE VIEW {table}_v AS SELECT * FROM {table}",
        "INSERT INTO {table}_v VALUES (9, 9, '')",
    ),
    "by LOAD DATA": ("SET @a = 1", "LOAD DATA INFILE '{file}' INTO TABLE {table}"),
    "by a client of latin1": ("SET NAMES latin1", b"TRUNCATE `gr\xf6\xdfe`"),
}


@pytest.mark.parametrize("how", LOGGED_AS_THEY_ARE)
def test_a_statement_that_a_session_logs_as_it_is_stops_the_stream(
    table: Table, how: str, tmp_path: Path
) -> None:
    if how == "by a client of latin1":
        table.run("DROP TABLE IF EXISTS größe", f"RENAME TABLE {table} TO größe")
        table = Table("größe", table.url, table.client)
    table.run(f"INSERT INTO {table} VALUES (1, 1, '')")
    (tmp_path / "rows").write_text("7\t7\tx\n")
    tmp_path.chmod(0o755)
    first, last = LOGGED_AS_THEY_ARE[how]
    made, begin = table.follow()
    table.run("SET SESSION binlog_format = STATEMENT")
    table.run(first.format(table=table))
    table.run(last if isinstance(last, bytes) else last.format(table=table, file=tmp_path / "rows"))
    with pytest.raises(StoreRefused, match="changes the table by a statement"):
        rows(made, begin)


def test_a_file_of_which_no_row_was_loaded_changes_nothing(table: Table, tmp_path: Path) -> None:
    """Servers log such a file of a session's statement, and then that it is gone."""
    table.run(f"CREATE TABLE {table}_other (id INT PRIMARY KEY) ENGINE=MyISAM")
    table.run(f"INSERT INTO {table}_other VALUES (1)")
    file = tmp_path / "rows"
    file.write_text("1\n" + "2\n" * 100_000)
    for one in (tmp_path, *tmp_path.parents[:2]):
        one.chmod(0o755)
    made, begin = table.follow()
    table.run("SET SESSION binlog_format = STATEMENT")
    with pytest.raises(pymysql.IntegrityError):
        table.run(f"LOAD DATA INFILE '{file}' INTO TABLE {table}_other")
    assert made.latest() != begin
    table.run("SET SESSION binlog_format = ROW", f"INSERT INTO {table} VALUES (1, 1, '')")
    assert changes(made, begin, None, "id") == [("c", 1)]


def test_rows_before_what_is_refused_come_first(table: Table) -> None:
    made, begin = table.follow()
    table.run(f"INSERT INTO {table} VALUES (1, 1, '')")
    before = made.latest()
    table.run("SET SESSION binlog_row_image = MINIMAL", f"UPDATE {table} SET n = 2")
    for most in (None, 10):
        assert made.advance(begin, made.latest(), most) == before
    assert changes(made, begin, before, "id", "n") == [("c", 1, 1)]


def test_a_snapshot_is_not_passed_over_a_statement(table: Table) -> None:
    table.run(f"INSERT INTO {table} VALUES (1, 1, '')")
    made, begin = table.follow(startingPosition="snapshot")
    table.run(f"TRUNCATE {table}")
    skipped = between(made, begin, made.latest())
    skipping = table.feed(startingPosition="snapshot", skipTransactions=skipped)
    with pytest.raises(
        StoreRefused, match="start a new query: this query can no longer complete its snapshot"
    ):
        rows(skipping, begin, {"gtids": begin["gtids"]})


def test_a_view_and_a_table_that_is_not_there_are_refused(table: Table) -> None:
    table.run(f"CREATE VIEW {table}_view AS SELECT * FROM {table}")
    with pytest.raises(StoreRefused, match=r"_view is a view"):
        feed(table.url, f"{table}_view")
    with pytest.raises(StoreRefused, match="does not exist"):
        feed(table.url, f"{table}_none")
    made, at = table.follow(pa.schema([("nn", pa.int32())]))
    with pytest.raises(OptionError, match="Option columns names"):
        made.between(at, at)
