"""`spark.readStream.format("mysql")`: changes of a table, by sets of transactions."""

from __future__ import annotations

from datetime import datetime, timezone
from pathlib import Path
from time import sleep
from typing import Any

import pytest
from integration.support.mysql import Table, between, changes, client, each_epoch, feed, purge, rows
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


@pytest.fixture
def table(table: Table) -> Table:
    table.create("id INT PRIMARY KEY, n INT, t VARCHAR(20)")
    return table


def test_what_transactions_did_comes_in_their_order(table: Table) -> None:
    made, begin = table.follow()
    table.run(f"INSERT INTO {table} VALUES (1, 10, 'a'), (2, 20, NULL)")
    middle = made.latest()
    table.run(f"UPDATE {table} SET n = n + 1", f"UPDATE {table} SET id = 3 WHERE id = 2")
    table.run(f"DELETE FROM {table} WHERE id = 1")
    end = made.latest()
    table.run(f"INSERT INTO {table} VALUES (9, 9, 'later')")
    first = [("c", 1, 10, "a"), ("c", 2, 20, None)]
    second = [("u", 1, 11, "a"), ("u", 2, 21, None)]
    second += [("d", 2, 21, None), ("c", 3, 21, None), ("d", 1, 11, "a")]
    columns = ("id", "n", "t")
    assert changes(made, begin, middle, *columns) == first
    assert changes(made, middle, end, *columns) == second
    assert changes(made, begin, end, *columns) == first + second
    assert changes(made, begin, end, *columns) == first + second
    assert made.behind(begin, end) == 4


def test_a_row_says_which_transaction_changed_it_and_when(table: Table) -> None:
    made = table.feed()
    begin, before = made.begin(), datetime.now(timezone.utc)
    with client(table.url, autocommit=False) as writer:
        writer.execute(f"INSERT INTO {table} VALUES (1, 1, '')")
        writer.execute(f"INSERT INTO {table} VALUES (2, 1, '')")
        writer.connection.commit()
    table.run(f"INSERT INTO {table} VALUES (3, 1, '')")
    found = rows(made, begin)
    one, two, three = (row["_gtid"] for row in found)
    assert one == two != three
    assert table.feed(startingPosition=one).begin() == {"gtids": one}
    assert all(-1 < (row["_ts"] - before).total_seconds() < 60 for row in found)


def test_before_is_what_a_row_was(table: Table) -> None:
    table.run(f"INSERT INTO {table} VALUES (1, 1, 'a')")
    made, begin = table.follow(columns="id,_op,_before")
    table.run(f"UPDATE {table} SET n = 2, t = 'b'", f"UPDATE {table} SET id = 2")
    table.run(f"DELETE FROM {table}", f"INSERT INTO {table} VALUES (3, 3, NULL)")
    found = changes(made, begin, None, "id", "_before")
    assert found == [
        ("u", 1, {"id": 1, "n": 1, "t": "a"}),
        ("d", 1, {"id": 1, "n": 2, "t": "b"}),
        ("c", 2, None),
        ("d", 2, {"id": 2, "n": 2, "t": "b"}),
        ("c", 3, None),
    ]


def test_an_epoch_ends_with_a_transaction(table: Table) -> None:
    made, begin = table.follow()
    for size in (3, 1, 5, 2):
        values = ", ".join(f"({size * 10 + at}, 0, '')" for at in range(size))
        table.run(f"INSERT INTO {table} VALUES {values}")
    assert [len(rows(made, *epoch)) for epoch in each_epoch(made, begin, 4)] == [4, 5, 2]


