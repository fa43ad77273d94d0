"""`spark.readStream.format("mysql")`: changes of a table, by sets of transactions."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import closing
from datetime import datetime, timezone
from functools import partial
from pathlib import Path
from time import sleep
from typing import Any

import pyarrow as pa
import pymysql
import pytest
from integration.support.mysql_following import between, feed, logging_server, purge, rows, told
from integration.support.servers.finder import or_skip
from integration.support.servers.mysql import MySqlProcess, connect
from pymysql.cursors import Cursor
from pyspark.sql import SparkSession

from pyspark_mysql.follow import request
from pyspark_mysql.follow.feed import MySqlFeed
from sparkonce.errors import (
    OptionError,
    StoreError,
    StoreRefused,
    StoreUnreachable,
    UnreadLost,
    UnsupportedQuery,
)
from sparkonce.reading import Follower, Position


@pytest.fixture(scope="module")
def server(mysql_name: str) -> Iterator[MySqlProcess]:
    """A server that these tests share, and may make others wait at."""
    with or_skip(lambda: logging_server(mysql_name)) as one:
        yield one


@pytest.fixture
def url(server: MySqlProcess) -> str:
    return server.url


@pytest.fixture
def mysql(url: str) -> Iterator[Cursor]:
    with closing(connect(url)) as client, client.cursor() as cursor:
        yield cursor


@pytest.fixture
def table(mysql: Cursor, unique: str) -> str:
    mysql.execute(f"CREATE TABLE {unique} (id INT PRIMARY KEY, n INT, t VARCHAR(20))")
    return unique


def test_what_transactions_did_comes_in_their_order(mysql: Cursor, url: str, table: str) -> None:
    made = feed(url, table)
    begin = made.begin()
    mysql.execute(f"INSERT INTO {table} VALUES (1, 10, 'a'), (2, 20, NULL)")
    middle = made.latest()
    mysql.execute(f"UPDATE {table} SET n = n + 1")
    mysql.execute(f"UPDATE {table} SET id = 3 WHERE id = 2")
    mysql.execute(f"DELETE FROM {table} WHERE id = 1")
    end = made.latest()
    mysql.execute(f"INSERT INTO {table} VALUES (9, 9, 'later')")
    first = [("c", 1, 10, "a"), ("c", 2, 20, None)]
    second = [("u", 1, 11, "a"), ("u", 2, 21, None)]
    second += [("d", 2, 21, None), ("c", 3, 21, None), ("d", 1, 11, "a")]
    columns = ("id", "n", "t")
    assert told(made, begin, middle, *columns) == first
    assert told(made, middle, end, *columns) == second
    assert told(made, begin, end, *columns) == first + second
    assert told(made, begin, end, *columns) == first + second
    assert made.behind(begin, end) == 4


def test_a_row_says_which_transaction_changed_it_and_when(
    mysql: Cursor, url: str, table: str
) -> None:
    made = feed(url, table)
    begin, before = made.begin(), datetime.now(timezone.utc)
    with closing(connect(url, autocommit=False)) as client, client.cursor() as writer:
        writer.execute(f"INSERT INTO {table} VALUES (1, 1, '')")
        writer.execute(f"INSERT INTO {table} VALUES (2, 1, '')")
        client.commit()
    mysql.execute(f"INSERT INTO {table} VALUES (3, 1, '')")
    found = rows(made, begin, made.latest())
    one, two, three = (row["_gtid"] for row in found)
    assert one == two != three
    assert feed(url, table, startingPosition=one).begin() == {"gtids": one}
    assert all(-1 < (row["_ts"] - before).total_seconds() < 60 for row in found)


def test_before_is_what_a_row_was(mysql: Cursor, url: str, table: str) -> None:
    mysql.execute(f"INSERT INTO {table} VALUES (1, 1, 'a')")
    made = feed(url, table, columns="id,_op,_before")
    begin = made.begin()
    mysql.execute(f"UPDATE {table} SET n = 2, t = 'b'")
    mysql.execute(f"UPDATE {table} SET id = 2")
    mysql.execute(f"DELETE FROM {table}")
    mysql.execute(f"INSERT INTO {table} VALUES (3, 3, NULL)")
    found = told(made, begin, made.latest(), "id", "_before")
    assert found == [
        ("u", 1, {"id": 1, "n": 1, "t": "a"}),
        ("d", 1, {"id": 1, "n": 2, "t": "b"}),
        ("c", 2, None),
        ("d", 2, {"id": 2, "n": 2, "t": "b"}),
        ("c", 3, None),
    ]


def test_an_epoch_ends_with_a_transaction(mysql: Cursor, url: str, table: str) -> None:
    made = feed(url, table)
    begin = made.begin()
    for size in (3, 1, 5, 2):
        values = ", ".join(f"({size * 10 + at}, 0, '')" for at in range(size))
        mysql.execute(f"INSERT INTO {table} VALUES {values}")
    goal, at, sizes = made.latest(), begin, list[int]()
    while at != goal:
        end = made.advance(at, goal, 4)
        sizes.append(len(rows(made, at, end)))
        at = end
    assert sizes == [4, 5, 2]


def test_transactions_of_other_tables_make_no_epoch_for_a_while(
    mysql: Cursor, url: str, table: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A sink in the same server writes its ledger there, after each epoch."""
    made = feed(url, table)
    begin = made.begin()
    mysql.execute(f"CREATE TABLE {table}_other (id INT)")
    for _ in range(3):
        mysql.execute(f"INSERT INTO {table}_other VALUES (1)")
        for most in (None, 10):
            assert made.advance(begin, made.latest(), most) == begin
    mysql.execute(f"INSERT INTO {table} VALUES (1, 1, '')")
    for most in (None, 10):
        assert told(made, begin, made.advance(begin, made.latest(), most), "id") == [("c", 1)]
    begin = made.latest()
    mysql.execute(f"INSERT INTO {table}_other VALUES (1)")
    assert made.advance(begin, made.latest(), None) == begin
    monkeypatch.setattr("pyspark_mysql.follow.feed.QUIET_SECONDS", -1)
    assert made.advance(begin, made.latest(), None) == made.latest()


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
    mysql: Cursor, url: str, table: str, text: str, set_global: Any
) -> None:
    set_global("binlog_row_metadata", "FULL")
    mysql.execute(f"INSERT INTO {table} VALUES (1, 1, '')")
    made = feed(url, table)
    begin = made.begin()
    mysql.execute(f"INSERT INTO {table} VALUES (2, 2, '')")
    before = made.latest()
    mysql.execute(text.format(table=table))
    end = made.latest()
    if not STATEMENTS[text]:
        mysql.execute(f"INSERT INTO {table} VALUES (3, 3, '')")
        assert told(made, begin, made.latest(), "id")[-1] == ("c", 3)
        return
    for most in (None, 100):
        assert made.advance(begin, end, most) == before
    assert made.advance(before, end, None) == end
    with pytest.raises(StoreRefused, match="changes the table by a statement") as refused:
        rows(made, before, end)
    skipped = _skipped(refused.value)
    assert skipped == between(made, before, end)
    if not text.startswith("RENAME"):
        passed = feed(url, table, made.schema, skipTransactions=skipped)
        mysql.execute(f"INSERT INTO {table} (id, n, t) VALUES (7, 7, '')")
        assert told(passed, before, passed.latest(), "id", "n") == [("c", 7, 7)]


