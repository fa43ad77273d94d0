"""What is checked before any row, how one logs in, and that the documented rights suffice."""

from __future__ import annotations

import re
from contextlib import suppress
from pathlib import Path

import pyarrow as pa
import pytest
from click.testing import CliRunner
from integration.support.environments import make_certificate
from integration.support.epochs import COUNTER, MySqlQuery
from integration.support.mysql import Private, Table, client, queries_of
from integration.support.proxy import Proxy
from pymysql.cursors import Cursor

from sparkonce.errors import OptionError, SparkonceError, StoreRefused, StoreUnsafe
from sparkonce.operate.cli import main
from sparkonce.protocol import Chunk

DOCS = Path(__file__).parents[2] / "docs"


def query(url: str, table: str, **options: str) -> MySqlQuery:
    return MySqlQuery(COUNTER, url=url, dbtable=table, **options)


TABLES = {
    "no table": (None, {}, "Table .* does not exist.* createTable=true"),
    "no column": ("id BIGINT, nn BIGINT", {}, "'n' of the query is not in the table.*mean 'nn'"),
    "no value": ("id BIGINT, n BIGINT, w INT NOT NULL", {}, "column 'w' of type int.* gets no"),
    "no key": ("id BIGINT, n BIGINT", {"key": "id"}, "is not a unique key of the table"),
    "other key": ("id BIGINT, n BIGINT UNIQUE", {"key": "id"}, r"the table has n \(n\)"),
    "longer key": ("id BIGINT, n BIGINT, PRIMARY KEY (id, n)", {"key": "id"}, r"PRIMARY \(id, n\)"),
    "several keys": (
        "id BIGINT, n BIGINT, m INT UNIQUE, PRIMARY KEY (id, n), UNIQUE u (n)",
        {"key": "id"},
        "is not a unique key",
    ),
    "several, and the named one may be null": (
        "id BIGINT UNIQUE, n BIGINT PRIMARY KEY",
        {"key": "id"},
        "may be null, and the table has several unique keys",
    ),
}


@pytest.mark.parametrize("case", TABLES)
def test_target_that_does_not_fit_is_refused(table: Table, case: str) -> None:
    definition, options, said = TABLES[case]
    if definition:
        table.create(f"{definition}")
    with pytest.raises(OptionError, match=said):
        query(table.url, table, **options).sink.check()


def test_prefix_of_a_column_is_no_key(table: Table) -> None:
    table.create("id VARCHAR(20), n BIGINT, UNIQUE u (id(3))")
    schema = pa.schema([("id", pa.string()), ("n", pa.int64())])
    with pytest.raises(OptionError, match="is not a unique key"):
        table.query(schema, key="id").sink.check()


def test_engine_without_transactions_is_refused(table: Table) -> None:
    table.run(f"CREATE TABLE {table} (id BIGINT, n BIGINT) ENGINE=MyISAM")
    with pytest.raises(StoreUnsafe, match=r"has the engine MyISAM.*ALTER TABLE .* ENGINE=InnoDB"):
        query(table.url, table).sink.check()


def test_view_is_refused(table: Table) -> None:
    table.run(f"CREATE VIEW {table}_v AS SELECT 1 AS id, 2 AS n")
    with pytest.raises(OptionError, match="is a view"):
        query(table.url, f"{table}_v").sink.check()


def test_what_was_checked_is_looked_at_by_two_queries_before_each_epoch(
    mysql_proxy: Proxy, table: Table
) -> None:
    table.create("id BIGINT, n BIGINT")
    sink = query(mysql_proxy.url, table).sink
    sink.check()
    assert queries_of(mysql_proxy, sink.check) == 2
    table.run(f"ALTER TABLE {table} DROP n")
    with pytest.raises(OptionError, match="'n' of the query is not in the table"):
        sink.check()
    table.run(f"ALTER TABLE {table} ADD n BIGINT")
    sink.check()
    assert queries_of(mysql_proxy, sink.check) == 2


def test_a_new_connection_is_checked_in_full(table: Table) -> None:
    """It may lead to another server."""
    table.create("id BIGINT, n BIGINT")
    sink = query(table.url, table).sink
    sink.check()
    table.run(f"ALTER TABLE {table} ENGINE=MyISAM")
    sink.check()  # the commit refuses it
    sink.store.session.pool.close_idle()
    with pytest.raises(StoreUnsafe, match="has the engine MyISAM"):
        sink.check()


def test_operator_who_looks_makes_no_tables(mysql: Cursor, mysql_url: str, unique: str) -> None:
    from sparkonce import options
    from sparkonce.store import for_url

    mysql.execute(f"CREATE DATABASE {unique}")
    connector = for_url("mysql://")
    url = mysql_url.rpartition("/")[0] + f"/{unique}"
    parsed = options.parse(connector.options, {"url": url}, complete=False)
    assert connector.connect(parsed).names() == []
    mysql.execute(f"SHOW TABLES FROM {unique}")
    assert mysql.fetchall() == ()