def test_transactions_of_other_tables_make_no_epoch_for_a_while(
    table: Table, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A sink in the same server writes its ledger there, after each epoch."""
    made, begin = table.follow()
    table.run(f"CREATE TABLE {table}_other (id INT)")
    for _ in range(3):
        table.run(f"INSERT INTO {table}_other VALUES (1)")
        for most in (None, 10):
            assert made.advance(begin, made.latest(), most) == begin
    table.run(f"INSERT INTO {table} VALUES (1, 1, '')")
    for most in (None, 10):
        assert changes(made, begin, made.advance(begin, made.latest(), most), "id") == [("c", 1)]
    begin = made.latest()
    table.run(f"INSERT INTO {table}_other VALUES (1)")
    assert made.advance(begin, made.latest(), None) == begin
    monkeypatch.setattr("pyspark_mysql.follow.log_feed.QUIET_SECONDS", -1)
    assert made.advance(begin, made.latest(), None) == made.latest()


def test_logs_that_were_purged_are_told_with_their_transactions(table: Table) -> None:
    made, begin = table.follow()
    table.run(f"INSERT INTO {table} VALUES (1, 1, '')", "FLUSH BINARY LOGS")
    kept = made.latest()
    table.run(f"INSERT INTO {table} VALUES (2, 2, '')")
    purge(table.client)
    end = made.latest()
    assert changes(made, kept, end, "id") == [("c", 2)]
    with pytest.raises(
        UnreadLost, match=f"purged transactions {between(made, begin, kept)} before"
    ):
        made.between(begin, end)
    with pytest.raises(UnreadLost, match="purged"):
        made.advance(begin, end, 10)
    tolerant = table.feed(failOnDataLoss="false")
    assert changes(tolerant, begin, end, "id") == [("c", 2)]


def test_a_server_that_lacks_what_was_read_is_waited_for(table: Table, mysql_name: str) -> None:
    made, begin = table.follow()
    table.run(f"INSERT INTO {table} VALUES (1, 1, '')")
    end = made.latest()
    more = "0-1-900000" if mysql_name == "mariadb" else "3e11fa47-71ca-11e1-9e33-c80aa9429562:7"
    beyond = made._gtids(end["gtids"]).joined(more)
    for after, upto in ((begin, {"gtids": beyond}), ({"gtids": beyond}, end)):
        with pytest.raises(StoreUnreachable, match="has never had transactions"):
            made.between(after, upto)
    tolerant = table.feed(failOnDataLoss="false")
    assert changes(tolerant, begin, {"gtids": beyond}, "id") == [("c", 1)]


def test_a_transaction_larger_than_memory_waits_on_disk(
    table: Table, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("pyspark_mysql.binlog.reader.IN_MEMORY", 5000)
    made, begin = table.follow()
    for first in (0, 2000):
        many = ", ".join(f"({one}, 1, 'x')" for one in range(first, first + 2000))
        table.run(f"INSERT INTO {table} VALUES {many}")
    assert changes(made, begin, None, "id") == [("c", one) for one in range(4000)]


def test_a_look_begins_where_the_last_one_ended(
    table: Table, set_global: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """So the server need not search its log from the beginning, of which it sends nothing."""
    asked, ask = list[str](), request._ask

    def counted(live: Any, after: str, file: str, at: int) -> None:
        asked.append("in a file" if file else "anywhere")
        ask(live, after, file, at)

    monkeypatch.setattr(request, "_ask", counted)
    set_global("binlog_row_metadata", "FULL")
    table.run(f"CREATE TABLE {table}_o (id INT)")
    made = table.feed()
    at, found = made.begin(), list[Any]()
    for number in range(4):
        table.run(f"INSERT INTO {table} VALUES ({number}, 1, '')")
        table.run(f"INSERT INTO {table}_o VALUES (1)")
        if number == 2:
            table.run("FLUSH BINARY LOGS")
        end = made.advance(at, made.latest(), None)
        (split,) = made.between(at, end)
        reader = table.feed(made.schema)
        found += [one for batch in reader.read(split) for one in batch["id"].to_pylist()]
        table.run(f"INSERT INTO {table}_o VALUES (1)")
        assert made.advance(end, made.latest(), None) == end
        at = end
    assert found == [0, 1, 2, 3]
    assert asked == ["anywhere", "anywhere"] + ["in a file"] * 10


def test_a_place_that_another_transaction_has_is_not_believed(
    table: Table, mysql_name: str
) -> None:
    made, begin = table.follow()
    for number in range(3):
        table.run(f"INSERT INTO {table} VALUES ({number}, 1, '')")
    middle = made.advance(begin, made.latest(), 2)
    (place,) = made._places.values()
    table.run("FLUSH BINARY LOGS")
    last = table.run("SHOW BINARY LOGS")[-1][0]
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
        assert changes(made, middle, None, "id") == [("c", 2)]


def test_rows_are_kept_for_a_reader_that_is_slow(table: Table, set_global: Any) -> None:
    table.run(f"ALTER TABLE {table} ADD COLUMN b LONGBLOB")
    set_global("net_write_timeout", 1)
    made, begin = table.follow(columns="id,b")
    for at in range(20):
        table.run(f"INSERT INTO {table} VALUES ({at}, 1, '', REPEAT('x', 2000000))")
    (split,) = made.between(begin, made.latest())
    batches = made.read(split)
    found = len(next(batches))
    sleep(3)
    assert found + sum(map(len, batches)) == 20


def test_logs_that_are_purged_between_plan_and_read_are_told(table: Table) -> None:
    made, begin = table.follow()
    table.run(f"INSERT INTO {table} VALUES (1, 1, '')")
    (split,) = made.between(begin, made.latest())
    table.run("FLUSH BINARY LOGS")
    purge(table.client)
    with pytest.raises(UnreadLost, match=r"purged transactions .* before the query read them"):
        list(table.feed().read(split))


def test_of_another_table_nothing_needs_to_be_known(
    table: Table, mysql_name: str, set_global: Any
) -> None:
    if mysql_name == "mysql":
        pytest.skip("it makes no columns of types that went long ago")
    set_global("mysql56_temporal_format", 0)
    table.run(f"CREATE TABLE {table}_old (d DATETIME)")
    made, begin = table.follow()
    table.run(f"INSERT INTO {table}_old VALUES (NOW())", f"INSERT INTO {table} VALUES (1, 1, '')")
    assert changes(made, begin, None, "id") == [("c", 1)]


@pytest.fixture
def unnamed(set_global: Any) -> None:
    """A log without names of columns, as servers have it by default."""
    set_global("binlog_row_metadata", "MINIMAL")


@pytest.mark.usefixtures("unnamed")
def test_columns_without_names_are_told_by_place_until_the_table_is_altered(table: Table) -> None:
    """Two columns of one type that change their names are not taken for each other."""
    made, begin = table.follow()
    table.run(f"INSERT INTO {table} VALUES (1, 2, 'ü')")
    end = made.latest()
    assert made.advance(begin, end, None) == end
    parts = made.between(begin, end)
    table.run(f"ALTER TABLE {table} RENAME COLUMN n TO more, RENAME COLUMN id TO n")
    table.run(f"INSERT INTO {table} VALUES (3, 4, '')")
    found = [row["n"] for part in parts for batch in made.read(part) for row in batch.to_pylist()]
    assert found == [2]
    for skipped in ({}, {"skipTransactions": _at(made, end)}):
        with pytest.raises(StoreRefused, match=r"are unreadable if they were logged before"):
            rows(table.feed(**skipped), begin, end)
    later = table.feed(skipTransactions=_at(made, end))
    assert changes(later, end, None, "n", "more") == [("c", 3, 4)]


@pytest.mark.usefixtures("unnamed")
def test_without_names_a_query_goes_on_past_what_changes_no_column(table: Table) -> None:
    made, begin = table.follow()
    table.run(f"INSERT INTO {table} VALUES (1, 1, '')")
    end = made.latest()
    table.run(f"ALTER TABLE {table} ADD INDEX (n), COMMENT = 'a, b'")
    before = made.latest()
    table.run("SET SESSION binlog_row_image = MINIMAL", f"UPDATE {table} SET n = 2")
    table.run("SET SESSION binlog_row_image = FULL")
    gap = between(made, before, made.latest())
    table.run(f"INSERT INTO {table} VALUES (2, 2, '')")
    assert changes(table.feed(), begin, end, "id") == [("c", 1)]
    late = table.feed(skipTransactions=gap)
    assert changes(late, begin, None, "id") == [("c", 1), ("c", 2)]


def _at(made: MySqlFeed, end: Position) -> str:
    """The transaction behind a position."""
    first = made.advance(end, made.latest(), 1)
    return between(made, end, first)


def test_a_checkpoint_of_another_table_is_refused(table: Table) -> None:
    """Or changes of the first table were missed while the other one was followed."""
    table.run(f"CREATE TABLE {table}_other (id INT PRIMARY KEY)")
    one, other = Follower(table.feed()), Follower(feed(table.url, f"{table}_other"))
    first = one.end(one.beginning(), None)
    with pytest.raises(UnsupportedQuery, match=f"{table}, and the query follows .*{table}_other"):
        other.end(first, None)
    assert Follower(table.feed()).end(first, None) == first


def test_gtids_of_another_kind_of_server_are_refused(table: Table, mysql_name: str) -> None:
    theirs = "0-1-5" if mysql_name == "mysql" else "3e11fa47-71ca-11e1-9e33-c80aa9429562:1-5"
    with pytest.raises(OptionError, match="which is not a GTID set of the server"):
        table.feed(startingPosition=theirs).begin()


@pytest.mark.parametrize("tolerance", ["true", "false"])
def test_a_checkpoint_of_another_kind_of_server_is_refused(
    table: Table, mysql_name: str, tolerance: str
) -> None:
    """Or the whole log were given again: nothing of it is in such a checkpoint."""
    theirs = "0-1-5" if mysql_name == "mysql" else "3e11fa47-71ca-11e1-9e33-c80aa9429562:1-5"
    made, read = table.feed(failOnDataLoss=tolerance), {"gtids": theirs}
    with pytest.raises(StoreRefused, match="not a GTID set of the server"):
        made.advance(read, made.latest(), None)
    with pytest.raises(StoreRefused, match="not a GTID set of the server"):
        made.between(read, made.latest())


@pytest.mark.parametrize("tolerance", ["true", "false"])
def test_a_checkpoint_of_a_server_that_gave_nothing_to_this_one_is_refused(
    table: Table, mysql_name: str, tolerance: str
) -> None:
    """Its own transactions may all be those that were read under other names."""
    theirs = "0-77-5" if mysql_name == "mariadb" else "3e11fa47-71ca-11e1-9e33-c80aa9429562:1-5"
    made = table.feed(failOnDataLoss=tolerance)
    wanted = "has never had" if tolerance == "true" else "is unknown"
    with pytest.raises(StoreError, match=wanted):
        made.advance({"gtids": theirs}, made.latest(), None)


# -- through Spark


def test_a_table_through_spark_is_another_table_in_the_end(
    spark: SparkSession, table: Table, tmp_path: Path
) -> None:
    """The stream fits the sink as it is; each run goes on where the one before it stopped."""
    table.run(f"CREATE TABLE {table}_2 LIKE {table}")

    def run() -> list[dict[str, Any]]:
        stream = spark.readStream.format("mysql").options(url=table.url, dbtable=table)
        stream = stream.options(startingPosition="snapshot", maxRowsPerBatch="40")
        changes = stream.option("columns", "id,n,t").load()  # and `_op`
        sink = changes.writeStream.format("mysql").queryName(table)
        sink = sink.options(url=table.url, dbtable=f"{table}_2", key="id", opColumn="_op")
        query = sink.option("checkpointLocation", str(tmp_path)).trigger(availableNow=True).start()
        query.awaitTermination()
        return [one for one in query.recentProgress if one["numInputRows"]]

    def both() -> list[object]:
        found = []
        for name in (table, f"{table}_2"):
            found.append(table.run(f"SELECT * FROM {name} ORDER BY id"))
        return found

    values = ", ".join(f"({at}, {at}, 'x{at}')" for at in range(100))
    table.run(f"INSERT INTO {table} VALUES {values}")
    assert [one["numInputRows"] for one in run()] == [40, 40, 20]
    source, target = both()
    assert source == target
    for change in ("SET n = n + 1", "SET id = id + 1000 WHERE id < 10"):
        table.run(f"UPDATE {table} {change}")
    table.run(f"DELETE FROM {table} WHERE id BETWEEN 20 AND 60")
    table.run(f"INSERT INTO {table} VALUES (20, 5, NULL)")
    second = run()
    assert [one["numInputRows"] for one in second] == [100, 61, 1]
    assert "transactionsBehind" in second[0]["sources"][0]["latestOffset"]
    source, target = both()
    assert source == target