def test_logs_that_were_purged_are_told_with_their_transactions(
    mysql: Cursor, url: str, table: str
) -> None:
    made = feed(url, table)
    begin = made.begin()
    mysql.execute(f"INSERT INTO {table} VALUES (1, 1, '')")
    mysql.execute("FLUSH BINARY LOGS")
    kept = made.latest()
    mysql.execute(f"INSERT INTO {table} VALUES (2, 2, '')")
    purge(mysql)
    end = made.latest()
    assert told(made, kept, end, "id") == [("c", 2)]
    with pytest.raises(UnreadLost, match=f"Transactions {between(made, begin, kept)} were purged"):
        made.between(begin, end)
    with pytest.raises(UnreadLost, match="purged"):
        made.advance(begin, end, 10)
    tolerant = feed(url, table, failOnDataLoss="false")
    assert told(tolerant, begin, end, "id") == [("c", 2)]


def test_a_server_that_lacks_what_was_read_is_waited_for(
    mysql: Cursor, url: str, table: str, mysql_name: str
) -> None:
    made = feed(url, table)
    begin = made.begin()
    mysql.execute(f"INSERT INTO {table} VALUES (1, 1, '')")
    end = made.latest()
    more = "0-1-900000" if mysql_name == "mariadb" else "3e11fa47-71ca-11e1-9e33-c80aa9429562:7"
    beyond = made._gtids(end["gtids"]).joined(more)
    for after, upto in ((begin, {"gtids": beyond}), ({"gtids": beyond}, end)):
        with pytest.raises(StoreUnreachable, match="has never had transactions"):
            made.between(after, upto)
    tolerant = feed(url, table, failOnDataLoss="false")
    assert told(tolerant, begin, {"gtids": beyond}, "id") == [("c", 1)]