MODES = {
    "append": {},
    "upsert": {"key": "id"},
    "keep": {"key": "id", "nulls": "keep"},
    "increment": {"key": "id", "writeMode": "increment"},
    "update": {"key": "id", "writeMode": "update"},
    "delete": {"key": "id", "writeMode": "delete"},
}


@pytest.fixture
def user(mysql: Cursor, unique: str) -> str:
    mysql.execute(f"CREATE USER {unique} IDENTIFIED BY 'pw'")
    return unique


def grants(database: str, table: str) -> list[str]:
    """The statements of the page, for these names."""
    page = (DOCS / "permissions.md").read_text()
    found = re.findall(r"^GRANT .* TO 'app'@'%';$", page, re.MULTILINE)
    assert len(found) == 4
    return [
        text.replace("shop.orders", f"{database}.{table}").replace("shop.", f"{database}.")
        for text in found
    ]


@pytest.mark.parametrize("mode", MODES)
def test_documented_rights_suffice_and_each_that_is_needed_is_asked_for(
    table: Table, user: str, mode: str
) -> None:
    ((home,),) = table.run("SELECT DATABASE()")
    table.run(f"CREATE DATABASE {user}_db")
    database, url = (
        f"{user}_db",
        table.url.replace("root@", f"{user}:pw@").replace(home, f"{user}_db"),
    )
    table.run(f"CREATE TABLE {database}.{table} (id BIGINT PRIMARY KEY, n BIGINT)")
    owner = query(table.url.replace(home, database), table)
    owner.sink.check()  # makes the connector's own tables
    grant = grants(database, table)
    for statement in grant[1:3]:
        table.run(statement.replace("'app'@'%'", user))
    table.run(f"GRANT SELECT ON {database}.{table} TO {user}")
    with pytest.raises(StoreRefused, match=r"lacks a right: (INSERT|UPDATE|DELETE) command denied"):
        query(url, table, **MODES[mode]).sink.check()
    table.run(grant[0].replace("'app'@'%'", user))
    rows = query(url, table, **MODES[mode], chunkRows="3")
    if mode in ("update", "delete"):
        with pytest.raises(StoreRefused, match=r"Access denied.*grant it as docs"):
            rows.sink.check()
        table.run(grant[3].replace("'app'@'%'", user))
        rows.sink.store.session.pool.close_idle()  # such rights are read when one connects
    rows.sink.check()
    rows.run(0, [{"id": i, "n": i} for i in range(10)])
    rows.run(1, [{"id": i, "n": i} for i in range(10, 20)])
    abandoned = rows.stage(2, [{"id": 30, "n": None}])
    driver = rows.driver(2)
    rows.committer().abort(driver, abandoned)
    assert rows.sink.store.staged(rows.name) == []


def test_wrong_password_is_refused_and_not_shown(mysql: Cursor, mysql_url: str, user: str) -> None:
    mysql.execute(f"GRANT ALL ON *.* TO {user}")
    url = mysql_url.replace("root@", "")
    given = {"user": user, "password": "not-this-one"}
    with pytest.raises(StoreRefused, match="check options user, password") as refused:
        query(url, "t", **given).sink.check()
    assert "not-this-one" not in str(refused.value)


def test_password_comes_from_a_file_and_may_change(
    private_mysql: Private, mysql_name: str, tmp_path: Path
) -> None:
    server, file = private_mysql(), tmp_path / "password"
    plugin = {"mysql": "caching_sha2_password", "mariadb": "mysql_native_password"}[mysql_name]
    with client(server.url) as cursor:
        cursor.execute("CREATE USER app IDENTIFIED BY 'first'")
        cursor.execute("SELECT plugin FROM mysql.user WHERE user = 'app'")
        assert cursor.fetchall() == ((plugin,),)
        cursor.execute("GRANT ALL ON sparkonce_test.* TO app")
        file.write_text("first\n")
        url = server.url.replace("root@", "app@")
        rows = query(url, "t", passwordFile=str(file), createTable="true")
        rows.sink.check()
        rows.run(0, [{"id": 1, "n": 1}])
        cursor.execute("ALTER USER app IDENTIFIED BY 'second'")
        file.write_text("second\n")
        rows.sink.store.session.pool.close_idle()
        rows.run(1, [{"id": 2, "n": 1}])


