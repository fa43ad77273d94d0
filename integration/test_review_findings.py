"""Findings of an adversarial review: each test says what should be, and fails today.

Grouped by severity: rows lost, doubled or bent in silence; wedges; misleading errors.
"""

from __future__ import annotations

import datetime as dt
import os
import threading
from collections.abc import Callable, Iterator
from contextlib import suppress
from decimal import Decimal
from typing import Any
from urllib.parse import urlsplit

import pyarrow as pa
import pymysql
import pytest
from integration.epochs import MySqlQuery
from integration.servers.mysql import MySqlProcess, connect
from pymysql.cursors import Cursor

from pyspark_mysql.client import Session
from pyspark_mysql.connector import MySqlConnector
from pyspark_mysql.log import Log
from sparkonce.errors import BadRow, SparkonceError, StoreLostData

INT, STR, BIN = pa.int64(), pa.string(), pa.binary()
INSTANT = pa.timestamp("us", "UTC")
Make = Callable[..., MySqlQuery]
Private = Callable[..., MySqlProcess]


@pytest.fixture
def create(mysql: Cursor, table: str) -> Callable[[str], str]:
    """Makes the target."""

    def create(definition: str) -> str:
        mysql.execute(f"CREATE TABLE {table} ({definition})")
        return table

    return create


@pytest.fixture
def query(mysql_url: str, table: str) -> Make:
    """A checked query into the target, of these columns."""

    def query(columns: dict[str, pa.DataType], **options: str) -> MySqlQuery:
        made = MySqlQuery(
            pa.schema(list(columns.items())), url=mysql_url, dbtable=table, timeout="6", **options
        )
        made.sink.store.check()
        return made

    return query


@pytest.fixture
def stored(mysql: Cursor, table: str) -> Callable[[], list[tuple[Any, ...]]]:
    def stored() -> list[tuple[Any, ...]]:
        mysql.execute(f"SELECT * FROM {table} ORDER BY 1")
        return list(mysql.fetchall())

    return stored


@pytest.fixture
def load(mysql: Cursor) -> Iterator[Callable[[bool], None]]:
    """Switches LOAD DATA LOCAL on or off."""
    mysql.execute("SELECT @@GLOBAL.local_infile")
    before = mysql.fetchone()
    yield lambda on: mysql.execute(f"SET GLOBAL local_infile = {int(on)}")
    mysql.execute("SET GLOBAL local_infile = %s", before)


# -- A. rows lost, doubled or bent in silence


@pytest.mark.parametrize("mode", ["upsert", "increment"])
def test_a01_key_that_is_dropped_in_mid_query_is_refused(
    create: Any, query: Make, stored: Any, mysql: Cursor, table: str, mode: str
) -> None:
    """docs: "the target is altered in mid-query: the commit is refused". It doubles rows."""
    create("id INT PRIMARY KEY, n INT")
    made = query({"id": INT, "n": INT}, key="id", writeMode=mode)
    made.run(0, [{"id": 1, "n": 1}])
    mysql.execute(f"ALTER TABLE {table} DROP PRIMARY KEY")
    with pytest.raises(SparkonceError):
        made.run(1, [{"id": 1, "n": 2}])
    assert stored() == [(1, 1)]


def test_a02_column_that_is_narrowed_in_mid_query_is_refused(
    create: Any, query: Make, stored: Any, mysql: Cursor, table: str
) -> None:
    """1.75 becomes 2 in silence."""
    create("id INT PRIMARY KEY, n DECIMAL(10,2)")
    made = query({"id": INT, "n": pa.decimal128(10, 2)}, key="id")
    made.run(0, [{"id": 1, "n": Decimal("1.00")}])
    mysql.execute(f"ALTER TABLE {table} MODIFY n DECIMAL(10,0)")
    with pytest.raises(SparkonceError):
        made.run(1, [{"id": 2, "n": Decimal("1.75")}])