SETTINGS = {
    "binlog_row_image": "MINIMAL",
    "binlog_format": "STATEMENT",
}


@pytest.mark.parametrize("name", SETTINGS)
def test_a_server_whose_log_tells_too_little_is_refused_by_the_setting(
    url: str, table: str, name: str, set_global: Any
) -> None:
    set_global(name, SETTINGS[name])
    with pytest.raises(StoreRefused, match=f"The server's {name} is '{SETTINGS[name]}'"):
        feed(url, table).begin()


def test_rows_without_all_their_columns_are_refused(mysql: Cursor, url: str, table: str) -> None:
    mysql.execute(f"INSERT INTO {table} VALUES (1, 1, '')")
    made = feed(url, table)
    begin = made.begin()
    mysql.execute("SET SESSION binlog_row_image = MINIMAL")
    mysql.execute(f"UPDATE {table} SET n = 2")
    with pytest.raises(StoreRefused, match="has rows without all of their columns"):
        rows(made, begin, made.latest())


def test_xa_transactions_of_the_table_are_refused(mysql: Cursor, url: str, table: str) -> None:
    mysql.execute(f"CREATE TABLE {table}_other (id INT)")
    made = feed(url, table)
    begin = made.begin()
    for number, name in enumerate((f"{table}_other (id)", f"{table} (id)")):
        mysql.execute(f"XA START '{table}{number}'")
        mysql.execute(f"INSERT INTO {name} VALUES (1)")
        mysql.execute(f"XA END '{table}{number}'")
        mysql.execute(f"XA PREPARE '{table}{number}'")
        mysql.execute(f"XA COMMIT '{table}{number}'")
        if number == 0:
            assert rows(made, begin, made.latest()) == []
    with pytest.raises(StoreRefused, match="is an XA transaction that changes the table"):
        rows(made, begin, made.latest())


def test_an_xa_transaction_that_is_committed_at_once_is_one_as_others(
    mysql: Cursor, url: str, table: str
) -> None:
    made = feed(url, table)
    begin = made.begin()
    insert = f"INSERT INTO {table} VALUES (1, 1, '')"
    for one in ("XA START 'a'", insert, "XA END 'a'", "XA COMMIT 'a' ONE PHASE"):
        mysql.execute(one)
    assert told(made, begin, made.latest(), "id") == [("c", 1)]


def _skipped(error: StoreRefused) -> str:
    """The transaction that an error names."""
    return str(error).split("skipTransactions=")[1].split(",")[0]


ROLLED_BACK = {
    "whole": ("ROLLBACK",),
    "in part": ("ROLLBACK TO a", "INSERT INTO {table} VALUES (5, 5, '')", "COMMIT"),
}


