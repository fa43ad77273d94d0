"""Whatever statements a table is changed by: a stream gives its content, or stops by name."""

from __future__ import annotations

import random
from collections.abc import Iterator
from contextlib import closing, contextmanager, suppress
from pathlib import Path
from typing import Any

import pymysql
import pytest
from integration.support.mysql_drawn_statements import Drawn, draw
from integration.support.mysql_following import feed, logging_server, rows
from integration.support.servers.finder import or_skip
from integration.support.servers.mysql import MySqlProcess, connect
from pymysql.cursors import Cursor

from sparkonce.errors import SparkonceError

SETUP = [
    "CREATE DATABASE {db} CHARACTER SET utf8mb4",
    "CREATE DATABASE {db}2",
    "USE {db}",
    "CREATE TABLE t (id INT PRIMARY KEY, n INT, s VARCHAR(20), KEY k (n)) {how}",
    "CREATE TABLE o (id INT PRIMARY KEY, n INT, s VARCHAR(20), KEY k (n)) {others}",
    "CREATE TABLE {db}2.t (id INT PRIMARY KEY, n INT, s VARCHAR(20))",
    "INSERT INTO t VALUES (1, 1, 'a'), (2, 1, 'b'), (3, 3, NULL)",
    "INSERT INTO o VALUES (1, 1, 'a'), (2, 2, 'b')",
    "CREATE VIEW v AS SELECT * FROM t",
    "CREATE VIEW {db}2.v AS SELECT * FROM t",
    "CREATE TRIGGER into_t AFTER INSERT ON o FOR EACH ROW UPDATE t SET n = n + NEW.n",
    "CREATE FUNCTION f(a INT) RETURNS INT DETERMINISTIC MODIFIES SQL DATA"
    " BEGIN INSERT INTO t VALUES (a, 3, 'f'); RETURN 1; END",
    "CREATE PROCEDURE change_t() UPDATE t SET n = n - 1 WHERE id = 1",
]
CLEANUP = [
    "SET foreign_key_checks = 0",
    *(f"DROP DATABASE IF EXISTS {{db}}{at}" for at in ("", "2", "3")),
    "DROP USER IF EXISTS {db}@localhost",
]
PARTS = "PARTITION BY RANGE (id) (PARTITION p0 VALUES LESS THAN (100),"
PARTS += " PARTITION p1 VALUES LESS THAN (1000))"
FORMS = ["", "", PARTS, "ENGINE=MyISAM"]
DEFINITION = """
SELECT column_name, column_type, column_key = 'PRI' FROM information_schema.columns
WHERE table_schema = DATABASE() AND table_name = 't' ORDER BY ordinal_position
"""


@pytest.fixture(scope="module")
def server(mysql_name: str) -> Iterator[MySqlProcess]:
    with or_skip(lambda: logging_server(mysql_name)) as one:
        with closing(connect(one.url)) as client, client.cursor() as cursor:
            cursor.execute("SET GLOBAL binlog_row_metadata = FULL")
            cursor.execute("SET GLOBAL log_bin_trust_function_creators = 1")
        yield one


@contextmanager
def a_database(server: MySqlProcess, seed: int) -> Iterator[tuple[Cursor, str]]:
    """One with a table that may be changed by others, and its name."""
    db, dice = f"d{seed}", random.Random(seed)
    known = {"db": db, "how": dice.choice(FORMS), "others": dice.choice(FORMS)}
    with closing(connect(server.url)) as client, client.cursor() as mysql:
        try:
            for one in SETUP:
                mysql.execute(one.format(**known))
            yield mysql, db
        finally:
            for one in CLEANUP:
                mysql.execute(one.format(**known))


def outcome(server: MySqlProcess, seed: int, file: Path) -> str:
    """Run a statement that is drawn, between others that change rows, and follow the table.

    Returns:
        What came of it: "followed", "stopped" or "refused by the server".
    """
    with a_database(server, seed) as (mysql, db):
        drawn, url = draw(seed, db, str(file)), server.url.replace("/sparkonce_test", f"/{db}")
        made = feed(url, "t")
        begin, expected, definition = made.begin(), _content(mysql), _definition(mysql)
        mysql.execute("INSERT INTO t VALUES (7, 7, 'before')")
        done = _run(url, drawn)
        with suppress(pymysql.MySQLError):
            mysql.execute("UPDATE t SET s = 'after' WHERE id IN (1, 7)")
        try:
            found = rows(feed(url, "t", made.schema), begin, made.latest())
        except SparkonceError as error:
            if drawn.harmless and done:
                pytest.fail(f"{drawn} stops the stream: {error}")
            return "stopped"
        assert _definition(mysql) == definition, f"{drawn} passes unseen"
        assert _replayed(expected, found) == _content(mysql), f"{drawn} is lost"
        return "followed" if done else "refused by the server"


def _definition(mysql: Cursor) -> tuple[tuple[Any, ...], ...]:
    mysql.execute(DEFINITION)
    return mysql.fetchall()


def _run(url: str, drawn: Drawn) -> bool:
    """Whether the server did it."""
    with closing(connect(url)) as client, client.cursor() as session:
        session.execute("SET @a = 55")
        for name, value in drawn.settings.items():
            sign = " " if name == "NAMES" else "="
            with suppress(pymysql.MySQLError):
                session.execute(f"SET {name}{sign}'{value}'")
        done = False
        for one in drawn.text.split("|"):
            with suppress(pymysql.MySQLError):
                session.execute(one.encode())
                done = True
        return done


def _content(mysql: Cursor) -> dict[int, Any]:
    mysql.execute("SELECT id, n, s FROM t")
    return {row[0]: row for row in mysql.fetchall()}


def _replayed(content: dict[int, Any], changes: list[dict[str, Any]]) -> dict[int, Any]:
    for change in changes:
        row = (change["id"], change["n"], change["s"])
        if change["_op"] == "d":
            content.pop(row[0])
        else:
            content[row[0]] = row
    return content


def outcomes(server: MySqlProcess, seeds: list[int], folder: Path) -> list[str]:
    file = folder / "rows"
    file.write_text("88\t8\tloaded\n")
    for one in (folder, *folder.parents[:2]):
        one.chmod(0o755)
    return [outcome(server, seed, file) for seed in seeds]


def test_a_table_is_followed_or_its_stream_stops(server: MySqlProcess, tmp_path: Path) -> None:
    seeds = random.sample(range(10**6), 25)
    found = outcomes(server, seeds, tmp_path)
    assert "followed" in found


@pytest.mark.slow
def test_a_table_is_followed_or_its_stream_stops_by_many(
    server: MySqlProcess, tmp_path: Path
) -> None:
    outcomes(server, random.sample(range(10**6), 400), tmp_path)
