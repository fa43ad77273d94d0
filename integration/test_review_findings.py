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
WALL, INSTANT = pa.timestamp("us"), pa.timestamp("us", "UTC")
HALF = dt.datetime(2024, 1, 1, 0, 0, 0, 500_000)
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


KEYS = {
    "latin1 of a composite key": ("VARCHAR(9) CHARACTER SET latin1", STR, ["é", "c"]),
    "utf16 of a composite key": ("VARCHAR(9) CHARACTER SET utf16", STR, ["a", "c"]),
    "enum of a composite key": ("ENUM('é','c') CHARACTER SET latin1", STR, ["é", "c"]),
    "bytes in BIT": ("BIT(16)", BIN, [b"\1\2", b"\5"]),
    "padded bytes": ("BINARY(4)", BIN, [b"a", b"b"]),
    "fraction in DATETIME": ("DATETIME", WALL, [HALF]),
    "fraction in TIMESTAMP": ("TIMESTAMP", INSTANT, [HALF]),
    "fraction in TIME": ("TIME", pa.time64("us"), [dt.time(1, 2, 3, 500_000)]),
    "SET in another order": ("SET('a','b')", STR, ["b,a"]),
}


@pytest.mark.parametrize("case", KEYS)
def test_a03_delete_finds_the_rows_that_upsert_wrote_with_the_same_keys(
    create: Any, query: Make, stored: Any, case: str
) -> None:
    """A row constructor in MariaDB compares by other rules; and literals are not the column's."""
    column, kind, values = KEYS[case]
    create(f"k {column} NOT NULL, j INT NOT NULL, PRIMARY KEY (k, j)")
    rows = [{"k": value, "j": 1} for value in values]
    query({"k": kind, "j": INT}, key="k,j", writeMode="upsert").run(0, rows)
    assert len(stored()) == len(values)
    query({"k": kind, "j": INT}, key="k,j", writeMode="delete").run(0, rows)
    assert stored() == []


def test_a04_delete_by_a_char_key_with_a_space_behind_it(
    create: Any, query: Make, stored: Any, mysql_name: str
) -> None:
    collation = "utf8mb4_0900_bin" if mysql_name == "mysql" else "utf8mb4_nopad_bin"
    create(f"k CHAR(4) CHARACTER SET utf8mb4 COLLATE {collation} PRIMARY KEY, v INT")
    query({"k": STR, "v": INT}, key="k").run(0, [{"k": "a ", "v": 1}])
    query({"k": STR}, key="k", writeMode="delete").run(0, [{"k": "a "}])
    assert stored() == []


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


@pytest.mark.parametrize("sequence", [False, True])
def test_a11_key_that_is_renamed_in_case_only_gets_its_new_spelling(
    create: Any, query: Make, stored: Any, mysql: Cursor, table: str, sequence: bool
) -> None:
    """A change stream says it as delete Zoe, insert ZOE; one by one, ZOE is stored."""
    create("k VARCHAR(9) CHARACTER SET utf8mb4 COLLATE utf8mb4_general_ci PRIMARY KEY, v INT")
    mysql.execute(f"INSERT INTO {table} VALUES ('Zoe', 1)")
    columns = {"k": STR, "v": INT, "op": STR}
    options = {"opColumn": "op"}
    changes = [{"k": "Zoe", "op": "d"}, {"k": "ZOE", "v": 2, "op": "c"}]
    if sequence:
        mysql.execute(f"ALTER TABLE {table} ADD s INT")
        columns, options = {**columns, "s": INT}, {**options, "sequenceColumn": "s"}
        changes = [{**change, "s": number} for number, change in enumerate(changes)]
    query(columns, key="k", **options).run(0, changes)
    assert stored()[0][:2] == ("ZOE", 2)


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


def test_a15_row_that_let_go_of_a_parent_before_it_was_deleted_keeps_its_other_columns(
    create: Any, query: Make, stored: Any, mysql: Cursor, table: str
) -> None:
    """Deletes come first: the cascade takes the child, which is written anew with defaults."""
    create(
        f"id INT PRIMARY KEY, p INT, extra INT DEFAULT 7,"
        f" FOREIGN KEY (p) REFERENCES {table} (id) ON DELETE CASCADE"
    )
    mysql.execute(f"INSERT INTO {table} VALUES (5, NULL, 7), (9, 5, 42)")
    made = query({"id": INT, "p": INT, "op": STR}, key="id", opColumn="op")
    made.run(0, [{"id": 9, "op": "u"}, {"id": 5, "op": "d"}])
    assert stored() == [(9, None, 42)]


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