@pytest.mark.parametrize("how", ROLLED_BACK)
def test_rows_that_were_rolled_back_are_no_changes(
    mysql: Cursor, url: str, table: str, mysql_name: str, how: str
) -> None:
    """MariaDB logs them, and then the ROLLBACK, where a temporary table was created meanwhile."""
    made = feed(url, table)
    begin = made.begin()
    statements = ("BEGIN", "SAVEPOINT a", "INSERT INTO {table} VALUES (1, 1, '')")
    for one in (*statements, "CREATE TEMPORARY TABLE {table}_tmp (i INT)", *ROLLED_BACK[how]):
        mysql.execute(one.format(table=table))
    end = made.latest()
    if mysql_name == "mysql":
        assert told(made, begin, end, "id") == [("c", 5)] * (how == "in part")
        return
    with pytest.raises(StoreRefused, match="was rolled back, whole or in part") as refused:
        rows(made, begin, end)
    skipping = feed(url, table, skipTransactions=_skipped(refused.value))
    assert told(skipping, begin, end, "id") == [("c", 5)] * (how == "in part")


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
    mysql: Cursor, url: str, table: str, how: str, tmp_path: Path
) -> None:
    if how == "by a client of latin1":
        mysql.execute("DROP TABLE IF EXISTS größe")
        mysql.execute(f"RENAME TABLE {table} TO größe")
        table = "größe"
    mysql.execute(f"INSERT INTO {table} VALUES (1, 1, '')")
    (tmp_path / "rows").write_text("7\t7\tx\n")
    tmp_path.chmod(0o755)
    first, last = LOGGED_AS_THEY_ARE[how]
    made = feed(url, table)
    begin = made.begin()
    mysql.execute("SET SESSION binlog_format = STATEMENT")
    mysql.execute(first.format(table=table))
    mysql.execute(
        last if isinstance(last, bytes) else last.format(table=table, file=tmp_path / "rows")
    )
    with pytest.raises(StoreRefused, match="changes the table by a statement"):
        rows(made, begin, made.latest())


def test_a_file_of_which_no_row_was_loaded_changes_nothing(
    mysql: Cursor, url: str, table: str, tmp_path: Path
) -> None:
    """Servers log such a file of a session's statement, and then that it is gone."""
    mysql.execute(f"CREATE TABLE {table}_other (id INT PRIMARY KEY) ENGINE=MyISAM")
    mysql.execute(f"INSERT INTO {table}_other VALUES (1)")
    file = tmp_path / "rows"
    file.write_text("1\n" + "2\n" * 100_000)
    for one in (tmp_path, *tmp_path.parents[:2]):
        one.chmod(0o755)
    made = feed(url, table)
    begin = made.begin()
    mysql.execute("SET SESSION binlog_format = STATEMENT")
    with pytest.raises(pymysql.IntegrityError):
        mysql.execute(f"LOAD DATA INFILE '{file}' INTO TABLE {table}_other")
    assert made.latest() != begin
    mysql.execute("SET SESSION binlog_format = ROW")
    mysql.execute(f"INSERT INTO {table} VALUES (1, 1, '')")
    assert told(made, begin, made.latest(), "id") == [("c", 1)]


def test_rows_before_what_is_refused_come_first(mysql: Cursor, url: str, table: str) -> None:
    made = feed(url, table)
    begin = made.begin()
    mysql.execute(f"INSERT INTO {table} VALUES (1, 1, '')")
    before = made.latest()
    mysql.execute("SET SESSION binlog_row_image = MINIMAL")
    mysql.execute(f"UPDATE {table} SET n = 2")
    for most in (None, 10):
        assert made.advance(begin, made.latest(), most) == before
    assert told(made, begin, before, "id", "n") == [("c", 1, 1)]


def test_a_snapshot_is_not_passed_over_a_statement(mysql: Cursor, url: str, table: str) -> None:
    mysql.execute(f"INSERT INTO {table} VALUES (1, 1, '')")
    made = feed(url, table, startingPosition="snapshot")
    begin = made.begin()
    mysql.execute(f"TRUNCATE {table}")
    skipped = between(made, begin, made.latest())
    skipping = feed(url, table, startingPosition="snapshot", skipTransactions=skipped)
    with pytest.raises(StoreRefused, match="begin a new query: this one's snapshot"):
        rows(skipping, begin, {"gtids": begin["gtids"]})