@pytest.mark.parametrize("loads", [False, True])
def test_a05_null_for_a_timestamp_that_is_not_null_is_refused(
    create: Any, query: Make, stored: Any, load: Any, loads: bool
) -> None:
    """LOAD DATA stores NOW() without a warning; so does MariaDB by INSERT."""
    load(loads)
    create("id INT, at TIMESTAMP NOT NULL DEFAULT CURRENT_TIMESTAMP")
    with pytest.raises(BadRow, match="at"):
        query({"id": INT, "at": INSTANT}).run(0, [{"id": 1, "at": None}])
    assert stored() == []


@pytest.mark.parametrize("op", [False, True])
def test_a06_null_never_replaces_a_stored_timestamp_by_now(
    create: Any, query: Make, stored: Any, op: bool
) -> None:
    """MariaDB: with nulls=keep a null overwrites what is stored with the time of day."""
    create("id INT PRIMARY KEY, at TIMESTAMP NOT NULL DEFAULT CURRENT_TIMESTAMP")
    columns = {"id": INT, "at": INSTANT, **({"op": STR} if op else {})}
    options = {"opColumn": "op"} if op else {}
    made = query(columns, key="id", nulls="keep", **options)
    made.run(0, [{"id": 1, "at": dt.datetime(2001, 1, 1), "op": "u"}])
    before = stored()
    with suppress(BadRow):
        made.run(1, [{"id": 1, "at": None, "op": "u"}])
    assert stored() == before


def test_a07_null_for_a_timestamp_where_the_server_has_the_old_defaults(
    private_mysql: Private,
) -> None:
    """explicit_defaults_for_timestamp=OFF is MariaDB's default up to 10.9; the session can set it."""
    server = private_mysql("--explicit-defaults-for-timestamp=OFF")
    with connect(server.url) as client, client.cursor() as cursor:
        cursor.execute("CREATE TABLE t (id INT PRIMARY KEY, at TIMESTAMP)")
        made = MySqlQuery(
            pa.schema([("id", INT), ("at", INSTANT)]), url=server.url, dbtable="t", key="id"
        )
        made.sink.store.check()
        with suppress(BadRow):
            made.run(0, [{"id": 1, "at": None}])
        cursor.execute("SELECT at FROM t")
        assert cursor.fetchall() in ((), ((None,),))


def test_a08_another_unique_key_is_seen_whatever_columns_the_user_may_see(
    create: Any, mysql_url: str, mysql: Cursor, table: str, stored: Any, unique: str
) -> None:
    """MariaDB shows only the columns one has a right to: row 2 overwrites row 1 and is lost."""
    create("id INT PRIMARY KEY, n INT, e INT NOT NULL DEFAULT 10 UNIQUE")
    mysql.execute(f"INSERT INTO {table} VALUES (1, 1, 10)")
    MySqlQuery(
        pa.schema([("id", INT), ("n", INT)]), url=mysql_url, dbtable=table, key="id"
    ).sink.store.check()
    host, database = urlsplit(mysql_url).hostname, urlsplit(mysql_url).path.strip("/")
    user = f"'{unique}'@'{host}'"
    mysql.execute(f"CREATE USER {user} IDENTIFIED BY 'p'")
    try:
        rights = "SELECT (id, n), INSERT (id, n), UPDATE (id, n)"
        mysql.execute(f"GRANT {rights} ON {database}.{table} TO {user}")
        for own in ("ledger", "log"):
            mysql.execute(
                f"GRANT SELECT, INSERT, UPDATE, DELETE ON {database}.sparkonce_{own} TO {user}"
            )
        url = mysql_url.replace("//" + urlsplit(mysql_url).netloc.rpartition("@")[0], f"//{unique}:p")
        made = MySqlQuery(pa.schema([("id", INT), ("n", INT)]), url=url, dbtable=table, key="id")
        with pytest.raises(SparkonceError):
            made.sink.store.check()
            made.run(0, [{"id": 2, "n": 5}])
        assert stored() == [(1, 1, 10)]
    finally:
        mysql.execute(f"DROP USER {user}")