CHAINS = {
    "a unique value moves on": (
        "id INT PRIMARY KEY, x VARCHAR(9) UNIQUE",
        "(1, 'a'), (2, 'b')",
        [(2, "c", "u"), (1, "b", "u")],
        [(1, "b"), (2, "c")],
    ),
    "parent before child": (
        "id INT PRIMARY KEY, x INT, FOREIGN KEY (x) REFERENCES {0} (id)",
        "(7, NULL)",
        [(2, None, "c"), (1, 2, "c")],
        [(1, 2), (2, None), (7, None)],
    ),
    "child deleted before parent": (
        "id INT PRIMARY KEY, x INT, FOREIGN KEY (x) REFERENCES {0} (id)",
        "(1, NULL), (2, 1)",
        [(2, None, "d"), (1, None, "d")],
        [],
    ),
    "child lets go, parent deleted": (
        "id INT PRIMARY KEY, x INT, FOREIGN KEY (x) REFERENCES {0} (id)",
        "(5, NULL), (9, 5)",
        [(9, None, "u"), (5, None, "d")],
        [(9, None)],
    ),
}


@pytest.mark.parametrize("aside", [False, True])
@pytest.mark.parametrize("case", CHAINS)
def test_b02_an_epoch_does_what_its_rows_would_do_one_by_one(
    create: Any, query: Make, stored: Any, mysql: Cursor, table: str, case: str, aside: bool
) -> None:
    """Folded rows are written in the order of keys; with deadLetter a good row is put aside."""
    definition, before, changes, after = CHAINS[case]
    create(definition.format(table))
    mysql.execute(f"INSERT INTO {table} VALUES {before}")
    kind = STR if "VARCHAR" in definition else INT
    options = {"onBadRow": "deadLetter", "deadLetter": "review_bad"} if aside else {}
    made = query({"id": INT, "x": kind, "op": STR}, key="id", opColumn="op", **options)
    made.run(0, [{"id": id_, "x": x, "op": op} for id_, x, op in changes])
    assert stored() == after


@pytest.mark.parametrize("folded", [False, True])
def test_b03_an_epoch_that_takes_longer_than_the_time_out(
    create: Any, mysql_url: str, mysql: Cursor, table: str, stored: Any, folded: bool
) -> None:
    """Folded, one statement writes all of an epoch, and `timeout` bounds it.

    The error blames another session's lock: that of our own statement, which still runs. The
    trigger stands for a large epoch: with the defaults those are some millions of rows.
    """
    create("id INT PRIMARY KEY, v VARCHAR(200)")
    mysql.execute(
        f"CREATE TRIGGER {table}_t BEFORE INSERT ON {table} FOR EACH ROW SET @x = SLEEP(0.001)"
    )
    columns = {"id": INT, "v": STR, **({"op": STR} if folded else {})}
    options = {"opColumn": "op"} if folded else {}
    made = MySqlQuery(
        pa.schema(list(columns.items())), url=mysql_url, dbtable=table, key="id", timeout="2",
        **options,
    )  # fmt: skip
    made.sink.store.check()
    made.run(0, [{"id": i, "v": "x" * 150, "op": "c"} for i in range(3000)])
    assert len(stored()) == 3000


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


@pytest.mark.parametrize("name", ["sparkonce_new", "sparkonce_epoch"])
def test_c01_names_of_the_connectors_own_are_refused_at_start_or_work(
    mysql: Cursor, mysql_url: str, name: str
) -> None:
    mysql.execute(f"DROP TABLE IF EXISTS {name}")
    mysql.execute(f"CREATE TABLE {name} (id INT PRIMARY KEY, n INT)")
    try:
        schema = pa.schema([("id", INT), ("n", INT), ("op", STR)])
        made = MySqlQuery(schema, url=mysql_url, dbtable=name, key="id", opColumn="op")
        if name == "sparkonce_new":
            made = MySqlQuery(pa.schema([("id", INT), ("n", INT)]), url=mysql_url, dbtable=name,
                              key="id")  # fmt: skip
        try:
            made.sink.store.check()
        except SparkonceError:
            return
        assert made.run(0, [{"id": 1, "n": 1, "op": "c"}]).rows == 1
    finally:
        mysql.execute(f"DROP TABLE {name}")


def test_c02_collision_in_another_key_is_explained_whatever_the_case_of_names(
    create: Any, query: Make, mysql: Cursor, table: str
) -> None:
    create("id INT PRIMARY KEY, e INT NOT NULL UNIQUE")
    mysql.execute(f"INSERT INTO {table} VALUES (1, 10)")
    with pytest.raises(BadRow, match="another unique key"):
        query({"ID": INT, "E": INT}, key="ID").run(0, [{"ID": 2, "E": 10}])


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
