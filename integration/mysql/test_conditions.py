"""Conditions on values that an index, a partition or a query has otherwise than a read row."""

from __future__ import annotations

import datetime as dt
from decimal import Decimal

import pytest
from integration.support.mysql_reading import source, values
from pymysql.cursors import Cursor

from pyspark_mysql.connector import MySqlConnector
from sparkonce import options
from sparkonce.errors import OptionError
from sparkonce.reading import Compare, Filter, Scan
from sparkonce.tck.conditions import holds

TABLES = {
    "the index of a virtual column": (
        "(id INT, at TIMESTAMP, v DATE AS (DATE(at)) VIRTUAL, KEY (v))",
        "(id, at) VALUES (1, '2020-01-01 05:00:00')",
        Compare("v", "=", dt.date(2019, 12, 31)),
    ),
    "two zeros in memory": (
        "(id INT, v DOUBLE, KEY (v) USING HASH) ENGINE=MEMORY",
        "VALUES (1, 0e0), (2, -0e0)",
        Compare("v", "=", 0.0),
    ),
    "two zeros in partitions": (
        "(id INT, v DOUBLE) PARTITION BY KEY (v) PARTITIONS 7",
        "VALUES (1, 0e0), (2, -0e0)",
        Compare("v", "=", 0.0),
    ),
    "a fraction of a second in partitions": (
        "(id INT, v DATETIME(6)) PARTITION BY RANGE (TO_SECONDS(v)) (PARTITION a VALUES LESS THAN"
        " (TO_SECONDS('2000-01-01')), PARTITION b VALUES LESS THAN MAXVALUE)",
        "VALUES (1, '2000-01-01 00:00:00')",
        Compare("v", "<", dt.datetime(2000, 1, 1, microsecond=500_000)),
    ),
}
QUERIES = {
    "digits of a double": ("SELECT a + b AS v FROM {}", Compare("v", "<=", 0.3)),
    "digits of a mean": ("SELECT AVG(c) AS v FROM {}", Compare("v", "=", Decimal("1.333333"))),
}


def _found(url: str, asked: Filter | None, **raw: str) -> list[object]:
    """The values of v that match, of a read with a condition, or all of one without."""
    parsed = options.parse(MySqlConnector.reads, {"url": url, **raw})
    scan = Scan(MySqlConnector().infer(parsed), (asked,) if asked else ())
    return values(MySqlConnector().source(parsed, scan))["v"].to_pylist()


@pytest.mark.parametrize("case", TABLES)
def test_a_condition_loses_no_row_of_a_table(
    mysql: Cursor, mysql_url: str, table: str, case: str
) -> None:
    definition, rows, condition = TABLES[case]
    mysql.execute("SET SESSION time_zone='+10:00'")
    mysql.execute(f"CREATE TABLE {table} {definition}")
    mysql.execute(f"INSERT INTO {table} {rows}")
    plain = [one for one in _found(mysql_url, None, dbtable=table) if holds(one, condition)]
    pushed = [one for one in _found(mysql_url, condition, dbtable=table) if holds(one, condition)]
    assert len(plain) == len(pushed) > 0


@pytest.mark.parametrize("how", ["query", "view"])
@pytest.mark.parametrize("case", QUERIES)
def test_no_condition_goes_into_a_query_or_a_view(
    mysql: Cursor, mysql_url: str, table: str, case: str, how: str
) -> None:
    query, condition = QUERIES[case]
    mysql.execute(f"CREATE TABLE {table} (a DOUBLE(10,2), b DOUBLE(10,2), c DECIMAL(10,2))")
    mysql.execute(f"INSERT INTO {table} VALUES (0.1, 0.2, 1), (0.2, 0.2, 1), (1, 0.2, 2)")
    sql = query.format(table)
    if how == "view":
        mysql.execute(f"CREATE VIEW {table}_view AS {sql}")
    raw = {"query": sql} if how == "query" else {"dbtable": f"{table}_view"}
    assert len(_found(mysql_url, condition, **raw)) == len(_found(mysql_url, None, **raw))
    mysql.execute(f"DROP VIEW IF EXISTS {table}_view")


def test_a_virtual_column_makes_no_ranges(mysql: Cursor, mysql_url: str, table: str) -> None:
    """A split that reads the index would have other rows than one that reads the table."""
    mysql.execute(f"CREATE TABLE {table} (at TIMESTAMP, v DATE AS (DATE(at)) VIRTUAL, KEY (v))")
    ranged = {"partitionColumn": "V", "lowerBound": "2020-01-01", "upperBound": "2021-01-01"}
    with pytest.raises(OptionError, match="a virtual column"):
        source(mysql_url, None, dbtable=table, **ranged)[1].splits()
