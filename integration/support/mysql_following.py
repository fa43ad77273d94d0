"""What tests of `spark.readStream.format("mysql")` share."""

from __future__ import annotations

from typing import Any

import pyarrow as pa
from integration.support.servers.mysql import MySqlProcess, private_binary
from integration.support.servers.process import wait_until
from pymysql.cursors import Cursor

from pyspark_mysql.connector import MySqlConnector
from pyspark_mysql.follow.feed import MySqlFeed
from sparkonce import options
from sparkonce.reading import Position, Scan

LOGGED = ("--log-bin=b", "--server-id=1", "--binlog-format=ROW")
GTIDS = {"mysql": ("--gtid-mode=ON", "--enforce-gtid-consistency=ON"), "mariadb": ()}
"""By the name of a server: how it is started, so that it can be followed."""


def logging_server(name: str) -> MySqlProcess:
    """Start one."""
    return MySqlProcess(private_binary(name), *LOGGED, *GTIDS[name])


def purge(mysql: Cursor) -> None:
    """Let the server forget all logs but the last; one that was just sent to a reader may stay."""

    def one_is_left() -> bool:
        mysql.execute("SHOW BINARY LOGS")
        *old, last = mysql.fetchall()
        mysql.execute(f"PURGE BINARY LOGS TO '{last[0]}'")
        return not old

    wait_until(one_is_left, 30, "the server keeps its logs")


def feed(url: str, table: str, schema: pa.Schema | None = None, **raw: str) -> MySqlFeed:
    """A table's changes, of all its columns or those of a schema, from now on."""
    given = {"url": url, "dbtable": table, "startingPosition": "latest", **raw}
    parsed = options.parse(MySqlConnector.follows, given)
    schema = schema or MySqlConnector().infer_feed(parsed)
    return MySqlConnector().feed(parsed, Scan(schema))


def planned(made: MySqlFeed) -> Position:
    """Where the first epoch ends."""
    return made.advance(made.begin(), made.latest(), None)


def read(made: MySqlFeed, after: Position, end: Position) -> pa.Table:
    """What lies between two positions."""
    batches = [one for split in made.between(after, end) for one in made.read(split)]
    return pa.Table.from_batches(batches, made.schema)


def rows(made: MySqlFeed, after: Position, end: Position) -> list[dict[str, Any]]:
    """The same, row by row."""
    return read(made, after, end).to_pylist()


def told(made: MySqlFeed, after: Position, end: Position, *names: str) -> list[tuple[Any, ...]]:
    """The same, with what happened to each row, and these of its columns."""
    return [tuple(row[name] for name in ("_op", *names)) for row in rows(made, after, end)]


def between(made: MySqlFeed, after: Position, end: Position) -> str:
    """The transactions between two positions."""
    return made._gtids(after["gtids"]).lacks(end["gtids"])
