"""Recordings of MySQL and MariaDB: one database, as SQL."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING
from urllib.parse import urlsplit, urlunsplit

from integration.counters import COUNTER
from integration.epochs import MySqlQuery
from integration.history.story import CHUNK, QUERY, tell
from integration.servers.mysql import connect

from pyspark_mysql.connector import MySqlConnector

if TYPE_CHECKING:
    from pymysql.cursors import Cursor

DATABASE = "sparkonce_history"
TARGET = "CREATE TABLE counters (id BIGINT PRIMARY KEY, n BIGINT) ENGINE=InnoDB"
TABLES = ("counters", "sparkonce_ledger", "sparkonce_log")


def query(url: str) -> MySqlQuery:
    made = MySqlQuery(
        COUNTER,
        url=_inside(url),
        dbtable="counters",
        key="id",
        writeMode="increment",
        atomicity="chunk",
        chunkRows=CHUNK,
    )
    made.query_id = QUERY
    return made


def record(url: str) -> str:
    statements = [TARGET, *MySqlConnector().ddl()]
    load(url, ";\n".join(statements))
    tell(query(url))
    with connect(_inside(url)) as client, client.cursor() as cursor:
        rows = [insert for table in TABLES for insert in _inserts(cursor, table)]
    drop(url)
    return ";\n".join([*statements, *rows]) + "\n"


def load(url: str, recording: str) -> None:
    drop(url)
    with connect(url) as client, client.cursor() as cursor:
        cursor.execute(f"CREATE DATABASE {DATABASE} CHARACTER SET utf8mb4")
        cursor.execute(f"USE {DATABASE}")
        for statement in recording.split(";\n"):
            if statement.strip():
                cursor.execute(statement)


def drop(url: str) -> None:
    with connect(url) as client, client.cursor() as cursor:
        cursor.execute(f"DROP DATABASE IF EXISTS {DATABASE}")


def counts(url: str) -> Counter[int]:
    with connect(_inside(url)) as client, client.cursor() as cursor:
        cursor.execute("SELECT id, n FROM counters")
        return Counter(dict(cursor.fetchall()))


def _inside(url: str) -> str:
    return urlunsplit(urlsplit(url)._replace(path=f"/{DATABASE}"))


def _inserts(cursor: Cursor, table: str) -> list[str]:
    cursor.execute(
        f"SELECT * FROM {table} ORDER BY 1, 2, 3, 4"
        if table == TABLES[2]
        else f"SELECT * FROM {table} ORDER BY 1"
    )
    columns = ", ".join(name for name, *_ in cursor.description)
    return [
        f"INSERT INTO {table} ({columns}) VALUES ({', '.join(map(_literal, row))})"
        for row in cursor.fetchall()
    ]


def _literal(value: object) -> str:
    if isinstance(value, str):
        value = value.encode()
    return f"X'{value.hex()}'" if isinstance(value, bytes) else str(value)