def test_server_is_verified_and_the_client_shows_its_certificate(
    private_mysql: Private, tmp_path: Path
) -> None:
    for name in ("server", "client"):
        make_certificate(tmp_path, name)
    server = private_mysql(
        f"--ssl-cert={tmp_path}/server.crt",
        f"--ssl-key={tmp_path}/server.key",
        f"--ssl-ca={tmp_path}/client.crt",
    )
    with client(server.url) as cursor:
        cursor.execute("CREATE USER app IDENTIFIED BY 'pw' REQUIRE X509")
        cursor.execute("GRANT ALL ON sparkonce_test.* TO app")
    url = server.url.replace("root@", "app:pw@")
    shown = {"tlsCertFile": f"{tmp_path}/client.crt", "tlsKeyFile": f"{tmp_path}/client.key"}
    rows = query(url, "t", tlsCaFile=f"{tmp_path}/server.crt", createTable="true", **shown)
    rows.sink.check()
    assert rows.run(0, [{"id": 1, "n": 1}]).totals.rows == 1

    for options, said in (
        (shown, r"(?i)certificate verify failed"),
        ({"tlsCaFile": f"{tmp_path}/server.crt"}, "Access denied|user and password"),
        ({"tlsMode": "off"}, "Access denied|user and password"),
    ):
        with pytest.raises(SparkonceError, match=said):
            query(url, "t", **options).sink.check()
    query(url, "t", tlsMode="unverified", **shown).sink.check()


def test_rights_to_single_columns_hide_no_unique_key(table: Table, user: str) -> None:
    """MariaDB shows only keys of columns that one has a right to: row 2 would overwrite row 1."""
    ((home,),) = table.run("SELECT DATABASE()")
    unique_too = "e INT NOT NULL DEFAULT 10 UNIQUE"
    table.create(f"id BIGINT PRIMARY KEY, n BIGINT, {unique_too}")
    table.run(f"INSERT INTO {table} VALUES (1, 1, 10)")
    query(table.url, table, key="id").sink.check()  # makes the connector's own tables
    table.run(f"GRANT SELECT (id, n), INSERT (id, n), UPDATE (id, n) ON {table} TO {user}")
    for own in ("ledger", "log"):
        rights = "SELECT, INSERT, UPDATE, DELETE"
        table.run(f"GRANT {rights} ON {home}.sparkonce_{own} TO {user}")
    of_user = query(table.url.replace("root@", f"{user}:pw@"), table, key="id")
    with suppress(SparkonceError):  # MariaDB refuses the user, MySQL the row
        of_user.sink.check()
        of_user.run(0, [{"id": 2, "n": 5}])
    assert table.rows() == ((1, 1, 10),)


PAGE = (Path(__file__).parents[2] / "docs" / "permissions.md").read_text()


@pytest.fixture
def database(mysql: Cursor, unique: str) -> str:
    mysql.execute(f"CREATE DATABASE {unique}")
    mysql.execute(f"CREATE TABLE {unique}.orders (id BIGINT PRIMARY KEY, n TINYINT)")
    mysql.execute(f"CREATE USER {unique} IDENTIFIED BY 'pw'")
    return unique


def test_an_operator_needs_no_more(mysql: Cursor, mysql_url: str, database: str) -> None:
    url = f"{mysql_url.rpartition('/')[0]}/{database}"
    aside = {"onBadRow": "deadLetter", "deadLetter": "orders_bad", "maxBadRows": "100%"}
    query = MySqlQuery(COUNTER, url=url, dbtable="orders", key="id", **aside)
    query.sink.check()
    query.run(0, [{"id": 1, "n": 1000}])
    query.sink.store.stage(Chunk(query.task(0, 0), 0, 1, b"of a task that comes late"))

    def grant(for_what: str) -> None:
        """Also where a line says that it is for the same as the one before."""
        lines = re.findall(r"^(GRANT .*?) TO 'ops'@'%'; -- (.*)$", PAGE, re.M)
        told = ""
        for statement, what in lines:
            told = told if what == "the same" else what
            if told == for_what:
                mysql.execute(f"{statement.replace('shop.', f'{database}.')} TO '{database}'")

    def said(command: str, *rest: str) -> str:
        own = url.replace("root@", f"{database}:pw@")
        return CliRunner().invoke(main, [command, own, *rest]).output

    grant("status, metrics")
    assert query.name in said("status")
    assert "sparkonce_rows_total" in said("metrics")
    assert "command denied" in said("doctor")
    assert "command denied" in said("gc", "--yes", "--grace", "0s")
    grant("gc, forget")
    assert "1 dropped" in said("gc", "--yes", "--grace", "0s")
    assert "command denied" in said("letters", "-o", "deadLetter=orders_bad")
    grant("letters")
    assert "1 letters" in said("letters")
    assert "1 letters deleted" in said("letters", "orders_bad", "--delete", "--yes")
    assert "is forgotten" in said("forget", query.name, "--yes")
