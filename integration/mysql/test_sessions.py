"""What a server gives its sessions changes nothing of what the connector stores."""

from __future__ import annotations

import json
from collections.abc import Callable
from decimal import Decimal
from itertools import product
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from integration.support.epochs import COUNTER, MySqlQuery
from integration.support.mysql import Private, Table, client
from integration.support.proxy import Proxy
from integration.support.servers.mysql import connect
from integration.support.servers.process import wait_until
from pymysql.constants import FIELD_TYPE
from pymysql.cursors import Cursor

from pyspark_mysql.server import settings
from sparkonce.errors import BadRow, OptionError, StoreRefused, StoreUnsafe

DATED = pa.schema([("id", pa.int64()), ("n", pa.int64()), ("day", pa.date32())])
HOSTILE = {
    "autocommit": 0,
    "completion_type": "'CHAIN'",
    "sql_mode": "'ANSI,NO_BACKSLASH_ESCAPES,NO_ZERO_DATE,NO_ZERO_IN_DATE'",
    "transaction_isolation": "'SERIALIZABLE'",
    "tx_isolation": "'SERIALIZABLE'",
    "sql_safe_updates": 1,
    "sql_select_limit": 1,
    "max_join_size": 1,
    "sql_auto_is_null": 1,
    "sql_notes": 0,
    "max_sort_length": 4,
    "unique_checks": 0,
    "foreign_key_checks": 0,
    "check_constraint_checks": 0,
    "system_versioning_asof": "'2001-01-01'",
    "max_recursive_iterations": 1,
    "cte_max_recursion_depth": 1,
    "max_execution_time": 5,
    "max_statement_time": 0.005,
    "div_precision_increment": 0,
    "group_concat_max_len": 4,
    "lc_time_names": "'de_DE'",
    "default_storage_engine": "'MyISAM'",
    "sql_quote_show_create": 0,
    "character_set_client": "'latin1'",
    "character_set_results": "'latin1'",
    "collation_connection": "'latin1_swedish_ci'",
}


@pytest.fixture
def hostile(private_mysql: Private) -> Callable[[str], str]:
    """Start a server with such settings; the URL of a user without rights to change any."""

    def hostile(init: str = "") -> str:
        server = private_mysql("--local-infile=1", f"--init-connect={init}")
        with client(server.url) as cursor:
            cursor.execute("CREATE DATABASE elsewhere")
            cursor.execute("CREATE USER app IDENTIFIED BY ''")
            cursor.execute("GRANT ALL ON sparkonce_test.* TO app")
            cursor.execute("GRANT ALL ON elsewhere.* TO app")
            cursor.execute("SHOW GLOBAL VARIABLES")
            known = {name for name, _ in cursor.fetchall()}
            if not init:
                for name, value in HOSTILE.items():
                    if name in known:
                        cursor.execute(f"SET GLOBAL {name} = {value}")
        return server.url.replace("root@", "app@")

    return hostile


def stored(url: str, table: str) -> set[tuple[Any, ...]]:
    with connect(url.replace("app@", "root@")) as client, client.cursor() as cursor:
        cursor.execute("SET sql_select_limit = 100, max_join_size = 1000000")
        cursor.execute(f"SELECT * FROM {table}")
        return set(cursor.fetchall())


def run(url: str, table: str, definition: str, schema: pa.Schema = COUNTER, **options: str) -> Any:
    with connect(url.replace("app@", "root@")) as client, client.cursor() as cursor:
        cursor.execute(f"CREATE TABLE {table} ({definition}) ENGINE=InnoDB")
    query = MySqlQuery(schema, url=url, dbtable=table, **options)
    query.sink.check()
    query.run(0, [{"id": 1, "n": 1}, {"id": 2, "n": 2}])
    query.run(1, [{"id": 2, "n": 3}, {"id": 3, "n": 4}])
    return query


