"""What a read sends to the server: tables and queries of every spelling, rights, and how often."""

from __future__ import annotations

from typing import Any

import pytest
from integration.support.mysql_drawn_columns import SIMPLE
from integration.support.mysql_reading import source, values
from integration.support.servers.mysql import connect
from pymysql.cursors import Cursor

from pyspark_mysql.read import ranges
from pyspark_mysql.read.columns import _described, described
from pyspark_mysql.read.source import relation
from sparkonce.errors import OptionError, SparkonceError, StoreRefused


@pytest.fixture
def three(mysql: Cursor, table: str) -> str:
    mysql.execute(f"CREATE TABLE {table} (id INT PRIMARY KEY, v VARCHAR(20), secret INT)")
    mysql.execute(f"INSERT INTO {table} VALUES (1, 'a', 7), (2, 'b;', 7), (3, '--', 7)")
    return table


def test_columns_are_described_as_if_they_were_read(
    mysql: Cursor, mysql_url: str, table: str
) -> None:
    """Of a statement that is only prepared: each type, alone, in a view, and in an expression."""
    columns = ", ".join(f"c{at} {kind}" for at, kind in enumerate(SIMPLE))
    mysql.execute("SET SESSION sql_mode=''")
    mysql.execute(f"CREATE TABLE {table} ({columns})")
    mysql.execute(f"CREATE VIEW {table}_view AS SELECT * FROM {table}")
    sums = ", ".join(f"MAX(c{at}) m{at}, CONCAT(c{at}, '') t{at}" for at in range(len(SIMPLE)))
    queries = (
        {"dbtable": table},
        {"dbtable": f"{table}_view"},
        {"query": f"SELECT {sums} FROM {table} GROUP BY c0"},
        {"query": f"SELECT c1 AS a, NULL AS b, c1 / 3 AS c FROM {table} UNION SELECT 1, 'x', 2"},
    )
    for raw in queries:
        _, made = source(mysql_url, None, **raw)
        name = made.relation
        with made.session.connected() as live:
            read = live.sent(f"SELECT * FROM {name} LIMIT 0")._result.fields
        found = described(made.session, name)
        assert [one.natural for one in found] == [_described(one).natural for one in read], raw
        assert [one.name for one in found] == [one.name for one in read]
    mysql.execute(f"DROP VIEW {table}_view")


ENDS = ("", ";", " ;; ", " -- all", "; -- all", " # all", "; /* all; */ ", "\n--\n;", " /*! */;")


@pytest.mark.parametrize("end", ENDS)
def test_a_query_may_end_as_in_a_script(mysql_url: str, three: str, end: str) -> None:
    query = f"SELECT id, v FROM {three} WHERE v IN ('b;', \"--\") /* two; */{end}"
    _, made = source(mysql_url, None, query=query)
    assert sorted(values(made)["v"].to_pylist()) == ["--", "b;"]


@pytest.mark.parametrize("spelling", ["({}) AS t", "( {} ) t", "({})", "({} -- all\n) `a b`"])
def test_a_subquery_as_spark_has_it(mysql_url: str, three: str, spelling: str) -> None:
    table = spelling.format(f"SELECT id FROM {three} WHERE id > 1")
    _, made = source(mysql_url, None, dbtable=table)
    assert sorted(values(made)["id"].to_pylist()) == [2, 3]
    bounds = {"partitionColumn": "id", "lowerBound": "1", "upperBound": "4"}
    _, ranged = source(mysql_url, None, dbtable=table, numPartitions="2", **bounds)
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
        ({"query": "SELEC 1"}, "can't read what options .* say.* and read again"),
        ({"query": "SELECT nosuch FROM {}"}, "can't read what options .* say.* and read again"),
        ({"dbtable": "nosuch"}, "can't read what options .* say.* and read again"),
    ],
)
def test_what_is_no_read_is_refused_by_name(
    mysql_url: str, three: str, raw: dict[str, str], said: str
) -> None:
    with pytest.raises(SparkonceError, match=said):
        values(source(mysql_url, None, **{k: v.format(three) for k, v in raw.items()})[1])


def test_rights_to_some_columns_are_enough_for_these(mysql_url: str, three: str, user: Any) -> None:
    name = user(f"GRANT SELECT (id, v) ON {three} TO {{}}")
    url = mysql_url.replace("root@", f"{name}:secret@")
    _, made = source(url, None, dbtable=three, columns="ID,v")
    assert sorted(values(made.__class__(made.session, made.options, made.scan))["v"].to_pylist())
    with pytest.raises(StoreRefused, match="lacks a right"):
        source(url, None, dbtable=three)


@pytest.fixture
def user(mysql: Cursor, unique: str) -> Any:
    """Make a user with a right, for the time of the test; its name."""
    made = list[str]()

    def make(grant: str) -> str:
        name = f"u{unique[-12:]}"
        made.append(name)
        mysql.execute(f"CREATE USER '{name}'@'%' IDENTIFIED BY 'secret'")
        mysql.execute(grant.format(f"'{name}'@'%'"))
        return name

    yield make
    for name in made:
        mysql.execute(f"DROP USER '{name}'@'%'")


def test_a_key_that_is_invisible_divides_a_table(
    mysql: Cursor, mysql_url: str, mysql_name: str, table: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Some providers give each table without a key such a one."""
    monkeypatch.setattr(ranges, "FEW", 10)
    if mysql_name == "mysql":
        mysql.execute("SET SESSION sql_generate_invisible_primary_key=1")
        mysql.execute(f"CREATE TABLE {table} (v INT)")
    else:
        mysql.execute(
            f"CREATE TABLE {table} (hidden INT AUTO_INCREMENT INVISIBLE PRIMARY KEY, v INT)"
        )
    mysql.execute(f"INSERT INTO {table} (v) VALUES {', '.join(f'({at})' for at in range(500))}")
    mysql.execute(f"ANALYZE TABLE {table}")
    known, made = source(mysql_url, None, dbtable=table)
    assert known.names == ["v"]
    assert len(made.splits()) > 1
    assert sorted(values(made)["v"].to_pylist()) == [*range(500)]


def test_a_query_runs_once(private_mysql: Any) -> None:
    """Its columns are asked for without it: it may take an hour."""
    server = private_mysql("--general-log=1", "--log-output=TABLE")
    with connect(server.url) as client, client.cursor() as reader:
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


def test_options_name_a_table_or_a_query() -> None:
    with pytest.raises(OptionError, match="one of them says what is read"):
        relation({"dbtable": None, "query": None, **dict.fromkeys(BOUNDS)})


BOUNDS = ("partitionColumn", "lowerBound", "upperBound")