def test_a_transaction_larger_than_memory_waits_on_disk(
    mysql: Cursor, url: str, table: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("pyspark_mysql.binlog.reader.IN_MEMORY", 5000)
    made = feed(url, table)
    begin = made.begin()
    for first in (0, 2000):
        many = ", ".join(f"({one}, 1, 'x')" for one in range(first, first + 2000))
        mysql.execute(f"INSERT INTO {table} VALUES {many}")
    assert told(made, begin, made.latest(), "id") == [("c", one) for one in range(4000)]


def test_a_look_begins_where_the_last_one_ended(
    mysql: Cursor, url: str, table: str, set_global: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """So the server need not search its log from the beginning, of which it sends nothing."""
    asked = list[str]()

    def counted(name: str, ask: Callable[..., None], *args: Any, **more: Any) -> None:
        asked.append(name)
        ask(*args, **more)

    for name in ("_ask", "_ask_at"):
        monkeypatch.setattr(request, name, partial(counted, name, getattr(request, name)))
    set_global("binlog_row_metadata", "FULL")
    mysql.execute(f"CREATE TABLE {table}_o (id INT)")
    made = feed(url, table)
    at, found = made.begin(), list[Any]()
    for number in range(4):
        mysql.execute(f"INSERT INTO {table} VALUES ({number}, 1, '')")
        mysql.execute(f"INSERT INTO {table}_o VALUES (1)")
        if number == 2:
            mysql.execute("FLUSH BINARY LOGS")
        end = made.advance(at, made.latest(), None)
        (split,) = made.between(at, end)
        reader = feed(url, table, made.schema)
        found += [one for batch in reader.read(split) for one in batch["id"].to_pylist()]
        mysql.execute(f"INSERT INTO {table}_o VALUES (1)")
        assert made.advance(end, made.latest(), None) == end
        at = end
    assert found == [0, 1, 2, 3]
    assert asked == ["_ask", "_ask"] + ["_ask_at"] * 10


def test_a_place_that_another_transaction_has_is_not_believed(
    mysql: Cursor, url: str, table: str, mysql_name: str
) -> None:
    made = feed(url, table)
    begin = made.begin()
    for number in range(3):
        mysql.execute(f"INSERT INTO {table} VALUES ({number}, 1, '')")
    middle = made.advance(begin, made.latest(), 2)
    (place,) = made._places.values()
    mysql.execute("FLUSH BINARY LOGS")
    mysql.execute("SHOW BINARY LOGS")
    last = mysql.fetchall()[-1][0]
    other = "0-1-999999" if mysql_name == "mariadb" else f"{place.gtid.split(':')[0]}:999999"
    wrong = [
        place._replace(at=place.at + 7),
        place._replace(at=4),
        place._replace(at=2**32 - 1),
        place._replace(gtid=other),
        place._replace(file=place.file._replace(name=last)),
        place._replace(file=place.file._replace(name="nothing.000001")),
        place._replace(file=place.file._replace(made=place.file.made - 1)),
        place._replace(file=place.file._replace(server=place.file.server + 1)),
    ]
    for one in (place, *wrong):
        made._places = dict.fromkeys(made._places, one)
        assert made._places
        assert told(made, middle, made.latest(), "id") == [("c", 2)]


def test_rows_are_kept_for_a_reader_that_is_slow(
    mysql: Cursor, url: str, table: str, set_global: Any
) -> None:
    mysql.execute(f"ALTER TABLE {table} ADD COLUMN b LONGBLOB")
    set_global("net_write_timeout", 1)
    made = feed(url, table, columns="id,b")
    begin = made.begin()
    for at in range(20):
        mysql.execute(f"INSERT INTO {table} VALUES ({at}, 1, '', REPEAT('x', 2000000))")
    (split,) = made.between(begin, made.latest())
    batches = made.read(split)
    found = len(next(batches))
    sleep(3)
    assert found + sum(map(len, batches)) == 20


def test_logs_that_are_purged_between_plan_and_read_are_told(
    mysql: Cursor, url: str, table: str
) -> None:
    made = feed(url, table)
    begin = made.begin()
    mysql.execute(f"INSERT INTO {table} VALUES (1, 1, '')")
    (split,) = made.between(begin, made.latest())
    mysql.execute("FLUSH BINARY LOGS")
    purge(mysql)
    with pytest.raises(UnreadLost, match="were purged before they were read"):
        list(feed(url, table).read(split))


def test_of_another_table_nothing_needs_to_be_known(
    mysql: Cursor, url: str, table: str, mysql_name: str, set_global: Any
) -> None:
    if mysql_name == "mysql":
        pytest.skip("it makes no columns of types that went long ago")
    set_global("mysql56_temporal_format", 0)
    mysql.execute(f"CREATE TABLE {table}_old (d DATETIME)")
    made = feed(url, table)
    begin = made.begin()
    mysql.execute(f"INSERT INTO {table}_old VALUES (NOW())")
    mysql.execute(f"INSERT INTO {table} VALUES (1, 1, '')")
    assert told(made, begin, made.latest(), "id") == [("c", 1)]


@pytest.fixture
def unnamed(set_global: Any) -> None:
    """A log without names of columns, as servers have it by default."""
    set_global("binlog_row_metadata", "MINIMAL")


@pytest.mark.usefixtures("unnamed")
def test_columns_without_names_are_told_by_place_until_the_table_is_altered(
    mysql: Cursor, url: str, table: str
) -> None:
    """Two columns of one type that change their names are not taken for each other."""
    made = feed(url, table)
    begin = made.begin()
    mysql.execute(f"INSERT INTO {table} VALUES (1, 2, 'ü')")
    end = made.latest()
    assert made.advance(begin, end, None) == end
    parts = made.between(begin, end)
    mysql.execute(f"ALTER TABLE {table} RENAME COLUMN n TO more, RENAME COLUMN id TO n")
    mysql.execute(f"INSERT INTO {table} VALUES (3, 4, '')")
    found = [row["n"] for part in parts for batch in made.read(part) for row in batch.to_pylist()]
    assert found == [2]
    for skipped in ({}, {"skipTransactions": _at(made, end)}):
        with pytest.raises(StoreRefused, match=r"can't be told that were logged before"):
            rows(feed(url, table, **skipped), begin, end)
    later = feed(url, table, skipTransactions=_at(made, end))
    assert told(later, end, later.latest(), "n", "more") == [("c", 3, 4)]


@pytest.mark.usefixtures("unnamed")
def test_without_names_a_query_goes_on_past_what_changes_no_column(
    mysql: Cursor, url: str, table: str
) -> None:
    made = feed(url, table)
    begin = made.begin()
    mysql.execute(f"INSERT INTO {table} VALUES (1, 1, '')")
    end = made.latest()
    mysql.execute(f"ALTER TABLE {table} ADD INDEX (n), COMMENT = 'a, b'")
    before = made.latest()
    mysql.execute("SET SESSION binlog_row_image = MINIMAL")
    mysql.execute(f"UPDATE {table} SET n = 2")
    mysql.execute("SET SESSION binlog_row_image = FULL")
    gap = between(made, before, made.latest())
    mysql.execute(f"INSERT INTO {table} VALUES (2, 2, '')")
    assert told(feed(url, table), begin, end, "id") == [("c", 1)]
    late = feed(url, table, skipTransactions=gap)
    assert told(late, begin, late.latest(), "id") == [("c", 1), ("c", 2)]


def _at(made: MySqlFeed, end: Position) -> str:
    """The transaction behind a position."""
    first = made.advance(end, made.latest(), 1)
    return between(made, end, first)


def test_a_checkpoint_of_another_table_is_refused(mysql: Cursor, url: str, table: str) -> None:
    """Or changes of the first table were missed while the other one was followed."""
    mysql.execute(f"CREATE TABLE {table}_other (id INT PRIMARY KEY)")
    one, other = Follower(feed(url, table)), Follower(feed(url, f"{table}_other"))
    first = one.end(one.beginning(), None)
    with pytest.raises(UnsupportedQuery, match=f"{table}, and the query follows .*{table}_other"):
        other.end(first, None)
    assert Follower(feed(url, table)).end(first, None) == first


def test_gtids_of_another_kind_of_server_are_refused(url: str, table: str, mysql_name: str) -> None:
    theirs = "0-1-5" if mysql_name == "mysql" else "3e11fa47-71ca-11e1-9e33-c80aa9429562:1-5"
    with pytest.raises(OptionError, match="which is no set of GTIDs of the server"):
        feed(url, table, startingPosition=theirs).begin()


@pytest.mark.parametrize("tolerance", ["true", "false"])
def test_a_checkpoint_of_another_kind_of_server_is_refused(
    url: str, table: str, mysql_name: str, tolerance: str
) -> None:
    """Or the whole log were given again: nothing of it is in such a checkpoint."""
    theirs = "0-1-5" if mysql_name == "mysql" else "3e11fa47-71ca-11e1-9e33-c80aa9429562:1-5"
    made, read = feed(url, table, failOnDataLoss=tolerance), {"gtids": theirs}
    with pytest.raises(StoreRefused, match="no set of GTIDs of the server"):
        made.advance(read, made.latest(), None)
    with pytest.raises(StoreRefused, match="no set of GTIDs of the server"):
        made.between(read, made.latest())


@pytest.mark.parametrize("tolerance", ["true", "false"])
def test_a_checkpoint_of_a_server_that_gave_nothing_to_this_one_is_refused(
    url: str, table: str, mysql_name: str, tolerance: str
) -> None:
    """Its own transactions may all be those that were read under other names."""
    theirs = "0-77-5" if mysql_name == "mariadb" else "3e11fa47-71ca-11e1-9e33-c80aa9429562:1-5"
    made = feed(url, table, failOnDataLoss=tolerance)
    wanted = "has never had" if tolerance == "true" else "can't be told"
    with pytest.raises(StoreError, match=wanted):
        made.advance({"gtids": theirs}, made.latest(), None)


def test_a_view_and_a_table_that_is_not_there_are_refused(
    mysql: Cursor, url: str, table: str
) -> None:
    mysql.execute(f"CREATE VIEW {table}_view AS SELECT * FROM {table}")
    with pytest.raises(StoreRefused, match=r"_view is a view"):
        feed(url, f"{table}_view")
    with pytest.raises(StoreRefused, match="There is no table"):
        feed(url, f"{table}_none")
    made = feed(url, table, pa.schema([("nn", pa.int32())]))
    at = made.begin()
    with pytest.raises(OptionError, match="Option columns names"):
        made.between(at, at)


# -- through Spark


def test_a_table_through_spark_is_another_table_in_the_end(
    spark: SparkSession, mysql: Cursor, url: str, table: str, tmp_path: Path
) -> None:
    """The stream fits the sink as it is; each run goes on where the one before it stopped."""
    mysql.execute(f"CREATE TABLE {table}_2 LIKE {table}")

    def run() -> list[dict[str, Any]]:
        stream = spark.readStream.format("mysql").options(url=url, dbtable=table)
        stream = stream.options(startingPosition="snapshot", maxRowsPerBatch="40")
        changes = stream.option("columns", "id,n,t").load()  # and `_op`
        sink = changes.writeStream.format("mysql").queryName(table)
        sink = sink.options(url=url, dbtable=f"{table}_2", key="id", opColumn="_op")
        query = sink.option("checkpointLocation", str(tmp_path)).trigger(availableNow=True).start()
        query.awaitTermination()
        return [one for one in query.recentProgress if one["numInputRows"]]

    def both() -> list[object]:
        found = []
        for name in (table, f"{table}_2"):
            mysql.execute(f"SELECT * FROM {name} ORDER BY id")
            found.append(mysql.fetchall())
        return found

    values = ", ".join(f"({at}, {at}, 'x{at}')" for at in range(100))
    mysql.execute(f"INSERT INTO {table} VALUES {values}")
    assert [one["numInputRows"] for one in run()] == [40, 40, 20]
    source, target = both()
    assert source == target
    for change in ("SET n = n + 1", "SET id = id + 1000 WHERE id < 10"):
        mysql.execute(f"UPDATE {table} {change}")
    mysql.execute(f"DELETE FROM {table} WHERE id BETWEEN 20 AND 60")
    mysql.execute(f"INSERT INTO {table} VALUES (20, 5, NULL)")
    second = run()
    assert [one["numInputRows"] for one in second] == [100, 61, 1]
    assert "transactionsBehind" in second[0]["sources"][0]["latestOffset"]
    source, target = both()
    assert source == target