BENT = {
    "a digit is an ENUM's index": ("ENUM('a','b')", STR, "2", False),
    "0 is an ENUM's error value": ("ENUM('a','b')", STR, "0", False),
    "a number is a SET's bits": ("SET('a','b')", STR, "3", False),
    "spaces beyond a VARCHAR": ("VARCHAR(2)", STR, "ab  ", False),
    "year 5 is 2005": ("YEAR", pa.int32(), 5, False),
    "year 99 is 1999": ("YEAR", pa.int32(), 99, False),
    "year 0, loaded, is 2000": ("YEAR", pa.int32(), 0, True),
    "decimals of DOUBLE(m,d)": ("DOUBLE(10,2)", pa.float64(), 1.239, False),
    "decimals of FLOAT(m,d)": ("FLOAT(10,1)", pa.float32(), 1.25, False),
    "a negative number in BIT(64)": ("BIT(64)", INT, -1, False),
    "a null in an auto-increment column": ("INT NOT NULL AUTO_INCREMENT UNIQUE", INT, None, False),
}


@pytest.mark.parametrize("case", BENT)
def test_a09_value_is_stored_as_given_or_refused(
    create: Any, query: Make, stored: Any, load: Any, case: str
) -> None:
    column, kind, value, loads = BENT[case]
    load(loads)
    create(f"id INT, v {column}")
    with suppress(SparkonceError):
        query({"id": INT, "v": kind}).run(0, [{"id": 1, "v": value}])
    assert stored() in ([], [(1, value)])


def test_a10_decimals_inside_json_are_exact_or_refused(
    create: Any, query: Make, mysql: Cursor, table: str
) -> None:
    """MySQL's JSON makes doubles of them; docs: "nothing is rounded, with one exception"."""
    create("id INT PRIMARY KEY, j JSON")
    kind = pa.struct([("d", pa.decimal128(38, 18))])
    value = Decimal("12345678901234567890.123456789012345678")
    with suppress(SparkonceError):
        query({"id": INT, "j": kind}, key="id").run(0, [{"id": 1, "j": {"d": value}}])
    mysql.execute(f"SELECT CAST(j AS CHAR) FROM {table}")
    found = mysql.fetchall()
    assert not found or str(value) in found[0][0]