@pytest.mark.parametrize(
    "init",
    ["", "SET autocommit=0", "SET autocommit=0, sql_mode='', time_zone='+03:00'", "BEGIN",
     "USE elsewhere"],
)  # fmt: skip
def test_rows_take_effect_once_and_at_once_whatever_the_sessions_begin_with(
    hostile: Callable[[str], str], init: str
) -> None:
    url = hostile(init)
    bits = pa.schema([("id", pa.int64()), ("n", pa.int64())])
    run(url, "upserted", "id BIGINT PRIMARY KEY, n BIT(9)", bits, key="id")
    assert stored(url, "upserted") == {(1, b"\0\1"), (2, b"\0\3"), (3, b"\0\4")}
    run(url, "appended", "id BIGINT, n BIGINT")
    assert stored(url, "appended") == {(1, 1), (2, 2), (2, 3), (3, 4)}
    made = run(url, "checked", "id BIGINT PRIMARY KEY, n BIGINT CHECK (n < 9)", key="id")
    with pytest.raises(BadRow, match="CHECK constraint"):
        made.run(2, [{"id": 4, "n": 9}])
    with connect(url.replace("app@", "root@")) as client, client.cursor() as cursor:
        cursor.execute("SET sql_big_selects = 1")
        cursor.execute("SELECT COUNT(*) FROM information_schema.innodb_trx")
        assert cursor.fetchone() == (0,)