def test_a12_dead_letters_in_a_table_without_transactions_are_refused(
    create: Any, query: Make, mysql: Cursor, table: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The engine of that table is never looked at; a retried transaction doubles them."""
    create("id INT PRIMARY KEY, n TINYINT")
    mysql.execute(
        f"CREATE TABLE {table}_bad (id BIGINT AUTO_INCREMENT PRIMARY KEY, sink VARCHAR(200),"
        " epoch BIGINT, target VARCHAR(255), reason TEXT, row_data LONGTEXT) ENGINE=MyISAM"
    )
    drop, failed = Log.drop, []

    def deadlock_once(*args: Any) -> None:
        if not failed:
            failed.append(1)
            raise pymysql.err.OperationalError(1213, "Deadlock found")
        drop(*args)

    monkeypatch.setattr(Log, "drop", deadlock_once)
    try:
        with suppress(SparkonceError):
            query(
                {"id": INT, "n": INT}, key="id", onBadRow="deadLetter", deadLetter=f"{table}_bad"
            ).run(0, [{"id": 1, "n": 300}])
        mysql.execute(f"SELECT COUNT(*) FROM {table}_bad")
        assert mysql.fetchone()[0] <= 1
    finally:
        mysql.execute(f"DROP TABLE {table}_bad")


def test_a13_ledger_without_transactions_is_refused(
    create: Any, query: Make, stored: Any, mysql: Cursor, unique: str,
    monkeypatch: pytest.MonkeyPatch,
) -> None:  # fmt: skip
    """As a restored dump or an old default engine may have left it: an epoch is lost."""
    create("id INT PRIMARY KEY, n INT")
    mysql.execute(f"CREATE DATABASE {unique}_l")
    for statement in MySqlConnector().ddl():
        mysql.execute(
            statement.replace("InnoDB", "MyISAM").replace("`sparkonce_", f"`{unique}_l`.`sparkonce_")
        )
    run, cut, last = Session._run, [], [""]

    def lose_one_commit(self: Session, live: Any, sql: Any, *args: Any) -> Any:
        if sql == "COMMIT" and last[0].startswith("UPDATE") and not cut:
            cut.append(1)
            run(self, live, "ROLLBACK")
            raise pymysql.err.OperationalError(2013, "Lost connection")
        last[0] = sql if isinstance(sql, str) else ""
        return run(self, live, sql, *args)

    try:
        with suppress(SparkonceError):
            made = query({"id": INT, "n": INT}, key="id", writeMode="increment",
                         ledgerSchema=f"{unique}_l", createTables="false")  # fmt: skip
            made.run(0, [{"id": 1, "n": 1}])
            monkeypatch.setattr(Session, "_run", lose_one_commit)
            made.run(1, [{"id": 1, "n": 1}])
            monkeypatch.setattr(Session, "_run", run)
            assert stored() == [(1, 2)]
    finally:
        monkeypatch.setattr(Session, "_run", run)
        mysql.execute(f"DROP DATABASE {unique}_l")


def test_a14_sequence_column_that_is_renamed_in_mid_query_is_refused(
    create: Any, query: Make, mysql: Cursor, table: str
) -> None:
    create("id INT PRIMARY KEY, n INT, s INT")
    made = query({"id": INT, "n": INT, "s": INT}, key="id", sequenceColumn="s")
    made.run(0, [{"id": 1, "n": 1, "s": 5}])
    mysql.execute(f"ALTER TABLE {table} RENAME COLUMN s TO s2")
    with pytest.raises(SparkonceError):
        made.run(1, [{"id": 1, "n": 2, "s": 6}])


def test_a16_whole_numbers_are_not_added_where_a_sum_is_rounded(
    create: Any, query: Make, mysql: Cursor, table: str
) -> None:
    """tinyint and smallint fit FLOAT: from 2 ** 24 on, each increment by 1 is lost in silence."""
    create("id INT PRIMARY KEY, n FLOAT")
    mysql.execute(f"INSERT INTO {table} VALUES (1, 16777216)")
    with suppress(SparkonceError):
        made = query({"id": INT, "n": pa.int8()}, key="id", writeMode="increment")
        made.run(0, [{"id": 1, "n": 1}] * 5)
        mysql.execute(f"SELECT n + 0e0 FROM {table}")
        assert mysql.fetchall() == ((16777221.0,),)


# -- B. wedges: refused or stuck for ever, though nothing is wrong


def test_b01_append_by_load_where_packets_are_small(private_mysql: Private) -> None:
    """MariaDB allows LOAD DATA by default: pieces of 256 KiB are larger than the packet."""
    server = private_mysql("--max-allowed-packet=64K", "--net-buffer-length=8K", "--local-infile=1")
    schema = pa.schema([("id", INT), ("s", STR)])
    made = MySqlQuery(
        schema, url=server.url, dbtable="t", writeMode="append", createTable="true", maxRetries="1"
    )
    made.sink.store.check()
    assert made.run(0, [{"id": i, "s": "x" * 100} for i in range(5000)]).rows == 5000


def test_b04_completion_type_chain(private_mysql: Private) -> None:
    """COMMIT AND CHAIN leaves a transaction open: what a task stages next is seen by nobody."""
    server = private_mysql("--completion-type=CHAIN", "--max-allowed-packet=64K",
                           "--net-buffer-length=8K")  # fmt: skip
    schema = pa.schema([("id", INT), ("s", BIN)])
    made = MySqlQuery(
        schema, url=server.url, dbtable="t", key="id", createTable="true", chunkRows="8"
    )
    made.sink.store.check()
    # The first chunk is larger than a packet: its pieces are a transaction. The second is not.
    rows = [{"id": i, "s": os.urandom(8000)} for i in range(8)] + [{"id": 8, "s": b""}]
    receipts: list[Any] = []
    staged, over = threading.Event(), threading.Event()

    def task() -> None:
        receipts.extend(made.stage(0, rows))
        staged.set()
        over.wait(30)

    thread = threading.Thread(target=task)
    thread.start()
    assert staged.wait(30)
    try:
        assert made.commit(0, receipts).rows == 9
    finally:
        over.set()
        thread.join()


REFUSALS = {
    "a generated column divides by zero": ("n INT, g INT AS (10 / n) STORED", None, 0),
    "a CHECK divides by zero": ("n INT, CHECK (10 / n > 0)", None, 0),
    "a trigger's own number": (
        "n INT",
        "IF NEW.n = 13 THEN SIGNAL SQLSTATE '45000'"
        " SET MYSQL_ERRNO = 30001, MESSAGE_TEXT = 'unlucky'; END IF",
        13,
    ),
}


@pytest.mark.parametrize("case", REFUSALS)
def test_b05_row_that_is_refused_by_any_number_is_named_and_may_go_aside(
    create: Any, query: Make, stored: Any, mysql: Cursor, table: str, case: str
) -> None:
    definition, trigger, value = REFUSALS[case]
    create(f"id INT PRIMARY KEY, {definition}")
    if trigger:
        mysql.execute(
            f"CREATE TRIGGER {table}_t BEFORE INSERT ON {table} FOR EACH ROW BEGIN {trigger}; END"
        )
    rows = [{"id": 1, "n": value}, {"id": 2, "n": 1}]
    with pytest.raises(SparkonceError, match="id=1"):
        query({"id": INT, "n": INT}, key="id").run(0, rows)
    options = {"onBadRow": "deadLetter", "deadLetter": "review_bad"}
    query({"id": INT, "n": INT}, key="id", **options).run(0, rows)
    assert [row[0] for row in stored()] == [2]


@pytest.mark.parametrize("index", ["UNSIGNED ARRAY", "CHAR(3) ARRAY"])
def test_b06_row_that_an_index_over_json_refuses_is_named(
    create: Any, query: Make, mysql_name: str, index: str
) -> None:
    if mysql_name != "mysql":
        pytest.skip("MariaDB has no such indexes")
    create(f"id INT PRIMARY KEY, j JSON, INDEX f ((CAST(j->'$.a' AS {index})))")
    with pytest.raises(BadRow, match="id=1"):
        query({"id": INT, "j": STR}, key="id").run(0, [{"id": 1, "j": '{"a": ["xxxx"]}'}])


def test_b07_offline_mode_is_waited_for(private_mysql: Private, mysql_name: str) -> None:
    if mysql_name != "mysql":
        pytest.skip("MariaDB has no offline mode")
    server = private_mysql()
    with connect(server.url) as client, client.cursor() as cursor:
        cursor.execute("CREATE USER plain@'127.0.0.1' IDENTIFIED BY 'p'")
        cursor.execute("GRANT ALL ON sparkonce_test.* TO plain@'127.0.0.1'")
        url = server.url.replace("root@", "plain:p@")
        schema = pa.schema([("id", INT)])
        made = MySqlQuery(schema, url=url, dbtable="t", writeMode="append", createTable="true",
                          maxRetries="8")  # fmt: skip
        made.sink.store.check()
        receipts = made.stage(0, [{"id": 1}])
        cursor.execute("SET GLOBAL offline_mode = ON")
        back = threading.Timer(0.3, lambda: connect(server.url).query("SET GLOBAL offline_mode = OFF"))
        back.start()
        try:
            # Patience here is 10, 20, 40 ms: what matters is the kind of the last error.
            with suppress(ConnectionError):
                made.commit(0, receipts)
        except SparkonceError as error:
            assert type(error).__name__ == "StoreUnreachable", str(error)  # noqa: PT017
        finally:
            back.join()


def test_b08_largest_float(create: Any, query: Make, stored: Any) -> None:
    """The shortest text of FLT_MAX is above it, and FLOAT refuses it. (Issue 5, point 3: edges.)"""
    create("id INT PRIMARY KEY, x FLOAT")
    query({"id": INT, "x": pa.float32()}, key="id").run(0, [{"id": 1, "x": 3.4028234663852886e38}])
    assert len(stored()) == 1


# -- C. errors that mislead, and small things


def test_c03_row_larger_than_a_packet_is_refused_by_load_too(
    private_mysql: Private,
) -> None:
    """docs: "a single row that is larger is refused"; whether it is depends on local_infile."""
    server = private_mysql("--max-allowed-packet=1M", "--local-infile=1")
    schema = pa.schema([("id", INT), ("s", STR)])
    made = MySqlQuery(schema, url=server.url, dbtable="t", writeMode="append", createTable="true")
    made.sink.store.check()
    with pytest.raises(BadRow, match="max_allowed_packet"):
        made.run(0, [{"id": 1, "s": "x" * 3_000_000}])


def test_c04_piece_of_a_decided_chunk_that_is_gone_is_data_that_is_lost(
    create: Any, query: Make, mysql: Cursor, table: str
) -> None:
    """atomicity=chunk does not compare sizes: zlib.error comes out of the connector."""
    create("id INT PRIMARY KEY, n TINYINT")
    mysql.execute(f"INSERT INTO {table} VALUES (0, 127)")
    made = query({"id": INT, "n": INT}, key="id", writeMode="increment", atomicity="chunk")
    rows = [{"id": i, "n": 1} for i in range(100)]
    with pytest.raises(SparkonceError):
        made.run(0, rows)
    mysql.execute(
        "UPDATE sparkonce_log SET payload = LEFT(payload, LENGTH(payload) DIV 2)"
        f" WHERE sink = '{made.name}'"
    )
    with pytest.raises(StoreLostData):
        made.run(0, rows)


def test_c05_sql_select_limit(private_mysql: Private) -> None:
    """What the connector looks up of itself is cut: "column n is not in the table"."""
    server = private_mysql("--init-connect=SET sql_select_limit = 1")
    with connect(server.url) as client, client.cursor() as cursor:
        cursor.execute("CREATE USER plain@'127.0.0.1' IDENTIFIED BY 'p'")
        cursor.execute("GRANT ALL ON sparkonce_test.* TO plain@'127.0.0.1'")
        cursor.execute("CREATE TABLE t (id INT PRIMARY KEY, n INT)")
    url = server.url.replace("root@", "plain:p@")
    made = MySqlQuery(pa.schema([("id", INT), ("n", INT)]), url=url, dbtable="t", key="id")
    made.sink.store.check()
    assert made.run(0, [{"id": 1, "n": 1}]).rows == 1


def test_c06_system_versioned_table_says_what_it_is_refused_for(
    mysql: Cursor, mysql_url: str, table: str, mysql_name: str
) -> None:
    """It is a base table, of InnoDB; the error says "name the base table"."""
    if mysql_name != "mariadb":
        pytest.skip("only MariaDB has such tables")
    mysql.execute(f"CREATE TABLE {table} (id INT PRIMARY KEY, n INT) WITH SYSTEM VERSIONING")
    made = MySqlQuery(pa.schema([("id", INT), ("n", INT)]), url=mysql_url, dbtable=table, key="id")
    try:
        made.sink.store.check()
    except SparkonceError as error:
        assert "name the base table" not in str(error)  # noqa: PT017