def test_a_session_that_ignores_what_it_is_told_is_refused(
    table: Table, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As behind a proxy that keeps SET from the server."""
    table.create("id BIGINT, n BIGINT")
    with Proxy(table.url) as proxy, monkeypatch.context() as patched:
        patched.setattr(settings, "statement", lambda _: "SET @nothing = 1")
        with pytest.raises(StoreUnsafe, match=r"session has \w+=.* although the connector set"):
            table.query(COUNTER, url=proxy.url).sink.check()


ZEROS = "DATE NOT NULL DEFAULT '0000-00-00'"
DAYS = ("0000-00-00", "2024-02-00", "2024-02-31", "2024-02-03")


@pytest.mark.parametrize("kind", ["DATE", "DATETIME", "DATETIME(6)"])
def test_nulls_keep_leaves_dates_as_they_are(table: Table, kind: str) -> None:
    table.create(f"id BIGINT PRIMARY KEY, n BIGINT, day {kind} NULL")
    table.run("SET sql_mode = 'ALLOW_INVALID_DATES'")
    for number, day in enumerate(DAYS):
        table.run(f"INSERT INTO {table} VALUES ({number}, 0, %s)", values=(day,))
    schema = DATED if kind == "DATE" else DATED.set(2, pa.field("day", pa.timestamp("us")))
    query = table.query(schema, key="id", nulls="keep")
    query.run(0, [{"id": number, "n": 1, "day": None} for number in range(len(DAYS))])
    assert table.rows("n, LEFT(CONCAT(day), 10)", "id") == tuple((1, day) for day in DAYS)


@pytest.mark.parametrize("kind", ["ENUM('a', 'b')", "SET('a', 'b')", "CHAR(4)"])
def test_nulls_keep_leaves_what_the_server_would_not_take(table: Table, kind: str) -> None:
    """An ENUM holds '' where a session without strict mode wrote anything else."""
    table.run("SET sql_mode = ''")
    table.create(f"id BIGINT PRIMARY KEY, n BIGINT, kept {kind}")
    table.run(f"INSERT INTO {table} VALUES (1, 0, 'zz'), (2, 0, 'a')")
    shown = f"SELECT HEX(kept), kept + 0 FROM {table} ORDER BY id"
    before = table.run(shown)
    schema = COUNTER.append(pa.field("kept", pa.string()))
    query = table.query(schema, key="id", nulls="keep")
    query.run(0, [{"id": number, "n": number, "kept": None} for number in (1, 2, 3)])
    assert table.run(shown) == (*before, (None, None))
    assert table.rows("n", "id") == ((1,), (2,), (3,))


@pytest.mark.parametrize(
    "options",
    [{}, {"key": "id"}, {"key": "id", "opColumn": "op"}, {"key": "id,day", "writeMode": "delete"}],
)
def test_zero_dates_may_be_defaults(table: Table, options: dict[str, str]) -> None:
    table.run("SET sql_mode = ''")
    table.run(
        f"CREATE TABLE {table} (id BIGINT PRIMARY KEY, n BIGINT, day {ZEROS}, other {ZEROS},"
        " at TIMESTAMP NOT NULL DEFAULT '0000-00-00 00:00:00')"
    )
    schema = DATED.append(pa.field("op", pa.string())) if "opColumn" in options else DATED
    table.checked(schema, **options)
    lacking = schema.remove(2) if "day" not in options.get("key", "") else schema
    short = table.query(lacking, **options)
    short.run(0, [{"id": 2, "n": 1, "op": "u", "day": 19000}])
    zero = ("0000-00-00", "0000-00-00 00:00:00")
    assert table.run(f"SELECT CONCAT(other), CONCAT(at) FROM {table} WHERE id = 2") == (
        () if options.get("writeMode") == "delete" else (zero,)
    )


AT = "at TIMESTAMP(6) NULL"
INSTANT = pa.field("at", pa.timestamp("us", "UTC"))
MOMENT = 1730613599123456
"""In microseconds: a second before New York's clocks are set back."""

LOCAL = "TIMESTAMPDIFF(MINUTE, {}, CONVERT_TZ(UTC_TIMESTAMP(), '+00:00', @@GLOBAL.time_zone))"


@pytest.mark.parametrize("zone", ["-05:00", "+05:30", "-03:30", "SYSTEM"])
def test_a_table_computes_the_time_of_day_of_its_server(private_mysql: Private, zone: str) -> None:
    server = private_mysql(f"--default-time-zone={zone}")
    times = "DATETIME DEFAULT CURRENT_TIMESTAMP"
    made = f"made {times}, changed {times} ON UPDATE CURRENT_TIMESTAMP, noted DATETIME"
    with client(server.url) as cursor:
        for options, instants in product(
            ({}, {"key": "id"}, {"key": "id", "opColumn": "op"}), (False, True)
        ):
            cursor.execute(f"CREATE TABLE t (id BIGINT PRIMARY KEY, n BIGINT, {made}, {AT})")
            cursor.execute("CREATE TRIGGER tt BEFORE INSERT ON t FOR EACH ROW SET NEW.noted=NOW()")
            schema = (
                COUNTER.append(pa.field("op", pa.string())) if "opColumn" in options else COUNTER
            )
            schema = schema.append(INSTANT) if instants else schema
            query = MySqlQuery(schema, url=server.url, dbtable="t", **options)
            query.run(0, [{"id": 1, "n": 1, "op": "u", "at": MOMENT}])
            if options:
                query.run(1, [{"id": 1, "n": 2, "op": "u", "at": MOMENT}])
            ages = ", ".join(LOCAL.format(name) for name in ("made", "changed", "noted"))
            cursor.execute(f"SELECT {ages}, UNIX_TIMESTAMP(at) FROM t")
            moment = Decimal(MOMENT).scaleb(-6) if instants else None
            assert cursor.fetchall() == ((0, 0, 0, moment),), (options, instants)
            cursor.execute("DROP TABLE t")
        (zone,) = query.sink.store.session.run("SELECT @@time_zone")[0]
        assert zone == "+00:00"


@pytest.mark.parametrize("options", [{}, {"key": "id"}, {"key": "id", "nulls": "keep"}])
def test_an_instant_stays_what_it_is_in_an_hour_that_a_zone_has_twice_or_never(
    private_mysql: Private, monkeypatch: pytest.MonkeyPatch, options: dict[str, str]
) -> None:
    monkeypatch.setenv("TZ", "America/New_York")
    server = private_mysql("--default-time-zone=SYSTEM")
    hours = [1710054000 + 1800 * step for step in range(6)]
    hours += [1730608200 + 1800 * step for step in range(6)]
    schema = pa.schema([("id", pa.int64()), INSTANT])
    with client(server.url) as cursor:
        for table, computed in (("t", ""), ("c", ", made DATETIME DEFAULT CURRENT_TIMESTAMP")):
            cursor.execute(f"CREATE TABLE {table} (id BIGINT PRIMARY KEY, {AT}{computed})")
            query = MySqlQuery(schema, url=server.url, dbtable=table, **options)
            query.run(0, [{"id": hour, "at": hour * 1_000_000} for hour in hours])
            cursor.execute("SET time_zone = '+00:00'")
            cursor.execute(f"SELECT id, UNIX_TIMESTAMP(at) FROM {table} ORDER BY id")
            assert [(one, int(at)) for one, at in cursor.fetchall()] == [(h, h) for h in hours]


def test_a_row_with_an_instant_that_is_refused_is_a_letter_in_utc(private_mysql: Private) -> None:
    """Its table computes the time of day, so that rows are copied in the server's own."""
    server = private_mysql("--default-time-zone=+05:30")
    schema = pa.schema([("id", pa.int64()), INSTANT])
    with client(server.url) as cursor:
        cursor.execute(f"CREATE TABLE t (id BIGINT PRIMARY KEY, {AT}, made DATE DEFAULT (NOW()))")
        cursor.execute("INSERT INTO t (id) VALUES (3)")
        bad = {"onBadRow": "deadLetter", "deadLetter": "bad"}
        query = MySqlQuery(schema, url=server.url, dbtable="t", **bad)
        query.run(0, [{"id": number, "at": MOMENT} for number in range(9)])
        cursor.execute("SELECT COUNT(*), COUNT(at) FROM t")
        assert cursor.fetchall() == ((9, 8),)
        cursor.execute("SELECT row_data FROM bad")
        ((row,),) = cursor.fetchall()
        assert json.loads(row) == {"id": 3, "at": "2024-11-03T05:59:59.123456Z"}


@pytest.fixture
def reader(mysql: Cursor, unique: str) -> str:
    """A user of the test's own, whose password is `right`."""
    mysql.execute(f"CREATE USER {unique} IDENTIFIED BY 'right'")
    mysql.execute(f"GRANT ALL ON *.* TO {unique}")
    return unique


@pytest.fixture
def opened(mysql: Cursor, reader: str) -> Callable[[], int]:
    """How many connections that user has."""

    def opened() -> int:
        asked = f"SELECT COUNT(*) FROM information_schema.processlist WHERE user = '{reader}'"
        mysql.execute(asked)
        ((count,),) = mysql.fetchall()
        return int(count)

    return opened


@pytest.fixture
def logged_in(table: Table, reader: str, tmp_path: Path) -> MySqlQuery:
    secret = tmp_path / "secret"
    secret.write_text("right\n")
    url = table.url.replace("//root@", f"//{reader}@")
    options = {"key": "id", "writeMode": "increment", "createTable": "true"}
    return table.query(COUNTER, url=url, passwordFile=str(secret), **options)


def one_row() -> list[dict[str, int]]:
    return [{"id": 1, "n": 1}]


@pytest.mark.parametrize("wrong", [b"", b"\xff", None])
def test_a_password_that_can_not_be_read_for_a_moment_opens_no_connection(
    table: Table,
    logged_in: MySqlQuery,
    opened: Callable[[], int],
    tmp_path: Path,
    wrong: bytes | None,
) -> None:
    logged_in.sink.check()
    logged_in.run(0, one_row())
    logged_in.sink.store.session.pool.close_idle()
    wait_until(lambda: not opened(), 10, "idle connections to be closed")
    secret = tmp_path / "secret"
    secret.unlink() if wrong is None else secret.write_bytes(wrong)
    with pytest.raises(StoreRefused if wrong == b"" else OptionError):
        logged_in.sink.check()
    assert opened() == 0
    secret.write_text("right")
    logged_in.sink.check()
    logged_in.run(1, one_row())
    assert table.rows("n") == ((2,),)


def test_a_connection_whose_session_can_not_be_set_up_is_closed(
    logged_in: MySqlQuery, opened: Callable[[], int], monkeypatch: pytest.MonkeyPatch
) -> None:
    with monkeypatch.context() as patched:
        patched.setattr(settings, "MODE", "NO_SUCH_MODE")
        with pytest.raises(StoreRefused, match=r"sql_mode.*NO_SUCH_MODE") as refused:
            logged_in.sink.check()
        wait_until(lambda: not opened(), 10, "the connection to be closed")
        assert refused.value  # whose traceback would keep it open
    logged_in.sink.check()
    assert opened() == 1


def test_a_connection_whose_answer_was_not_read_to_the_end_is_closed(logged_in: MySqlQuery) -> None:
    session = logged_in.sink.store.session

    def fails(_: object) -> None:
        raise ValueError("a value that the client can't read")

    live = session.live
    live.connection.decoders |= dict.fromkeys([FIELD_TYPE.LONG, FIELD_TYPE.LONGLONG], fails)
    with pytest.raises(ValueError, match="can't read"):
        session.run("SELECT 1 UNION SELECT 2")
    assert not live.connection.open
    assert session.run("SELECT 3") == ((3,),)
